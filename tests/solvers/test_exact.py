"""Exact optima against closed forms, an independent simplex, enumeration and hand calculations."""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import replace
from fractions import Fraction

import msgspec
import networkx as nx
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

import opticoll as oc
from opticoll.errors import BadFile, BadInput
from opticoll.formulations import formulation
from opticoll.formulations.parameters import read_parameters
from opticoll.formulations.standard_form import StandardForm, packed
from opticoll.instances.demands import DemandSpec
from opticoll.instances.readers.objects import as_instance
from opticoll.solvers import solve
from opticoll.solvers.compile.compilation import compile_built
from opticoll.solvers.exact import lifted_flows, prove, vipr_check, vipr_file
from opticoll.solvers.exact import linear as exact_linear
from opticoll.solvers.exact.exact_form import ExactForm, Leaf, Split, fault
from opticoll.solvers.exact.integer import solve_integer
from opticoll.solvers.exact.linear import System, solve_linear
from opticoll.solvers.exact.prove import TIMED_OUT, proven_exactly
from opticoll.solvers.exact.vipr_verify import verify
from opticoll.solvers.methods import prepared
from opticoll.solvers.process.budget import Budget
from opticoll.solvers.task import PROVEN, Outcome, Proof, Record, Task, Termination

Q = Fraction
INF = np.inf
#: Capacities from 1e-9 to 7: with them HiGHS's tolerances exceed what is to be found.
FALSE_FRIENDS = [
    (0, 1, 8e-06),
    (1, 2, 5e-09),
    (2, 3, 8e-09),
    (2, 1, 0.0006),
    (2, 0, 1e-09),
    (3, 0, 1e-09),
    (3, 2, 7e-09),
    (3, 1, 7.0),
]


def linear(A, rows, columns, cost, sense="min", integer=None, offset=0.0) -> ExactForm:
    (rl, ru), (cl, cu) = rows, columns
    vectors = (np.array(v, dtype=float) for v in (rl, ru, cl, cu, cost))
    whole = None if integer is None else np.array(integer, dtype=bool)
    return ExactForm.of(StandardForm(sp.csc_array(np.array(A, dtype=float)), *vectors, sense, offset, whole))


def problem(name: str, instance: object, **settings: object):
    """The formulation, its data, and its exact program."""
    model = formulation(name)
    data = prepared(model, as_instance(instance), read_parameters(model.parameters, settings, name), None)
    return model, data, prove.exact_problem(data)


def rational_simplex(A: list[list[Q]], b: list[Q], c: list[Q]) -> Q:
    """Max c x over A x <= b, x >= 0, b >= 0, by Bland's rule on a dense tableau of fractions."""
    m, n = len(A), len(c)
    table = [[*A[i], *(Q(int(i == k)) for k in range(m)), b[i]] for i in range(m)]
    worth = [-v for v in c] + [Q(0)] * (m + 1)
    basis = list(range(n, n + m))
    while True:
        enter = next((j for j in range(n + m) if worth[j] < 0), None)
        if enter is None:
            return worth[-1]
        ratios = [(table[i][-1] / table[i][enter], basis[i], i) for i in range(m) if table[i][enter] > 0]
        assert ratios, "unbounded"
        _, _, leave = min(ratios)
        pivot = table[leave][enter]
        table[leave] = [v / pivot for v in table[leave]]
        for row in (*table[:leave], *table[leave + 1 :], worth):
            if row[enter]:
                factor = row[enter]
                row[:] = [v - factor * w if w else v for v, w in zip(row, table[leave], strict=True)]
        basis[leave] = enter


