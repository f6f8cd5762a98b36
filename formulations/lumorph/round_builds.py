"""Builds of ``program=corrected``, with the mathematics of :mod:`opticoll.formulations.lumorph.rounds`.

The Pyomo build lists the index sets from Pre, Post and P_sd and states one constraint at a time; the CVXPY build
multiplies incidence matrices, made from the columns of :class:`~opticoll.formulations.lumorph.round_sets.RoundProgram`.
They share no rows. Rounds are numbered through all phases.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.model import CvxpyModel, Named, PyomoModel
from opticoll.formulations.rounds.segments import offsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyomo.core as pyo
    import scipy.sparse as sp

    from opticoll.formulations.lumorph.round_sets import RoundProgram
    from opticoll.instances.topology import F64, I64

    Index = tuple[int, ...]


def build_pyomo(programs: Sequence[RoundProgram], least: Sequence[int]) -> PyomoModel:
    """The model in Pyomo: ``C[r,s,d,c,i,w]``, ``H[c,d,r]``, ``R[r]``; R[r] = 1 in the first ``least[p]`` rounds."""
    import pyomo.core as pyo

    sets = _round_sets(programs)
    start, phase_of = sets.start, sets.phase_of
    W = [program.limits.room(program.topology).tolist() for program in programs]
    tiles = programs[0].limits.ports is not None
    mirrors = [(p, c, d) for p, program in enumerate(programs) for c, d in program.mirrors]
    first = {p: next(key for key in sets.deliveries if key[0] == p) for p, _, _ in mirrors}

    model = pyo.ConcreteModel(name="rounds")
    model.C = pyo.Var(sets.C, domain=pyo.Binary)
    model.H = pyo.Var(sets.H, domain=pyo.Binary)
    model.R = pyo.Var(
        sets.R, domain=pyo.Binary, bounds=lambda _, r: (float(r - start[phase_of[r]] < least[phase_of[r]]), 1.0)
    )
    model.rounds = pyo.Objective(expr=pyo.quicksum(model.R[r] for r in sets.R), sense=pyo.minimize)

    def total(over: Mapping[Index, list[Index]], *key: int) -> Any:
        return pyo.quicksum(model.C[j] for j in over[key])

    def received_rule(m: Any, c: int, d: int, r: int) -> Any:
        before = m.H[c, d, r - 1] if r > start[phase_of[r]] else 0
        return m.H[c, d, r] - before - total(sets.made_in, c, d, r) == 0

    def mirror_rule(m: Any, p: int, c: int, d: int) -> Any:
        own, image = ([j for j in sets.made[key] if j[0] > 0] for key in (first[p], (p, c, d)))
        return pyo.quicksum(j[0] * m.C[j] for j in own) - pyo.quicksum(j[0] * m.C[j] for j in image) <= 0

    rules: dict[str, tuple[Sequence[Any], Any]] = {
        "deliver": (sets.deliveries, lambda m, p, c, d: total(sets.made, p, c, d) == 1),
        "received": (sets.H, received_rule),
        "hold": (
            sorted(sets.forwarded),
            lambda m, r, s, d, c: total(sets.forwarded, r, s, d, c) - m.H[c, s, r - 1] <= 0,
        ),
        "laser": (sorted(sets.sent), lambda m, r, s, w: total(sets.sent, r, s, w) - m.R[r] <= 0),
        "photodiode": (sorted(sets.received), lambda m, r, d, w: total(sets.received, r, d, w) - m.R[r] <= 0),
        "waveguide": (
            sorted(
                (r, e, w) for (r, e, w), over in sets.crossing.items() if len(over) > W[phase_of[r]][e] or not tiles
            ),
            lambda m, r, e, w: total(sets.crossing, r, e, w) - W[phase_of[r]][e] * m.R[r] <= 0,
        ),
        "mirror": (mirrors, mirror_rule),
        "order": ([r for r in sets.R if r not in start], lambda m, r: m.R[r] - m.R[r - 1] <= 0),
    }
    if not tiles:
        del rules["laser"], rules["photodiode"]
    return PyomoModel(
        model,
        variables={"C": (sets.C,), "H": (sets.H,), "R": (len(sets.R),)},
        constraints=add_constraints(model, rules),
    )


def add_constraints(
    model: pyo.ConcreteModel, rules: Mapping[str, tuple[Sequence[Any], Any]]
) -> dict[str, tuple[list[Any]]]:
    """Add constraints, each an index set and a rule by its name, without those of no index; return their axes."""
    import pyomo.core as pyo

    axes = {name: (list(index),) for name, (index, _) in rules.items() if len(index)}
    for name, (index,) in axes.items():
        model.add_component(name, pyo.Constraint(index, rule=rules[name][1]))
    return axes


@dataclass(frozen=True)
class RoundIndices:
    """Index sets of the Pyomo build: those of the variables, and of the C in the rows of every constraint by its index.

    ``start`` is the first round of every phase, and the number of rounds; ``phase_of`` the phase of every round.
    """

    start: list[int]
    phase_of: list[int]
    C: list[Index]
    H: list[Index]
    R: list[int]
    deliveries: Sequence[Index]
    made: Mapping[Index, list[Index]]
    made_in: Mapping[Index, list[Index]]
    forwarded: Mapping[Index, list[Index]]
    sent: Mapping[Index, list[Index]]
    received: Mapping[Index, list[Index]]
    crossing: Mapping[Index, list[Index]]


def _round_sets(programs: Sequence[RoundProgram]) -> RoundIndices:
    start = list(accumulate((program.rounds for program in programs), initial=0))
    phase_of = [p for p, program in enumerate(programs) for _ in range(program.rounds)]
    pre = [_members(program.collective.pre) for program in programs]
    wanted = [_members(program.collective.deliveries) for program in programs]
    route = [program.named_routes for program in programs]
    C = [
        (r, *move)
        for p, program in enumerate(programs)
        for r in range(start[p], start[p + 1])
        for move in _transfers(program, pre[p], wanted[p], first=r == start[p])
    ]
    forwards = {phase_of[r] for r, s, _, c, *_ in C if s not in pre[phase_of[r]][c]}
    deliveries = [(p, c, d) for p in range(len(programs)) for c in sorted(wanted[p]) for d in sorted(wanted[p][c])]
    return RoundIndices(
        start,
        phase_of,
        C,
        H=[(c, d, r) for p, c, d in deliveries if p in forwards for r in range(start[p], start[p + 1] - 1)],
        R=list(range(start[-1])),
        deliveries=deliveries,
        made=grouped(C, lambda r, s, d, c, i, w: [(phase_of[r], c, d)]),
        made_in=grouped(C, lambda r, s, d, c, i, w: [(c, d, r)]),
        forwarded=grouped(C, lambda r, s, d, c, i, w: [] if s in pre[phase_of[r]][c] else [(r, s, d, c)]),
        sent=grouped(C, lambda r, s, d, c, i, w: [(r, s, w)]),
        received=grouped(C, lambda r, s, d, c, i, w: [(r, d, w)]),
        crossing=grouped(C, lambda r, s, d, c, i, w: [(r, e, w) for e in route[phase_of[r]][s, d][i]]),
    )


def _members(pairs: I64) -> dict[int, set[int]]:
    """Group the vertices of (chunk, vertex) pairs by chunk."""
    result: dict[int, set[int]] = defaultdict(set)
    for c, v in pairs.tolist():
        result[c].add(v)
    return result


def grouped(index: Iterable[Index], keys: Any) -> dict[Index, list[Index]]:
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
    ordered = program.symmetry and not program.fixed and program.limits.ports == 1
    busiest = min(received, key=lambda d: (-received[d], d)) if ordered else None
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
    columns, ends, T, W = program.columns, program.ends, program.rounds, program.limits.room(program.topology)
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
    tiles = program.limits.ports is not None
    for name, end in (("laser", "source"), ("photodiode", "target")) if tiles else ():
        row, (when, *_) = numbered(r, ends[end], w)
        yield name, *block(when.size, C=(row, every), R=(np.arange(when.size), when, -1.0))
    column, arc = program.arcs
    row, (when, on, _) = numbered(r[column], arc, w[column])
    crowded = np.bincount(row) > (W[on] if tiles else 0)
    place = np.cumsum(crowded) - 1
    kept = crowded[row]
    count = int(crowded.sum())
    room = (np.arange(count), when[crowded], -W[on[crowded]].astype(float))
    yield "waveguide", *block(count, C=(place[row[kept]], column[kept]), R=room)
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
