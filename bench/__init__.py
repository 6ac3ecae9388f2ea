"""Measurements: `make bench`. Nothing of the program imports this."""
