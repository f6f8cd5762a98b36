r"""Routing and wavelength assignment of a one-stage all-to-all with the fewest wavelengths (Lemma 1).

Source  OpTree, Lemma 1
Sets    k = (u,v) ordered pairs of n nodes; r in R routes: every pair onward (clockwise, on a line towards higher
        numbers) and, on a ring, backward; a in A arcs (m); c in 0 .. C-1 wavelengths
Data    P pair-route incidence, (n(n-1), |R|); Q arc-route incidence, (m, |R|); C = ``colours``; 0: Lemma 1's number,
        floor(n^2/4) on a line and ceil(n^2/8) on a ring
Vars    x_rc in {0,1} route r on wavelength c, (|R|, C); y_c in {0,1} wavelength c in use, (C,)

min sum_c y_c  s.t.
    choose[k]       sum_r P_kr sum_c x_rc = 1
    conflict[a,c]   sum_r Q_ar x_rc <= y_c
    symmetry[c]     y_{c+1} <= y_c                  c < C - 1

Bounds and optimum: :mod:`opticoll.formulations.rounds.wavelengths`. The LP relaxation gives the arc-counting bound
without rounding. An assignment may also be given as ``route_colour``, (|R|,): the wavelength of every route, -1 for a
route not taken, so large instances need no x. The checker reads either and tests every arc and wavelength. It counts
the wavelengths in use itself, so it needs neither y nor ``symmetry``, which only removes equal solutions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.optree import one_stage_solution
from opticoll.formulations.parameters import Parameter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.instances.photonics import WdmFibres
    from opticoll.instances.topology import F64, I64


@dataclass(frozen=True, eq=False)
class AllToAll(Formulation):
    """Data of the model: fibres and number of available wavelengths."""

    name = "optree.one-stage"
    where = "Lemma 1"
    performs = "all-to-all"
    example = "wdm-ring:n=8,wavelengths=4"
    problem = "MILP"
    parameters = (Parameter("colours", int, 0, "number of available wavelengths; 0: Lemma 1's number", least=0),)
    meaning = "wavelengths"
    variables: ClassVar = {"x": ("route", "wavelength"), "y": ("wavelength",)}
    constraints: ClassVar = {"choose": ("pair",), "conflict": ("arc", "wavelength"), "symmetry": ("lower",)}
    _beside = (one_stage_solution,)

    fibres: WdmFibres
    colours: int
    taken = cached_property(one_stage_solution.arcs_of_routes)
    topology = property(one_stage_solution.topology)
    ends = cached_property(one_stage_solution.ends_of_routes)
    routes = property(one_stage_solution.number_of_routes)
    pair = cached_property(one_stage_solution.pairs_of_routes)

    def sets(self) -> dict[str, Sequence[Any]]:
        """Pairs (u,v), their routes (u,v,way), and wavelengths."""
        source, target, onward = (one.tolist() for one in self.ends)
        ways = ("onward" if one else "backward" for one in onward)
        C, routes = range(self.colours), list(zip(source, target, ways, strict=True))
        return {"pair": list(permutations(range(self.fibres.n), 2)), "route": routes, "wavelength": C, "lower": C[:-1]}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY."""
        import cvxpy as cp

        b, C, (arc, route) = Cvx(self), self.colours, self.taken
        wavelengths, pairs = Index.grid(wavelength=C), Index.grid(pair=self.fibres.n * (self.fibres.n - 1))
        routes = Index.table("route", {"route": np.arange(self.routes), "pair": self.pair})
        circuits = routes.join(wavelengths).keyed("route wavelength")
        hops = circuits.join(Index.table("arc route", {"arc": arc, "route": route}))
        x, y = b.var("x", upper=1, integer=True, over=circuits), b.var("y", upper=1, integer=True)
        b.row("choose", pairs.of(circuits) @ x == 1)
        at = Index.grid(arc=self.fibres.arcs, wavelength=C)
        b.row("conflict", at.of(hops) @ x <= at.of(wavelengths) @ y, over=at)
        if C > 1:
            b.row("symmetry", y[1:] <= y[:-1])
        return b.minimize(cp.sum(y))

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``x[u,v,way,c]`` with ``way`` onward or backward, ``y[c]``; k is a pair (u,v)."""
        b, fibres, n, ring = Pyo(self), self.fibres, self.fibres.n, self.fibres.circular
        A, C = b.sets("arc", "wavelength")
        up, down = ([A[a] for a in arcs.tolist()] for arcs in fibres.arcs_onward())  # between nodes i and i + 1
        over: dict[str, list[tuple[int, int, str]]] = {a: [] for a in A}
        of: dict[tuple[int, int], list[tuple[int, int, str]]] = {}
        for u, v in permutations(range(n), 2):
            ways = ["onward", "backward"] if ring else ["onward" if u < v else "backward"]
            of[u, v] = [(u, v, way) for way in ways]
            for way in ways:
                first, last = (u, v) if way == "onward" else (v, u)
                for i in range(first, first + (last - first) % n):
                    over[(up if way == "onward" else down)[i % n]].append((u, v, way))
        x = b.var("x", upper=1, integer=True, over=[(*r, c) for routes in of.values() for r in routes for c in C])
        y = b.var("y", upper=1, integer=True)
        b.row("choose", lambda u, v: b.sum(x[(*r, c)] for r in of[u, v] for c in C) == 1)
        b.row("conflict", lambda a, c: b.sum(x[(*r, c)] for r in over[a]) <= y[c])
        if len(C) > 1:
            b.row("symmetry", lambda c: y[c + 1] <= y[c])
        return b.minimize(b.sum(y[c] for c in C))

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst absolute violation of every block, from numpy alone; ``conflict`` counts excess circuits."""
        routes, colours, fraction = one_stage_solution.routes_and_colours(self, values)
        pairs = self.fibres.n * (self.fibres.n - 1)
        return {
            "binary": fraction,
            "colours": float(max(0, np.unique(colours).size - self.colours)),
            "choose": float(np.abs(np.bincount(self.pair[routes], minlength=pairs) - 1).max(initial=0)),
            "conflict": float(max(_worst_overlap(self, routes, colours) - 1, 0)),
        }

    def objective(self, values: Mapping[str, F64]) -> float:
        """Number of wavelengths in use."""
        _, colours, _ = one_stage_solution.routes_and_colours(self, values)
        return float(np.unique(colours).size)

    rounds = one_stage_solution.rounds_of_channels
    replay = one_stage_solution.replayed


def _worst_overlap(data: AllToAll, routes: I64, colours: I64) -> int:
    """Maximum number of circuits of one wavelength on an arc; ``routes`` and ``colours`` are ``(K,)``.

    Of the circuits on a fibre, as intervals of nodes, most overlap where one begins: those that began by then and have
    not ended.
    """
    n = data.fibres.n
    source, target, onward = (part[routes] for part in data.ends)
    lower = np.where(onward, source, target)
    upper = lower + np.where(onward, target - source, source - target) % n
    fibre, beyond = (colours * 2 + onward) * (n + 1), upper > n  # these wrap around
    begin = np.sort(np.concatenate([fibre + lower, fibre[beyond]]))
    end = np.sort(np.concatenate([fibre + np.minimum(upper, n), (fibre + upper - n)[beyond]]))
    running = np.arange(1, begin.size + 1) - np.searchsorted(end, begin, side="right")
    return int(running.max(initial=0))


FORMULATION = AllToAll
