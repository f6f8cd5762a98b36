"""Builds of the model of :mod:`opticoll.formulations.topology.sequence`, named as in its docstring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.model import CvxpyModel, Named, PyomoModel

if TYPE_CHECKING:
    import pyomo.core as pyo

    from opticoll.formulations.model import Axis
    from opticoll.formulations.topology.sequence import TopologySequence
    from opticoll.instances.topology import I64, Mask

    Axes = dict[str, tuple[Axis, ...]]


@dataclass(frozen=True)
class Indices:
    """Index sets of the Pyomo build: nodes V, pairs (u,v), and those of the variables and constraints.

    ``circuits`` are the (k,u,v,m), ``changes`` the (k,u,v), ``flows`` the (p,s,u,v) and ``states`` the (p,s,u).
    """

    V: range
    copies: range
    pairs: list[tuple[int, int]]
    senders: list[int]
    circuits: list[tuple[int, int, int, int]]
    changes: list[tuple[int, int, int]]
    flows: list[tuple[int, int, int, int]]
    states: list[tuple[int, int, int]]

    @classmethod
    def of(cls, data: TopologySequence) -> Indices:
        """The index sets of a problem."""
        V, K, copies, phases = range(data.n), data.configurations, range(data.parallel), range(data.phases)
        pairs = [(u, v) for u in V for v in V if u != v]
        senders = np.flatnonzero(data.sends).tolist()
        return cls(
            V,
            copies,
            pairs,
            senders,
            circuits=[(k, u, v, m) for k in range(K) for u, v in pairs for m in copies],
            changes=[(k, u, v) for k in range(K - 1) for u, v in pairs],
            flows=[(p, s, u, v) for p in phases for s in senders for u, v in pairs if v != s],
            states=[(p, s, u) for p in phases for s in senders for u in V if u != s],
        )


def build_pyomo(data: TopologySequence) -> PyomoModel:
    """The model in Pyomo."""
    import pyomo.core as pyo

    sets, n, K, M, P = Indices.of(data), data.n, data.configurations, data.parallel, data.phases
    model = pyo.ConcreteModel(name="circuits that change during a collective")
    model.x = pyo.Var(sets.circuits, domain=pyo.Binary)
    model.t = pyo.Var(range(K), bounds=(0, data.longest))
    model.w = pyo.Var(sets.circuits, domain=pyo.NonNegativeReals)
    model.g = pyo.Var(sets.flows, domain=pyo.NonNegativeReals)
    model.b = pyo.Var(sets.states, domain=pyo.NonNegativeReals)
    variables: Axes = {"x": (K, n, n, M), "t": (K,), "w": (K, n, n, M), "g": (P, n, n, n), "b": (P, n, n)}
    constraints: Axes = {}
    cost = pyo.quicksum(model.t[k] for k in range(K))
    _wire(model, data, sets, constraints)
    if data.overlap and K > 1:
        _keep(model, data, sets, variables, constraints)
    if data.charge == "changed" and K > 1:
        _charge_changes(model, data, sets, variables, constraints)
        cost += data.delay * pyo.quicksum(model.z[k] for k in range(K - 1))
    else:
        cost += data.delay * (K - 1)
    _send(model, data, sets, constraints)
    if data.startup > 0:
        model.y = pyo.Var(range(K), domain=pyo.Binary)
        variables["y"] = (K,)
        model.used = pyo.Constraint(range(K), rule=lambda m, k: m.t[k] <= data.longest * m.y[k])
        constraints["used"] = (K,)
        cost += data.startup * pyo.quicksum(model.y[k] for k in range(K))
    model.time = pyo.Objective(expr=cost)
    return PyomoModel(model, variables, constraints)


def _wire(model: pyo.ConcreteModel, data: TopologySequence, sets: Indices, constraints: Axes) -> None:
    """State which circuits a configuration may have, and what they carry."""
    import pyomo.core as pyo

    V, copies, circuits = sets.V, sets.copies, sets.circuits
    n, K, M, L = data.n, data.configurations, data.parallel, data.longest

    def ports_out(m: Any, k: int, u: int) -> Any:
        return pyo.quicksum(m.x[k, u, v, c] for v in V if v != u for c in copies) <= data.degree

    def ports_in(m: Any, k: int, v: int) -> Any:
        return pyo.quicksum(m.x[k, u, v, c] for u in V if u != v for c in copies) <= data.degree

    model.ports_out = pyo.Constraint(range(K), V, rule=ports_out)
    model.ports_in = pyo.Constraint(range(K), V, rule=ports_in)
    constraints |= {"ports_out": (K, n), "ports_in": (K, n)}
    if not data.directed:
        onward = [(k, u, v, c) for k, u, v, c in circuits if u < v]
        model.both_ways = pyo.Constraint(onward, rule=lambda m, k, u, v, c: m.x[k, u, v, c] == m.x[k, v, u, c])
        constraints["both_ways"] = (K, n, n, M)
    if data.rack:
        _limit_cables(model, data, sets, constraints)
    if M > 1:
        before = [(k, u, v, c) for k, u, v, c in circuits if c < M - 1]
        model.order = pyo.Constraint(before, rule=lambda m, k, u, v, c: m.x[k, u, v, c] >= m.x[k, u, v, c + 1])
        constraints["order"] = (K, n, n, M - 1)
    if data.standing is not None:
        there = data.standing.tolist()
        model.standing = pyo.Constraint(
            sets.pairs, copies, rule=lambda m, u, v, c: m.x[0, u, v, c] == (1 if there[u][v] > c else 0)
        )
        constraints["standing"] = (n, n, M)
    model.lit = pyo.Constraint(circuits, rule=lambda m, *at: m.w[at] <= L * m.x[at])
    model.lasting = pyo.Constraint(circuits, rule=lambda m, *at: m.w[at] <= m.t[at[0]])
    constraints |= {"lit": (K, n, n, M), "lasting": (K, n, n, M)}


def _limit_cables(model: pyo.ConcreteModel, data: TopologySequence, sets: Indices, constraints: Axes) -> None:
    """State the limits on the circuits between racks."""
    import pyomo.core as pyo

    K, V = range(data.configurations), sets.V
    R = [[i for i in V if i // data.rack == p] for p in range(-(-data.n // data.rack))]
    others = [[j for j in V if j // data.rack != p] for p in range(len(R))]

    def links(m: Any, k: int, tails: list[int], heads: list[int]) -> Any:
        return pyo.quicksum(m.x[k, i, j, c] for i in tails for j in heads for c in sets.copies)

    if data.cables:
        model.cables = pyo.Constraint(
            [(k, p, q) for k in K for p in range(len(R)) for q in range(len(R)) if p != q],
            rule=lambda m, k, p, q: links(m, k, R[p], R[q]) <= data.cables,
        )
        constraints["cables"] = (len(K), len(R), len(R))
    if data.uplinks:
        places = [(k, p) for k in K for p in range(len(R))]
        model.uplinks_out = pyo.Constraint(places, rule=lambda m, k, p: links(m, k, R[p], others[p]) <= data.uplinks)
        model.uplinks_in = pyo.Constraint(places, rule=lambda m, k, p: links(m, k, others[p], R[p]) <= data.uplinks)
        constraints |= {name: (len(K), len(R)) for name in ("uplinks_out", "uplinks_in")}


def _keep(model: pyo.ConcreteModel, data: TopologySequence, sets: Indices, variables: Axes, constraints: Axes) -> None:
    """State which circuits transmit during a change."""
    import pyomo.core as pyo

    def both(k: int) -> Any:
        return lambda m, at, u, v: m.e[at, u, v] <= pyo.quicksum(m.x[at + k, u, v, c] for c in sets.copies)

    shape = (data.configurations - 1, data.n, data.n)
    model.e = pyo.Var(sets.changes, domain=pyo.NonNegativeReals)
    model.kept_before = pyo.Constraint(sets.changes, rule=both(0))
    model.kept_after = pyo.Constraint(sets.changes, rule=both(1))
    variables["e"] = shape
    constraints |= {"kept_before": shape, "kept_after": shape}


def _charge_changes(
    model: pyo.ConcreteModel, data: TopologySequence, sets: Indices, variables: Axes, constraints: Axes
) -> None:
    """State that a change takes time only if it sets a circuit."""
    import pyomo.core as pyo

    n, changes, M = data.n, data.configurations - 1, data.parallel
    model.z = pyo.Var(range(changes), domain=pyo.Binary)
    variables["z"] = (changes,)
    model.setting = pyo.Constraint(
        sets.changes, sets.copies, rule=lambda m, k, u, v, c: m.x[k + 1, u, v, c] - m.x[k, u, v, c] <= m.z[k]
    )
    constraints["setting"] = (changes, n, n, M)
    if data.overlap:
        model.waiting = pyo.Constraint(sets.changes, rule=lambda m, k, u, v: m.e[k, u, v] <= M * m.z[k])
        constraints["waiting"] = (changes, n, n)


def _send(model: pyo.ConcreteModel, data: TopologySequence, sets: Indices, constraints: Axes) -> None:
    """State what flows in every phase, and what the nodes hold after it."""
    import pyomo.core as pyo

    V, P, D, states = sets.V, data.phases, data.demand.tolist(), sets.states
    windows = data.overlap and data.configurations > 1

    def capacity(m: Any, p: int, u: int, v: int) -> Any:
        used = pyo.quicksum(m.g[p, s, u, v] for s in sets.senders if s != v)
        k, change = divmod(p, 2) if windows else (p, 0)
        return used <= (data.delay * m.e[k, u, v] if change else pyo.quicksum(m.w[k, u, v, c] for c in sets.copies))

    def held_before(m: Any, p: int, s: int, u: int) -> Any:
        return m.b[p - 1, s, u] if p else 0

    def inflow(m: Any, p: int, s: int, u: int) -> Any:
        return pyo.quicksum(m.g[p, s, v, u] for v in V if v != u)

    def outflow(m: Any, p: int, s: int, u: int) -> Any:
        return pyo.quicksum(m.g[p, s, u, v] for v in V if v not in (s, u))

    def stock(m: Any, *at: int) -> Any:
        return m.b[at] - held_before(m, *at) == inflow(m, *at) - outflow(m, *at)

    model.capacity = pyo.Constraint(range(P), sets.pairs, rule=capacity)
    model.stock = pyo.Constraint(states, rule=stock)
    if data.held:
        model.held = pyo.Constraint(states, rule=lambda m, *at: outflow(m, *at) <= held_before(m, *at))
        constraints["held"] = (P, data.n, data.n)
    due = [(s, u) for s in sets.senders for u in V if D[s][u] > 0]
    model.served = pyo.Constraint(due, rule=lambda m, s, u: m.b[P - 1, s, u] >= D[s][u])
    constraints |= {"capacity": (P, data.n, data.n), "stock": (P, data.n, data.n), "served": (data.n, data.n)}


def build_cvxpy(data: TopologySequence) -> CvxpyModel:
    """The model in matrix form: a column for every entry that can be above 0."""
    import cvxpy as cp
    import scipy.sparse as sp

    n, K, M, P, off = data.n, data.configurations, data.parallel, data.phases, data.off
    stride = 2 if data.overlap else 1
    nodes, sends = np.arange(n), data.sends

    def placed(mask: Mask) -> tuple[I64, I64]:
        """Flat positions of the members, and the number of every one in an array of that shape."""
        flat = np.flatnonzero(mask)
        number = np.full(mask.size, mask.size)
        number[flat] = np.arange(flat.size)
        return flat, number.reshape(mask.shape)

    def ones(rows: I64, columns: I64, shape: tuple[int, int]) -> sp.csr_array:
        return sp.csr_array((np.ones(rows.size), (rows, columns)), shape=shape)

    circuits, X = placed(np.broadcast_to(off[None, :, :, None], (K, n, n, M)))
    k, i, j, m = np.unravel_index(circuits, X.shape)
    carried = off[None, :, :] & (nodes[None, None, :] != nodes[:, None, None]) & sends[:, None, None]
    flows, G = placed(np.broadcast_to(carried, (P, n, n, n)))
    gp, gs, gi, gj = np.unravel_index(flows, G.shape)
    stocks, B = placed(np.broadcast_to(off & sends[:, None], (P, n, n)))
    bp, bs, bu = np.unravel_index(stocks, B.shape)
    C, F, S = circuits.size, flows.size, stocks.size
    x = cp.Variable(C, name="x", boolean=True)
    t = cp.Variable(K, name="t", bounds=[np.zeros(K), np.full(K, data.longest)])
    w = cp.Variable(C, name="w", nonneg=True)
    g = cp.Variable(F, name="g", nonneg=True)
    b = cp.Variable(S, name="b", nonneg=True)
    each, place = np.arange(C), (k * n + i) * n + j
    total = ones(place, each, (K * n * n, C))  # all parallel circuits of a pair

    def pairs_of(layers: I64) -> I64:
        """Flat positions of all pairs in these layers of an array (., n, n)."""
        return np.asarray(layers[:, None] * n * n + np.flatnonzero(off)[None, :]).ravel()

    named = {
        "ports_out": Named(ones(k * n + i, each, (K * n, C)) @ x <= data.degree, (K, n), np.arange(K * n)),
        "ports_in": Named(ones(k * n + j, each, (K * n, C)) @ x <= data.degree, (K, n), np.arange(K * n)),
        "lit": Named(w - data.longest * x <= 0, X.shape, circuits),
        "lasting": Named(w - ones(each, k, (C, K)) @ t <= 0, X.shape, circuits),
    }
    if not data.directed:
        onward = np.flatnonzero(i < j)
        back = X[k[onward], j[onward], i[onward], m[onward]]
        named["both_ways"] = Named(x[onward] - x[back] == 0, X.shape, circuits[onward])
    if data.rack:
        rack, R = data.racks.rack_of, data.racks.racks
        crossing = np.flatnonzero(rack[i] != rack[j])
        out, into = k[crossing] * R + rack[i[crossing]], k[crossing] * R + rack[j[crossing]]
        if data.cables:
            between = ones(out * R + rack[j[crossing]], crossing, (K * R * R, C))
            two = np.flatnonzero(np.broadcast_to(~np.eye(R, dtype=bool), (K, R, R)))
            named["cables"] = Named(between[two] @ x <= data.cables, (K, R, R), two)
        if data.uplinks:
            named["uplinks_out"] = Named(ones(out, crossing, (K * R, C)) @ x <= data.uplinks, (K, R), np.arange(K * R))
            named["uplinks_in"] = Named(ones(into, crossing, (K * R, C)) @ x <= data.uplinks, (K, R), np.arange(K * R))
    if M > 1:
        first = np.flatnonzero(m < M - 1)
        index = np.ravel_multi_index((k[first], i[first], j[first], m[first]), (K, n, n, M - 1))
        named["order"] = Named(x[first] - x[first + 1] >= 0, (K, n, n, M - 1), index)
    if data.standing is not None:
        first = np.flatnonzero(k == 0)
        wanted = (m[first] < data.standing[i[first], j[first]]).astype(float)
        named["standing"] = Named(x[first] == wanted, (n, n, M), circuits[first])
    load = ones((gp * n + gi) * n + gj, np.arange(F), (P * n * n, F))
    room = pairs_of(np.arange(K))
    lines = pairs_of(np.arange(K) * stride)
    unused, places = [load[lines] @ g - total[room] @ w], [lines]
    variables = {
        "x": Named(x, X.shape, circuits),
        "t": Named(t, (K,)),
        "w": Named(w, X.shape, circuits),
        "g": Named(g, G.shape, flows),
        "b": Named(b, B.shape, stocks),
    }
    starting: Any = 0.0
    if data.startup > 0:
        y = cp.Variable(K, name="y", boolean=True)
        variables["y"] = Named(y, (K,))
        starting = data.startup * cp.sum(y)
        named["used"] = Named(t - data.longest * y <= 0, (K,))
    waiting: Any = data.delay * (K - 1)
    if data.charge == "changed" and K > 1:
        z = cp.Variable(K - 1, name="z", boolean=True)
        variables["z"] = Named(z, (K - 1,))
        waiting = data.delay * cp.sum(z)
        later = np.flatnonzero(k > 0)
        before = X[k[later] - 1, i[later], j[later], m[later]]
        change = ones(np.arange(later.size), k[later] - 1, (later.size, K - 1))
        named["setting"] = Named(x[later] - x[before] - change @ z <= 0, (K - 1, n, n, M), circuits[before])
    if data.overlap and K > 1:
        kept = pairs_of(np.arange(K - 1))
        e = cp.Variable(kept.size, name="e", nonneg=True)
        variables["e"] = Named(e, (K - 1, n, n), kept)
        lines = pairs_of(np.arange(K - 1) * 2 + 1)
        unused.append(load[lines] @ g - data.delay * e)
        places.append(lines)
        named["kept_before"] = Named(e - total[kept] @ x <= 0, (K - 1, n, n), kept)
        named["kept_after"] = Named(e - total[kept + n * n] @ x <= 0, (K - 1, n, n), kept)
        if data.charge == "changed":
            change = ones(np.arange(kept.size), kept // (n * n), (kept.size, K - 1))
            named["waiting"] = Named(e - M * (change @ z) <= 0, (K - 1, n, n), kept)
    named["capacity"] = Named(cp.hstack(unused) <= 0, (P, n, n), np.concatenate(places))
    entering = ones(((gp * n + gs) * n + gj), np.arange(F), (P * n * n, F))
    sent = np.flatnonzero(gi != gs)
    leaving = ones((gp[sent] * n + gs[sent]) * n + gi[sent], sent, (P * n * n, F))
    again = np.flatnonzero(bp > 0)
    earlier = ones(again, B[bp[again] - 1, bs[again], bu[again]], (S, S))
    moved = (entering - leaving)[stocks]
    named["stock"] = Named(b - earlier @ b - moved @ g == 0, B.shape, stocks)
    if data.held:
        named["held"] = Named(leaving[stocks] @ g - earlier @ b <= 0, B.shape, stocks)
    due = np.flatnonzero((bp == P - 1) & (data.demand[bs, bu] > 0))
    named["served"] = Named(b[due] >= data.demand[bs[due], bu[due]], (n, n), stocks[due] - (P - 1) * n * n)
    return CvxpyModel(
        cp.Problem(cp.Minimize(cp.sum(t) + waiting + starting), [row.item for row in named.values()]),
        variables,
        named,
    )
