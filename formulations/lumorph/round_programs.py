r"""Algorithm 1 as printed and as coded by its authors, in addition to the corrected program of ``lumorph.rounds``.

Source  LuMorph, Algorithm 1, (1)-(9); the authors' published code (commit 53cbbf7), as described by its readers

Sets and data as in :mod:`opticoll.formulations.lumorph.rounds`; i, w number the paths of a pair: every route of P_sd on
every wavelength, WAVE = w. Both need a copying collective. Variables C, R in {0,1} and z in {0,1,...}, at most the
number of the last round, for the maximum in the objective; implications between binaries are linear rows.

``program=printed``: r in 1..R_max; every c, every s != d.

min z  s.t.
    unique[r,s,d,c]         sum_iw C[r,s,d,c,i,w] <= 1                                                           (1)
    possess[r,s,d,c,i,w]    C[r,s,d,c,i,w] - S <= 0                        (C = 1 implies S = 1)                 (2)
    once[r,s,d,c,i,w]       S + (m - 1) C[r,s,d,c,i,w] <= m                where S has m > 1 terms               (2)
                            S = sum_(l<r) sum_(o in Post[c]) sum_iw C[l,o,s,c,i,w]
    deliver[c]              sum_rs sum_(d in Post[c]) sum_iw C[r,s,d,c,i,w] = 1                                  (3)
    laser[r,s,w]            sum_dci C[r,s,d,c,i,w] = 1                                                           (4)
    photodiode[r,d,w]       sum_sci C[r,s,d,c,i,w] = 1                                                           (5)
    waveguide[r,e,w]        sum over routes i through e of C[r,s,d,c,i,w] <= W                                   (6)
    used[r,s,d,c,i,w]       C[r,s,d,c,i,w] - R[r] <= 0                                                           (7)
    minimum[r]              R[r] = 1              for 0 < r < R_min                                              (8)
    order[r]                R[r] - R[r-1] <= 0    for 1 < r < R_max                                              (9)
    span[r]                 r R[r] - z <= 0       for R_min < r < R_max

No instance has a solution: in round 1, S is an empty sum, so (2) forbids every transfer, and by induction none
takes place in any round; but (3) requires one for every chunk, and (4) and (5) require every laser in every round.

``program=coded``: r in 0..R_max-1; d in Post[c] without Pre[c], s in Post[c] without d. By default four wavelengths, 20
circuits of one wavelength on an undirected edge, one route per pair, R_min = 1 and R_max = 5, which are constants and
arguments of that code. Its one route per pair comes from the authors' multi-commodity flow (MCF) of least overlap and
is offered on every wavelength; here it is the first of P_sd, whose overlap is equally small on intact meshes.

min z  s.t.
    possess[r,s,d,c,i,w]    C[r,s,d,c,i,w] - sum_(l<r) sum_oiw C[l,o,s,c,i,w] <= 0      for s not in Pre[c]      (2)
    deliver[c,d]            sum_rsiw C[r,s,d,c,i,w] = 1                                                          (3)
    laser[r,s,w]            sum_dci C[r,s,d,c,i,w] <= 1                                                          (4)
    photodiode[r,d,w]       sum_sci C[r,s,d,c,i,w] <= 1                                                          (5)
    edge[r,a,b,w]           sum over routes i along or against edge a < b of C[r,s,d,c,i,w] <= W                 (6)
    used[r,s,d,c,i,w]       C[r,s,d,c,i,w] - R[r] <= 0                                                           (7)
    unused[r]               R[r] - sum_sdciw C[r,s,d,c,i,w] <= 0                                                 (7)
    minimum[r]              R[r] = 1              for r < R_min                                                  (8)
    order[r]                R[r] - R[r-1] <= 0    for r > 1                                                      (9)
    span[r]                 r R[r] - z <= 0       for r > 0; one round has value 0

A chunk whose holders are not in Post[c] cannot be sent, so gather, scatter and all-to-all have no solution.
Every solution is a schedule of z + 1 rounds under ``Limits(L, W)`` for each direction of an edge, so bounds on rounds
minus 1 bound z.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.lumorph.round_builds import incidence, numbered
from opticoll.formulations.model import Bound, CvxpyModel, Named, PyomoModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    import scipy.sparse as sp

    from opticoll.formulations.lumorph.round_sets import RoundProgram, Version
    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.instances.topology import F64, I64, Mask

    Index = tuple[int, ...]

#: Constants and arguments of the authors' code: wavelengths, circuits per edge, routes per pair, R_min, R_max.
CODED_LASERS, CODED_WAVEGUIDES, CODED_PATHS, CODED_RMIN, CODED_RMAX = 4, 20, 1, 1, 5


def first_round(program: RoundProgram) -> int:
    """Number of the first round: 1 as printed, 0 as coded."""
    return int(program.version == "printed")


def contradiction(version: Version, collective: Collective) -> str | None:
    """Reason why the program is infeasible for all limits; None if there is no such reason."""
    if version == "printed":
        return (
            "as printed, (2) lets a vertex send only what it received in an earlier round, so nothing is ever sent, "
            "and (3) requires a transfer of every chunk"
        )
    starts = np.isin(collective.key(collective.pre), collective.key(collective.post))
    lost = np.setdiff1d(np.flatnonzero(collective.spread), collective.pre[starts, 0])
    if not lost.size:
        return None
    c = lost[0]
    return f"as coded, only vertices of Post[{c}] send chunk {c}, and none of them holds it at the start (2), (3)"


# Pyomo --------------------------------------------------------------------------------------------------------------


def build_pyomo(program: RoundProgram, rmin: int) -> PyomoModel:
    """Build the program in Pyomo: ``C[r,s,d,c,i,w]``, ``R[r]``, ``z``."""
    import pyomo.core as pyo

    printed = program.version == "printed"
    pre = {(c, v) for c, v in program.collective.pre.tolist()}
    W, rounds = program.limits.waveguides, range(first_round(program), first_round(program) + program.rounds)
    last = rounds[-1]
    C_set = _columns(program, rounds)
    model = pyo.ConcreteModel(name=f"Algorithm 1 as {program.version}")
    model.C = pyo.Var(C_set, domain=pyo.Binary)
    model.R = pyo.Var(rounds, domain=pyo.Binary)
    model.z = pyo.Var(domain=pyo.NonNegativeIntegers, bounds=(0, last))
    model.last = pyo.Objective(expr=model.z, sense=pyo.minimize)

    parts, into = _terms(program, model.C)

    @cache
    def received(r: int, s: int, c: int) -> list[Any]:
        return [C for earlier in rounds if earlier < r for C in into.get((earlier, s, c), ())]

    def possess(m: Any, *j: int) -> Any:
        return m.C[j] - pyo.quicksum(received(j[0], j[1], j[3])) <= 0

    def once(m: Any, *j: int) -> Any:
        S = received(j[0], j[1], j[3])
        return pyo.quicksum(S) + (len(S) - 1) * m.C[j] <= len(S)

    def summed(name: str, right: float, *, equal: bool = False) -> tuple[list[Any], Any]:
        def rule(_: Any, *key: int) -> Any:
            total = pyo.quicksum(parts[name][key])
            return total == right if equal else total <= right

        index = sorted(key for key, terms in parts[name].items() if terms)
        return [key[0] if len(key) == 1 else key for key in index], rule

    def span(m: Any, r: int) -> Any:
        return r * m.R[r] - m.z <= 0

    rules: dict[str, tuple[list[Any], Any]] = {
        "possess": ([j for j in C_set if printed or (j[3], j[1]) not in pre], possess),
        "deliver": summed("deliver", 1, equal=True),
        "laser": summed("laser", 1, equal=printed),
        "photodiode": summed("photodiode", 1, equal=printed),
        "used": (C_set, lambda m, *j: m.C[j] - m.R[j[0]] <= 0),
    }
    if printed:
        rules["unique"] = summed("unique", 1)
        rules["once"] = ([j for j in C_set if len(received(j[0], j[1], j[3])) > 1], once)
        rules["waveguide"] = summed("waveguide", W)
        minimum, ordered, spanned = range(1, rmin), range(2, last), range(rmin + 1, last)
    else:
        rules["edge"] = summed("edge", W)
        rules["unused"] = (list(rounds), lambda m, r: m.R[r] - pyo.quicksum(parts["unused"][r,]) <= 0)
        minimum, ordered, spanned = range(rmin), range(2, last + 1), range(1, last + 1)
    rules["minimum"] = (list(minimum), lambda m, r: m.R[r] == 1)
    rules["order"] = (list(ordered), lambda m, r: m.R[r] - m.R[r - 1] <= 0)
    rules["span"] = (list(spanned), span)
    for name, (index, rule) in rules.items():
        if index:
            model.add_component(name, pyo.Constraint(index, rule=rule))
    return PyomoModel(
        model,
        {"C": (C_set,), "R": (list(rounds),), "z": ()},
        {name: (index,) for name, (index, _) in rules.items() if index},
    )


def _columns(program: RoundProgram, rounds: range) -> list[Index]:
    """The (r, s, d, c, i, w) of C, in order: as coded, only of chunks that s and d want and d lacks."""
    printed, P = program.version == "printed", program.named_routes
    pre, post = _held(program)
    n, waves, chunks = program.topology.n, range(program.limits.wavelengths), range(program.collective.chunks)
    moves = [
        (s, d, c)
        for s in range(n)
        for d in range(n)
        for c in chunks
        if s != d and (printed or ((c, s) in post and (c, d) in post and (c, d) not in pre))
    ]
    return [(r, s, d, c, i, w) for r in rounds for s, d, c in moves for i in range(len(P[s, d])) for w in waves]


def _held(program: RoundProgram) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """The (chunk, vertex) of Pre and of Post."""
    pre, post = ({(c, v) for c, v in pairs.tolist()} for pairs in (program.collective.pre, program.collective.post))
    return pre, post


def _terms(program: RoundProgram, columns: Any) -> tuple[dict[str, dict[Index, list[Any]]], dict[Index, list[Any]]]:
    """The C in every row, by constraint and index; and those by which d gets c in round r from a vertex of Post[c]."""
    printed, P = program.version == "printed", program.named_routes
    tail, head = program.topology.tail.tolist(), program.topology.head.tolist()
    _, post = _held(program)
    parts: dict[str, dict[Index, list[Any]]] = defaultdict(lambda: defaultdict(list))
    into: dict[Index, list[Any]] = defaultdict(list)
    for index, C in columns.items():
        r, s, d, c, i, w = index
        parts["unique"][r, s, d, c].append(C)
        parts["deliver"][(c,) if printed else (c, d)] += [C] if (c, d) in post else []
        parts["laser"][r, s, w].append(C)
        parts["photodiode"][r, d, w].append(C)
        for e in P[s, d][i]:
            ends = (min(tail[e], head[e]), max(tail[e], head[e]))
            parts["waveguide"][r, e, w].append(C)
            parts["edge"][r, *ends, w].append(C)
        parts["unused"][(r,)].append(C)
        into[r, d, c] += [C] if (c, s) in post else []
    return parts, into


# CVXPY --------------------------------------------------------------------------------------------------------------


def build_cvxpy(program: RoundProgram, rmin: int) -> CvxpyModel:
    """Build the program in matrix form: incidence matrices of rows and columns times the vectors C and R."""
    import cvxpy as cp

    printed, collective = program.version == "printed", program.collective
    ends, T, W = program.ends, program.rounds, float(program.limits.waveguides)
    r, w, s, d, c = (
        program.columns["round"],
        program.columns["wavelength"],
        *(ends[k] for k in ("source", "target", "chunk")),
    )
    N, every = r.size, np.arange(r.size)
    C = cp.Variable(N, name="C", boolean=True)
    R = cp.Variable(T, name="R", boolean=True)
    z = cp.Variable(name="z", integer=True, bounds=[0, T - 1 + printed])
    required = np.isin(c * collective.n + d, collective.key(collective.post))
    # Row j of S sums the earlier receptions of column j's chunk by its sender.
    S = _received(program, np.isin(c * collective.n + s, collective.key(collective.post)))
    need = every if printed else np.flatnonzero(~program.holds[program.columns["move"]])
    result: dict[str, Any] = {"possess": C[need] - S[need] @ C <= 0}
    indices = np.flatnonzero(required)
    keys = (c[indices],) if printed else (c[indices], d[indices])
    result["deliver"] = _sums(indices, N, *keys) @ C == 1
    for name, end in (("laser", s), ("photodiode", d)):
        total = _sums(every, N, r, end, w) @ C
        result[name] = total == 1 if printed else total <= 1
    result["used"] = C - incidence(every, r, (N, T)) @ R <= 0
    column, arc = program.arcs
    numbers = np.arange(T) + printed
    if printed:
        result["unique"] = _sums(every, N, r, s, d, c) @ C <= 1
        terms = np.diff(S.indptr)
        many = np.flatnonzero(terms > 1)
        if many.size:
            result["once"] = S[many] @ C + cp.multiply(terms[many] - 1.0, C[many]) <= terms[many].astype(float)
        result["waveguide"] = _sums(column, N, r[column], arc, w[column]) @ C <= W
        minimum, ordered = numbers < rmin, (numbers > 1) & (numbers < T)
        spanned = (numbers > rmin) & (numbers < T)
    else:
        tail, head = program.topology.tail[arc], program.topology.head[arc]
        low, high = np.minimum(tail, head), np.maximum(tail, head)
        result["edge"] = _sums(column, N, r[column], low, high, w[column]) @ C <= W
        result["unused"] = R - incidence(r, every, (T, N)) @ C <= 0
        minimum, ordered, spanned = numbers < rmin, numbers > 1, numbers > 0
    if minimum.any():
        result["minimum"] = R[np.flatnonzero(minimum)] == 1
    if ordered.any():
        at = np.flatnonzero(ordered)
        result["order"] = R[at] - R[at - 1] <= 0
    if spanned.any():
        at = np.flatnonzero(spanned)
        result["span"] = cp.multiply(numbers[at].astype(float), R[at]) - z <= 0
    return CvxpyModel(
        cp.Problem(cp.Minimize(z), list(result.values())),
        variables={x.name(): Named(x, x.shape) for x in (C, R, z)},
        constraints={name: Named(item, item.shape) for name, item in result.items()},
    )


def _sums(column: I64, size: int, *keys: I64) -> sp.csr_array:
    """Matrix with a row per distinct tuple of ``keys`` and 1 at the columns with that tuple; ``(rows, size)``."""
    row, (first, *_) = numbered(*keys)
    return incidence(row, column, (first.size, size))


def _received(program: RoundProgram, counted: Mask) -> sp.csr_array:
    """Row j: the counted columns by which the source of column j receives its chunk in earlier rounds, ``(N, N)``."""
    r, T = program.columns["round"], program.rounds
    n, chunks = program.collective.n, program.collective.chunks
    columns, keys = np.flatnonzero(counted), chunks * n * T
    at = (program.ends["chunk"] * n + program.ends["target"]) * T + r
    own = (program.ends["chunk"] * n + program.ends["source"]) * T
    # Entry (k, j) for every round l before that of column j, then the columns of that round.
    later = np.repeat(np.arange(r.size), r)
    earlier = np.arange(later.size) - np.repeat(np.cumsum(r) - r, r)
    rounds = incidence(later, own[later] + earlier, (r.size, keys))
    return (rounds @ incidence(at[columns], columns, (keys, r.size))).tocsr()


# Check --------------------------------------------------------------------------------------------------------------


def residuals(program: RoundProgram, rmin: int, C: F64, R: F64) -> dict[str, float]:
    """Worst violation of (1)-(9) by C ``(N,)`` and R ``(T,)``, from numpy alone, named as in the module docstring.

    ``binary`` is the distance of C and R from 0 and 1.
    """
    printed, collective = program.version == "printed", program.collective
    blocks = ["possess", "deliver", "laser", "photodiode", "used", "minimum", "order", "binary"]
    blocks += ["unique", "once", "waveguide"] if printed else ["edge", "unused"]
    columns, ends, T, n = program.columns, program.ends, program.rounds, collective.n
    r, w, s, d, c = columns["round"], columns["wavelength"], ends["source"], ends["target"], ends["chunk"]
    if C.shape != r.shape or R.shape != (T,) or not (np.isfinite(C).all() and np.isfinite(R).all()):
        return dict.fromkeys(blocks, np.inf)
    L, W = program.limits.wavelengths, program.limits.waveguides

    def table(sizes: Sequence[int], *keys: I64, of: F64) -> F64:
        total = np.zeros(sizes)
        np.add.at(total, keys, of)
        return total

    def over(values: F64, most: float) -> float:
        return max(float(values.max(initial=most)) - most, 0.0)

    senders = np.zeros((collective.chunks, n), dtype=bool)
    senders[tuple(collective.post.T)] = True
    moved = table((collective.chunks, n, T), c, d, r, of=C * senders[c, s])
    before = (np.cumsum(moved, axis=2) - moved)[c, s, r]
    start = np.zeros((collective.chunks, n))
    start[tuple(collective.pre.T)] = 0.0 if printed else 1.0
    wanted = senders[c, d]
    delivered = table((collective.chunks, n), c, d, of=C * wanted)
    result = {
        "possess": float((C - before - start[c, s]).max(initial=0.0)),
        "used": float((C - R[r]).max(initial=0.0)),
        "binary": float(max(np.minimum(np.abs(x), np.abs(x - 1.0)).max(initial=0.0) for x in (C, R))),
    }
    sent, got = table((T, n, L), r, s, w, of=C), table((T, n, L), r, d, w, of=C)
    column, arc = program.arcs
    tail, head = program.topology.tail[arc], program.topology.head[arc]
    if printed:
        active = C > 0.5
        result["once"] = float(np.abs(before - 1.0)[active].max(initial=0.0))
        per_chunk = delivered.sum(axis=1)[senders.any(axis=1)]
        result["deliver"] = float(np.abs(per_chunk - 1.0).max(initial=0.0))
        result["laser"], result["photodiode"] = (float(np.abs(x - 1.0).max()) for x in (sent, got))
        result["unique"] = over(table((T, n, n, collective.chunks), r, s, d, c, of=C), 1.0)
        load = table((T, program.topology.arcs, L), r[column], arc, w[column], of=C[column])
        result["waveguide"] = over(load, W)
        fixed, ordered = R[: max(min(rmin, T + 1) - 1, 0)], R[: max(T - 1, 1)]
    else:
        chunk, vertex = collective.deliveries.T
        result["deliver"] = float(np.abs(delivered[chunk, vertex] - 1.0).max(initial=0.0))
        result["laser"], result["photodiode"] = over(sent, 1.0), over(got, 1.0)
        low, high = np.minimum(tail, head), np.maximum(tail, head)
        result["edge"] = over(table((T, n, n, L), r[column], low, high, w[column], of=C[column]), W)
        result["unused"] = float((R - np.bincount(r, C, T)).max(initial=0.0))
        fixed, ordered = R[:rmin], R[1:]
    result["minimum"] = float((1.0 - fixed).max(initial=0.0)) if fixed.size else 0.0
    result["order"] = float(np.diff(ordered).max(initial=0.0)) if ordered.size > 1 else 0.0
    return result


def objective(program: RoundProgram, rmin: int, R: F64) -> float:
    """z: the largest r R[r], over R_min < r < R_max as printed, over all r as coded."""
    r = np.arange(first_round(program), first_round(program) + program.rounds)
    counted = (r > rmin) & (r < program.rounds) if program.version == "printed" else r >= 0
    return float((r * R)[counted].max(initial=0.0)) + 0.0


def bounds(version: Version, rmin: int, on_rounds: Sequence[Bound]) -> list[Bound]:
    """Bounds on z from bounds on the number of rounds; none as printed, where nothing is feasible."""
    if version == "printed":
        return []
    result = [Bound(b.name, max(b.value - 1.0, 0.0), f"{b.reason}; z is rounds - 1", b.paper) for b in on_rounds]
    if rmin > 1:
        result.append(Bound("R_min", rmin - 1.0, f"(8) requires round {rmin - 1}"))
    return result


def estimate(program: RoundProgram) -> dict[str, int]:
    """Upper bound on the size of the matrix, without listing columns."""
    N, T, n, L = program.size, program.rounds, program.topology.n, program.limits.wavelengths
    per_vertex = (n - 1) * program.paths * L * (T - 1) / 2
    hops = program.topology.hops
    far = float(hops[np.isfinite(hops)].max(initial=1.0))
    printed = program.version == "printed"
    return {
        "variables": N + T + 1,
        "constraints": N * (4 if printed else 2) + T * (2 * n + program.topology.arcs) * L,
        "nonzeros": int(N * (5 + far + per_vertex * (2 if printed else 1))),
        "integers": N + T + 1,
    }
