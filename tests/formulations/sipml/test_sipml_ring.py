"""SiP-Ring wavelengths: sets equal arcs, bounds from prices hold, first fit and whole flows are checked."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import optimum, refused
from slow_cases import marked

import opticoll as oc
from opticoll.errors import BadInput
from opticoll.formulations.rounds.wavelengths import wavelengths_needed
from opticoll.formulations.sipml import ring_wavelengths as ring
from opticoll.formulations.sipml.walks import heaviest_set, strip
from opticoll.instances import ServerPool, parse
from opticoll.solvers import solve
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.sipml.ring_first_fit import attainable_times, first_fit, ring_circuits, search
from opticoll.solvers.methods.sipml.ring_sets import _Program
from opticoll.solvers.task import Proof, Task

NAME = "sipml.ring-wavelengths"


def random_pool(rng, largest=6, most=4):
    while True:
        n = int(rng.integers(3, largest))
        matrix = rng.integers(1, 30, (n, n)) * (rng.random((n, n)) < rng.uniform(0.2, 0.7))
        np.fill_diagonal(matrix, 0)
        if matrix.any():
            return ServerPool(n, int(rng.integers(1, most)), matrix)


def best(pool, model):
    """Optimum of one model, None where there is no solution; the decoded solution goes through the checker."""
    data = ring.RingTraffic.prepare(pool, {"model": model})
    form = compile_model(data.cvxpy())
    try:
        value, x = optimum(form)
    except AssertionError:
        return None
    values = data.repair(form.values(x))
    assert max(data.residuals(values).values()) < 1e-9
    assert data.objective(values) == pytest.approx(value, rel=1e-6)
    return value


def brute_force(pool):
    """Every subset of disjoint arcs for every wavelength and direction, on tiny rings."""
    data = ring.RingTraffic.prepare(pool)
    moves, n = data.transfers, pool.n
    arcs = []
    for p in range(moves.pairs):
        for way in (0, 1):
            start = int(moves.source[p] if way == 0 else moves.target[p])
            arcs.append((p, way, {(start + k) % n for k in range(int(data.hops[p, way]))}))
    choices = []
    for way in (0, 1):
        mine = [(p, segments) for p, d, segments in arcs if d == way]
        sets = {
            tuple(sorted(p for p, _ in some))
            for r in range(len(mine) + 1)
            for some in itertools.combinations(mine, r)
            if sum(len(s) for _, s in some) == len(set().union(*(s for _, s in some)))
        }
        choices.append(list(itertools.combinations_with_replacement(sorted(sets), data.wavelengths)))
    result = np.inf
    for both in itertools.product(*choices):
        count = np.zeros(moves.pairs)
        for chosen in itertools.chain(*both):
            for p in chosen:
                count[p] += 1
        result = min(result, moves.slowest(count))
    return None if np.isinf(result) else result


def test_brute_force():
    rng = np.random.default_rng(0)
    cases = 0
    while cases < 12:
        pool = random_pool(rng, largest=5, most=3)
        if np.count_nonzero(pool.traffic) <= 5:
            truth = brute_force(pool)
            value = best(pool, "sets")
            assert value == (None if truth is None else pytest.approx(truth, rel=1e-6))
            cases += 1


@pytest.mark.parametrize(("rings", "sizes"), [(8, {}), marked(250, {"largest": 7, "most": 5}, slow=True)])
def test_sets_equal_arcs_and_bounds_hold(rings, sizes):
    rng, met = np.random.default_rng(1), 0
    for _ in range(rings):
        pool = random_pool(rng, **sizes)
        data = ring.RingTraffic.prepare(pool)
        value, other = best(pool, "sets"), best(pool, "arcs")
        if value is None:
            assert other is None
            continue
        met += 1
        assert other == pytest.approx(value, rel=1e-6)
        assert data.least <= value * (1 + 1e-9)
        for _ in range(5):
            prices = rng.exponential(size=data.transfers.pairs) ** 2
            assert data.certify({"serve": -prices}).value <= value * (1 + 1e-9)
        match = search(data)
        if match is not None:
            values = {"circuits": match[0].astype(float)}
            assert max(data.residuals(values).values()) == 0
            assert value * (1 - 1e-6) <= data.objective(values) <= match[1]
    assert met > 3


def test_the_method_solves_the_rows_of_the_stated_model():
    data = ring.RingTraffic.prepare(parse("servers:n=6,degree=4,traffic=random,seed=1"))
    form, program = compile_model(data.pyomo()), _Program(SimpleNamespace(data=data))
    columns = np.concatenate([form.columns[name].index for name in ("f", "idle", "over")])
    rows = np.concatenate([form.rows[name].index for name in ("walk", "light", "serve")])
    sign = np.repeat([1.0, -1.0], [rows.size - data.transfers.pairs, data.transfers.pairs])  # serve is c - sum <= 0
    stated = form.A.tocsr()[rows][:, columns].toarray() * sign[:, None]
    np.testing.assert_array_equal(program.A[:, :-1].toarray(), stated)
    np.testing.assert_array_equal(program.upper[: -data.transfers.pairs], form.row_upper[rows][: -data.transfers.pairs])


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7])
def test_all_to_all_takes_lemma_1s_wavelengths(n):
    """One circuit a pair needs ceil(floor(n^2/4)/2) wavelengths exactly; twice as many halve the time."""
    need = wavelengths_needed(n, ring=True)
    run = solve.solve(Task(NAME, f"wdm-ring:n={n},wavelengths={need}"))
    assert (run.objective, run.proof) == (1e6, Proof.OPTIMAL)
    if n in (4, 5):
        assert solve.solve(Task(NAME, f"wdm-ring:n={n},wavelengths={2 * need}")).objective == 5e5
    if need > 1:
        run = solve.solve(Task(NAME, f"wdm-ring:n={n},wavelengths={need - 1}"))
        assert run.values is None
        assert run.termination == "infeasible"


def test_sets_do_not_grow_with_wavelengths():
    sizes = {
        len(ring.RingTraffic.prepare(parse(f"wdm-ring:n=8,wavelengths={w}")).walks.circuits) for w in (8, 500, 100_000)
    }
    assert len(sizes) == 1


def test_hundreds_of_wavelengths_are_proven_optimal():
    settings_ = {"traffic": "random", "seed": "1"}
    run = solve.solve(Task(NAME, "wdm-ring:n=8,wavelengths=256", settings=settings_))
    assert run.proof == Proof.OPTIMAL
    greedy = solve.solve(Task(NAME, "wdm-ring:n=8,wavelengths=256", method="ring-first-fit", settings=settings_))
    assert greedy.verified
    assert greedy.objective >= run.objective
    assert greedy.bound <= run.objective * (1 + 1e-9)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_turning_the_ring_changes_no_bound(seed):
    rng = np.random.default_rng(seed)
    pool = random_pool(rng, largest=9)
    n, turn = pool.n, int(rng.integers(pool.n))
    least = ring.RingTraffic.prepare(pool).least
    order = (np.arange(n) + turn) % n
    for other in (pool.traffic[np.ix_(order, order)], pool.traffic.T, pool.traffic[::-1, ::-1]):
        assert ring.RingTraffic.prepare(ServerPool(n, pool.degree, other)).least == least
    assert ring.RingTraffic.prepare(ServerPool(n, pool.degree, pool.traffic * 4)).least == 4 * least
    assert ring.RingTraffic.prepare(ServerPool(n, pool.degree + 1, pool.traffic)).least <= least


@settings(max_examples=16, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(3, 6))
def test_heaviest_set_by_enumeration(seed, n):
    rng = np.random.default_rng(seed)
    matrix = np.triu(rng.random((n, n)) < 0.5, 1) | np.tril(rng.random((n, n)) < 0.5, -1)
    source, target = np.nonzero(matrix)
    weight = rng.random(source.size)
    if source.size > 10:
        source, target, weight = source[:10], target[:10], weight[:10]
    for way in (0, 1):
        result = 0.0
        spans = []
        for s, t in zip(source.tolist(), target.tolist(), strict=True):
            start, length = (s, (t - s) % n) if way == 0 else (t, (s - t) % n)
            spans.append({(start + k) % n for k in range(length)})
        for r in range(source.size + 1):
            for some in itertools.combinations(range(source.size), r):
                if sum(len(spans[k]) for k in some) == len(set().union(*(spans[k] for k in some))):
                    result = max(result, float(weight[list(some)].sum()))
        assert heaviest_set(n, source, target, weight, way) == pytest.approx(result)


def test_corrupted_assignments_are_refused():
    run = solve.solve(Task(NAME, "wdm-ring:n=6,wavelengths=12", "ring-sets", settings={"traffic": "random"}))
    data, circuits = run.plan.problem, run.values["circuits"]
    assert max(data.residuals({"circuits": circuits}).values()) == 0
    assert data.links(run.values).load.sum() == data.hops[circuits[:, 0].astype(int), circuits[:, 1].astype(int)].sum()

    def worst(change):
        wrong = circuits.copy()
        change(wrong)
        return max(data.residuals({"circuits": wrong}).values())

    same = next(
        (i, j)
        for i, j in itertools.combinations(range(circuits.shape[0]), 2)
        if circuits[i, 0] == circuits[j, 0] or circuits[i, 1] == circuits[j, 1]
    )
    assert worst(lambda c: c.__setitem__(same[0], c[same[1]])) > 0, "two equal circuits share their segments"
    assert worst(lambda c: c.__setitem__((0, 2), 12.0)) > 0
    for at, number in (((0, 2), -1.0), ((0, 1), 2.0), ((0, 0), np.nan), ((0, 2), 0.4)):
        wrong = circuits.copy()
        wrong[at] = number
        assert refused(data, {"circuits": wrong})
    alone = circuits[circuits[:, 0] != 0]
    assert data.residuals({"circuits": alone})["served"] == 1
    assert np.isinf(data.objective({"circuits": alone}))
    assert data.residuals({"circuits": circuits, "c": np.full(data.transfers.pairs, 20.0)})["serve"] > 0
    assert refused(data, {})


@pytest.mark.parametrize(("version", "lacks"), [("sets", "f"), ("arcs", "x")])
def test_a_solution_without_circuits_is_told_what_it_lacks(version, lacks):
    problem = oc.problem(NAME, "wdm-ring:n=3,wavelengths=2", model=version)
    with pytest.raises(BadInput, match=f"the required array '{lacks}' is missing"):
        problem.residuals({"c": np.ones(6)})


def test_flows_that_do_not_split_are_refused():
    data = ring.RingTraffic.prepare(parse("wdm-ring:n=4,wavelengths=2"))
    walk = data.walks
    flow = np.zeros(len(walk.circuits), dtype=np.int64)
    flow[np.flatnonzero((walk.circuits["tail"] > 0) & (walk.circuits["start"] == 0))[0]] = 1  # appears from nowhere
    idle, over = (np.zeros(size, dtype=np.int64) for size in (len(walk.idle), len(walk.crossings)))
    assert strip(walk, flow, idle, over) is None


def test_first_fit_meets_needs_or_returns_none():
    data = ring.RingTraffic.prepare(parse("wdm-ring:n=5,wavelengths=3"))
    needs = np.ones(data.transfers.pairs, dtype=np.int64)
    result = first_fit(data, needs)
    assert result is not None
    assert (np.bincount(result[:, 0], minlength=needs.size) == needs).all()
    assert first_fit(data, needs * 2) is None
    assert attainable_times(data)[-1] == 1e6


@pytest.mark.parametrize(
    ("spec", "given_", "message"),
    [
        ("ring:8", {}, "needs wdm-ring"),
        ("wdm-ring:n=8,wavelengths=2", {"traffic": "nonsense"}, "unknown traffic"),
        ("wdm-ring:n=8,wavelengths=2", {"seed": 3}, "seed=3 has no effect with traffic=alltoall; it is for"),
        ("wdm-ring:n=8,wavelengths=2", {"bandwidth": -1.0}, "bandwidth=-1.0"),
        ("wdm-ring:n=8,wavelengths=2", {"wavelengths": -1}, "wavelengths=-1"),
        ("wdm-ring:n=8,wavelengths=2", {"volume": 0.0}, "volume"),
        ("wdm-ring:n=1024,wavelengths=64", {}, "use at most 256"),
        ("wdm-ring:n=8,wavelengths=2+fail=1,seed=0", {}, "modifiers"),
        ("servers:n=2,degree=4", {}, "at least 3 servers"),
    ],
)
def test_bad_input_is_one_line(spec, given_, message):
    with pytest.raises(BadInput, match=message):
        ring.RingTraffic.prepare(parse(spec), given_)


# periodic control -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_wavelengths_by_demand_never_collide_and_are_no_better_than_the_optimum(seed):
    n, W = 5, 6
    demand = np.random.default_rng(seed).integers(1, 100, (n, n)) * (1.0 - np.eye(n))
    circuits = ring_circuits(demand, W)
    used = set()
    for s, t, way, w in circuits.tolist():
        assert 0 <= w < W
        at = s
        while at != t:
            step = at if way == 0 else (at - 1) % n  # the segment between step and step + 1
            assert (way, step, w) not in used
            used.add((way, step, w))
            at = (at + (1 if way == 0 else -1)) % n
    count = np.zeros((n, n))
    np.add.at(count, (circuits[:, 0], circuits[:, 1]), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        slowest = np.nanmax(np.where(demand > 0, demand / count, np.nan)) / 1e9
    run = solve.solve(Task(NAME, ServerPool(n, W, demand), "ring-sets", settings={"bandwidth": 1e9}))
    assert run.proof is Proof.OPTIMAL
    assert slowest >= run.objective * (1 - 1e-9)
    assert np.array_equal(circuits, ring_circuits(demand, W))


def test_wavelengths_by_demand_on_a_hand_made_ring():
    demand = np.zeros((4, 4))
    demand[0, 1], demand[1, 0], demand[0, 2] = 30.0, 30.0, 20.0
    # 0 -> 1 and 1 -> 0 on their segment, 0 -> 2 anticlockwise; then only 1 -> 0 finds a second way, clockwise
    assert ring_circuits(demand, 1).tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0, 2, 1, 0], [1, 0, 0, 0]]
    demand[0, 2] = 10.0  # fewer bytes than a second circuit of either other pair would carry
    assert ring_circuits(demand, 1).tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 0, 0]]
