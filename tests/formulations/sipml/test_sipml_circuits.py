"""SiP-OCS circuits: the ILP equals the polynomial method, circuits split into matchings, wrong ones are refused."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import optimum, refused
from slow_cases import marked

from opticoll.analysis.papers.sipml import claims as duty_cycle
from opticoll.errors import BadInput
from opticoll.formulations.sipml import ocs_circuits, ocs_solution
from opticoll.formulations.sipml.transfers import transfers_of
from opticoll.instances import ServerPool, parse
from opticoll.solvers import solve
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.edge_colouring import matchings
from opticoll.solvers.methods.sipml import koenig_bisection
from opticoll.solvers.task import Proof, Task

NAME = "sipml.ocs-circuits"


def random_traffic(rng, n, most=30):
    """Small whole numbers, so ties and quotients that are whole numbers happen often."""
    matrix = rng.integers(1, most, (n, n)) * (rng.random((n, n)) < rng.uniform(0.2, 0.9))
    np.fill_diagonal(matrix, 0)
    return matrix.astype(float)


def random_case(rng):
    """A pool that has a solution."""
    while True:
        n = int(rng.integers(2, 7))
        matrix = random_traffic(rng, n)
        peers = int(max((matrix > 0).sum(axis=0).max(), (matrix > 0).sum(axis=1).max()))
        if peers:
            return ServerPool(n, peers + int(rng.integers(0, 6)), matrix)


def apportioned(pool):
    """The optimum computed in another way, in exact fractions: the worst pair of each server gets the next port."""
    worst = Fraction(0)
    for row in [*pool.traffic, *pool.traffic.T]:
        volumes = [Fraction(float(v)) for v in row if v]
        ports = [1] * len(volumes)
        for _ in range(pool.degree - len(volumes)):
            k = max(range(len(volumes)), key=lambda i: volumes[i] / ports[i], default=None)
            if k is not None:
                ports[k] += 1
        worst = max([worst, *(v / c for v, c in zip(volumes, ports, strict=True))])
    return float(worst)


def brute_force(pool):
    """All circuits, one pair after the other."""
    pairs = list(zip(*np.nonzero(pool.traffic), strict=True))
    best = np.inf
    for counts in itertools.product(range(1, pool.degree + 1), repeat=len(pairs)):
        out, into = np.zeros(pool.n), np.zeros(pool.n)
        for (i, j), c in zip(pairs, counts, strict=True):
            out[i] += c
            into[j] += c
        if max(out.max(), into.max()) <= pool.degree:
            best = min(best, max(pool.traffic[p] / c for p, c in zip(pairs, counts, strict=True)))
    return best


def polynomial(pool):
    data = ocs_circuits.OcsCircuits.prepare(pool)
    time, below = koenig_bisection.bisect(data)
    return data, time, below


def solved(pool, model="counts"):
    data = ocs_circuits.OcsCircuits.prepare(pool, {"model": model})
    form = compile_model(data.cvxpy())
    value, x = optimum(form)
    values = form.values(x)
    assert max(data.residuals(values).values()) < 1e-6
    return value, data, form, values


def assert_all_agree(pool, models=("counts",)):
    data, time, below = polynomial(pool)
    for model in models:
        assert solved(pool, model)[0] == pytest.approx(time, rel=1e-6)
    assert not koenig_bisection.fits(data, data.transfers.needs(below))
    assert max(bound.value for bound in data.bounds()) == pytest.approx(time, rel=1e-12)
    match = koenig_bisection.matchings_of(data, data.transfers.needs(time)).astype(float)
    assert max(data.residuals({"match": match}).values()) == 0
    assert data.objective({"match": match}) == time
    return time


def test_polynomial_method_is_optimal_on_a_hundred_matrices():
    rng = np.random.default_rng(1)
    for _ in range(100):
        pool = random_case(rng)
        data, time, _ = polynomial(pool)
        assert time == pytest.approx(apportioned(pool), rel=1e-15)
        bounds = {bound.name: bound.value for bound in data.bounds()}
        assert bounds["ports"] == pytest.approx(time, rel=1e-14)
        assert bounds["volume"] <= time


@pytest.mark.parametrize(("matrices", "models"), [(8, 2), marked(300, 2, slow=True), marked(900, 1, slow=True)])
def test_polynomial_method_equals_the_ilps(matrices, models):
    rng = np.random.default_rng(matrices)
    for _ in range(matrices):
        assert_all_agree(random_case(rng), ("counts", "switches")[:models])


def test_brute_force():
    rng = np.random.default_rng(4)
    cases = 0
    while cases < 25:
        pool = random_case(rng)
        if np.count_nonzero(pool.traffic) <= 6 and pool.degree <= 4:
            assert polynomial(pool)[1] == brute_force(pool)
            cases += 1


@pytest.mark.parametrize(("n", "degree", "loads"), [(4, 3, 1), (4, 6, 2), (5, 11, 2), (3, 2, 1)])
def test_closed_form_of_equal_traffic(n, degree, loads):
    """All-to-all: floor(D / (n-1)) circuits a pair."""
    run = solve.solve(Task(NAME, f"servers:n={n},degree={degree},traffic=alltoall,volume=12"))
    assert run.objective == 12 / loads
    assert run.proof == Proof.OPTIMAL


@settings(max_examples=16, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), power=st.integers(-20, 20))
def test_names_units_and_direction_do_not_matter(seed, power):
    rng = np.random.default_rng(seed)
    pool = random_case(rng)
    time = polynomial(pool)[1]
    order = rng.permutation(pool.n)
    for other in (pool.traffic[np.ix_(order, order)], pool.traffic.T):
        assert polynomial(ServerPool(pool.n, pool.degree, other))[1] == time
    assert polynomial(ServerPool(pool.n, pool.degree, pool.traffic * 2.0**power))[1] == time * 2.0**power
    data = ocs_circuits.OcsCircuits.prepare(pool, {"bandwidth": 2.0**power})
    assert koenig_bisection.bisect(data)[0] == time / 2.0**power
    assert polynomial(ServerPool(pool.n, pool.degree + 1, pool.traffic))[1] <= time


@settings(max_examples=24, deadline=None)
@given(data=st.data(), n=st.integers(1, 12), colours=st.integers(1, 9))
def test_every_multigraph_splits_into_matchings(data, n, colours):
    """A sum of permutations, some edges dropped: Koenig's colours suffice, and every edge is met once."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    edges = np.concatenate([np.stack([np.arange(n), rng.permutation(n)]) for _ in range(colours)], axis=1)
    edges = edges[:, rng.permutation(n * colours)[: data.draw(st.integers(0, n * colours))]]
    match = matchings(n, edges[0], edges[1], colours)
    switch, source = np.nonzero(match >= 0)
    target = match[switch, source]
    assert np.unique(switch * n + target).size == switch.size
    assert sorted(zip(source, target, strict=True)) == sorted(map(tuple, edges.T))


