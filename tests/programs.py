"""Programs for the simulator's tests, and a simple reference executor: threads in any order."""

from __future__ import annotations

from dataclasses import replace

from opticoll.instances import parse
from opticoll.solvers.schedules.program import (
    READS,
    RECEIVES,
    SENDS,
    WRITES,
    Instruction,
    Place,
    Program,
    Rank,
    ThreadBlock,
)
from opticoll.solvers.schedules.verification import execute_program


def executed(program):
    """The verdict on a program of ranks that links join pair by pair."""
    return execute_program(program, parse(f"complete:{len(program.ranks)}"))


def step(kind, source=("i", 0), target=("o", 0), count=1, waits=None, signals=False):
    return Instruction(kind, Place(*source), Place(*target), count, waits, signals)


def ring(collective, n, inplace=False):
    """The textbook ring: one thread block a rank that receives from the left and sends to the right."""
    D = 1
    size = n if collective != "allgather" else 1
    ranks = []
    for r in range(n):
        block = ThreadBlock(0, (r + 1) % n, (r - 1) % n, 0)
        put = block.instructions.append
        if collective == "allgather":
            put(step("cpy", ("i", 0), ("o", r)))
            put(step("s", ("o", r), ("o", r)))
            for k in range(1, n - 1):
                put(step("rcs", ("o", (r - k) % n), ("o", (r - k) % n)))
            put(step("r", ("o", (r + 1) % n), ("o", (r + 1) % n)))
        else:  # chunk c starts at rank c+1 and ends, summed, at rank c
            start = ("i", (r - 1) % n)
            put(step("s", start, start))
            for k in range(2, n):
                current = ("i", (r - k) % n)
                put(step("rrs", current, current))
            if collective == "reducescatter":
                put(step("rrc", ("i", r), ("o", 0)))
            else:
                put(step("rrcs", ("i", r), ("o", r)))
                for k in range(1, n - 1):
                    put(step("rcs", ("o", (r - k) % n), ("o", (r - k) % n)))
                put(step("r", ("o", (r + 1) % n), ("o", (r + 1) % n)))
        outputs = 1 if collective == "reducescatter" else n
        ranks.append(Rank({"i": size, "o": outputs, "s": 0}, {0: block}))
    return Program(f"ring {collective}", collective, n * D, ranks, inplace)


def all_pairs_allreduce(n):
    """In place: everybody sends its chunk to everybody (send before receive in one block), then sums from scratch."""
    ranks = []
    for r in range(n):
        peers = [p for p in range(n) if p != r]
        blocks = {}
        for b, p in enumerate(peers):
            blocks[b] = ThreadBlock(
                b, p, p, 0, [step("s", ("i", 0), ("s", 0)), step("r", ("s", b), ("s", b), signals=True)]
            )
        last = ThreadBlock(len(peers), -1, -1, 0)
        for b in range(len(peers)):
            # A send of the chunk must be over before the sum overwrites it: wait for the step after it.
            last.instructions.append(step("nop", waits=(b, 1)))
        last.instructions += [
            step("re", ("s", b), ("i", 0), waits=(0, 1) if b == 0 else None) for b in range(len(peers))
        ]
        blocks[len(peers)] = last
        ranks.append(Rank({"i": 1, "o": 1, "s": len(peers)}, blocks))
    return Program("all pairs", "allreduce", 1, ranks, inplace=True)


