r"""Circuits of greatest utility: demand, times a discount for every further circuit of the same pair.

Source  TopoOpt, appendix E.4, equations (1) and (2); appendix F for ``discount=first`` and ``discount=every``
Sets    p = (i,j) in P pairs of servers with demand; l = 1 .. L circuits of a pair
Data    T_p > 0 unsatisfied demand [bytes], (|P|,); d ports of a server, out and in; g_l > 0 gain of the l-th circuit,
        nonincreasing, (L,), with L <= d the last one that gains anything
Vars    y_pl in {0,1} whether the pair has an l-th circuit, (|P|,L)

max sum_pl T_p g_l y_pl  s.t.
    ports_out[i]   sum_{p from i} sum_l y_pl <= d
    ports_in[j]    sum_{p to j} sum_l y_pl <= d

Equation (1) is Utility = sum_p T_p Discount(L_p) over the numbers L_p of circuits, with Discount(l) = g_1 + ... + g_l:

    halves      g_l = 2^-l, equation (2)
    factorial   g_l = 1 / l!, which the paper mentions
    every       g_l = 1: Discount(l) = l, Algorithm 5 with a demand that is not scaled down
    first       g_1 = 1 and L = 1: Discount = 1 in equation (1) as printed, a pair counts once

As gains do not increase, a pair gains most from its first circuits, and sum_l T_p g_l y_pl <= T_p Discount(L_p), with
equality at an optimum: the program is a b-matching with concave values, separated by circuits.

Optimum in polynomial time. A column has one entry in ``ports_out`` and one in ``ports_in``: the incidence matrix of a
bipartite graph, which is totally unimodular. The linear relaxation has an integer optimum, proven by its prices u, v:

    U <= d sum_i (u_i + v_i) + sum_pl max(0, T_p g_l - u_i - v_j)            for all u, v >= 0

Closed form: with the same demand T between all servers and d = a (n-1) + r ports, 0 <= r < n-1,
U = n T ((n-1) Discount(a) + r g_{a+1}), by r shifts with one circuit more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.topoopt import utility_solution

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.instances.topology import F64, I64


@dataclass(frozen=True, eq=False)
class CircuitUtility(Formulation):
    """Data of the model."""

    name = "topoopt.utility"
    where = "appendix E.4, (1), (2)"
    example = "servers:n=8,degree=3,traffic=random,seed=1"
    sense = "max"
    problem = "MILP"
    parameters = utility_solution.PARAMETERS
    meaning = "demand with the discounts of its circuits [bytes]"
    variables: ClassVar = {"y": ("pair", "circuit")}
    constraints: ClassVar = {"ports_out": ("server",), "ports_in": ("server",)}
    _beside = (utility_solution,)

    n: int
    degree: int
    demand: F64
    discount: str
    discounts = cached_property(utility_solution.discounts)

    @cached_property
    def pairs(self) -> I64:
        """Pairs with demand, in C order, ``(|P|, 2)``."""
        return np.argwhere(self.demand > 0)

    @cached_property
    def amounts(self) -> F64:
        """T_p [bytes], ``(|P|,)``."""
        return np.asarray(self.demand[tuple(self.pairs.T)])

    @cached_property
    def gains(self) -> F64:
        """g_l, ``(L,)``."""
        return np.array([float(gain) for gain in utility_solution.exact_gains(self.discount, self.degree)])

    def sets(self) -> dict[str, Sequence[Any]]:
        """Pairs (i,j) with demand, circuits of a pair from 1, and servers."""
        P, L = list(map(tuple, self.pairs.tolist())), range(1, self.gains.size + 1)
        return {"pair": P, "circuit": L, "server": range(self.n)}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY."""
        b, (i, j), T, g = Cvx(self), self.pairs.T, self.amounts, self.gains
        circuits = Index.grid(pair=i.size, circuit=g.size)
        circuits = circuits.given(i=i[circuits["pair"]], j=j[circuits["pair"]])
        y = b.var("y", upper=1, integer=True, over=circuits)
        out, into = (circuits.given(server=circuits[end]).by("server") for end in ("i", "j"))
        b.row("ports_out", out.of(circuits, i="server") @ y <= self.degree, over=out)
        b.row("ports_in", into.of(circuits, j="server") @ y <= self.degree, over=into)
        return b.maximize(np.outer(T, g).ravel() @ y)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``y[i,j,l]``, ``ports_out[i]``, ``ports_in[j]``."""
        b, d = Pyo(self), self.degree
        T = {(i, j): float(self.demand[i, j]) for i, j in self.pairs.tolist()}
        (L,) = b.sets("circuit")
        gain = dict(zip(L, map(float, utility_solution.exact_gains(self.discount, d)), strict=True))
        y = b.var("y", upper=1, integer=True)
        b.row(
            "ports_out",
            lambda i: b.sum(y[i, j, k] for s, j in T for k in gain if s == i) <= d,
            over={i for i, _ in T},
        )
        b.row(
            "ports_in",
            lambda j: b.sum(y[i, j, k] for i, t in T for k in gain if t == j) <= d,
            over={j for _, j in T},
        )
        return b.maximize(b.sum(T[i, j] * gain[k] * y[i, j, k] for i, j in T for k in gain))

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block: distance from 0 and 1, circuits beyond the ports of a server."""
        y, circuits = np.asarray(values["y"], dtype=float), self.circuits(values)
        used = [np.bincount(self.pairs[:, end], circuits, minlength=self.n).max() - self.degree for end in (0, 1)]
        return {
            "integer": float(np.minimum(np.abs(y), np.abs(y - 1.0)).max()),
            "ports_out": float(max(used[0], 0.0)),
            "ports_in": float(max(used[1], 0.0)),
        }

    def objective(self, values: Mapping[str, F64]) -> float:
        """Equation (1) [bytes], of the numbers of circuits."""
        return float(self.amounts @ self.discounts[np.minimum(self.circuits(values), self.degree)])

    price_bound = utility_solution.price_bound
    circuits = utility_solution.circuits_of_pairs
    filled = utility_solution.first_circuits


FORMULATION = CircuitUtility
