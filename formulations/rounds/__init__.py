"""Collectives in rounds of optical circuits: collectives, schedules of rounds, and their independent check."""