def concurrent_flow(n: int, arcs: list[tuple[int, int, Q]]) -> Q:
    """F of the all-to-all over all simple paths: max F, sum of flows of each pair >= F, loads <= capacities."""
    graph = nx.DiGraph([(u, v, {"arc": a}) for a, (u, v, _) in enumerate(arcs)])
    pairs = list(itertools.permutations(range(n), 2))
    paths = [
        (pair, [graph.edges[ends]["arc"] for ends in path])
        for pair in pairs
        for path in nx.all_simple_edge_paths(graph, *pair)
    ]
    # F - sum of flows <= 0 for pairs, loads <= c for arcs
    A = [[Q(-1) if key == pair else Q(0) for key, _ in paths] + [Q(1)] for pair in pairs]
    A += [[Q(int(a in used)) for _, used in paths] + [Q(0)] for a in range(len(arcs))]
    return rational_simplex(A, [Q(0)] * len(pairs) + [c for *_, c in arcs], [Q(0)] * len(paths) + [Q(1)])


# linear programs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_random_linear_programs_agree_with_scipy_and_prove_themselves(seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 8, 2)
    A = rng.integers(-3, 4, (m, n)) * (rng.random((m, n)) < 0.6)
    lower = np.where(rng.random(m) < 0.5, -INF, rng.integers(-5, 3, m) / 2)
    upper = np.where(rng.random(m) < 0.3, INF, np.where(np.isinf(lower), 0, lower) + rng.integers(0, 6, m) / 2)
    low = np.where(rng.random(n) < 0.2, -INF, rng.integers(-3, 1, n))
    high = np.where(rng.random(n) < 0.4, INF, np.maximum(low, 0) + rng.integers(0, 3, n))
    cost, sense = rng.integers(-3, 4, n), ("min", "max")[seed % 2]
    form = linear(A, (lower, upper), (low, high), cost, sense, offset=0.5)
    answer = solve_linear(form)
    assert fault(form, answer) is None
    flip = 1 - 2 * (seed % 2)
    both, right = np.vstack([A, -A]), np.concatenate([upper, -lower])
    there = np.isfinite(right)
    bounds = list(zip(low, high, strict=True))
    theirs = scipy.optimize.linprog(flip * cost, both[there], right[there], bounds=bounds)
    if theirs.status == 0:
        assert answer.status == "optimal"
        assert float(answer.objective) == pytest.approx(flip * theirs.fun + 0.5, abs=1e-9)
    else:
        assert answer.status in {2: ("infeasible",), 3: ("unbounded",), 4: ("infeasible", "unbounded")}[theirs.status]


def test_decimals_are_read_as_they_were_written():
    form = linear([[0.1, 0.2]], ([-INF], [0.3]), ([0, 0], [INF, INF]), [1, 1], "max")
    assert form.values == (Q(1, 10), Q(1, 5))
    assert solve_linear(form).objective == 3  # 0.3 / 0.1 is 2.9999999999999996 in floating point


def test_differences_below_every_tolerance_count():
    low, high = 0.9999999999999, 1.0
    for order in itertools.permutations([low, high, high]):
        form = linear([[1]] * 3, ([-INF] * 3, order), ([0], [INF]), [1], "max")
        assert solve_linear(form).objective == Q(9999999999999, 10**13)


def test_costs_below_every_tolerance_count():
    """max x + 2 y over x + y <= 1, x + 3 y <= 2 is 3/2, also where a cost of 1 for z hides theirs."""
    for size in (1e-12, 1e-15):
        form = linear([[1, 1, 0], [1, 3, 0]], ([-INF] * 2, [1, 2]), ([0] * 3, [9, 9, 1]), [size, 2 * size, 1], "max")
        answer = solve_linear(form)
        assert answer.objective == 1 + Q(3, 2) * Q(repr(size))
        assert fault(form, answer) is None


def test_a_degenerate_program_terminates():
    # All constraints pass through the origin's neighbour (1, 1, 1).
    A = [[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1], [2, 1, 0]]
    form = linear(A, ([-INF] * 5, [2, 2, 2, 3, 3]), ([0] * 3, [INF] * 3), [1, 1, 1], "max")
    assert solve_linear(form).objective == 3


