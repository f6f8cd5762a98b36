"""Schedules of flows cut into chunks: construction, lowering to programs, and verification by simulation.

shard_routes    shares of a commodity along paths, read off a flow, and their division into whole chunks
link_schedule   steps of (arc, chunk): from timed routes or by list scheduling; execution and alpha-beta time
lowering        a link schedule as a program: thread blocks, buffers, dependencies
program         programs, collectives and verdicts
msccl_xml       programs as MSCCL XML, written and read
schedule_json   link schedules and routes as JSON, written and read
foreign_schedules   schedules of TE-CCL, msccl-tools and ForestColl, read and executed
interpreter     execution of programs
verification    any schedule file against a topology
"""
