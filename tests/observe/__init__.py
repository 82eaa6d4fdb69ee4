"""What a cluster says of itself."""