def test_infeasible_by_less_than_a_tolerance_and_unbounded():
    tight = linear([[1], [1]], ([-INF, 1.000000000001], [1, INF]), ([0], [INF]), [1])
    answer = solve_linear(tight)
    assert answer.status == "infeasible"
    assert fault(tight, answer) is None
    free = linear([[1, -1]], ([-INF], [1]), ([0, 0], [INF, INF]), [-1, 0])
    answer = solve_linear(free)
    assert answer.status == "unbounded"
    assert fault(free, answer) is None
    empty = linear(np.zeros((0, 2)), ([], []), ([0, -1], [3, 2]), [1, -2])
    assert solve_linear(empty).objective == -4


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [((3, 2), (0, 5)), ((0, 1), (2, 1))])
def test_ends_that_cross_have_a_certificate(rows, columns, whole, tmp_path):
    form = linear([[1, 1]], *[([low] * k, [high] * k) for (low, high), k in ((rows, 1), (columns, 2))], [1, 1])
    form = replace(form, integer=np.array([whole, False]))
    answer = solve_integer(form) if whole else solve_linear(form)
    assert answer.status == "infeasible"
    assert fault(form, answer) is None
    vipr_file.write(tmp_path / "crossed.vipr", form, answer)
    assert verify(tmp_path / "crossed.vipr", form).infeasible


def test_an_ill_conditioned_system_is_solved_by_flint():
    size = 12
    hilbert = [[Q(1, i + j + 1) for j in range(size)] for i in range(size)]
    below = [np.lcm.reduce([v.denominator for v in row]) for row in hilbert]
    whole = np.array([int(v * k) for row, k in zip(hilbert, below, strict=True) for v in row], dtype=object)
    system = System(np.arange(0, size * size + 1, size), np.tile(np.arange(size), size), whole, size)
    x = [Q(k - 5, k + 1) for k in range(size)]
    right = [sum(v * k * z for v, z in zip(row, x, strict=True)) for row, k in zip(hilbert, below, strict=True)]
    assert system.solve(right) == x
    turned = [sum(int(whole[i * size + j]) * x[i] for i in range(size)) for j in range(size)]
    assert system.solve(turned, transposed=True) == x


def test_sides_beyond_the_range_of_floats_are_solved_exactly():
    whole = np.array([2, 1, 1, 3], dtype=object)
    system = System(np.array([0, 2, 4]), np.array([0, 1, 0, 1]), whole, 2)
    x = [Q(2**1100 + 1), Q(-(3**700), 5)]
    assert system.solve([2 * x[0] + x[1], x[0] + 3 * x[1]]) == x
    assert system.solve([2 * x[0] + x[1], x[0] + 3 * x[1]], transposed=True) == x


@pytest.mark.parametrize("size", [4, 30])
def test_multipliers_of_rows_of_many_digits_are_found_without_flint(size, monkeypatch):
    """The multiplier of a row of 20 digits is that much smaller than the others."""
    monkeypatch.setattr(System, "_dense", lambda *_args, **_settings: pytest.fail("FLINT is not needed"))
    random = np.random.default_rng(size)
    whole = np.array(random.integers(0, 2, (size, size)) + 2 * size * np.eye(size, dtype=int), dtype=object)
    whole[::2] = whole[::2] * (10**20 + 39)
    system = System(np.arange(0, size * size + 1, size), np.tile(np.arange(size), size), whole.ravel(), size)
    right = [Q(int(k == 0)) for k in range(size)]
    result = system.solve(right, transposed=True)
    assert (whole.T @ np.array(result, dtype=object)).tolist() == right
    x = [Q(k - 2, k + 1) for k in range(size)]
    assert system.solve((whole @ np.array(x, dtype=object)).tolist()) == x


