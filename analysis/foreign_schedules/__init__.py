"""Schedules of other tools, read and executed on topologies: TE-CCL, msccl-tools (SCCL) and ForestColl."""
