"""Patterns of algorithms on a machine: routes, wavelengths and rounds for what a pattern sends."""
