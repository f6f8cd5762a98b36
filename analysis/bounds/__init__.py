"""Analytic bounds of instances, and bounds tested on many instances."""
