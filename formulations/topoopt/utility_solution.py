"""Utility of circuits: parameters, gains, bounds by ports of a server and their prices, solutions."""

from __future__ import annotations

from fractions import Fraction
from math import factorial
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations import rounding
from opticoll.formulations.model import Bound
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topoopt.circuit_design import server_pool
from opticoll.formulations.variables import Array, Axis, Links
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opticoll.formulations.topoopt.utility import CircuitUtility
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json


#: Last circuits of a pair whose gains are normal floating-point numbers.
LAST = {"halves": 1000, "factorial": 170, "first": 1}
DISCOUNTS = ("halves", "factorial", "every", "first")
#: Parameters of ``topoopt.utility``.
PARAMETERS = (
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


def prepared(cls: type[CircuitUtility], instance: object, *, discount: str, traffic: str) -> CircuitUtility:
    """The problem on a pool of servers.

    Raises
    ------
    NotApplicable
        If it has no such traffic.
    """
    pool = server_pool(instance, cls.name)
    demand = pool.traffic if traffic == "all" else pool.point_to_point
    if not demand.any():
        refuse(cls.name, f"{pool.spec} has no point-to-point traffic; use traffic=all", NotApplicable)
    if traffic != "all" and not pool.groups:
        refuse(cls.name, f"traffic=direct has no effect on {pool.spec}, which all-reduces nothing", NotApplicable)
    return cls(pool.n, pool.degree, demand, discount)


def discounts(data: CircuitUtility) -> F64:
    """Discount(0), ..., Discount(d), ``(d + 1,)``."""
    values = np.zeros(data.degree + 1)
    values[1 : data.gains.size + 1] = data.gains
    return np.cumsum(values)


def exact_gains(discount: str, degree: int) -> list[Fraction]:
    """g_1, ..., g_L of a discount."""
    last = min(degree, LAST.get(discount, degree))
    if discount == "halves":
        return [Fraction(1, 2**k) for k in range(1, last + 1)]
    if discount == "factorial":
        return [Fraction(1, factorial(k)) for k in range(1, last + 1)]
    return [Fraction(1)] * last


def derived(data: CircuitUtility) -> list[Fraction]:
    """The demands times the gains."""
    gains = exact_gains(data.discount, data.degree)
    return [amount * gain for amount in rounding.decimals(data.amounts) for gain in gains]


def bounds(data: CircuitUtility) -> list[Bound]:
    """The largest gains of every server at its own ports; exact for the same demand between all servers."""
    out, into = (most_gains(data, side) for side in (data.demand, data.demand.T))
    uniform = len(data.pairs) == data.n * (data.n - 1) and bool((data.amounts == data.amounts[0]).all())
    side = "out of" if out <= into else "into"
    reason = f"every server has its {data.degree} most useful circuits {side} it"
    return [Bound("ports", min(out, into), reason, "topoopt", exact=uniform)]


closed_forms = bounds


def most_gains(data: CircuitUtility, demand: F64) -> float:
    """Sum over the rows of ``demand`` of the d largest gains in them [bytes], rounded up."""
    total = []
    for row in demand:
        values = np.outer(row[row > 0], data.gains).ravel()
        total.append(np.sort(values)[::-1][: data.degree])
    # T_p and g_l are rounded to floats, and so is their product.
    return rounding.sum_up(rounding.up(np.concatenate(total), 3))


def certify(data: CircuitUtility, duals: Mapping[str, F64]) -> Bound | None:
    """Bound from the duals of ``ports_out`` and ``ports_in`` as prices of ports [bytes]."""
    prices = [np.asarray(duals.get(name, ()), dtype=float) for name in ("ports_out", "ports_in")]
    if any(price.shape != (data.n,) for price in prices):
        return None
    value = min(data.price_bound(*(sign * price for price in prices)) for sign in (1.0, -1.0))
    return Bound("prices", value, "what circuits gain beyond the prices of their ports", "topoopt")


def price_bound(data: CircuitUtility, out: F64, into: F64) -> float:
    """Upper bound on the utility from prices of ports out of and into every server [bytes], ``(n,)`` each."""
    out, into = (np.maximum(np.nan_to_num(price, nan=0.0, posinf=0.0), 0.0) for price in (out, into))
    paid = out[data.pairs[:, 0]] + into[data.pairs[:, 1]]
    gain = rounding.up(np.outer(data.amounts, data.gains), 3)
    beyond = np.maximum(rounding.up(gain - rounding.down(paid, 1)[:, None]), 0.0)
    return rounding.sum_up(np.concatenate([np.tile(out, data.degree), np.tile(into, data.degree), beyond.ravel()]))


def arrays(data: CircuitUtility, names: Collection[str]) -> dict[str, Array]:
    """Shape of y, whose circuits are numbered from 1, and of the duals that :meth:`certify` reads."""
    pair = Axis("pair", len(data.pairs), lambda _: [f"{i} -> {j}" for i, j in data.pairs.tolist()])
    ports = Array((Axis("server", data.n),), unit="bytes", dual=True)
    y = Array((pair, Axis("circuit", data.gains.size, range(1, data.gains.size + 1))))
    return {"y": y, "ports_out": ports, "ports_in": ports}


def circuits_of_pairs(data: CircuitUtility, values: Mapping[str, F64]) -> I64:
    """Number L_p of circuits of every pair, ``(|P|,)``."""
    y = np.clip(np.asarray(values["y"], dtype=float), 0.0, 1.0)
    return np.rint(y).sum(axis=1).astype(np.int64)


def first_circuits(data: CircuitUtility, circuits: I64) -> dict[str, F64]:
    """All arrays of a solution from the number of circuits of every pair, ``(|P|,)``: the first L_p of each."""
    return {"y": (np.arange(data.gains.size) < circuits[:, None]).astype(float)}


def repair(data: CircuitUtility, values: Mapping[str, F64]) -> dict[str, F64]:
    """Round, and give every pair its first circuits."""
    return data.filled(data.circuits(values))


def describe(data: CircuitUtility, values: Mapping[str, F64]) -> dict[str, Json]:
    """The share of the demand that has a circuit."""
    return {"direct_share": float(data.amounts[data.circuits(values) > 0].sum() / data.amounts.sum())}


def links(data: CircuitUtility, values: Mapping[str, F64]) -> Links:
    """Demand of every pair that has circuits, in the time of the slowest [bytes / circuit bandwidth]."""
    count = data.circuits(values)
    direct = np.flatnonzero(count)
    tail, head = data.pairs[direct].T
    topology = Topology(data.n, tail, head, spec="circuits")
    load, circuits = data.amounts[direct], count[direct].astype(float)
    return Links(topology, load, circuits, float((load / circuits).max()), "bytes", "circuits")