@pytest.mark.parametrize("field", ["y", "x", "objective", "nodes", "status", "sense", "row"])
def test_a_changed_answer_is_refused(field):
    form = linear([[1, 2], [3, 1]], ([-INF, -INF], [4, 6]), ([0, 0], [INF, INF]), [1, 1], "max")
    answer = solve_linear(form)
    assert fault(form, answer) is None
    (leaf,) = answer.nodes
    assert isinstance(leaf, Leaf)
    if field == "y":
        wrong = replace(answer, nodes=(Leaf({i: v * Q(11, 10) for i, v in leaf.y.items()}),))
    elif field == "x":
        wrong = replace(answer, x=(answer.x[0] + Q(1, 10**9), answer.x[1]))
    elif field == "objective":
        wrong = replace(answer, objective=answer.objective + Q(1, 10**12))
    elif field == "nodes":
        wrong = replace(answer, nodes=(Split(0, 0, 1, 2), leaf, leaf))
    elif field == "status":
        wrong = replace(answer, status="infeasible", x=None, objective=None)
    else:
        wrong = answer
    other = {"sense": replace(form, sense="min"), "row": replace(form, row_upper=(Q(4), Q(59, 10)))}.get(field, form)
    assert fault(other, wrong) is not None


# integer programs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(25))
def test_random_integer_programs_agree_with_enumeration(seed):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    A = rng.integers(-7, 8, (m, n)) * (rng.random((m, n)) < 0.8)
    upper = rng.integers(-4, 25, m)
    lower = np.where(rng.random(m) < 0.7, -INF, upper - rng.integers(0, 6, m))
    high = rng.integers(1, 5, n)
    cost, sense = np.round(rng.integers(-9, 10, n) * 0.3, 1), ("min", "max")[seed % 2]
    form = linear(A, (lower, upper), (np.zeros(n), high), cost, sense, [True] * n)
    answer = solve_integer(form)
    assert fault(form, answer) is None
    values = [
        sum(c * v for c, v in zip(form.cost, x, strict=True))
        for x in itertools.product(*(range(k + 1) for k in high.tolist()))
        if ((lower <= A @ x) & (A @ x <= upper)).all()
    ]
    best = (min, max)[seed % 2](values) if values else None
    assert (answer.status, answer.objective) == ("infeasible" if best is None else "optimal", best)


def test_a_mixed_program_with_a_fractional_optimum():
    # max 3x + 2y + z/7 with x + y + z <= 5/2, x, y whole, z <= 1: x = 2, z = 1/2.
    form = linear([[1, 1, 1]], ([-INF], [2.5]), ([0] * 3, [9, 9, 1]), [21, 14, 1], "max", [True, True, False])
    answer = solve_integer(form, np.array([1.0, 1.0, 0.5]))
    assert (answer.objective, answer.x) == (Q(85, 2), (2, 0, Q(1, 2)))
    assert fault(form, answer) is None


def test_a_tree_with_a_leaf_too_few_is_refused():
    form = linear([[2, 2]], ([-INF], [3]), ([0, 0], [2, 2]), [1.5, 1], "max", [True, True])
    answer = solve_integer(form)
    assert answer.objective == Q(3, 2)
    root = linear([[2, 2]], ([-INF], [3]), ([0, 0], [2, 2]), [1.5, 1], "max")
    relaxed = solve_linear(root)
    assert relaxed.objective == Q(9, 4)
    assert fault(form, replace(answer, nodes=relaxed.nodes)) is not None


@pytest.mark.parametrize("calls", [0, 1, 3, 6, 12, 40, 10**6])
@pytest.mark.parametrize("seed", [3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (4, 5))])
def test_a_tree_without_time_proves_a_bound(calls, seed, tmp_path):
    """The clock says 100 s at first and, after some calls, that the time for trees and linear programs is over."""
    rng = np.random.default_rng(seed)
    form = ExactForm.of(
        StandardForm(
            sp.csc_array(rng.integers(0, 9, (6, 9)).astype(float)),
            np.full(6, -np.inf),
            rng.integers(9, 30, 6) + 0.5,
            np.zeros(9),
            np.full(9, 3.0),
            rng.integers(1, 9, 9).astype(float),
            "max",
            0.25,
            np.ones(9, dtype=bool),
        )
    )
    made = itertools.count()
    clock = lambda: 100.0 if next(made) <= calls else 10.0  # noqa: E731
    best = solve_integer(form).objective
    try:
        answer = solve_integer(form, np.zeros(9), clock)
    except TimeoutError:
        assert calls == 0
        return
    assert fault(form, answer) is None
    assert answer.proven >= best >= answer.objective
    assert answer.status == ("optimal" if answer.proven == answer.objective else "bounded")
    if calls == 10**6:
        assert (answer.status, answer.objective) == ("optimal", best)
    vipr_file.write(tmp_path / "a.vipr", form, answer)
    result = verify(tmp_path / "a.vipr", form)
    assert (result.low, result.high) == (answer.objective, answer.proven)
    vipr_check.check(str(tmp_path / "a.vipr"))
    wrong = replace(answer, status="bounded", bound=best - 1)
    assert fault(form, wrong) is not None


