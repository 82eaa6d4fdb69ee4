"""The virtual engine: whole nodes on an event heap."""
