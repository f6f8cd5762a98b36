"""A demand over parallel switches: bounds and models against all lists of matchings, methods, checker."""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest
from case_families import each
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, linprog

import opticoll as oc
from opticoll.errors import BadInput
from opticoll.formulations.topology.matching_bounds import (
    first_fit,
    known_makespan,
    matching_weight,
    most_partners,
    most_useful,
    price_bound,
    shifts,
)
from opticoll.formulations.topology.matchings import TopologyMatchings
from opticoll.solvers.methods.edge_colouring import filled_up, permutations_and_weights
from opticoll.solvers.methods.topology.matching_enumeration import MatchingEnumeration
from opticoll.solvers.methods.topology.matching_prices import MatchingColumns
from opticoll.solvers.methods.topology.matching_schedules import (
    assigned,
    equalized,
    extended,
    fitted,
    values_of,
)
from opticoll.solvers.methods.topology.matching_search import exchanged
from opticoll.solvers.methods.topology.permutations import (
    fewest_matchings,
    fewest_permutations,
    permutations_of,
)

NAME = "topology.matchings"


def uniform(n):
    return np.ones((n, n)) - np.eye(n)


def drawn(n, seed, density=1.0):
    """Whole demands from 1 to 9, some pairs without."""
    draw = np.random.default_rng(seed)
    demand = draw.integers(1, 10, (n, n)) * (draw.random((n, n)) < density) * uniform(n)
    return demand if demand.any() else uniform(n)


def all_matchings(demand):
    """Matchings of pairs with demand to which none can be added, as tuples of pairs."""
    n, found = len(demand), set()
    for order in permutations(range(2 * n), n):  # heads from n on stand for none
        pairs = frozenset((i, j) for i, j in enumerate(order) if j < n and demand[i, j] > 0)
        found.add(pairs)
    return sorted((tuple(sorted(one)) for one in found if one and not any(one < other for other in found)), key=str)


def least_makespan(demand, delay, lists):
    """Least makespan of these matchings on their switches, all set, by a plain LP; infinite if there is none."""
    flat = [(h, pairs) for h, one in enumerate(lists) for pairs in one]
    wanted = [tuple(pair) for pair in np.argwhere(demand > 0).tolist()]
    rows, right = [], []
    for pair in wanted:
        rows.append([-1.0 * (pair in pairs) for _, pairs in flat] + [0.0])
        right.append(-demand[pair])
    for h, one in enumerate(lists):
        rows.append([1.0 * (h == at) for at, _ in flat] + [-1.0])
        right.append(-delay * len(one))
    result = linprog([0.0] * len(flat) + [1.0], A_ub=rows, b_ub=right)
    return result.fun if result.status == 0 else np.inf


def exhaustive(demand, switches, delay, most):
    """Least makespan over all lists of at most ``most`` matchings on each switch."""
    every = all_matchings(demand)
    one = [chosen for m in range(most + 1) for chosen in combinations_with_replacement(every, m)]
    best = np.inf
    for lists in combinations_with_replacement(one, switches):
        wait = delay * max(map(len, lists))
        if wait < best:
            best = min(best, least_makespan(demand, delay, lists))
    return best


#: Demand, switches, delay: problems of which every list of matchings is tried.
EVERY = [
    (uniform(3), 1, 0.5),
    (drawn(3, 1), 1, 2.0),
    (drawn(3, 2), 1, 1.0),
    (drawn(3, 3, 0.6), 2, 2.0),
    (drawn(3, 4, 0.7), 2, 3.0),
    (drawn(4, 5, 0.35), 1, 4.0),
    (drawn(3, 6, 0.8), 2, 4.0),
]


@cache
def optimum(case):
    demand, switches, delay = EVERY[case]
    return exhaustive(demand, switches, delay, min(most_useful(demand, switches, delay)[0], 3 if switches > 1 else 4))


@pytest.mark.parametrize("case", range(len(EVERY)))
def test_bounds_and_models_against_all_lists(case):
    demand, switches, delay = EVERY[case]
    data = TopologyMatchings.of_demand(demand, switches, delay)
    best = optimum(case)
    assert all(bound.value <= best * (1 + 1e-9) for bound in data.bounds())
    assert best <= float(known_makespan(demand, switches, delay)) * (1 + 1e-9)
    columns = MatchingColumns(data)
    assert columns.run(lambda: 1.0, 200) <= best * (1 + 1e-9)
    assert columns.cost @ columns.weights / switches == pytest.approx(price_bound(data, columns.prices), rel=1e-6)