# formulations ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "T"),
    [
        ("ring:5,directed", Q(10)),
        ("ring:8", Q(8)),
        ("torus:4x4", Q(8)),
        ("hypercube:3", Q(4)),
        ("petersen", Q(5)),
        ("complete:4", Q(1)),
        ("kautz:d=2,D=2", Q(13, 3)),
        ("genkautz:n=27,d=4", Q(761, 51)),
    ],
)
def test_times_of_known_networks(spec, T):
    _, data, form = problem("alltoall.master", spec)
    answer, _ = lifted_flows.answer_of(data, form, solve_linear)
    assert fault(form, answer) is None
    assert 1 / answer.objective == T


@pytest.mark.parametrize(
    "arcs",
    [
        [(0, 1, Q(1)), (1, 2, Q(1)), (2, 0, Q(1)), (1, 0, Q(1)), (2, 1, Q(1, 2))],
        [(0, 1, Q(3, 10)), (1, 2, Q(7, 10)), (2, 3, Q(1, 10)), (3, 0, Q(1)), (0, 2, Q(1, 5)), (3, 1, Q(9, 10))],
        [(u, v, Q(str(c))) for u, v, c in FALSE_FRIENDS],
    ],
)
def test_concurrent_flows_agree_with_an_independent_simplex_over_paths(arcs):
    n = 1 + max(u for u, *_ in arcs)
    topology = oc.topology([(u, v, float(c)) for u, v, c in arcs])
    _, _, form = problem("alltoall.master", topology)
    answer = solve_linear(form)
    assert fault(form, answer) is None
    assert answer.objective == concurrent_flow(n, arcs)


def test_the_lifted_optimum_of_the_orbits_is_that_of_the_whole_problem(monkeypatch):
    for spec in ("genkautz:n=12,d=3", "torus:3x4", "kautz:d=2,D=2"):
        _model, data, form = problem("alltoall.master", spec)
        monkeypatch.setattr(lifted_flows, "LIFTED_COLUMNS", 10**9)
        whole, _ = lifted_flows.answer_of(data, form, solve_linear)
        monkeypatch.setattr(lifted_flows, "LIFTED_COLUMNS", 0)
        lifted, metrics = lifted_flows.answer_of(data, form, solve_linear)
        assert 0 < metrics["exact_columns"] < len(form.cost)
        assert fault(form, lifted) is None
        assert lifted.objective == whole.objective


def test_bounds_that_are_computed_are_exact():
    arcs = [(0, 1, 0.3), (1, 2, 0.7), (2, 0, 0.9), (1, 0, 0.3)]
    _, _, form = problem("alltoall.all-gather", oc.topology(arcs))
    assert Q(2) / Q(3, 10) in form.col_upper
    demand = np.array([[0, 0.1, 0.2], [0.7, 0, 0], [0, 0.4, 0]])
    for name in ("alltoall.timestep-mcf", "alltoall.min-congestion"):
        _, _, form = problem(name, oc.topology(arcs), demand=DemandSpec(demand))
        assert Q(14, 10) / Q(3, 10) in form.col_upper  # all demand over the least capacity


