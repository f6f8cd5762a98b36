"""Builds of ``lumorph.sum-rounds``, whose mathematics is that of :mod:`opticoll.formulations.lumorph.sum_rounds`.

The Pyomo build states one constraint at a time over index sets of its own; the CVXPY build multiplies incidence
matrices of rows and columns. They share no rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.lumorph.round_builds import incidence, numbered
from opticoll.formulations.model import CvxpyModel, Named, PyomoModel
from opticoll.formulations.rounds import select

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import scipy.sparse as sp
    from numpy.typing import NDArray

    from opticoll.formulations.lumorph.sum_rounds import SumModel

    I64 = NDArray[np.int64]
    Index = tuple[int, ...]


def build_pyomo(data: SumModel) -> PyomoModel:
    """The model in Pyomo, constraint by constraint as in the module."""
    import pyomo.environ as pyo

    T, L, W = data.rounds, data.limits.wavelengths, data.limits.waveguides
    rounds, P = range(T), data.program.named_routes
    pre: dict[int, list[int]] = {}
    post: dict[int, list[int]] = {}
    for members, pairs in ((pre, data.collective.pre), (post, data.collective.post)):
        for c, v in pairs.tolist():
            members.setdefault(c, []).append(v)
    V = {c: sorted({*us, *post.get(c, [])}) for c, us in pre.items()}
    moves = [(r, s, d, c) for r in rounds for c in V for s in V[c] for d in V[c] if s != d]
    C_set = sorted((*m, i, w) for m in moves for i in range(len(P[m[1], m[2]])) for w in range(L))
    F_set = [(r, d, c) for r in rounds for d in range(data.topology.n) for c in V if d in V[c]]
    B_set = [(r, c, v, u) for r in range(T + 1) for c in V for v in V[c] for u in pre[c]]
    X_set = [(*m, u) for m in sorted(moves) for u in pre[m[3]]]
    Y_set = [(*f, u) for f in F_set for u in pre[f[2]]]

    model = pyo.ConcreteModel(name="sums")
    model.C, model.F, model.B = (pyo.Var(index, domain=pyo.Binary) for index in (C_set, F_set, B_set))
    model.X, model.Y, model.G = (pyo.Var(index, domain=pyo.Binary) for index in (X_set, Y_set, Y_set))
    model.R = pyo.Var(rounds, domain=pyo.Binary, bounds=lambda _, r: (float(r < data.floor), 1.0))
    model.rounds = pyo.Objective(expr=pyo.quicksum(model.R[r] for r in rounds), sense=pyo.minimize)

    crossing: dict[Index, list[Index]] = {}
    ends: dict[str, dict[Index, list[Index]]] = {"laser": {}, "photodiode": {}}
    for index in C_set:
        r, s, d, _, i, w = index
        ends["laser"].setdefault((r, s, w), []).append(index)
        ends["photodiode"].setdefault((r, d, w), []).append(index)
        for e in P[s, d][i]:
            crossing.setdefault((r, e, w), []).append(index)

    def sends(m: Any, r: int, s: int, d: int, c: int) -> Any:
        return pyo.quicksum(m.C[r, s, d, c, i, w] for i in range(len(P[s, d])) for w in range(L))

    def state(m: Any, r: int, c: int, d: int, u: int) -> Any:
        received = pyo.quicksum(m.X[r, s, d, c, u] for s in V[c] if s != d)
        return m.B[r + 1, c, d, u] - m.B[r, c, d, u] + m.Y[r, d, c, u] - received == 0

    def total(over: Mapping[Index, list[Index]], *key: int) -> Any:
        return pyo.quicksum(model.C[j] for j in over[key])

    contributions = [(c, v, u) for c in V for v in V[c] for u in pre[c]]
    rules: dict[str, tuple[Sequence[Any], Any]] = {
        "start": (contributions, lambda m, c, v, u: m.B[0, c, v, u] == float(u == v)),
        "finish": ([k for k in contributions if k[1] in post.get(k[0], [])], lambda m, *k: m.B[T, *k] == 1),
        "state": ([(r, *k) for r in rounds for k in contributions], state),
        "unique": (sorted(moves), lambda m, *k: sends(m, *k) <= 1),
        "sent": (X_set, lambda m, *k: m.X[k] - sends(m, *k[:4]) <= 0),
        "held": (X_set, lambda m, r, s, d, c, u: m.X[r, s, d, c, u] - m.B[r, c, s, u] <= 0),
        "carried": (X_set, lambda m, *k: sends(m, *k[:4]) + m.B[k[0], k[3], k[1], k[4]] - m.X[k] <= 1),
        "dropped": (Y_set, lambda m, *k: m.Y[k] - m.F[k[:3]] <= 0),
        "owned": (Y_set, lambda m, r, d, c, u: m.Y[r, d, c, u] - m.B[r, c, d, u] <= 0),
        "lost": (Y_set, lambda m, r, d, c, u: m.F[r, d, c] + m.B[r, c, d, u] - m.Y[r, d, c, u] <= 1),
        "new": (Y_set, lambda m, r, d, c, u: m.G[r, d, c, u] + m.B[r, c, d, u] <= 1),
        "gained": (Y_set, lambda m, r, d, c, u: m.G[r, d, c, u] - m.B[r + 1, c, d, u] <= 0),
        "gain": (F_set, lambda m, *k: m.F[k] - pyo.quicksum(m.G[*k, u] for u in pre[k[2]]) <= 0),
        "some": (
            [k for k in sorted(moves) if k[1] not in pre[k[3]]],
            lambda m, r, s, d, c: sends(m, r, s, d, c) - pyo.quicksum(m.B[r, c, s, u] for u in pre[c]) <= 0,
        ),
        "laser": (sorted(ends["laser"]), lambda m, *k: total(ends["laser"], *k) - m.R[k[0]] <= 0),
        "photodiode": (sorted(ends["photodiode"]), lambda m, *k: total(ends["photodiode"], *k) - m.R[k[0]] <= 0),
        "waveguide": (
            sorted(k for k, over in crossing.items() if len(over) > W),
            lambda m, *k: total(crossing, *k) - W * m.R[k[0]] <= 0,
        ),
        "order": (range(1, T), lambda m, r: m.R[r] - m.R[r - 1] <= 0),
    }
    for name, (keys, rule) in rules.items():
        if len(keys):
            model.add_component(name, pyo.Constraint(list(keys), rule=rule))
    sets: dict[str, list[Any]] = {
        "C": C_set,
        "F": F_set,
        "B": B_set,
        "X": X_set,
        "Y": Y_set,
        "G": Y_set,
        "R": list(rounds),
    }
    return PyomoModel(
        model, {name: (keys,) for name, keys in sets.items()},
        {name: (list(keys),) for name, (keys, _) in rules.items() if len(keys)},
    )  # fmt: skip


def build_cvxpy(data: SumModel) -> CvxpyModel:
    """The model in matrix form: incidence matrices of rows and columns times the vectors of the variables."""
    import cvxpy as cp

    T, W, n = data.rounds, float(data.limits.waveguides), data.collective.n
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
    found: dict[str, Any] = {
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
        found["some"] = sends[without] - has <= 0
    for name, end in (("laser", "s"), ("photodiode", "d")):
        row, (when, *_) = numbered(col["r"], col[end], col["w"])
        found[name] = rows(row, np.arange(N), (when.size, N)) @ C - R[when] <= 0
    start, arcs = select(data.program.routes.start, data.program.routes.arcs, col["path"])
    owner = np.repeat(np.arange(N), np.diff(start))
    row, (when, *_) = numbered(col["r"][owner], arcs, col["w"][owner])
    crowded = np.flatnonzero(np.bincount(row) > W)
    if crowded.size:
        found["waveguide"] = rows(row, owner, (when.size, N))[crowded] @ C - W * R[when[crowded]] <= 0
    if T > 1:
        found["order"] = R[1:] - R[:-1] <= 0
    return CvxpyModel(
        cp.Problem(cp.Minimize(cp.sum(R)), list(found.values())),
        variables={x.name(): Named(x, x.shape) for x in (C, F, B, X, Y, G, R)},
        constraints={name: Named(item, item.shape) for name, item in found.items()},
    )
