"""One module for each command, with its name, as Django requires."""