@pytest.mark.parametrize("case", range(len(EVERY)))
def test_the_stated_model_has_the_least_makespan(case):
    demand, switches, delay = EVERY[case]
    run = oc.solve(NAME, f"servers:n={len(demand)},degree={switches}", delay=delay, demand=demand, method="highs")
    assert run.objective == pytest.approx(optimum(case), rel=1e-5)


@pytest.mark.parametrize("case", [1, 2, 5])
def test_more_configurations_than_stated_do_not_help(case):
    demand, switches, delay = EVERY[case]
    number, _ = most_useful(demand, switches, delay)
    if number < 4:
        assert exhaustive(demand, switches, delay, number + 1) == pytest.approx(optimum(case))


@settings(max_examples=16, deadline=None)
@given(st.lists(st.floats(0, 10), min_size=9, max_size=9), st.integers(0, 4))
def test_any_prices_bound(prices, case):
    demand, switches, delay = EVERY[case]
    for first in (True, False):
        data = TopologyMatchings.of_demand(demand, switches, delay, first=first)
        value = price_bound(data, np.array(prices).reshape(3, 3))
        assert value <= optimum(case) * (1 + 1e-9) - (0.0 if first else delay)


@pytest.mark.parametrize("seed", range(5))
def test_the_weight_of_matchings_is_bounded(seed):
    weights = np.random.default_rng(seed).random((6, 6)) * drawn(6, seed, 0.5)
    bound, heads = matching_weight(weights)
    rows, columns = linear_sum_assignment(weights, maximize=True)
    assert weights[rows, columns].sum() <= bound
    assert bound == pytest.approx(weights[np.arange(6), heads].sum(), rel=1e-12)


@pytest.mark.parametrize(
    ("demand", "switches", "delay", "value"),
    [
        (uniform(5), 1, 1.0, 8.0),  # four shifts of length 1
        (uniform(5), 2, 1.0, 4.0),
        (uniform(7), 3, 0.25, 2.5),
        (6.0 * np.roll(np.eye(4), 1, axis=1), 1, 2.0, 8.0),  # one matching
        (6.0 * np.roll(np.eye(4), 1, axis=1), 3, 2.0, 4.0),  # a third of it on every switch
        (drawn(5, 1), 2, 0.0, max(drawn(5, 1).sum(axis=0).max(), drawn(5, 1).sum(axis=1).max()) / 2),
    ],
)
def test_closed_forms(demand, switches, delay, value):
    for first in (True, False):
        run = oc.solve(
            NAME,
            f"servers:n={len(demand)},degree=1",
            switches=switches,
            delay=delay,
            demand=demand,
            first=first,
            method="birkhoff" if delay == 0 else "matching-search",
        )
        expected = value - (0.0 if first else delay)
        bounds = TopologyMatchings.of_demand(demand, switches, delay, first=first).bounds()
        assert max(bound.value for bound in bounds) == pytest.approx(expected)
        if delay > 0 or switches == 1:
            assert run.objective == pytest.approx(expected)
            assert run.proof == "optimal"


def test_without_delay_every_switch_takes_a_share():
    demand = drawn(5, 1)
    data = TopologyMatchings.of_demand(demand, 2, 0.0)
    heads, lengths = permutations_of(data)
    twice = assigned(data, np.concatenate([heads, heads]), np.concatenate([lengths, lengths]) / 2)
    assert equalized(data, twice).makespan(data) == pytest.approx(data.bounds()[0].value)


# methods --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_birkhoff_adds_up(seed):
    counts = drawn(6, seed, 0.5).astype(np.int64)
    top = int(max(counts.sum(axis=0).max(), counts.sum(axis=1).max()))
    matrix = filled_up(counts, top)
    assert (matrix >= counts).all()
    assert (matrix.sum(axis=0) == top).all()
    assert (matrix.sum(axis=1) == top).all()
    heads, weights = permutations_and_weights(matrix)
    total = np.zeros((6, 6), dtype=int)
    for image, weight in zip(heads, weights, strict=True):
        total[np.arange(6), image] += weight
    assert (total == matrix).all()
    assert len(weights) <= 26


@pytest.mark.parametrize("seed", range(4))
def test_as_few_matchings_as_partners(seed):
    demand = drawn(7, seed, 0.5)
    heads = fewest_matchings(demand)
    assert len(heads) == most_partners(demand)
    covered = np.zeros((7, 7), dtype=int)
    for row in heads:
        sent = row[row >= 0]
        assert len(set(sent.tolist())) == sent.size
        covered[np.flatnonzero(row >= 0), sent] += 1
    assert (covered == (demand > 0)).all()