def test_too_many_circuits_are_not_matchings():
    with pytest.raises(BadInput, match="2 circuits out of server 0 on 1 switches"):
        matchings(3, np.array([0, 0]), np.array([1, 2]), 1)


def test_needs_are_exact_at_quotients():
    """Just at V / c the need is c, one number below it is c + 1; for thirds and tenths too."""
    rng = np.random.default_rng(6)
    volume = np.concatenate([rng.integers(1, 1000, 300) / 10, rng.uniform(1e-9, 1e9, 300)])
    moves = transfers_of(np.diag(volume, k=1), 3.0, "test")
    for c in (1, 2, 3, 7, 10, 49):
        at = moves.times(np.full(moves.pairs, c))
        each = np.arange(moves.pairs)
        assert (moves.needs(at, each) == c).all()
        assert (moves.needs(np.nextafter(at, 0), each) == c + 1).all()


def test_corrupted_circuits_are_refused():
    run = solve.solve(Task(NAME, "servers:n=6,degree=9,traffic=random,seed=2", "koenig-bisection"))
    data, match = run.plan.problem, run.values["match"]
    good = {"match": match}
    assert max(data.residuals(good).values()) == 0
    circuit_table = np.argwhere(match >= 0)
    q, i = circuit_table[0]
    other = next(j for j in range(6) if j not in (i, match[q, i]))
    for change in ({(q, i): other}, {(q, i): 7.0}, {(q, i): np.nan}, {(q, i): 0.5}, {(q, i): float(i)}):
        wrong = match.copy()
        for where, value in change.items():
            wrong[where] = value
        bad = {"match": wrong}
        assert refused(data, bad) or data.objective(bad) > run.objective, change
    lonely = np.where(match == match[q, i], -1, match)
    assert data.residuals({"match": lonely})["served"] > 0
    counts = ocs_solution.circuits_of(data, good)
    assert data.residuals({"c": counts + 3})["ports_out"] > 0
    assert data.residuals({"c": counts + 0.3})["integer"] > 0.2
    assert data.residuals({"match": match, "c": counts + 1})["count"] == 1
    assert data.residuals({"c": counts, "t": np.asarray(1e-3)})["chord"] > 0.5
    for wrong in ({}, {"c": counts[:-1]}, {"match": match[:-1]}, {"x": match}):
        assert refused(data, wrong)
    again = koenig_bisection.matchings_of(data, counts.astype(np.int64))
    assert max(data.residuals({"match": again.astype(float)}).values()) == 0


def test_more_peers_than_ports_is_refuted():
    run = solve.solve(Task(NAME, "servers:n=12,degree=4,traffic=alltoall"))
    assert run.termination == "infeasible"
    assert "11 others but has 4 ports" in run.record["message"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ocs_circuits.OcsCircuits.prepare(ServerPool(2, 1, np.zeros((2, 2)))), "no server sends anything"),
        (
            lambda: ocs_circuits.OcsCircuits.prepare(ServerPool(2, 1, [[0, 1], [1, 0]]), {"bandwidth": 0.0}),
            "bandwidth=0.0",
        ),
        (
            lambda: ocs_circuits.OcsCircuits.prepare(ServerPool(2, 1, [[0, 1], [1, 0]]), {"bandwidth": np.nan}),
            "a number, not nan",
        ),
        (lambda: ocs_circuits.OcsCircuits.prepare(ServerPool(2, 1, [[0, 1e-320], [1, 0]])), "scale the traffic"),
        (lambda: ocs_circuits.OcsCircuits.prepare(parse("ring:8")), "needs servers"),
    ],
)
def test_bad_input_is_one_line(make, message):
    with pytest.raises(BadInput, match=message):
        make()


def test_duty_cycle():
    """10 r gives 10/11, which is at least the 90% that the paper says; 9 r gives 90% exactly."""
    for latency in (10e-3, 25e-6):  # of MEMS switches and of micro-ring resonators, sections 3.1 and 4.4
        assert duty_cycle.duty_cycle(10 * latency, latency) == pytest.approx(10 / 11)
        assert duty_cycle.least_hold(latency, 0.9) == pytest.approx(9 * latency)
        hold = duty_cycle.least_hold(latency, 0.37)
        assert duty_cycle.duty_cycle(hold, latency) == pytest.approx(0.37)
    assert duty_cycle.duty_cycle(1.0, 0.0) == 1.0
    assert duty_cycle.duty_cycle(2.0, 1.0) > duty_cycle.duty_cycle(1.0, 1.0)
