"""Schedules: flows cut into chunks, lowered to programs, executed and proven by a simulator that calls no solver.

routes          shares of a commodity along paths, with or without steps, out of any flow
chunking        shares as whole chunks: the smallest common chunk within a bound, and the loss it costs
link_schedule   steps x (arc, chunk): from routes with steps, or by list scheduling; loads and alpha-beta time
lowering        a link schedule as a program: thread blocks, buffers, dependencies
msccl_xml       programs as MSCCL XML, written and read
schedule_json   link schedules and routes as JSON, written and read
interpreter     executes programs
link_execution  executes link schedules and routes
verification    any such file against a topology
"""
