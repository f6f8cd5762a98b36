"""Schedules of flows cut into chunks: construction, lowering to programs, and verification by simulation.

collective_steps    moves of chunks in steps: executed, and made from packed trees for collectives that copy and sum
sequence_schedule   chunks over circuits that change, with their times; sequence_simulator executes them
shard_routes        shares of a commodity along paths, read off a flow, and their division into whole chunks
link_schedule       moves of an all-to-all along its routes; tables of routes, checked
lowering            schedules as programs, and solutions as files
program_layout      thread blocks, channels, buffers and dependencies of a program
msccl_xml           programs as MSCCL XML, written and read
schedule_json       schedules as JSON, written and read
verification        any schedule file, executed on a topology
interpreter         execution of programs; static_checks are made before, runtimes are their limits

Programs are made of thread blocks, as the MSCCL interpreter runs them.
A rank has three chunk buffers: input ``i``, output ``o``, scratch ``s``. A thread block sends to at most one rank
and receives from at most one, over one channel, and executes its instructions in order:

    s     send src                            r     receive into dst
    cpy   src to dst                          re    dst + src into dst
    rcs   receive into dst and send on        rrc   receive, + src, into dst
    rrs   receive, + src, send on             rrcs  receive, + src, into dst and send on
    nop   no operation: carries one more dependency of the next instruction

An instruction may wait until another thread block of its rank has finished a step (``waits``); a thread block
publishes its progress only at instructions that ``signal``.

Collectives. N ranks, D chunks per shard; every chunk of a result is a sum of contributions (origin rank, index there).

    alltoall        input of r: N D chunks, [t D + c] for rank t;     output of r: [s D + c] = [r D + c] of s
    allgather       input of r: D chunks;                             output of r: [s D + c] = [c] of s
    reducescatter   input of r: N D chunks;                           output of r: [c] = sum over s of its [r D + c]
    allreduce       input of r: C chunks;                             output of r: [c] = sum over s of its [c]

In place, input and output share memory: entirely for alltoall and allreduce; the input of allgather is the part
[r D, (r+1) D) of its output, and the output of reducescatter that part of its input.
"""
