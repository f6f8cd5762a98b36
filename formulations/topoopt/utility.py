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
from fractions import Fraction
from functools import cached_property
from math import factorial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import Bound, CvxpyModel, Formulation, NotApplicable, Parameter, PyomoModel
from opticoll.formulations.topoopt.circuit_design import server_pool
from opticoll.formulations.variables import Array, Axis, Links
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from opticoll.instances.servers import ServerPool
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json, Settings

NAME = "topoopt.utility"
DISCOUNTS = ("halves", "factorial", "every", "first")
#: Maximum number of circuits of a stated model.
MOST_CIRCUITS = 2_000_000
#: Last circuits of a pair whose gains are normal floating-point numbers.
LAST = {"halves": 1000, "factorial": 170, "first": 1}


def exact_gains(discount: str, degree: int) -> list[Fraction]:
    """g_1, ..., g_L of a discount."""
    last = min(degree, LAST.get(discount, degree))
    if discount == "halves":
        return [Fraction(1, 2**k) for k in range(1, last + 1)]
    if discount == "factorial":
        return [Fraction(1, factorial(k)) for k in range(1, last + 1)]
    return [Fraction(1)] * last


@dataclass(frozen=True, eq=False)
class CircuitUtility(Formulation):
    """Data of the model."""

    name = NAME
    where = "appendix E.4, (1), (2)"
    example = "servers:n=8,degree=3,traffic=random,seed=1"
    sense = "max"
    problem = "MILP"
    parameters = (
        Parameter(
            "discount",
            str,
            default="halves",
            help="gain of the l-th circuit of a pair: 2^-l, 1/l!, 1 for every one, 1 for the first only",
            choices=DISCOUNTS,
        ),
        Parameter(
            "traffic",
            str,
            default="all",
            help="traffic that counts: all, with default rings, or point-to-point traffic alone",
            choices=("all", "direct"),
        ),
    )
    meaning = "demand with the discounts of its circuits [bytes]"
    variables: ClassVar = {"y": ("pair", "circuit")}
    constraints: ClassVar = {"ports_out": ("server",), "ports_in": ("server",)}

    pool: ServerPool
    demand: F64
    discount: str

    @property
    def n(self) -> int:
        """Servers."""
        return self.pool.n

    @property
    def degree(self) -> int:
        """Number d of ports of a server, out and in."""
        return self.pool.degree

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
        return np.array([float(gain) for gain in exact_gains(self.discount, self.degree)])

    @property
    def numbers(self) -> range:
        """Circuits l of a pair, from 1."""
        return range(1, self.gains.size + 1)

    @cached_property
    def discounts(self) -> F64:
        """Discount(0), ..., Discount(d), ``(d + 1,)``."""
        values = np.zeros(self.degree + 1)
        values[1 : self.gains.size + 1] = self.gains
        return np.cumsum(values)

    @classmethod
    def prepare(cls, instance: object, parameters: Settings | None = None) -> Self:
        """The data of the model.

        Raises
        ------
        NotApplicable
            For anything but a pool of servers with traffic of the chosen kind, or ``traffic=direct`` where nothing is
            all-reduced.
        """
        pool = server_pool(instance, NAME)
        given = cls._completed(parameters)
        demand = pool.traffic if given["traffic"] == "all" else pool.point_to_point
        if not demand.any():
            msg = f"{NAME}: {pool.spec} has no point-to-point traffic; use traffic=all"
            raise NotApplicable(msg)
        if given["traffic"] != "all" and not pool.groups:
            msg = f"{NAME}: traffic=direct has no effect on {pool.spec}, which all-reduces nothing"
            raise NotApplicable(msg)
        return cls(pool, demand, given["discount"])

    def derived(self) -> list[Fraction]:
        """The demands times the gains."""
        gains = exact_gains(self.discount, self.degree)
        return [amount * gain for amount in rounding.decimals(self.amounts) for gain in gains]

    def bounds(self) -> list[Bound]:
        """The largest gains of every server at its own ports; exact for the same demand between all servers."""
        out, into = (self._best(side) for side in (self.demand, self.demand.T))
        uniform = len(self.pairs) == self.n * (self.n - 1) and bool((self.amounts == self.amounts[0]).all())
        side = "out of" if out <= into else "into"
        reason = f"every server has its {self.degree} most useful circuits {side} it"
        return [Bound("ports", min(out, into), reason, "topoopt", exact=uniform)]

    def _best(self, demand: F64) -> float:
        """Sum over the rows of ``demand`` of the d largest gains in them [bytes], rounded up."""
        total = []
        for row in demand:
            values = np.outer(row[row > 0], self.gains).ravel()
            total.append(np.sort(values)[::-1][: self.degree])
        # T_p and g_l are rounded to floats, and so is their product.
        return rounding.sum_up(rounding.up(np.concatenate(total), 3))

    def closed_forms(self) -> list[Bound]:
        """The bound for the same demand between all servers."""
        return [bound for bound in self.bounds() if bound.exact]

    def certify(self, duals: Mapping[str, F64]) -> Bound | None:
        """Bound from the duals of ``ports_out`` and ``ports_in`` as prices of ports [bytes]."""
        prices = [np.asarray(duals.get(name, ()), dtype=float) for name in ("ports_out", "ports_in")]
        if any(price.shape != (self.n,) for price in prices):
            return None
        value = min(self.price_bound(*(sign * price for price in prices)) for sign in (1.0, -1.0))
        return Bound("prices", value, "what circuits gain beyond the prices of their ports", "topoopt")

    def price_bound(self, out: F64, into: F64) -> float:
        """Upper bound on the utility from prices of ports out of and into every server [bytes], ``(n,)`` each."""
        out, into = (np.maximum(np.nan_to_num(price, nan=0.0, posinf=0.0), 0.0) for price in (out, into))
        paid = out[self.pairs[:, 0]] + into[self.pairs[:, 1]]
        gain = rounding.up(np.outer(self.amounts, self.gains), 3)
        beyond = np.maximum(rounding.up(gain - rounding.down(paid, 1)[:, None]), 0.0)
        return rounding.sum_up(np.concatenate([np.tile(out, self.degree), np.tile(into, self.degree), beyond.ravel()]))

    def sets(self) -> dict[str, Sequence[Any]]:
        """Pairs (i,j) with demand, circuits of a pair from 1, and servers."""
        return {"pair": list(map(tuple, self.pairs.tolist())), "circuit": self.numbers, "server": range(self.n)}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY."""
        _refuse_large(self)
        b, (i, j) = Cvx(self), self.pairs.T
        circuits = Index.grid(pair=i.size, circuit=self.gains.size)
        circuits = circuits.given(i=i[circuits["pair"]], j=j[circuits["pair"]])
        y = b.var("y", upper=1, integer=True, over=circuits)
        out, into = (circuits.given(server=circuits[end]).by("server") for end in ("i", "j"))
        b.row("ports_out", out.of(circuits, i="server") @ y <= self.degree, over=out)
        b.row("ports_in", into.of(circuits, j="server") @ y <= self.degree, over=into)
        return b.maximize(np.outer(self.amounts, self.gains).ravel() @ y)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``y[i,j,l]``, ``ports_out[i]``, ``ports_in[j]``."""
        from pyomo.core import quicksum

        _refuse_large(self)
        b, d = Pyo(self), self.degree
        T = {(i, j): float(self.demand[i, j]) for i, j in self.pairs.tolist()}
        gain = dict(zip(self.numbers, map(float, exact_gains(self.discount, d)), strict=True))
        y = b.var("y", upper=1, integer=True)
        b.row(
            "ports_out",
            lambda i: quicksum(y[i, j, k] for s, j in T for k in gain if s == i) <= d,
            over={i for i, _ in T},
        )
        b.row(
            "ports_in",
            lambda j: quicksum(y[i, j, k] for i, t in T for k in gain if t == j) <= d,
            over={j for _, j in T},
        )
        return b.maximize(quicksum(T[i, j] * gain[k] * y[i, j, k] for i, j in T for k in gain))

    def estimate(self) -> dict[str, int]:
        """Size of the model."""
        circuits = len(self.pairs) * self.gains.size
        ends = sum(np.unique(self.pairs[:, end]).size for end in (0, 1))
        return {"variables": circuits, "constraints": ends, "nonzeros": 2 * circuits, "integers": circuits}

    def arrays(self, _names: Collection[str]) -> dict[str, Array]:
        """Shape of y, whose circuits are numbered from 1, and of the duals that :meth:`certify` reads."""
        pair = Axis("pair", len(self.pairs), lambda _: [f"{i} -> {j}" for i, j in self.pairs.tolist()])
        ports = Array((Axis("server", self.n),), unit="bytes", dual=True)
        y = Array((pair, Axis("circuit", self.gains.size, list(self.numbers))))
        return {"y": y, "ports_out": ports, "ports_in": ports}

    def circuits(self, values: Mapping[str, F64]) -> I64:
        """Number L_p of circuits of every pair, ``(|P|,)``."""
        y = np.clip(np.nan_to_num(np.asarray(values["y"], dtype=float)), 0.0, 1.0)
        return np.rint(y).sum(axis=1).astype(np.int64)

    def filled(self, circuits: I64) -> dict[str, F64]:
        """All arrays of a solution from the number of circuits of every pair, ``(|P|,)``: the first L_p of each."""
        return {"y": (np.arange(self.gains.size) < circuits[:, None]).astype(float)}

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block: distance from 0 and 1, circuits beyond the ports of a server."""
        y = np.asarray(values.get("y", ()), dtype=float)
        blocks = ("integer", "ports_out", "ports_in")
        if y.shape != (len(self.pairs), self.gains.size) or not np.isfinite(y).all():
            return dict.fromkeys(blocks, np.inf)
        circuits = self.circuits(values)
        used = [np.bincount(self.pairs[:, end], circuits, minlength=self.n).max() - self.degree for end in (0, 1)]
        return {
            "integer": float(np.minimum(np.abs(y), np.abs(y - 1.0)).max()),
            "ports_out": float(max(used[0], 0.0)),
            "ports_in": float(max(used[1], 0.0)),
        }

    def objective(self, values: Mapping[str, F64]) -> float:
        """Equation (1) [bytes], of the numbers of circuits."""
        return float(self.amounts @ self.discounts[np.minimum(self.circuits(values), self.degree)])

    def repair(self, values: Mapping[str, F64]) -> dict[str, F64] | None:
        """Round, and give every pair its first circuits."""
        if np.shape(values.get("y", ())) != (len(self.pairs), self.gains.size):
            return None
        return self.filled(self.circuits(values))

    def describe(self, values: Mapping[str, F64]) -> dict[str, Json]:
        """Number of circuits, most of one pair, and the share of the demand that has a circuit."""
        count = self.circuits(values)
        return {
            "circuits": int(count.sum()),
            "most_parallel": int(count.max()),
            "direct_share": float(self.amounts[count > 0].sum() / self.amounts.sum()),
        }

    def links(self, values: Mapping[str, F64]) -> Links:
        """Demand of every pair that has circuits, in the time of the slowest [bytes / circuit bandwidth]."""
        count = self.circuits(values)
        direct = np.flatnonzero(count)
        tail, head = self.pairs[direct].T
        topology = Topology(self.n, tail, head, spec="circuits")
        load, circuits = self.amounts[direct], count[direct].astype(float)
        return Links(topology, load, circuits, float((load / circuits).max()), "bytes", "circuits")


def _refuse_large(data: CircuitUtility) -> None:
    circuits = len(data.pairs) * data.gains.size
    if circuits > MOST_CIRCUITS:
        msg = f"{NAME}: {circuits:,} circuits are too many for a stated model; use --method transportation"
        raise NotApplicable(msg)


FORMULATION = CircuitUtility
