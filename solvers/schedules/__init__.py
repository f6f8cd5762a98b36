"""Schedules of flows cut into chunks: construction, lowering to programs, and verification by simulation."""