def test_an_analytic_bound_closes_what_the_tree_leaves_open():
    """The bound `hops` of the sequence of circuits on four servers is its optimum 3/2; suppose the rows prove 1/2."""
    run = solve.solve(Task("topology.sequence", "servers:n=4,degree=2", "highs", tol=1e-6))
    form = prove.exact_problem(run.plan.problem)
    x = tuple(Q(round(2 * value), 2) for value in packed(form.columns, len(form.cost), run.values))
    open_answer = prove.ExactAnswer("bounded", Q(3, 2), x, (), None, Q(1, 2))
    for one in (run, replace(run, bounds=None)):  # as where the usual solve needed no bound
        closed = prove._with_answer(one, form, open_answer).record
        assert (closed.objective_exact, closed.proof, closed.bound_source) == ("3/2", Proof.EXACT, "hops")
    worse = prove._with_answer(run, form, replace(open_answer, objective=Q(2))).record
    assert worse.objective_exact is None
    assert worse.metrics["bound_exact"] == "3/2"


@pytest.mark.parametrize("name", ["sipml.ocs-circuits", "sipml.ring-wavelengths"])
def test_chords_are_exact(name):
    _, data, form = problem(name, "servers:n=4,degree=6,traffic=dlrm")
    moves = data.transfers
    volume = [Q(int(v)) if v == int(v) else Q(repr(v)) for v in moves.volume.tolist()]
    c, t = form.columns["c"].index, int(form.columns["t"].index[0])
    assert form.cost[t] == max(volume) / Q(repr(moves.bandwidth))
    result = set()
    for i in range(form.shape[0]):
        row = dict(form.row(i))
        if t in row:
            (column,) = set(row) - {t}
            result.add((column, row[column] / row[t], (form.row_lower[i] or form.row_upper[i]) / row[t]))
    expected = {
        (int(c[p]), v / max(volume) / (h * (h + 1)), v / max(volume) * (2 * h + 1) / (h * (h + 1)))
        for p, v in enumerate(volume)
        for h in range(1, max(int(data.high[p]), 2))
    }
    assert result == expected


def test_shares_of_the_unit_load_are_exact():
    _, data, form = problem("topoopt.routing", "servers:n=5,degree=2,traffic=dlrm")
    demand = [[Q(int(v)) for v in row] for row in data.design.demand.tolist()]
    out, into = (np.bincount(ends, minlength=5).tolist() for ends in data.design.circuits.T)
    loads = [sum(row) / k for row, k in zip(demand, out, strict=True)]
    loads += [sum(column) / k for column, k in zip(zip(*demand, strict=True), into, strict=True)]
    F = int(form.columns["F"].index[0])
    starts, _, order = form.by_column
    result = {abs(form.values[k]) for k in order[starts[F] : starts[F + 1]].tolist()}
    assert result == {v / max(loads) for row in demand for v in row if v}


def test_times_of_parallelization_are_exact():
    _, data, form = problem("topoopt.strategy", "servers:n=5,degree=2,traffic=dlrm", alpha=1)
    rate = 5 * 2 * Q(repr(data.bandwidth))
    sent = {Q(int(r + a)) / rate for r, a in zip(data.reduced.ravel(), data.direct.ravel(), strict=True) if r + a}
    assert set(form.cost) - {0} <= sent


def test_computed_coefficients_without_a_fraction_are_refused():
    with pytest.raises(BadInput, match="not a decimal of at most 12 digits"):
        problem("alltoall.master", oc.topology([(0, 1, 1 / 3), (1, 0, 1.0)]))


