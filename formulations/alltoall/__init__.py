"""Formulations of the all-to-all paper: schedules for direct-connect topologies.

Shared by time-stepped schedules: a topology unrolled over time steps (which vertices hold data between steps, how many
steps a path takes, what it costs).
"""
