"""A cluster of real processes that is rolled from an earlier commit to this version and back."""