@pytest.mark.parametrize(
    ("name", "instance", "settings"),
    [
        ("alltoall.link-mcf", "ring:3", {"demand": "random:1"}),
        ("alltoall.path-mcf", "ring:4", {"demand": "gravity:2"}),
        ("alltoall.min-congestion", "ring:3", {"demand": "random:3"}),
        ("alltoall.timestep-mcf", "ring:3", {"demand": "random:2"}),
        ("sipml.ocs-circuits", "servers:n=3,degree=4,traffic=random,seed=1", {}),
        ("topoopt.routing", "servers:n=5,degree=2,traffic=random,seed=1", {}),
        ("topoopt.topology", "servers:n=3,degree=2,traffic=random,seed=1", {}),
        ("topoopt.topology", "servers:n=3,degree=2,traffic=vgg", {"objective": "bandwidth-tax"}),
        ("topoopt.strategy", "servers:n=6,degree=2,traffic=bert", {"memory": 1.5}),
        ("topoopt.strategy", "servers:n=6,degree=2,traffic=dlrm", {"alpha": 1.3}),
        ("sipml.placement", "op-graph:random,layers=3,parts=2,seed=1,training=false", {"degree": 2, "k": 2}),
    ],
)
def test_seeded_and_computed_data_are_the_decimals_of_their_floats(name, instance, settings):
    _, data, form = problem(name, instance, **settings)
    answer = prove.solve_exactly(form)
    assert fault(form, answer) is None
    built = compile_built(data, data.cvxpy())  # in floating point
    result = scipy.optimize.milp(
        built.cost * form.flip,
        integrality=built.integer,
        bounds=(built.col_lower, built.col_upper),
        constraints=scipy.optimize.LinearConstraint(built.A, built.row_lower, built.row_upper),
    )
    assert form.flip * result.fun + built.offset == pytest.approx(float(answer.objective), rel=1e-6)


def test_the_demand_of_a_seed_is_its_shortest_decimal():
    _, data, form = problem("alltoall.master", "ring:3", demand=DemandSpec("random:1"))
    stated = {Q(repr(value)) for value in data.flow.demand[data.flow.demand > 0].tolist()}
    assert stated <= {abs(value) for value in form.values}
    # Two ways out of every node and in, of capacity 1: F is at most 2 over what it sends, exactly.
    assert (
        max(sum(Q(repr(v)) for v in column) for column in data.flow.demand.T.tolist())
        <= 2 / solve_linear(form).objective
    )


def test_a_child_takes_the_exact_flow_of_the_master(tmp_path):
    demand = "random:1"
    settings = {"demand": demand, "source": "1"}
    result = oc.solve("alltoall.child", "kautz:d=2,D=1", exact=True, **settings)
    master = oc.solve("alltoall.master", "kautz:d=2,D=1", exact=True, demand=demand)
    assert result.objective_exact == master.objective_exact
    assert len(str(result.objective_exact)) > 20  # not a short decimal
    with pytest.raises(BadInput, match=r"its data are a solution of alltoall\.master"):
        result.save(tmp_path / "child.vipr")
    whole = oc.solve("alltoall.all-reduce", "path:2", exact=True)
    whole.save(tmp_path / "other.vipr")
    with pytest.raises(BadFile, match=r"its data are a solution of alltoall\.master"):
        oc.check("alltoall.child", "kautz:d=2,D=1", tmp_path / "other.vipr", **settings)


def test_a_partial_solution_is_completed():
    # min x + y, x + y >= 3/2 and 2 z = x + y, all whole: 2; x is given as 1
    form = linear([[1, 1, 0], [1, 1, -2]], ([1.5, 0], [INF, 0]), ([0] * 3, [5] * 3), [1, 1, 0], integer=[1] * 3)
    answer = solve_integer(form, np.array([1.0, np.nan, np.nan]))
    assert (answer.objective, fault(form, answer)) == (2, None)


def test_a_reader_takes_the_fraction_and_refuses_two_that_are_too_near():
    read = prove.reader([Q(1, 3)], "f")
    assert (read(1 / 3), read(-1 / 3), read(0.5), read(7.0)) == (Q(1, 3), Q(-1, 3), Q(1, 2), 7)
    near = prove.reader([Q(1, 3), Q(1, 3) + Q(1, 10**17)], "f")
    with pytest.raises(BadInput, match="too near"):
        near(1 / 3)


# runs -----------------------------------------------------------------------------------------------------------------