def test_known_matchings_cover_the_demand_once():
    demand = drawn(6, 3, 0.6)
    for listed in (first_fit(demand), shifts(demand)):
        pairs = [pair for one in listed for pair in one]
        assert sorted(pairs) == [tuple(pair) for pair in np.argwhere(demand > 0).tolist()]
        assert all(len({i for i, _ in one}) == len(one) == len({j for _, j in one}) for one in listed)


@pytest.mark.parametrize("seed", range(4))
def test_schedules_keep_ports_and_serve(seed):
    data = TopologyMatchings.of_demand(drawn(6, seed, 0.7), 2, 1.5)
    heads, lengths = fewest_permutations(data)
    for schedule in (assigned(data, heads, lengths), equalized(data, assigned(data, heads, lengths))):
        values = values_of(data, schedule)
        assert max(data.residuals(values).values()) <= 1e-9
        assert data.objective(values) == pytest.approx(schedule.makespan(data))
        assert float(values["T"]) == pytest.approx(schedule.makespan(data))
        better = fitted(data, schedule.heads, schedule.switch)
        assert better.makespan(data) <= schedule.makespan(data) * (1 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_exchanges_keep_every_circuit(seed):
    demand = drawn(6, seed, 0.6)
    heads = fewest_matchings(demand)
    if len(heads) < 2:
        return
    other = exchanged(heads, 0, 1, seed % 6)

    def pairs(two):
        return sorted((i, int(j)) for row in two[:2] for i, j in enumerate(row) if j >= 0)

    assert pairs(other) == pairs(heads)
    for row in other:
        assert len(set(row[row >= 0].tolist())) == (row >= 0).sum()


def test_extended_matchings_have_only_pairs_with_demand():
    data = TopologyMatchings.of_demand(drawn(6, 2, 0.5), 1, 1.0)
    heads = extended(data, fewest_matchings(data.demand))
    for row in heads:
        sent = np.flatnonzero(row >= 0)
        assert (data.demand[sent, row[sent]] > 0).all()
        assert len(set(row[sent].tolist())) == sent.size


@pytest.mark.parametrize("method", ["birkhoff", "spectra", "matching-search"])
@pytest.mark.parametrize("case", [3, 4, 6])
def test_methods_against_all_lists(method, case):
    demand, switches, delay = EVERY[case]
    fewer = {"moves": 40} if method == "matching-search" else {}
    spec = f"servers:n={len(demand)},degree={switches}"
    run = oc.solve(NAME, spec, delay=delay, demand=demand, method=method, **fewer)
    assert run.verified
    assert run.objective >= optimum(case) * (1 - 1e-9)
    if method == "matching-search":
        assert run.objective == pytest.approx(optimum(case), rel=1e-6)


def enumerated(data, value):
    """The enumeration from any value, its lower bound, and the best makespan that it finds."""
    found = [value]

    def better(schedule):
        found.append(schedule.makespan(data))
        return found[-1]

    rest = MatchingEnumeration(data, value, 1e-6)
    assert rest.run(better, lambda: None, 200_000)
    return rest.least, found[-1]


@each("first", [True, False])
@each("case", range(len(EVERY)))
def test_enumeration_against_all_lists(case, first):
    demand, switches, delay = EVERY[case]
    best = optimum(case) - (0.0 if first else delay)
    data = TopologyMatchings.of_demand(demand, switches, delay, first=first)
    least, value = enumerated(data, 2.0 * best)
    assert value == pytest.approx(best, rel=1e-6)
    assert best * (1 - 2e-6) <= least <= best * (1 + 1e-9)
    least, value = enumerated(data, 0.9 * best)  # no schedule is that short
    assert value == 0.9 * best
    assert least == pytest.approx(0.9 * best, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_enumeration_against_the_stated_model(seed):
    """Demands near to each other, so that pairs are served by several configurations."""
    demand = (1.0 + 0.3 * np.random.default_rng(seed).random((4, 4))) * uniform(4)
    run = oc.solve(NAME, "servers:n=4,degree=1", delay=0.2, demand=demand, method="highs", time_limit=60)
    assert run.termination == "optimal"
    least, value = enumerated(TopologyMatchings.of_demand(demand, 1, 0.2), 20.0)
    assert value == pytest.approx(run.objective, rel=1e-5)
    assert least <= value * (1 + 1e-9)


@pytest.mark.parametrize(("switches", "assignments"), [(2, 10_000), (3, 10_000), (3, 100)])
def test_small_problems_are_proven_unless_assignments_are_too_many(switches, assignments):
    search = {"method": "matching-search", "iterations": 0, "moves": 20, "assignments": assignments}
    run = oc.solve(NAME, f"servers:n=5,degree={switches}", demand="random:2", **search)
    proven = assignments > 100
    assert run.proof == ("optimal" if proven else "certified-gap")
    assert run.record.bound_source.startswith("enumeration") == proven


# the checker ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def solved():
    data = TopologyMatchings.of_demand(drawn(5, 7), 2, 1.0)
    heads, lengths = fewest_permutations(data)
    return data, values_of(data, equalized(data, assigned(data, heads, lengths)))


def test_corrupted_schedules_are_rejected(solved):
    data, values = solved
    shorter = {**values, "t": values["t"] * (1 - 1e-4)}
    assert data.residuals(shorter)["served"] > 1e-6
    h, k, i, j = np.argwhere(values["x"] > 0)[0].tolist()
    without = values["x"].copy()
    without[h, k, i, j] = 0.0
    assert data.residuals({**values, "x": without})["served"] > 1e-6
    twice = values["x"].copy()
    other = next(v for v in range(5) if v not in (i, j) and values["x"][h, k, :, v].sum() > 0)
    twice[h, k, i, other] = 1.0
    found = data.residuals({**values, "x": twice})
    assert found["ports_out"] == found["ports_in"] == 1.0
    half = values["x"] * 0.6
    assert data.residuals({**values, "x": half})["integrality"] == pytest.approx(0.4)
    assert data.residuals({**values, "t": values["t"] - 1e3})["sign"] > 1.0


def test_a_schedule_without_the_least_demand_is_rejected():
    """1 and 1,000,000 shards of one node take two matchings; one of them within 1e-6 of all is half of the delays."""
    data = TopologyMatchings.of_demand(np.array([[0, 1e6, 1], [0, 0, 0], [0, 0, 0]]), 1, 1e6)
    circuits, lengths = np.zeros((1, 2, 3, 3)), np.array([[1e6, 1.0]])
    circuits[0, 0, 0, 1] = circuits[0, 1, 0, 2] = 1.0
    values = data.filled(circuits, lengths)
    assert (data.objective(values), max(data.residuals(values).values())) == (3000001.0, 0.0)
    circuits[0, 1] = 0.0
    assert data.residuals(data.filled(circuits, lengths))["served"] > 1e-6


def test_repair_holds_matchings_longer(solved):
    data, values = solved
    repaired = data.repair({"x": values["x"] * 0.999, "t": values["t"] * 0.9})
    assert max(data.residuals(repaired).values()) <= 1e-12
    assert set(repaired) == {"x", "z", "t", "w", "T"}
    assert (np.diff(repaired["t"], axis=1) <= 0).all()
    assert (np.diff(repaired["z"], axis=1) <= 0).all()
    assert (np.diff(repaired["t"][:, 0]) <= 0).all()
    assert (repaired["w"].sum(axis=(0, 1)) >= data.demand * (1 - 1e-12)).all()
    assert data.repair({"x": values["x"] * 0, "t": values["t"]}) is None


def test_a_solution_is_described_as_circuits_with_times(solved):
    data, values = solved
    described = data.describe(values)
    ends = [0.0, 0.0]
    for one in described["schedule"]:
        assert one["begin"] == pytest.approx(ends[one["switch"]] + data.delay)
        ends[one["switch"]] = one["begin"] + one["length"]
    assert max(ends) == pytest.approx(data.objective(values))


@pytest.mark.parametrize(
    ("spec", "given", "words"),
    [
        ("ring:4", {}, "nodes with ports"),
        ("servers:n=4,degree=2,traffic=dlrm", {}, "traffic=alltoall"),
        ("servers:n=4,degree=2", {"delay": -1.0}, "a finite number of at least 0"),
        ("servers:n=4,degree=2", {"switches": 5000}, "at most 1024 switches"),
        ("servers:n=4,degree=2", {"demand": "longest-matching"}, "use another demand"),
        ("servers:n=4,degree=2", {"configurations": 1, "method": "spectra"}, "leave out configurations"),
    ],
)
def test_refusals(spec, given, words):
    with pytest.raises(BadInput, match=words):
        oc.solve(NAME, spec, **given)


def test_too_few_configurations_are_refuted():
    run = oc.solve(oc.Task(NAME, "servers:n=4,degree=1", settings={"configurations": 2}))
    assert run.termination == "infeasible"
    assert run.record.infeasible_by == "partners"
