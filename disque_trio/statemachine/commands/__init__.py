"""What clients may ask: `table` has one row for each command."""