def naive_outcome(program, random):
    """Run thread blocks in a random order, unlimited buffers: 'right', 'wrong' or 'stuck'."""
    memory = [{} for _ in program.ranks]
    queues, done = {}, {}
    blocks = [(v, block) for v, rank in enumerate(program.ranks) for block in rank.blocks.values()]
    done = {(v, b.number): 0 for v, b in blocks}

    def at(v, place, c):
        return program.located(v, Place(place.buffer, place.offset + c))

    def read(v, place, c):
        result = at(v, place, c)
        return memory[v].get(result, program.initial(v, result) or ("nothing",))

    def passed(v, b, s):
        instructions = program.ranks[v].blocks[b].instructions
        return any(instructions[j].signals for j in range(s, done[v, b]) if instructions[j].kind != "nop")

    def possible(v, b):
        if done[v, b.number] >= len(b.instructions):
            return False
        one = b.instructions[done[v, b.number]]
        if one.waits is not None and not passed(v, *one.waits):
            return False
        return one.kind not in RECEIVES or bool(queues.get((b.receive, v, b.channel)))

    while True:
        able = [(v, b) for v, b in blocks if possible(v, b)]
        if not able:
            break
        v, b = able[random.randrange(len(able))]
        one = b.instructions[done[v, b.number]]
        values = queues[b.receive, v, b.channel].pop(0) if one.kind in RECEIVES else []
        if one.kind in READS:
            current = [read(v, one.source, c) for c in range(one.count)]
            values = [tuple(sorted(x + y)) for x, y in zip(values, current, strict=True)] if values else current
        if one.kind == "re":
            there = [read(v, one.target, c) for c in range(one.count)]
            values = [tuple(sorted(x + y)) for x, y in zip(there, values, strict=True)]
        if one.kind in WRITES:
            for c, value in enumerate(values):
                memory[v][at(v, one.target, c)] = value
        if one.kind in SENDS:
            queues.setdefault((v, b.send, b.channel), []).append(values)
        done[v, b.number] += 1
    if any(done[v, b.number] < len(b.instructions) for v, b in blocks):
        return "stuck"
    right = all(read(v, place, 0) == wanted for v in range(len(program.ranks)) for place, wanted in program.demanded(v))
    return "right" if right else "wrong"


def two_phase_allreduce(n, channels=1):
    """In place, every rank sums one part of the buffer and sends it to all, on every channel for itself.

    Blocks, dependencies and places are those of the all-pairs files that Azure/msccl-executor-nccl ships
    (src/tools/msccl-algorithms/ap2ll.xml at commit c26424d: n=8, channels=2).
    """
    ranks = []
    for r in range(n):
        peers = [p for p in range(n) if p != r]
        blocks = {}

        def number(k, channel):  # the block that sums chunk k of the own part; block of the first one has no peer
            return k * channels + channel

        for channel in range(channels):
            half, spare = channel * n * n, channel * n * (n - 1)
            sums = [
                [step("re", ("s", spare + n * j + k), ("i", half + r * n + k)) for j in range(n - 1)] for k in range(n)
            ]
            arrived = [(number(k, channel), 1) for k in range(1, n)]
            summed = [(number(0, channel), 2 * n - 4)]
            summed += [(number(k, channel), 2 * n - 3) for k in range(1, n)]
            for k in range(n):
                those = [one for one in arrived if one[0] != number(k, channel)]
                waiting = [step("nop", ("i", -1), ("o", -1), 0, one) for one in those[:-1]]
                first, *rest = sums[k]
                adding = [*waiting, replace(first, waits=those[-1]), *rest]
                adding[-1] = replace(adding[-1], signals=True)
                if k == 0:
                    blocks[number(0, channel)] = ThreadBlock(number(0, channel), -1, -1, channel, adding)
                    continue
                p, at = peers[k - 1], peers.index(peers[k - 1])
                theirs = sorted(set(range(n)) - {p}).index(r)
                done = [one for one in summed if one[0] != number(k, channel)]
                steps = [
                    step("s", ("i", half + p * n), ("s", spare + n * theirs), n),
                    step("r", ("i", half + r * n), ("s", spare + n * at), n, signals=True),
                    *adding,
                    *(step("nop", ("i", -1), ("o", -1), 0, one) for one in done[:-1]),
                    step("s", ("i", half + r * n), ("i", half + r * n), n, done[-1]),
                    step("r", ("i", half + p * n), ("i", half + p * n), n),
                ]
                blocks[number(k, channel)] = ThreadBlock(number(k, channel), p, p, channel, steps)
        ordered = dict(sorted(blocks.items()))
        ranks.append(Rank({"i": channels * n * n, "o": 0, "s": channels * n * (n - 1)}, ordered))
    return Program("two phases", "allreduce", channels * n * n, ranks, inplace=True, protocol="LL")
