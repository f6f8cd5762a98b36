"""Formulations of the all-to-all paper: schedules for direct-connect topologies."""

PAPER = "Efficient all-to-all collective communication schedules for direct-connect topologies"
