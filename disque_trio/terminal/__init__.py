"""What programs write to the terminal: texts by others are escaped here. Any module may import
it."""
