"""Builds of ``program=corrected``, with the mathematics of :mod:`opticoll.formulations.lumorph.rounds`.

The Pyomo build lists the index sets from Pre, Post and P_sd and states one constraint at a time; the CVXPY build
multiplies incidence matrices, made from the columns of :class:`~opticoll.formulations.lumorph.round_sets.RoundProgram`.
They share no rows. Rounds are numbered through all phases.

The builds of ``lumorph.sum-rounds`` have the mathematics of :mod:`opticoll.formulations.lumorph.sum_rounds`. The Pyomo
build states one constraint at a time over its own index sets; the CVXPY build multiplies incidence matrices of rows and
columns. They share no rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.model import CvxpyModel, Named, PyomoModel
from opticoll.formulations.rounds.segments import offsets, select

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import scipy.sparse as sp

    from opticoll.formulations.lumorph.round_sets import RoundProgram
    from opticoll.formulations.lumorph.sum_rounds import SumModel
    from opticoll.instances.topology import F64, I64

    Index = tuple[int, ...]


def build_pyomo(programs: Sequence[RoundProgram], least: Sequence[int]) -> PyomoModel:
    """The model in Pyomo: ``C[r,s,d,c,i,w]``, ``H[c,d,r]``, ``R[r]``; R[r] = 1 in the first ``least[p]`` rounds."""
    import pyomo.environ as pyo

    start = list(accumulate((program.rounds for program in programs), initial=0))
    phase_of = [p for p, program in enumerate(programs) for _ in range(program.rounds)]
    pre = [_members(program.collective.pre) for program in programs]
    wanted = [_members(program.collective.deliveries) for program in programs]
    route = [program.named_routes for program in programs]
    W = programs[0].limits.waveguides

    C_set = [
        (r, *move)
        for p, program in enumerate(programs)
        for r in range(start[p], start[p + 1])
        for move in _transfers(program, pre[p], wanted[p], first=r == start[p])
    ]
    forwards = {phase_of[r] for r, s, _, c, *_ in C_set if s not in pre[phase_of[r]][c]}
    deliveries = [(p, c, d) for p in range(len(programs)) for c in sorted(wanted[p]) for d in sorted(wanted[p][c])]
    H_set = [(c, d, r) for p, c, d in deliveries if p in forwards for r in range(start[p], start[p + 1] - 1)]
    R_set = list(range(start[-1]))

    made = _grouped(C_set, lambda r, s, d, c, i, w: [(phase_of[r], c, d)])
    made_in = _grouped(C_set, lambda r, s, d, c, i, w: [(c, d, r)])
    forwarded = _grouped(C_set, lambda r, s, d, c, i, w: [] if s in pre[phase_of[r]][c] else [(r, s, d, c)])
    sent = _grouped(C_set, lambda r, s, d, c, i, w: [(r, s, w)])
    received = _grouped(C_set, lambda r, s, d, c, i, w: [(r, d, w)])
    crossing = _grouped(C_set, lambda r, s, d, c, i, w: [(r, e, w) for e in route[phase_of[r]][s, d][i]])
    mirrors = [(p, c, d) for p, program in enumerate(programs) for c, d in program.mirrors]
    first = {p: next((p, c, d) for q, c, d in deliveries if q == p) for p, _, _ in mirrors}

    model = pyo.ConcreteModel(name="rounds")
    model.C = pyo.Var(C_set, domain=pyo.Binary)
    model.H = pyo.Var(H_set, domain=pyo.Binary)
    model.R = pyo.Var(
        R_set, domain=pyo.Binary, bounds=lambda _, r: (float(r - start[phase_of[r]] < least[phase_of[r]]), 1.0)
    )
    model.rounds = pyo.Objective(expr=pyo.quicksum(model.R[r] for r in R_set), sense=pyo.minimize)

    def total(over: Mapping[Index, list[Index]], *key: int) -> Any:
        return pyo.quicksum(model.C[j] for j in over[key])

    def received_rule(m: Any, c: int, d: int, r: int) -> Any:
        before = m.H[c, d, r - 1] if r > start[phase_of[r]] else 0
        return m.H[c, d, r] - before - total(made_in, c, d, r) == 0

    def mirror_rule(m: Any, p: int, c: int, d: int) -> Any:
        own, image = ([j for j in made[key] if j[0] > 0] for key in (first[p], (p, c, d)))
        return pyo.quicksum(j[0] * m.C[j] for j in own) - pyo.quicksum(j[0] * m.C[j] for j in image) <= 0

    rules: dict[str, tuple[list[Any], Any]] = {
        "deliver": (deliveries, lambda m, p, c, d: total(made, p, c, d) == 1),
        "received": (H_set, received_rule),
        "hold": (sorted(forwarded), lambda m, r, s, d, c: total(forwarded, r, s, d, c) - m.H[c, s, r - 1] <= 0),
        "laser": (sorted(sent), lambda m, r, s, w: total(sent, r, s, w) - m.R[r] <= 0),
        "photodiode": (sorted(received), lambda m, r, d, w: total(received, r, d, w) - m.R[r] <= 0),
        "waveguide": (
            sorted(key for key, over in crossing.items() if len(over) > W),
            lambda m, r, e, w: total(crossing, r, e, w) - W * m.R[r] <= 0,
        ),
        "mirror": (mirrors, mirror_rule),
        "order": ([r for r in R_set if r not in start], lambda m, r: m.R[r] - m.R[r - 1] <= 0),
    }
    for name, (index, rule) in rules.items():
        if index:
            model.add_component(name, pyo.Constraint(index, rule=rule))
    return PyomoModel(
        model,
        variables={"C": (C_set,), "H": (H_set,), "R": (len(R_set),)},
        constraints={name: (index,) for name, (index, _) in rules.items() if index},
    )


def _members(pairs: I64) -> dict[int, set[int]]:
    """Group the vertices of (chunk, vertex) pairs by chunk."""
    result: dict[int, set[int]] = defaultdict(set)
    for c, v in pairs.tolist():
        result[c].add(v)
    return result


def _grouped(index: Iterable[Index], keys: Any) -> dict[Index, list[Index]]:
    """Group the indices by key."""
    result: dict[Index, list[Index]] = defaultdict(list)
    for j in index:
        for key in keys(*j):
            result[key].append(j)
    return result


def _transfers(
    program: RoundProgram, pre: Mapping[int, set[int]], wanted: Mapping[int, set[int]], *, first: bool
) -> list[Index]:
    """List the (s, d, c, i, w) of one round, in order."""
    L = program.limits.wavelengths
    received = Counter(d for vertices in wanted.values() for d in vertices)
    busiest = min(received, key=lambda d: (-received[d], d)) if program.symmetry and not program.fixed else None
    turn = {c: q for q, c in enumerate(sorted(c for c, vertices in wanted.items() if busiest in vertices))}
    results = []
    for c, vertices in wanted.items():
        senders = pre[c] if first else pre[c] | vertices
        for d in vertices:
            waves = range(min(L, turn[c] + 1) if d == busiest else L)
            for s in senders - {d}:
                for i in range(len(program.named_routes[s, d])):
                    fixed = (d - s + i) % L
                    results += [(s, d, c, i, w) for w in ([fixed] if program.fixed else waves)]
    return sorted(results)


def build_cvxpy(programs: Sequence[RoundProgram], least: Sequence[int]) -> CvxpyModel:
    """The model in matrix form: incidence matrices of rows and columns times the vectors C, H and R."""
    import cvxpy as cp
    import scipy.sparse as sp

    T = [program.rounds for program in programs]
    floor = np.concatenate([np.arange(rounds) < bound for rounds, bound in zip(T, least, strict=True)]).astype(float)
    C = cp.Variable(sum(program.columns["round"].size for program in programs), name="C", boolean=True)
    R = cp.Variable(floor.size, name="R", integer=True, bounds=[floor, np.ones(floor.size)])
    steps = [len(program.collective.deliveries) * (program.rounds - 1) * program.forwards for program in programs]
    H = cp.Variable(sum(steps), name="H", boolean=True)

    result: dict[str, list[tuple[sp.csr_array, sp.csr_array, sp.csr_array]]] = defaultdict(list)
    at = zip(offsets([p.columns["round"].size for p in programs]), offsets(steps), offsets(T), strict=True)
    for program, (c, h, r) in zip(programs, at, strict=False):
        for name, *parts in _phase_rows(program, (int(c), int(h), int(r)), (C.size, sum(steps), floor.size)):
            result[name].append((parts[0], parts[1], parts[2]))
    constraints = {}
    for name, blocks in result.items():
        A, B, D = (sp.csr_array(sp.vstack(parts, format="csr")) for parts in zip(*blocks, strict=True))
        left = [matrix @ x for matrix, x in ((A, C), (B, H), (D, R)) if matrix.nnz]
        if not left:
            continue
        whole = sum(left[1:], left[0])
        if name in {"deliver", "received"}:
            constraints[name] = whole == (1.0 if name == "deliver" else 0.0)
        else:
            constraints[name] = whole <= 0.0
    return CvxpyModel(
        cp.Problem(cp.Minimize(cp.sum(R)), list(constraints.values())),
        variables={x.name(): Named(x, x.shape) for x in (C, H, R) if x.size},
        constraints={name: Named(item, item.shape) for name, item in constraints.items()},
    )


def incidence(row: I64, column: I64, shape: tuple[int, int], value: F64 | float = 1.0) -> sp.csr_array:
    """Sparse matrix with ``value`` at each (row, column)."""
    import scipy.sparse as sp

    entries = np.broadcast_to(np.asarray(value, dtype=float), row.shape)
    return sp.csr_array((entries, (row, column)), shape=shape)


def numbered(*keys: I64) -> tuple[I64, list[I64]]:
    """Number the distinct tuples of ``keys`` in order: the row of every entry, and the keys of every row."""
    distinct, row = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)
    return row.ravel().astype(np.int64), list(distinct.T)


def _phase_rows(
    program: RoundProgram, at: tuple[int, int, int], width: tuple[int, int, int]
) -> Iterator[tuple[str, sp.csr_array, sp.csr_array, sp.csr_array]]:
    """Name and coefficients of C, H and R for the rows of one phase, whose ``width`` columns begin at ``at``."""
    columns, ends, T, W = program.columns, program.ends, program.rounds, program.limits.waveguides
    r, w, delivery = columns["round"], columns["wavelength"], program.delivery
    every, K = np.arange(r.size), len(program.collective.deliveries)
    empty = np.zeros(0, dtype=np.int64)
    none: tuple[Any, ...] = (empty, empty)

    def block(
        rows: int, C: tuple[Any, ...] = none, H: tuple[Any, ...] = none, R: tuple[Any, ...] = none
    ) -> tuple[sp.csr_array, sp.csr_array, sp.csr_array]:
        x, y, z = (
            incidence(row, column + first, (rows, size), *value)
            for (row, column, *value), first, size in zip((C, H, R), at, width, strict=True)
        )
        return x, y, z

    yield "deliver", *block(K, C=(delivery, every))
    if program.forwards:
        early = np.flatnonzero(r < T - 1)
        step = np.arange(K * (T - 1))
        later = step[step % max(T - 1, 1) > 0]
        row, column = np.concatenate([step, later]), np.concatenate([step, later - 1])
        H = (row, column, np.repeat([1.0, -1.0], [step.size, later.size]))
        yield "received", *block(step.size, C=(delivery[early] * (T - 1) + r[early], early, -1.0), H=H)
        onward = np.flatnonzero(~program.holds[columns["move"]])
        row, (when, s, _, c) = numbered(*(key[onward] for key in (r, ends["source"], ends["target"], ends["chunk"])))
        wanted = program.collective.key(program.collective.deliveries)
        got = np.searchsorted(wanted, c * program.collective.n + s) * (T - 1) + when - 1
        yield "hold", *block(c.size, C=(row, onward), H=(np.arange(c.size), got, -1.0))
    for name, end in (("laser", "source"), ("photodiode", "target")):
        row, (when, *_) = numbered(r, ends[end], w)
        yield name, *block(when.size, C=(row, every), R=(np.arange(when.size), when, -1.0))
    column, arc = program.arcs
    row, (when, *_) = numbered(r[column], arc, w[column])
    crowded = np.bincount(row) > W
    place = np.cumsum(crowded) - 1
    kept = crowded[row]
    count = int(crowded.sum())
    yield "waveguide", *block(count, C=(place[row[kept]], column[kept]), R=(np.arange(count), when[crowded], -float(W)))
    if program.mirrors:
        keys = program.collective.deliveries @ np.array([program.collective.n, 1])
        images = np.searchsorted(keys, [c * program.collective.n + d for c, d in program.mirrors])
        own = np.flatnonzero(delivery == 0)
        entries = []
        for k, image in enumerate(images.tolist()):
            theirs = np.flatnonzero(delivery == image)
            entries += [(np.full(own.size, k), own, 1.0), (np.full(theirs.size, k), theirs, -1.0)]
        row, column = (np.concatenate([entry[x] for entry in entries]) for x in (0, 1))
        sign = np.concatenate([np.full(entry[1].size, entry[2]) for entry in entries])
        yield "mirror", *block(images.size, C=(row, column, sign * (r[column] + at[2])))
    step = np.arange(T - 1)
    yield "order", *block(T - 1, R=(np.tile(step, 2), np.concatenate([step + 1, step]), np.repeat([1.0, -1.0], T - 1)))


def build_sums_pyomo(data: SumModel) -> PyomoModel:
    """The model in Pyomo, constraint by constraint as in the module docstring."""
    import pyomo.environ as pyo

    T, L, W = data.horizon, data.limits.wavelengths, data.limits.waveguides
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
        model,
        {name: (keys,) for name, keys in sets.items()},
        {name: (list(keys),) for name, (keys, _) in rules.items() if len(keys)},
    )


def build_sums_cvxpy(data: SumModel) -> CvxpyModel:
    """The model in matrix form: incidence matrices of rows and columns times the vectors of the variables."""
    import cvxpy as cp

    T, W, n = data.horizon, float(data.limits.waveguides), data.collective.n
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
    for name, end in (("laser", "s"), ("photodiode", "d")):
        row, (when, *_) = numbered(col["r"], col[end], col["w"])
        result[name] = rows(row, np.arange(N), (when.size, N)) @ C - R[when] <= 0
    start, arcs = select(data.program.routes.start, data.program.routes.arcs, col["path"])
    owner = np.repeat(np.arange(N), np.diff(start))
    row, (when, *_) = numbered(col["r"][owner], arcs, col["w"][owner])
    crowded = np.flatnonzero(np.bincount(row) > W)
    if crowded.size:
        result["waveguide"] = rows(row, owner, (when.size, N))[crowded] @ C - W * R[when[crowded]] <= 0
    if T > 1:
        result["order"] = R[1:] - R[:-1] <= 0
    return CvxpyModel(
        cp.Problem(cp.Minimize(cp.sum(R)), list(result.values())),
        variables={x.name(): Named(x, x.shape) for x in (C, F, B, X, Y, G, R)},
        constraints={name: Named(item, item.shape) for name, item in result.items()},
    )
