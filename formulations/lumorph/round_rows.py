"""Columns and rows of the round program, shared by every modelling layer.

A column is one possible transfer: delivery k (chunk ``c_k`` to vertex ``d_k``), its source s, a route i of the pair,
a wavelength w and a round r. A *move* is a column without route, wavelength and round.

Mesh symmetries. A permutation g of the tiles maps schedules to schedules of equal length if it maps arcs to arcs, the
collective to itself (with chunks renamed) and candidate routes to candidate routes. Each condition is checked, so
failed links, one-sided collectives and irregular route sets are handled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.lumorph.route_sets import RouteSet, candidate_routes
from opticoll.formulations.model import NotApplicable
from opticoll.formulations.rounds import positions
from opticoll.instances.photonic import LightpathMesh

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import scipy.sparse as sp
    from numpy.typing import NDArray

    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.formulations.rounds.round_schedule import Limits
    from opticoll.instances import Topology

    I64 = NDArray[np.int64]
    F64 = NDArray[np.float64]
    Route = tuple[int, int, NDArray[np.int64]]


#: Most runs, and the route checks per round that all runs together may make.
MOST_RUNS, MOST_CHECKS = 40, 40_000


def sufficient_rounds(program: RoundProgram) -> int:
    """Rounds of the best list schedule: the optimum of the program is at most this."""
    if not len(program.collective.deliveries):
        return 1
    runs = max(min(MOST_RUNS, MOST_CHECKS // (program.limits.wavelengths * program.routes.paths)), 1)
    routes = _routes_by_receiver(program)
    return min(_list_schedule(program, routes, seed) for seed in range(runs))


def _routes_by_receiver(program: RoundProgram) -> list[list[Route]]:
    """For every receiver its routes, shortest first: sender, wavelength (-1 for any), arcs."""
    by_receiver: list[list[Route]] = [[] for _ in range(program.topology.n)]
    routes = program.routes
    source, target = routes.source[routes.pair], routes.target[routes.pair]
    index = np.arange(routes.paths) - routes.first[routes.pair]
    wavelength = program.wave(source, target, index) if program.fixed else np.full(routes.paths, -1)
    for p in np.argsort(np.diff(routes.start), kind="stable").tolist():
        arcs = routes.arcs[routes.start[p] : routes.start[p + 1]]
        by_receiver[int(target[p])].append((int(source[p]), int(wavelength[p]), arcs))
    return by_receiver


def _list_schedule(program: RoundProgram, routes: list[list[Route]], seed: int) -> int:
    collective, limits, t = program.collective, program.limits, program.topology
    random = np.random.default_rng(seed)
    held = np.zeros((t.n, collective.chunks), dtype=bool)
    held[collective.pre[:, 1], collective.pre[:, 0]] = True
    missing = np.zeros_like(held)
    missing[collective.deliveries[:, 1], collective.deliveries[:, 0]] = True
    rounds = 0
    while missing.any():
        rounds += 1
        received = np.zeros_like(held)
        for w in range(limits.wavelengths):
            room = np.full(t.arcs, limits.waveguides)
            idle = np.ones(t.n, dtype=bool)
            holders = held.sum(axis=0) + received.sum(axis=0) + 0.5 * random.random(collective.chunks)
            for v in np.argsort(-(missing.sum(axis=1) + random.random(t.n))).tolist():
                for s, wavelength, arcs in routes[v]:
                    if not idle[s] or wavelength not in (-1, w) or (room[arcs] == 0).any():
                        continue
                    useful = np.flatnonzero(held[s] & missing[v])
                    if useful.size:
                        chunk = useful[np.argmin(holders[useful])]
                        received[v, chunk], missing[v, chunk], idle[s] = True, False, False
                        room[arcs] -= 1
                        break
        held |= received
    return rounds


#: Most columns of a program; methods that do not list columns can go further.
MOST_COLUMNS = 20_000_000


@dataclass(frozen=True, eq=False)
class RoundProgram:
    """One phase: a copying collective on a topology, in at most ``rounds`` rounds.

    Routes are those of :func:`~opticoll.formulations.lumorph.route_sets.candidate_routes` with ``routes_kind`` and
    ``paths``, unless they are ``given`` (for the pairs in the order of :attr:`pairs`). ``fixed`` gives every route one
    wavelength (:meth:`wave`); ``symmetry`` drops columns that are redundant under relabelling of wavelengths.
    """

    topology: Topology
    collective: Collective
    limits: Limits
    rounds: int
    paths: int
    routes_kind: str
    fixed: bool
    symmetry: bool
    given: RouteSet | None = None

    @cached_property
    def moves(self) -> tuple[I64, I64]:
        """Delivery and source of every move, ``(M,)`` each; sources are holders and other receivers of the chunk."""
        collective = self.collective
        deliveries = collective.deliveries
        chunk, who = np.concatenate([collective.pre, deliveries]).T
        order = np.argsort(chunk, kind="stable")
        chunk, who = chunk[order], who[order]
        first = np.searchsorted(chunk, np.arange(collective.chunks + 1))
        delivery, position = positions(first, deliveries[:, 0])
        source = who[position]
        real = source != deliveries[delivery, 1]
        return delivery[real], source[real]

    @cached_property
    def holds(self) -> NDArray[np.bool_]:
        """Whether the source of a move holds the chunk at the start, ``(M,)``."""
        delivery, source = self.moves
        chunk = self.collective.deliveries[delivery, 0]
        return np.isin(chunk * self.collective.n + source, self.collective.key(self.collective.pre))

    @cached_property
    def steps(self) -> int:
        """Number of H[k,r]: deliveries times rounds but the last; 0 if no vertex can forward a chunk."""
        return 0 if self.holds.all() else len(self.collective.deliveries) * (self.rounds - 1)

    @cached_property
    def obtained(self) -> I64:
        """The delivery by which the source of a move gets the chunk, ``(M,)``; arbitrary where it holds the chunk."""
        delivery, source = self.moves
        wanted = self.collective.key(self.collective.deliveries)
        return np.searchsorted(wanted, self.collective.deliveries[delivery, 0] * self.collective.n + source)

    @cached_property
    def pair_of_move(self) -> I64:
        """Index of every move's pair in :attr:`pairs`, ``(M,)``."""
        delivery, source = self.moves
        key = source * self.topology.n + self.collective.deliveries[delivery, 1]
        return np.searchsorted(self.pairs, key)

    @cached_property
    def pairs(self) -> I64:
        """Pairs of vertices of the moves as ``source n + target``, sorted."""
        delivery, source = self.moves
        return np.unique(source * self.topology.n + self.collective.deliveries[delivery, 1])

    @cached_property
    def routes(self) -> RouteSet:
        """The candidate routes of :attr:`pairs`.

        Raises
        ------
        NotApplicable
            If there are too many, or a pair has none.
        """
        if self.given is not None:
            return self.given
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
        spread = self.collective.spread
        held, forwarded = int((spread * self.collective.holders).sum()), int((spread * (spread - 1)).sum())
        return (held * self.rounds + forwarded * (self.rounds - 1)) * self.paths * waves

    def refuse_size(self) -> None:
        """Refuse a program with too many columns.

        Raises
        ------
        NotApplicable
            For more than :data:`MOST_COLUMNS` columns.
        """
        if self.size > MOST_COLUMNS:
            msg = (
                f"lumorph.rounds: {self.size:,} possible transfers on {self.topology.spec} are too many to list; "
                "lower rmax or paths, or use --method certified-rounds"
            )
            raise NotApplicable(msg)

    @cached_property
    def columns(self) -> dict[str, I64]:
        """``round``, ``move``, ``path``, ``wavelength`` of every column, ``(N,)`` each, by round.

        Raises
        ------
        NotApplicable
            For more than :data:`MOST_COLUMNS`.
        """
        self.refuse_size()
        routes, pair = self.routes, self.pair_of_move
        waves = self.limits.wavelengths
        move, path = positions(routes.first, pair)
        if self.fixed:
            index = path - routes.first[pair[move]]
            wavelength = self.wave(routes.source[pair[move]], routes.target[pair[move]], index)
        else:
            wavelength = np.tile(np.arange(waves), move.size)
            move, path = np.repeat(move, waves), np.repeat(path, waves)
            kept = self._kept(move, wavelength)
            move, path, wavelength = move[kept], path[kept], wavelength[kept]
        early = self.holds[move]
        parts: dict[str, list[I64]] = {name: [] for name in ("round", "move", "path", "wavelength")}
        for r in range(self.rounds):
            here = np.flatnonzero(early) if r == 0 else np.arange(move.size)
            parts["round"].append(np.full(here.size, r))
            for name, array in (("move", move), ("path", path), ("wavelength", wavelength)):
                parts[name].append(array[here])
        return {name: np.concatenate(arrays) for name, arrays in parts.items()}

    def _kept(self, move: I64, wavelength: I64) -> NDArray[np.bool_]:
        """Columns that remain if wavelengths are numbered by the busiest receiver.

        In every round the wavelengths can be renumbered so that the chunks this vertex receives are in ascending
        order; its q-th delivery, counted from 0, then never needs a wavelength above q.
        """
        if not self.symmetry or self.limits.ports != 1:
            return np.ones(move.size, dtype=bool)
        target = self.collective.deliveries[:, 1]
        busiest = int(np.bincount(target).argmax())
        rank = np.cumsum(target == busiest) - 1
        delivery = self.moves[0][move]
        return (target[delivery] != busiest) | (wavelength <= rank[delivery])

    @cached_property
    def ends(self) -> dict[str, I64]:
        """``delivery``, ``source``, ``target``, ``chunk`` of every column, ``(N,)`` each."""
        delivery, source = (of[self.columns["move"]] for of in self.moves)
        chunk, target = self.collective.deliveries[delivery].T
        return {"delivery": delivery, "source": source, "target": target, "chunk": chunk}

    @cached_property
    def arcs(self) -> tuple[I64, I64]:
        """Column and arc of every arc that a column occupies."""
        column, position = positions(self.routes.start, self.columns["path"])
        return column, self.routes.arcs[position]

    def groups(self, *keys: I64) -> tuple[I64, list[I64]]:
        """Number the distinct tuples of ``keys``: the row of every entry, and the keys of every row."""
        stacked = np.stack(keys, axis=1)
        distinct, row = np.unique(stacked, axis=0, return_inverse=True)
        return row.reshape(-1).astype(np.int64), list(distinct.T)


