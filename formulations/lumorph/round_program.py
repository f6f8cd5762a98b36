r"""Columns and rows of the round ILP of one phase, as flat arrays: what both modelling layers state.

A column is one possible transfer: delivery k (chunk ``c_k`` to vertex ``d_k``), its source s, one route i of the pair,
wavelength w, round r. A *move* is a column without route, wavelength and round.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from formulations.base import NotApplicable
from formulations.lumorph.route_sets import RouteSet, candidate_routes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from formulations.rounds.check import Limits
    from formulations.rounds.collectives import Collective
    from instances import Topology

    I64 = NDArray[np.int64]

#: More columns than this are refused: methods that list none go further.
MOST_COLUMNS = 20_000_000


@dataclass(frozen=True, eq=False)
class RoundProgram:
    """One phase: a copying collective on a topology, in at most ``rounds`` rounds.

    ``routes_kind`` and ``paths`` say which routes (:func:`~formulations.lumorph.route_sets.candidate_routes`), unless
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
