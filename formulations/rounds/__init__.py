"""Collectives in rounds of optical circuits: what is to be moved, a schedule of rounds, and its independent check."""
