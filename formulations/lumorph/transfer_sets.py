r"""Index sets of the round programs, and a number of rounds that suffices.

A column is one possible transfer ``C[r,s,d,c,i,w]``: in round r, s sends chunk c to d on route i of the pair and on
wavelength w. A *move* (c, s, d) is a column without round, route and wavelength. Columns are listed in the order of
their indices.

Moves by program, with s != d always:

    corrected   d in Post[c] without Pre[c], s in Pre[c] or Post[c]; in the first round s in Pre[c]
    coded       d in Post[c] without Pre[c], s in Post[c]
    printed     all s, d and c

Sufficient rounds. With k = L wavelengths (k = 1 if the routes' wavelengths are fixed) no more rounds are needed than
the minimum of these, which depend only on the instance:

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

Mesh symmetries. A permutation g of the tiles maps schedules to schedules of equal length if it maps arcs to arcs of
equal room, the collective to itself (with chunks renamed) and candidate routes to candidate routes. Each condition is
checked, so failed links, one-sided collectives and irregular route sets are handled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations.index import Index
from opticoll.formulations.lumorph.route_sets import RouteSet, candidate_routes
from opticoll.formulations.rounds.segments import positions
from opticoll.instances.photonics import LightpathMesh

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.formulations.rounds.round_schedule import Limits
    from opticoll.instances.topology import I64, Mask, Topology

#: Versions of Algorithm 1.
Version = Literal["corrected", "coded", "printed"]
#: Maximum number of columns of a program; methods that do not list columns can go further.
MOST_COLUMNS = 20_000_000
#: Maximum number of direct transfers whose conflicts are counted one by one; above, only the sum bounds B_t.
MOST_TRANSFERS = 3000


@dataclass(frozen=True, eq=False)
class RoundProgram:
    """One phase: a copying collective on a topology, in at most ``rounds`` rounds.

    Routes are those of :func:`~opticoll.formulations.lumorph.route_sets.candidate_routes` with ``routes_kind`` and
    ``paths``. ``fixed`` gives every route one wavelength (:meth:`wave`); ``symmetry`` drops columns that are redundant
    under relabelling of wavelengths.
    """

    topology: Topology
    collective: Collective
    limits: Limits
    rounds: int
    paths: int
    routes_kind: str
    fixed: bool
    symmetry: bool
    version: Version = "corrected"

    @cached_property
    def moves(self) -> tuple[I64, I64, I64]:
        """Chunk, source and target of every move, ``(M,)`` each, by source, target and chunk."""
        collective, n = self.collective, self.collective.n
        if self.version == "printed":
            chunk, source, target = (a.ravel() for a in np.indices((collective.chunks, n, n)))
        else:
            senders = collective.post
            if self.version == "corrected":
                senders = np.concatenate([collective.pre, collective.deliveries])
            senders = senders[np.argsort(senders[:, 0], kind="stable")]
            first = np.searchsorted(senders[:, 0], np.arange(collective.chunks + 1))
            delivery, position = positions(first, collective.deliveries[:, 0])
            chunk, target = collective.deliveries[delivery].T
            source = senders[position, 1]
        real = source != target
        chunk, source, target = chunk[real], source[real], target[real]
        order = np.lexsort((chunk, target, source))
        return chunk[order], source[order], target[order]

    @cached_property
    def holds(self) -> Mask:
        """Whether the source of a move holds the chunk at the start, ``(M,)``."""
        chunk, source, _ = self.moves
        return np.isin(chunk * self.collective.n + source, self.collective.key(self.collective.pre))

    @cached_property
    def forwards(self) -> bool:
        """Whether some vertex can send a chunk that it does not hold at the start."""
        return not self.holds.all()

    @cached_property
    def pairs(self) -> I64:
        """Vertex pairs of the moves as ``source n + target``, sorted."""
        _, source, target = self.moves
        return np.unique(source * self.topology.n + target)

    @cached_property
    def routes(self) -> RouteSet:
        """The candidate routes of :attr:`pairs`.

        Raises
        ------
        NotApplicable
            If there are too many, or a pair has none.
        """
        source, target = np.divmod(self.pairs, self.topology.n)
        return candidate_routes(self.topology, source, target, self.routes_kind, self.paths)

    def wave(self, source: I64, target: I64, index: I64) -> I64:
        """WAVE of the ``index``-th route from ``source`` to ``target``: ``(target - source + index) mod wavelengths``.

        Every vertex then sends and receives on every wavelength about equally often.
        """
        return (target - source + index) % self.limits.wavelengths

    @cached_property
    def size(self) -> int:
        """Upper bound on the number of columns, without listing them (some pairs have fewer routes)."""
        waves = 1 if self.fixed else self.limits.wavelengths
        collective, n = self.collective, self.topology.n
        spread = collective.spread
        if self.version == "printed":
            moves = collective.chunks * n * (n - 1) * self.rounds
        elif self.version == "coded":
            moves = int((spread * np.bincount(collective.post[:, 0], minlength=collective.chunks)).sum()) * self.rounds
        else:
            held, forwarded = int((spread * collective.holders).sum()), int((spread * (spread - 1)).sum())
            moves = held * self.rounds + forwarded * (self.rounds - 1)
        return moves * self.paths * waves

    @cached_property
    def columns(self) -> Index:
        """The (r, s, d, c, i, w) of every column, in order, with ``move``, ``path`` and ``pre``: s holds c at first.

        Raises
        ------
        NotApplicable
            For more than :data:`MOST_COLUMNS`.
        """
        if self.size > MOST_COLUMNS:
            msg = (
                f"lumorph.rounds: {self.size:,} possible transfers on {self.topology.spec} are too many to list; "
                "lower rmax or paths, or use method certified-rounds"
            )
            raise NotApplicable(msg)
        routes = self.routes
        _, source, target = self.moves
        pair = np.searchsorted(self.pairs, source * self.topology.n + target)
        move, path = positions(routes.first, pair)
        if self.fixed:
            wavelength = self.wave(source[move], target[move], path - routes.first[pair[move]])
        else:
            waves = self.limits.wavelengths
            wavelength = np.tile(np.arange(waves), move.size)
            move, path = np.repeat(move, waves), np.repeat(path, waves)
            kept = self._kept(move, wavelength)
            move, path, wavelength = move[kept], path[kept], wavelength[kept]
        chunk, source, target = (of[move] for of in self.moves)
        index = path - routes.first[np.searchsorted(self.pairs, source * self.topology.n + target)]
        pre = self.holds[move].astype(np.int64)
        listed = {"s": source, "d": target, "c": chunk, "i": index, "w": wavelength}
        listed |= {"move": move, "path": path, "pre": pre}
        early = np.flatnonzero(pre | (self.version != "corrected"))
        parts: list[dict[str, ArrayLike]] = [{"r": r, **listed} for r in range(1, self.rounds)]
        return Index.table("r s d c i w", {"r": 0, **{name: one[early] for name, one in listed.items()}}, *parts)

    def _kept(self, move: I64, wavelength: I64) -> Mask:
        """Columns that remain if wavelengths are numbered by the busiest receiver.

        In every round the wavelengths can be renumbered so that the chunks this vertex receives are in ascending
        order; its q-th delivery, counted from 0, then never needs a wavelength above q.
        """
        if not self.symmetry or self.version != "corrected" or self.limits.ports != 1:
            return np.ones(move.size, dtype=bool)
        wanted, target = self.collective.deliveries.T
        busiest = int(np.bincount(target).argmax())
        chunk, _, to = (of[move] for of in self.moves)
        return (to != busiest) | (wavelength <= np.searchsorted(wanted[target == busiest], chunk))

    def tables(self, p: int, start: int, least: int) -> dict[str, dict[str, ArrayLike]]:
        """What phase ``p`` lists by index, its rounds from ``start`` on, of which the ``least`` first are used."""
        transfers, routes, r = self.columns.columns, self.routes, np.arange(self.rounds)
        (c, d), early = self.collective.deliveries.T, r[:-1] if self.forwards else r[:0]
        image_c, image_d = np.array(self.mirrors, dtype=np.int64).reshape(-1, 2).T
        when = {"c": np.repeat(c, early.size), "d": np.repeat(d, early.size), "r": np.tile(early + start, c.size)}
        return {
            "transfer": {**transfers, "r": transfers["r"] + start, "p": p},
            "route": {**routes.crossed, "W": self.limits.room(self.topology)[routes.arcs], "p": p},
            "round": {"r": r + start, "first": r == 0, "least": r < least},
            "deliver": {"p": p, "c": c, "d": d},
            "received": {"p": p, **when},
            "mirror": {"p": p, "c": image_c, "d": image_d, "first_c": c[0], "first_d": d[0]},
        }

    @cached_property
    def arcs(self) -> tuple[I64, I64]:
        """Every (column, arc) pair in which the column occupies the arc."""
        column, position = positions(self.routes.start, self.columns["path"])
        return column, self.routes.arcs[position]

    @cached_property
    def mirrors(self) -> list[tuple[int, int]]:
        """Images (chunk, vertex) of the first delivery under the symmetries of the mesh, without itself."""
        if not self.symmetry or self.rounds < 2:
            return []
        images = {int(image[0]) for image in delivery_symmetries(self)} - {0}
        return [(int(c), int(v)) for c, v in self.collective.deliveries[sorted(images)]]


# Sufficient rounds ------------------------------------------------------------------------------------------------


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
        owner, resource = owner[scarce], resource[scarce]
        order = np.argsort(resource, kind="stable")
        first = np.searchsorted(resource[order], np.arange(room.size + 1))
        users = owner[order]
        by_owner = np.argsort(owner, kind="stable")
        mine = np.searchsorted(owner[by_owner], np.arange(count + 1))
        for t in range(count):
            shared = resource[by_owner[mine[t] : mine[t + 1]]]
            others = [users[first[x] : first[x + 1]] for x in shared.tolist()]
            blocked[t] = min(blocked[t], np.unique(np.concatenate(others)).size - 1) if others else 0
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


# Symmetries -------------------------------------------------------------------------------------------------------


def delivery_symmetries(program: RoundProgram) -> list[I64]:
    """Permutations of the deliveries under the symmetries of the mesh, without the identity."""
    if not isinstance(program.topology, LightpathMesh) or program.fixed:
        return []
    results = []
    for tiles in _mesh_maps(program.topology, program.limits):
        deliveries = _of_deliveries(program.collective, tiles)
        if deliveries is not None and _keeps_routes(program, tiles):
            results.append(deliveries)
    return results


def _mesh_maps(mesh: LightpathMesh, limits: Limits) -> Iterator[I64]:
    """Reflections (of a square mesh also transpositions) that map arcs to arcs of equal room: v goes to ``map[v]``."""
    grid = np.arange(mesh.n).reshape(mesh.shape[0], mesh.shape[1])
    images = [grid[::-1], grid[:, ::-1], grid[::-1, ::-1]]
    if mesh.shape[0] == mesh.shape[1]:
        images += [grid.T, grid.T[::-1], grid.T[:, ::-1], grid.T[::-1, ::-1]]
    room = limits.room(mesh)
    arcs = np.unique(np.column_stack([mesh.tail, mesh.head, room]), axis=0)
    for image in images:
        tiles = image.ravel()
        if np.array_equal(np.unique(np.column_stack([tiles[mesh.tail], tiles[mesh.head], room]), axis=0), arcs):
            yield tiles


def _of_deliveries(collective: Collective, tiles: I64) -> I64 | None:
    """Image of every delivery under a renaming of tiles; None if it does not preserve the collective."""
    renamed = collective.relabelled(tiles)
    kinds: dict[bytes, list[int]] = {}
    for chunk, kind in enumerate(_kinds(collective)):
        kinds.setdefault(kind, []).append(chunk)
    chunks = np.empty(collective.chunks, dtype=np.int64)
    for chunk, kind in enumerate(_kinds(renamed)):
        if not kinds.get(kind):
            return None
        chunks[chunk] = kinds[kind].pop(0)
    image = np.column_stack([chunks[collective.deliveries[:, 0]], tiles[collective.deliveries[:, 1]]])
    return np.searchsorted(collective.key(collective.deliveries), collective.key(image))


def _kinds(collective: Collective) -> list[bytes]:
    """Holders and destinations of each chunk as a comparable key."""
    parts = []
    for pairs in (collective.pre, collective.post):
        first = np.searchsorted(pairs[:, 0], np.arange(collective.chunks + 1))
        parts.append([pairs[first[c] : first[c + 1], 1].tobytes() for c in range(collective.chunks)])
    return [pre + b"|" + post for pre, post in zip(*parts, strict=True)]


def _keeps_routes(program: RoundProgram, tiles: I64) -> bool:
    """Whether the image of every candidate route is a candidate route."""
    routes, t = program.routes, program.topology
    arc_of = {(int(u), int(v)): a for a, (u, v) in enumerate(zip(t.tail, t.head, strict=True))}
    image = np.array([arc_of[int(tiles[u]), int(tiles[v])] for u, v in zip(t.tail, t.head, strict=True)])
    known = {tuple(routes.path(p)) for p in range(routes.paths)}
    return all(tuple(image[list(path)].tolist()) in known for path in known)
