r"""A number of rounds that suffices for a copying collective, in closed form.

With k = L wavelengths (k = 1 if the routes' wavelengths are fixed) no more rounds are needed than the minimum of these,
which depend only on the instance:

    conflicts   every delivery directly from its first holder on its first route: a transfer t conflicts with N_t others
                that share its sender, its receiver, or an arc with more than W transfers. They block at most
                B_t = min(N_t, sum over its sender, receiver and arcs of floor((uses - 1) / room)) of the k R pairs of
                round and wavelength:                                    R = ceil((1 + max_t B_t) / k)
    shifts      intact r x c mesh, first routes along the row: pairs that are a rows and b columns apart (modulo r, c)
                form a permutation, whose rows and columns are interval graphs of load min(b, c - b), min(a, r - a):
                        R = ceil(1/k sum_ab m_ab ceil(min(a, r - a) / W)+ ceil(min(b, c - b) / W')+),  ceil(x)+ >= 1,
                W' = W, or min(W, F) with F fibres between wafers; m_ab the maximum number of chunks of such a pair; if
                few chunks have such a pair, their number replaces the term
    ring        every chunk is held or required by the same u vertices, at most q chunks by one holder: around a cycle
                of these vertices whose hops, on first routes, need b = 1 + max_t B_t pairs of round and wavelength:
                        R = (u - 1) ceil(q b / k),   both ways   R = ceil((u - 1) / 2) ceil(q b / k),
                b then the sum over both ways; with one holder and b <= k, chunks are pipelined:
                        R = u - 1 + ceil(q / floor(k / b)) - 1, or ceil((u - 1) / 2) in place of u - 1.
                The cycles are the order of a depth-first search and, on an intact mesh of an even number of
                tiles, a Hamiltonian cycle of the tiles (b = 1)
    halving     intact mesh, every one of q chunks required by all: the holder's row, then all columns, by halves:
                        R = ceil(q / k) (ceil(log2 r) + ceil(log2 c))
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.rounds.segments import positions
from opticoll.instances.photonics import LightpathMesh

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.formulations.lumorph.transfer_sets import RoundProgram
    from opticoll.instances.topology import I64, Topology

#: Maximum number of direct transfers whose conflicts are counted one by one; above, only the sum bounds B_t.
MOST_TRANSFERS = 3000


def sufficient_rounds(program: RoundProgram) -> int:
    """Minimum over the sufficient rounds of the module docstring, an upper bound on the optimum of the program."""
    if not len(program.collective.deliveries):
        return 1
    k = 1 if program.fixed else program.limits.wavelengths
    chunk, target = program.collective.deliveries.T
    source = program.collective.pre[np.searchsorted(program.collective.pre[:, 0], chunk), 1]
    results = [-(-_slots(program, source, target) // k), *_around(program, k)]
    mesh = program.topology
    if isinstance(mesh, LightpathMesh) and mesh.intact:
        shape = (int(mesh.shape[0]), int(mesh.shape[1]))
        if program.routes_kind == "straight":
            results.append(-(-_by_shifts(program, shape, source, target) // k))
        if _members(program).size == mesh.n and program.routes_kind != "algorithm-2":  # routes in a line are straight
            moved = int(np.count_nonzero(program.collective.spread))
            results.append(-(-moved // k) * sum((size - 1).bit_length() for size in shape))
    return max(min(results), 1)


def _slots(program: RoundProgram, source: I64, target: I64) -> int:
    """1 + max_t B_t of these transfers on their first routes: a sufficient number of (round, wavelength) pairs."""
    routes, n, m, count = program.routes, program.topology.n, program.topology.arcs, source.size
    path = routes.first[np.searchsorted(program.pairs, source * n + target)]
    on, position = positions(routes.start, path)
    owner = np.concatenate([np.arange(count), np.arange(count), on])
    resource = np.concatenate([source, n + target, 2 * n + routes.arcs[position]])
    room = np.concatenate([np.ones(2 * n, dtype=np.int64), program.limits.room(program.topology)])
    if program.fixed:
        wave = program.wave(source, target, np.zeros_like(source))
        resource, room = resource + wave[owner] * (2 * n + m), np.tile(room, program.limits.wavelengths)
    uses = np.bincount(resource, minlength=room.size)
    blocked = np.bincount(owner, ((uses - 1) // room)[resource], minlength=count)
    if count <= MOST_TRANSFERS:
        scarce = (uses > room)[resource]
        taken, users = [list[int]() for _ in range(count)], defaultdict[int, set[int]](set)
        for t, x in zip(owner[scarce].tolist(), resource[scarce].tolist(), strict=True):
            taken[t].append(x)
            users[x].add(t)
        alike = [set[int]().union(*(users[x] for x in of_t)) for of_t in taken]  # itself included
        blocked = np.minimum(blocked, [max(len(others) - 1, 0) for others in alike])
    return 1 + int(blocked.max(initial=0))


def _by_shifts(program: RoundProgram, shape: tuple[int, int], source: I64, target: I64) -> int:
    """Sufficient number of (round, wavelength) pairs for the shifts of a mesh; rounds if wavelengths are fixed."""
    rows, columns = shape
    W, fibres = program.limits.waveguides, program.limits.fibres
    narrow = (W, W if fibres is None else min(W, fibres.number))
    down, right = (target // columns - source // columns) % rows, (target - source) % columns
    load = [
        np.maximum(-(-np.minimum(np.arange(size), size - np.arange(size)) // most), 1)
        for size, most in zip(shape, narrow, strict=True)
    ]
    slots = np.outer(load[0], load[1])
    wave = program.wave(source, target, np.zeros_like(source)) if program.fixed else np.zeros_like(source)
    most = 0
    for w in np.unique(wave).tolist():
        indices = np.flatnonzero(wave == w)
        shift = down[indices] * columns + right[indices]
        pair = source[indices] * program.topology.n + target[indices]
        _, first, chunks = np.unique(pair, return_index=True, return_counts=True)
        largest = np.zeros(rows * columns, dtype=np.int64)
        np.maximum.at(largest, shift[first], chunks)
        most = max(most, int(np.minimum(np.bincount(shift, minlength=rows * columns), largest * slots.ravel()).sum()))
    return most


def _members(program: RoundProgram) -> I64:
    """Vertices that hold or require each chunk with deliveries, if they are the same for all chunks; else empty."""
    collective = program.collective
    keys = np.unique(np.concatenate([collective.key(collective.pre), collective.key(collective.post)]))
    keys = keys[collective.spread[keys // collective.n] > 0]
    vertices = np.unique(keys % collective.n)
    same = keys.size == vertices.size * np.count_nonzero(collective.spread)
    return vertices if same else vertices[:0]


def _around(program: RoundProgram, k: int) -> list[int]:
    """Numbers of rounds in which the chunks go around cycles of the vertices."""
    collective, members, n = program.collective, _members(program), program.topology.n
    if not members.size:
        return []
    moved = np.flatnonzero(collective.spread)
    held = np.bincount(collective.pre[np.searchsorted(collective.pre[:, 0], moved), 1])
    most, alone = int(held.max()), int(np.count_nonzero(held)) == 1
    results = []
    for cycle in _cycles(program.topology, members):
        slots = 0
        for steps, after in ((cycle.size - 1, np.roll(cycle, -1)), (cycle.size // 2, np.roll(cycle, 1))):
            needed = np.isin(cycle * n + after, program.pairs)  # no chunk goes to a vertex that holds all
            slots += _slots(program, cycle[needed], after[needed])
            if alone and slots <= k:
                results.append(steps + -(-most // (k // slots)) - 1)
            results.append(steps * -(-most * slots // k))
    return results


def _cycles(topology: Topology, members: I64) -> Iterator[I64]:
    """Yield orders of the members: by depth-first search, and along a Hamiltonian cycle of an intact even mesh."""
    from scipy.sparse.csgraph import depth_first_order

    order = depth_first_order(topology.length_matrix(np.ones(topology.arcs)), int(members[0]), directed=False)[0]
    yield order[np.isin(order, members)].astype(np.int64)
    if isinstance(topology, LightpathMesh) and topology.intact and members.size == topology.n:
        grid = np.arange(topology.n).reshape(topology.shape[0], topology.shape[1])
        grid = grid if grid.shape[0] % 2 == 0 else grid.T
        if grid.shape[0] % 2 == 0 and grid.shape[1] > 1:
            # The first column comes last; the other columns are visited row by row, every second row backwards.
            snake = grid[:, 1:].copy()
            snake[1::2] = snake[1::2, ::-1]
            yield np.concatenate([snake.ravel(), grid[::-1, 0]])
