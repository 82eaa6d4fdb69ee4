"""The rooms of the trio engine: virtual time, and a simulated world around the real shell."""
