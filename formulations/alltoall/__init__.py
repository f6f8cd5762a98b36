"""All-to-all as maximum concurrent flow on direct-connect topologies (paper: all-to-all schedules)."""

PAPER = "Efficient all-to-all collective communication schedules for direct-connect topologies"
