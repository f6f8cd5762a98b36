"""Readers of untrusted files: topologies, demands and graphs that others wrote."""
