"""Builds of ``lumorph.sum-rounds``, with the mathematics of :mod:`opticoll.formulations.lumorph.sum_rounds`.

The Pyomo build states one constraint at a time over its own index sets; the CVXPY build multiplies incidence matrices
of rows and columns. They share no rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.lumorph.round_builds import add_constraints, grouped, incidence, numbered
from opticoll.formulations.model import CvxpyModel, Named, PyomoModel
from opticoll.formulations.rounds.segments import select

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyomo.core as pyo
    import scipy.sparse as sp

    from opticoll.formulations.lumorph.sum_rounds import SumModel
    from opticoll.instances.topology import I64

    Index = tuple[int, ...]
    Rules = dict[str, tuple[Sequence[Any], Any]]


@dataclass(frozen=True)
class SumIndices:
    """Index sets of the Pyomo build, with the letters of the docstring.

    ``pre`` and ``post`` are the vertices of every chunk, ``V`` those of either, ``ways`` the (i, w) of every pair;
    ``moves`` are the (r, s, d, c), ``contributions`` the (c, v, u).
    """

    pre: Mapping[int, list[int]]
    post: Mapping[int, list[int]]
    V: Mapping[int, list[int]]
    ways: Mapping[tuple[int, int], list[Index]]
    moves: Sequence[Index]
    contributions: Sequence[Index]
    C: Sequence[Index]
    F: Sequence[Index]
    B: Sequence[Index]
    X: Sequence[Index]
    Y: Sequence[Index]


def _sum_sets(data: SumModel) -> SumIndices:
    pre, post = _by_chunk(data.collective.pre), _by_chunk(data.collective.post)
    V = {c: sorted({*us, *post.get(c, [])}) for c, us in pre.items()}
    moves, drops, ways = _moves(data, V), _drops(data, V), _ways(data)
    contributions = [(c, v, u) for c in V for v in V[c] for u in pre[c]]
    return SumIndices(
        pre,
        post,
        V,
        ways,
        moves,
        contributions,
        C=[(*move, *way) for move in moves for way in ways[move[1], move[2]]],
        F=drops,
        B=[(r, *key) for r in range(data.horizon + 1) for key in contributions],
        X=[(*move, u) for move in moves for u in pre[move[3]]],
        Y=[(*key, u) for key in drops for u in pre[key[2]]],
    )


def _by_chunk(pairs: I64) -> dict[int, list[int]]:
    """The vertices of (chunk, vertex) pairs by chunk, in order."""
    result: dict[int, list[int]] = {}
    for c, v in pairs.tolist():
        result.setdefault(c, []).append(v)
    return result


def _moves(data: SumModel, V: Mapping[int, list[int]]) -> list[tuple[int, int, int, int]]:
    rounds = range(data.horizon)
    return sorted((r, s, d, c) for r in rounds for c in V for s in V[c] for d in V[c] if s != d)


def _drops(data: SumModel, V: Mapping[int, list[int]]) -> list[Index]:
    return [(r, d, c) for r in range(data.horizon) for d in range(data.topology.n) for c in V if d in V[c]]


def _ways(data: SumModel) -> dict[tuple[int, int], list[Index]]:
    waves = range(data.limits.wavelengths)
    return {
        pair: [(i, w) for i in range(len(routes)) for w in waves] for pair, routes in data.program.named_routes.items()
    }


def build_pyomo(data: SumModel) -> PyomoModel:
    """The model in Pyomo, constraint by constraint as in the module docstring."""
    import pyomo.core as pyo

    sets, rounds = _sum_sets(data), range(data.horizon)
    model = pyo.ConcreteModel(name="sums")
    model.C, model.F, model.B = (pyo.Var(index, domain=pyo.Binary) for index in (sets.C, sets.F, sets.B))
    model.X, model.Y, model.G = (pyo.Var(index, domain=pyo.Binary) for index in (sets.X, sets.Y, sets.Y))
    model.R = pyo.Var(rounds, domain=pyo.Binary, bounds=lambda _, r: (float(r < data.floor), 1.0))
    model.rounds = pyo.Objective(expr=pyo.quicksum(model.R[r] for r in rounds), sense=pyo.minimize)
    axes = add_constraints(model, _possession(model, sets, data.horizon) | _limits(model, sets, data))
    variables: dict[str, Sequence[Any]] = {
        "C": sets.C,
        "F": sets.F,
        "B": sets.B,
        "X": sets.X,
        "Y": sets.Y,
        "G": sets.Y,
        "R": list(rounds),
    }
    return PyomoModel(model, {name: (keys,) for name, keys in variables.items()}, axes)


def _possession(model: pyo.ConcreteModel, sets: SumIndices, T: int) -> Rules:
    """Which contributions the partial sums have: ``start`` to ``some``."""
    import pyomo.core as pyo

    pre, post, V = sets.pre, sets.post, sets.V
    moves = grouped(sets.moves, lambda r, s, d, c: [(c,)])

    def sends(r: int, s: int, d: int, c: int) -> Any:
        return pyo.quicksum(model.C[r, s, d, c, i, w] for i, w in sets.ways[s, d])

    def state(m: Any, r: int, c: int, d: int, u: int) -> Any:
        received = pyo.quicksum(m.X[r, s, d, c, u] for s in V[c] if s != d)
        return m.B[r + 1, c, d, u] - m.B[r, c, d, u] + m.Y[r, d, c, u] - received == 0

    return {
        "start": (sets.contributions, lambda m, c, v, u: m.B[0, c, v, u] == float(u == v)),
        "finish": ([k for k in sets.contributions if k[1] in post.get(k[0], [])], lambda m, *k: m.B[T, *k] == 1),
        "state": ([(r, *k) for r in range(T) for k in sets.contributions], state),
        "unique": (sets.moves, lambda m, *k: sends(*k) <= 1),
        "sent": (sets.X, lambda m, *k: m.X[k] - sends(*k[:4]) <= 0),
        "held": (sets.X, lambda m, r, s, d, c, u: m.X[r, s, d, c, u] - m.B[r, c, s, u] <= 0),
        "carried": (sets.X, lambda m, r, s, d, c, u: sends(r, s, d, c) + m.B[r, c, s, u] - m.X[r, s, d, c, u] <= 1),
        "dropped": (sets.Y, lambda m, *k: m.Y[k] - m.F[k[:3]] <= 0),
        "owned": (sets.Y, lambda m, r, d, c, u: m.Y[r, d, c, u] - m.B[r, c, d, u] <= 0),
        "lost": (sets.Y, lambda m, r, d, c, u: m.F[r, d, c] + m.B[r, c, d, u] - m.Y[r, d, c, u] <= 1),
        "new": (sets.Y, lambda m, r, d, c, u: m.G[r, d, c, u] + m.B[r, c, d, u] <= 1),
        "gained": (sets.Y, lambda m, r, d, c, u: m.G[r, d, c, u] - m.B[r + 1, c, d, u] <= 0),
        "gain": (sets.F, lambda m, *k: m.F[k] - pyo.quicksum(m.G[*k, u] for u in pre[k[2]]) <= 0),
        "some": (
            [k for k in sets.moves if k[1] not in pre[k[3]]],
            lambda m, r, s, d, c: sends(r, s, d, c) - pyo.quicksum(m.B[r, c, s, u] for u in pre[c]) <= 0,
        ),
        "transfers": (
            [c for c in sorted(post) if (c,) in moves],
            lambda m, c: pyo.quicksum(sends(*k) for k in moves[c,]) >= len(pre[c]) - 1 + len(post[c]) - 1,
        ),
    }


def _limits(model: pyo.ConcreteModel, sets: SumIndices, data: SumModel) -> Rules:
    """What a round carries: ``laser`` to ``order``."""
    import pyomo.core as pyo

    W, P = data.limits.room(data.topology).tolist(), data.program.named_routes
    laser = grouped(sets.C, lambda r, s, d, c, i, w: [(r, s, w)])
    photodiode = grouped(sets.C, lambda r, s, d, c, i, w: [(r, d, w)])
    crossing = grouped(sets.C, lambda r, s, d, c, i, w: [(r, e, w) for e in P[s, d][i]])

    def total(over: Mapping[Index, list[Index]], *key: int) -> Any:
        return pyo.quicksum(model.C[j] for j in over[key])

    return {
        "laser": (sorted(laser), lambda m, *k: total(laser, *k) - m.R[k[0]] <= 0),
        "photodiode": (sorted(photodiode), lambda m, *k: total(photodiode, *k) - m.R[k[0]] <= 0),
        "waveguide": (
            sorted((r, e, w) for (r, e, w), over in crossing.items() if len(over) > W[e]),
            lambda m, r, e, w: total(crossing, r, e, w) - W[e] * m.R[r] <= 0,
        ),
        "order": (range(1, data.horizon), lambda m, r: m.R[r] - m.R[r - 1] <= 0),
    }


def build_cvxpy(data: SumModel) -> CvxpyModel:
    """The model in matrix form: incidence matrices of rows and columns times the vectors of the variables."""
    import cvxpy as cp

    T, W, n = data.horizon, data.limits.room(data.topology).astype(float), data.collective.n
    col, (mr, ms, md, mc), (fr, fd, fc) = data.columns, data.moves, data.drops
    N, M, K = col["r"].size, mr.size, fr.size
    # Contributions: (c, v, u) with v in V_c and u in Pre[c]; then those of every move and of every F.
    c, v, u = (a.ravel() for a in np.indices((data.collective.chunks, n, n)))
    real = np.flatnonzero(data.member[c, v] & data.given[c, u])
    c, v, u = c[real], v[real], u[real]
    S = c.size
    at = np.zeros(data.collective.chunks * n * n, dtype=np.int64)
    at[real] = np.arange(S)
    x_move, x_u = np.nonzero(data.given[mc])
    y_drop, y_u = np.nonzero(data.given[fc])
    X_size, Y_size = x_move.size, y_drop.size

    def place(r: I64, chunk: I64, vertex: I64, contribution: I64) -> I64:
        return r * S + at[(chunk * n + vertex) * n + contribution]

    sizes = {"C": N, "F": K, "B": (T + 1) * S, "X": X_size, "Y": Y_size, "G": Y_size}
    C, F, B, X, Y, G = (cp.Variable(size, name=name, boolean=True) for name, size in sizes.items())
    R = cp.Variable(T, name="R", integer=True, bounds=[(np.arange(T) < data.floor).astype(float), np.ones(T)])

    def rows(row: I64, column: I64, size: tuple[int, int]) -> sp.csr_array:
        return incidence(row, column, size)

    shape = (T, n, n, data.collective.chunks)
    every, taken = (np.ravel_multi_index(keys, shape) for keys in (data.moves, tuple(col[k] for k in "rsdc")))
    move_of = np.searchsorted(every, taken)
    sends = rows(move_of, np.arange(N), (M, N)) @ C
    of_x = rows(np.arange(X_size), x_move, (X_size, M))
    source_has = B[place(mr[x_move], mc[x_move], ms[x_move], x_u)]
    target_has = place(fr[y_drop], fc[y_drop], fd[y_drop], y_u)
    of_y = F[y_drop]
    flow = rows(place(mr[x_move], mc[x_move], md[x_move], x_u), np.arange(X_size), (T * S, X_size)) @ X
    given_up = rows(target_has, np.arange(Y_size), (T * S, Y_size)) @ Y
    ends = np.isin(c * n + v, data.collective.key(data.collective.post))
    result: dict[str, Any] = {
        "start": B[:S] == (u == v).astype(float),
        "finish": B[T * S + np.flatnonzero(ends)] == 1,
        "state": B[S:] - B[: T * S] + given_up - flow == 0,
        "unique": sends <= 1,
        "sent": X - of_x @ sends <= 0,
        "held": X - source_has <= 0,
        "carried": of_x @ sends + source_has - X <= 1,
        "dropped": Y - of_y <= 0,
        "owned": Y - B[target_has] <= 0,
        "lost": of_y + B[target_has] - Y <= 1,
        "new": G + B[target_has] <= 1,
        "gained": G - B[target_has + S] <= 0,
        "gain": F - rows(y_drop, np.arange(Y_size), (K, Y_size)) @ G <= 0,
    }
    without = np.flatnonzero(~data.given[mc, ms])
    if without.size:
        k, contribution = np.nonzero(data.given[mc[without]])
        where = without[k]
        has = rows(k, place(mr[where], mc[where], ms[where], contribution), (without.size, (T + 1) * S)) @ B
        result["some"] = sends[without] - has <= 0
    wanted = np.bincount(data.collective.post[:, 0], minlength=data.collective.chunks)
    needed = np.flatnonzero((wanted > 0) & (data.member.sum(axis=1) > 1))
    least = (data.given.sum(axis=1) + wanted - 2)[needed]
    result["transfers"] = rows(col["c"], np.arange(N), (wanted.size, N))[needed] @ C >= least
    for name, end in (("laser", "s"), ("photodiode", "d")):
        row, (when, *_) = numbered(col["r"], col[end], col["w"])
        result[name] = rows(row, np.arange(N), (when.size, N)) @ C - R[when] <= 0
    start, arcs = select(data.program.routes.start, data.program.routes.arcs, col["path"])
    owner = np.repeat(np.arange(N), np.diff(start))
    row, (when, on, _) = numbered(col["r"][owner], arcs, col["w"][owner])
    crowded = np.flatnonzero(np.bincount(row) > W[on])
    if crowded.size:
        through, opened = rows(row, owner, (when.size, N))[crowded] @ C, R[when[crowded]]
        result["waveguide"] = through - cp.multiply(W[on[crowded]], opened) <= 0
    if T > 1:
        result["order"] = R[1:] - R[:-1] <= 0
    return CvxpyModel(
        cp.Problem(cp.Minimize(cp.sum(R)), list(result.values())),
        variables={x.name(): Named(x, x.shape) for x in (C, F, B, X, Y, G, R)},
        constraints={name: Named(item, item.shape) for name, item in result.items()},
    )