def delivery_symmetries(program: RoundProgram) -> list[I64]:
    """Permutations of the deliveries under the symmetries of the mesh, without the identity."""
    if not isinstance(program.topology, LightpathMesh) or program.fixed:
        return []
    found = []
    for tiles in _mesh_maps(program.topology):
        deliveries = _of_deliveries(program.collective, tiles)
        if deliveries is not None and _keeps_routes(program, tiles):
            found.append(deliveries)
    return found


def _mesh_maps(mesh: LightpathMesh) -> Iterator[I64]:
    """Reflections (of a square mesh also transpositions) that map arcs to arcs: vertex v goes to ``map[v]``."""
    grid = np.arange(mesh.n).reshape(mesh.shape[0], mesh.shape[1])
    images = [grid[::-1], grid[:, ::-1], grid[::-1, ::-1]]
    if mesh.shape[0] == mesh.shape[1]:
        images += [grid.T, grid.T[::-1], grid.T[:, ::-1], grid.T[::-1, ::-1]]
    arcs = np.unique(mesh.tail * mesh.n + mesh.head)
    for image in images:
        tiles = image.ravel()
        if np.array_equal(np.unique(tiles[mesh.tail] * mesh.n + tiles[mesh.head]), arcs):
            yield tiles


def _of_deliveries(collective: Collective, tiles: I64) -> I64 | None:
    """The image of every delivery under a renaming of tiles; None if it does not preserve the collective."""
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


