"""Programs to copy from, kept working by tests."""
