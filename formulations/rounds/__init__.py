"""Collectives in rounds of optical circuits: collectives, wavelengths, schedules and their check."""
