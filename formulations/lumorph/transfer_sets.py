"""Index sets of the round programs.

A column is one possible transfer ``C[r,s,d,c,i,w]``: in round r, s sends chunk c to d on route i of the pair and on
wavelength w. A *move* (c, s, d) is a column without round, route and wavelength. Columns are listed in the order of
their indices.

Moves by program, with s != d always:

    corrected   d in Post[c] without Pre[c], s in Pre[c] or Post[c]; in the first round s in Pre[c]
    coded       d in Post[c] without Pre[c], s in Post[c]
    printed     all s, d and c
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations.index import Index
from opticoll.formulations.lumorph.mesh_symmetries import delivery_symmetries
from opticoll.formulations.lumorph.route_sets import candidate_routes
from opticoll.formulations.rounds.segments import positions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.formulations.rounds.round_schedule import Limits
    from opticoll.instances.topology import I64, Mask, Topology

#: Versions of Algorithm 1.
Version = Literal["corrected", "coded", "printed"]
#: Maximum number of columns of a program; methods that do not list columns can go further.
MOST_COLUMNS = 20_000_000


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
    def routes(self) -> PathSet:
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