def test_floating_point_misleads_and_the_exact_run_does_not(tmp_path, monkeypatch):
    monkeypatch.setattr("opticoll.solvers.model_solve.scaling_steps", lambda *_given, **_named: [])
    topology = oc.topology(FALSE_FRIENDS)
    result = oc.solve("alltoall.master", topology, exact=True)
    assert result.objective_exact == Q(1, 1_500_000_000)
    assert (result.proof, result.gap, result.verified) == (Proof.EXACT, 0.0, True)
    assert result.metrics["T_exact"] == "1500000000"
    assert "in floating point the value was" in result.record.message
    assert fault(*result.exact) is None
    assert "1/1500000000" in repr(result)

    store = oc.Store(tmp_path)
    store.save(result)
    (row,) = store.sql("SELECT proof, objective_exact, requested_exact FROM latest").to_dict("records")
    assert row == {"proof": "exact", "objective_exact": "1/1500000000", "requested_exact": True}


def test_an_exact_proof_does_without_the_words_of_a_failed_attempt(monkeypatch, tmp_path):
    failed = Outcome(Termination.ERROR, message="worn out")
    monkeypatch.setattr("opticoll.solvers.model_solve.solve_scaled", lambda *given, **named: failed)
    program = oc.topology("ring:4")
    result = oc.solve("alltoall.master", program, method="highs", exact=True)
    assert (result.proof, result.objective_exact, result.record.message) == (Proof.EXACT, Q(1, 2), "")
    result = oc.solve("alltoall.master", program, method="highs")
    assert (result.verified, result.record.message) == (False, "worn out")
    (tmp_path / "none.lp").write_text("Minimize\n x\nSubject To\n a: x >= 2\n b: x <= 1\nEnd\n")
    result = oc.solve("matrix.program", f"mps:{tmp_path}/none.lp", method="highs", exact=True)
    assert (result.record.termination, "worn out" in result.record.message) == ("infeasible", False)


def test_the_command_line_prints_the_fraction(tmp_path):
    from click.testing import CliRunner

    from opticoll.analysis.cli.main import cli

    arguments = ["solve", "optree.tree", "wdm-ring:n=8,wavelengths=2", "--exact", "--json", "--no-store"]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    assert (record["proof"], Q(record["objective_exact"])) == ("exact", record["objective"])


def test_repeated_bases_switch_to_another_simplex(monkeypatch):
    """As if the refined bases of the first simplex always came again."""
    refined, used = exact_linear._refined, []

    def again(form, remaining, *, plain):
        used.append(plain)
        return refined(form, remaining, plain=plain) if plain else None

    monkeypatch.setattr(exact_linear, "_refined", again)
    _, _, form = problem("topoopt.topology", "servers:n=3,degree=2")
    answer = solve_integer(form)
    assert (answer.status, answer.objective) == ("optimal", 1_000_000)
    assert used[:2] == [False, True]
    assert fault(form, answer) is None


def test_the_time_limit_covers_the_exact_step():
    task = Task("alltoall.min-congestion", "ring:4", method="highs", time_limit_s=100.0, exact=True)
    assert 40.0 < Budget(task, None).deadline - time.monotonic() <= 50.0
    usual = solve.solve(msgspec.structs.replace(task, exact=False))
    late = replace(
        usual,
        task=task,
        record=msgspec.structs.replace(usual.record, time=msgspec.structs.replace(usual.record.time, solve_s=100.0)),
    )
    run = proven_exactly(late)
    assert run.record.message.endswith(f"{TIMED_OUT} (this step was given 0 of the 100 seconds)")
    kept = (usual.record.objective, usual.record.bound, usual.record.proof, usual.record.termination)
    assert (run.record.objective, run.record.bound, run.record.proof, run.record.termination) == kept


def test_exact_ranks_first_and_old_records_are_read():
    assert next(iter(Proof)) is Proof.EXACT
    assert PROVEN == (Proof.EXACT, Proof.OPTIMAL)
    assert Record.read({"proof": "optimal", "objective": 1.0}).objective_exact is None
    task = oc.Task("alltoall.master", "ring:4")
    from opticoll.solvers.resume_key import resume_key

    assert resume_key(task) != resume_key(oc.Task("alltoall.master", "ring:4", exact=True))