@dataclass(frozen=True)
class Rows:
    """Constraints ``lower <= sum of parts[x] x <= upper`` over x in C, H, R, each flat over all phases."""

    name: str
    parts: Mapping[str, sp.csr_array]
    lower: float
    upper: float

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.parts["C"].shape[0])


def rows(programs: Sequence[RoundProgram]) -> list[Rows]:
    """All rows of the model by block, named as in :mod:`opticoll.formulations.lumorph.rounds`."""
    import scipy.sparse as sp

    found: dict[str, list[dict[str, sp.csr_array]]] = {}
    for program in programs:
        for name, parts in _phase_rows(program):
            found.setdefault(name, []).append(parts)
    limits = {"deliver": (1.0, 1.0), "received": (0.0, 0.0)}
    blocks = []
    for name, each in found.items():
        joined = {v: sp.csr_array(sp.block_diag([parts[v] for parts in each], format="csr")) for v in ("C", "H", "R")}
        blocks.append(Rows(name, joined, *limits.get(name, (-np.inf, 0.0))))
    return blocks


def _phase_rows(program: RoundProgram) -> Iterator[tuple[str, dict[str, sp.csr_array]]]:
    """The rows of one phase: name, and the part of each variable."""
    import scipy.sparse as sp

    columns, ends, T = program.columns, program.ends, program.rounds
    width = {"C": columns["round"].size, "H": program.steps, "R": T}
    every = np.arange(width["C"])

    def block(count: int, **entries: tuple[I64, I64, F64 | float]) -> dict[str, sp.csr_array]:
        """``count`` rows: (row, column, value) of the entries of some variables, zero for the others."""
        parts = {name: sp.csr_array((count, size)) for name, size in width.items()}
        for name, (row, column, value) in entries.items():
            numbers = np.broadcast_to(np.asarray(value, dtype=float), row.shape)
            parts[name] = sp.csr_array((numbers, (row, column)), shape=(count, width[name]))
            parts[name].eliminate_zeros()
        return parts

    yield "deliver", block(len(program.collective.deliveries), C=(ends["delivery"], every, 1.0))
    if program.steps:
        here = np.flatnonzero(columns["round"] < T - 1)
        row = ends["delivery"][here] * (T - 1) + columns["round"][here]
        step = np.arange(program.steps)
        later = step[step % (T - 1) > 0]
        H = (
            np.concatenate([step, later]),
            np.concatenate([step, later - 1]),
            np.repeat([1.0, -1.0], [step.size, later.size]),
        )
        yield "received", block(program.steps, C=(row, here, -1.0), H=H)
        forwards = np.flatnonzero(~program.holds[columns["move"]])
        row, keys = program.groups(columns["round"][forwards], columns["move"][forwards])
        count = keys[0].size
        got = program.obtained[keys[1]] * (T - 1) + keys[0] - 1
        yield "hold", block(count, C=(row, forwards, 1.0), H=(np.arange(count), got, -1.0))
    for name, end in (("laser", "source"), ("photodiode", "target")):
        row, keys = program.groups(columns["round"], ends[end], columns["wavelength"])
        count = keys[0].size
        yield name, block(count, C=(row, every, 1.0), R=(np.arange(count), keys[0], -1.0))
    column, arc = program.arcs
    row, keys = program.groups(columns["round"][column], arc, columns["wavelength"][column])
    W = program.limits.waveguides
    crowded = np.bincount(row) > W  # elsewhere the row cannot bind
    number = np.cumsum(crowded) - 1
    kept, count = crowded[row], int(crowded.sum())
    yield (
        "waveguide",
        block(count, C=(number[row[kept]], column[kept], 1.0), R=(np.arange(count), keys[0][crowded], -float(W))),
    )
    mirror = _mirror_entries(program)
    if mirror is not None:
        yield "mirror", block(int(mirror[0].max()) + 1, C=mirror)
    step = np.arange(T - 1)
    R = (np.tile(step, 2), np.concatenate([step + 1, step]), np.repeat([1.0, -1.0], T - 1))
    yield "order", block(T - 1, R=R)


def _mirror_entries(program: RoundProgram) -> tuple[I64, I64, F64] | None:
    """Rows that make the first delivery no later than its mirror images; None without symmetry."""
    images = delivery_symmetries(program) if program.symmetry else []
    others = np.unique([int(image[0]) for image in images if image[0] != 0]).astype(np.int64)
    if not others.size or program.rounds < 2:
        return None
    delivery, when = program.ends["delivery"], program.columns["round"].astype(float)
    own = np.flatnonzero(delivery == 0)
    rows, columns, values = [], [], []
    for k, other in enumerate(others.tolist()):
        theirs = np.flatnonzero(delivery == other)
        rows.append(np.full(own.size + theirs.size, k))
        columns.append(np.concatenate([own, theirs]))
        values.append(np.concatenate([when[own], -when[theirs]]))
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(values)
