"""Columns and rows of the round ILP of one phase, as flat arrays: what both modelling layers state.

A column is one possible transfer: delivery k (chunk ``c_k`` to vertex ``d_k``), its source s, one route i of the pair,
wavelength w, round r. A *move* is a column without route, wavelength and round.

Symmetries of a round program: reflections and transpositions of the mesh that leave all its data as they are.

A permutation g of the tiles maps schedules to schedules with as many rounds if it maps arcs to arcs, the collective to
itself (chunks renamed accordingly) and candidate routes to candidate routes. Each is *checked*; failed links, one-sided
collectives or odd route sets break it.

The named rows of the round program, as sparse matrices over its variables: what every modelling layer states.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.lumorph.route_sets import RouteSet, candidate_routes
from opticoll.formulations.model import NotApplicable
from opticoll.instances.photonic import LightpathMesh

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.formulations.rounds.round_schedule import Limits
    from opticoll.instances import Topology

    I64 = NDArray[np.int64]
    from collections.abc import Iterator, Mapping, Sequence

    import scipy.sparse as sp

    F64 = NDArray[np.float64]


#: More columns than this are refused: methods that list none go further.
MOST_COLUMNS = 20_000_000


@dataclass(frozen=True, eq=False)
class RoundProgram:
    """One phase: a copying collective on a topology, in at most ``rounds`` rounds.

    ``routes_kind`` and ``paths`` say which routes
    (:func:`~opticoll.formulations.lumorph.route_sets.candidate_routes`), unless
    they are ``given`` (of the pairs in the order of :attr:`pairs`);
    ``fixed`` gives every route one wavelength (:meth:`wave`); ``symmetry`` drops columns that a relabelling of
    wavelengths makes superfluous.
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
        """Delivery and source of every move, ``(M,)`` each: from holders, and from those who are to receive it."""
        collective = self.collective
        deliveries = collective.deliveries
        chunk, who = np.concatenate([collective.pre, deliveries]).T
        order = np.argsort(chunk, kind="stable")
        chunk, who = chunk[order], who[order]
        first = np.searchsorted(chunk, np.arange(collective.chunks + 1))
        many = np.diff(first)[deliveries[:, 0]]
        delivery = np.repeat(np.arange(len(deliveries)), many)
        at = np.arange(delivery.size) - np.repeat(np.cumsum(many) - many, many) + first[deliveries[delivery, 0]]
        source = who[at]
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
        """Number of H[k,r]: deliveries by rounds but the last, none where nobody can forward."""
        return 0 if self.holds.all() else len(self.collective.deliveries) * (self.rounds - 1)

    @cached_property
    def obtained(self) -> I64:
        """By which delivery the source of a move gets the chunk, ``(M,)``; means nothing where it holds it."""
        delivery, source = self.moves
        wanted = self.collective.key(self.collective.deliveries)
        return np.searchsorted(wanted, self.collective.deliveries[delivery, 0] * self.collective.n + source)

    @cached_property
    def pair_of_move(self) -> I64:
        """The pair of vertices of every move, a number into ``routes``."""
        delivery, source = self.moves
        key = source * self.topology.n + self.collective.deliveries[delivery, 1]
        return np.searchsorted(self.pairs, key)

    @cached_property
    def pairs(self) -> I64:
        """The pairs of vertices that some move needs, ``source n + target``, sorted."""
        delivery, source = self.moves
        return np.unique(source * self.topology.n + self.collective.deliveries[delivery, 1])

    @cached_property
    def routes(self) -> RouteSet:
        """The candidate routes of every pair that some move needs.

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

        So every vertex sends, and receives, on every wavelength about equally often.
        """
        return (target - source + index) % self.limits.wavelengths

    @cached_property
    def size(self) -> int:
        """Number of columns, counted without listing anything (an upper bound: some pairs have fewer routes)."""
        waves = 1 if self.fixed else self.limits.wavelengths
        spread = self.collective.spread
        held, forwarded = int((spread * self.collective.holders).sum()), int((spread * (spread - 1)).sum())
        return (held * self.rounds + forwarded * (self.rounds - 1)) * self.paths * waves

    def refuse_size(self) -> None:
        """Refuse what is too large to list.

        Raises
        ------
        NotApplicable
            For more than :data:`MOST_COLUMNS` columns.
        """
        if self.size > MOST_COLUMNS:
            msg = (
                f"lumorph.rounds: {self.size:,} possible transfers on {self.topology.spec} are too many to list; "
                "lower rmax or paths, or solve it by certified-rounds"
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
        many = np.diff(routes.first)[pair]
        move = np.repeat(np.arange(pair.size), many)
        path = np.arange(move.size) - np.repeat(np.cumsum(many) - many, many) + routes.first[pair[move]]
        if self.fixed:
            index = path - routes.first[pair[move]]
            wavelength = self.wave(routes.source[pair[move]], routes.target[pair[move]], index)
        else:
            wavelength = np.tile(np.arange(waves), move.size)
            move, path = np.repeat(move, waves), np.repeat(path, waves)
            kept = self._kept(move, wavelength)
            move, path, wavelength = move[kept], path[kept], wavelength[kept]
        early = self.holds[move]
        found = {name: [] for name in ("round", "move", "path", "wavelength")}  # type: dict[str, list[I64]]
        for r in range(self.rounds):
            here = np.flatnonzero(early) if r == 0 else np.arange(move.size)
            found["round"].append(np.full(here.size, r))
            for name, array in (("move", move), ("path", path), ("wavelength", wavelength)):
                found[name].append(array[here])
        return {name: np.concatenate(parts) for name, parts in found.items()}

    def _kept(self, move: I64, wavelength: I64) -> NDArray[np.bool_]:
        """Columns that remain if wavelengths are named by the busiest receiver.

        In every round the wavelengths can be renamed so that the chunks this vertex receives come in the order of
        their numbers; then its q-th delivery, counted from 0, never needs a wavelength above q.
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
        routes, path = self.routes, self.columns["path"]
        length = np.diff(routes.start)[path]
        column = np.repeat(np.arange(path.size), length)
        at = np.arange(column.size) - np.repeat(np.cumsum(length) - length, length)
        return column, routes.arcs[routes.start[path][column] + at]

    def groups(self, *keys: I64) -> tuple[I64, list[I64]]:
        """Number the distinct tuples of ``keys``: the row of every entry, and the keys of every row."""
        stacked = np.stack(keys, axis=1)
        distinct, row = np.unique(stacked, axis=0, return_inverse=True)
        return row.reshape(-1).astype(np.int64), list(distinct.T)


def delivery_symmetries(program: RoundProgram) -> list[I64]:
    """Permutations of the deliveries by the checked symmetries of the mesh, the identity left out."""
    if not isinstance(program.topology, LightpathMesh) or program.fixed:
        return []
    found = []
    for tiles in _mesh_maps(program.topology):
        deliveries = _of_deliveries(program.collective, tiles)
        if deliveries is not None and _keeps_routes(program, tiles):
            found.append(deliveries)
    return found


def _mesh_maps(mesh: LightpathMesh) -> Iterator[I64]:
    """Reflections, and transpositions of a square mesh, that map arcs to arcs: vertex v goes to ``map[v]``."""
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
    """Where every delivery goes if tiles are renamed, None if the collective does not stay the same."""
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
    """Who holds and who wants each chunk, as something to compare."""
    parts = []
    for pairs in (collective.pre, collective.post):
        first = np.searchsorted(pairs[:, 0], np.arange(collective.chunks + 1))
        parts.append([pairs[first[c] : first[c + 1], 1].tobytes() for c in range(collective.chunks)])
    return [pre + b"|" + post for pre, post in zip(*parts, strict=True)]


def _keeps_routes(program: RoundProgram, tiles: I64) -> bool:
    """Whether the image of every candidate route is one."""
    routes, t = program.routes, program.topology
    arc_of = {(int(u), int(v)): a for a, (u, v) in enumerate(zip(t.tail, t.head, strict=True))}
    image = np.array([arc_of[int(tiles[u]), int(tiles[v])] for u, v in zip(t.tail, t.head, strict=True)])
    known = {tuple(routes.path(p)) for p in range(routes.paths)}
    return all(tuple(image[list(path)].tolist()) in known for path in known)


@dataclass(frozen=True)
class Rows:
    """Named rows: a matrix for each variable (C, H, R, flat over all phases), their sum in ``[lower, upper]``."""

    name: str
    parts: Mapping[str, sp.csr_array]
    lower: float
    upper: float

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.parts["C"].shape[0])


def rows(programs: Sequence[RoundProgram]) -> list[Rows]:
    """All rows of the model, block by block, as :mod:`opticoll.formulations.lumorph.rounds` names them."""
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
        """So many rows: for some variables (row, column, value) of their entries, nothing for the others."""
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
    """The first delivery is no later than any of its mirror images; None without symmetry."""
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
