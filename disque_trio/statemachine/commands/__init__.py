"""The commands of clients: `table` has one row for each."""
