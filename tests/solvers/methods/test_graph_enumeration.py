"""Enumerated topologies: all of them up to the names of their nodes, and what they prove."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from msgspec import structs

from opticoll.formulations.topology.design import Design
from opticoll.instances import Topology, parse
from opticoll.solvers import solve
from opticoll.solvers.methods.topology import graph_enumeration
from opticoll.solvers.methods.topology.graph_enumeration import Exclusion, least_sums, topologies
from opticoll.solvers.task import Proof, Task, Termination

NAME = "topology.design"


def time_of(topology):
    """All-to-all time of a topology, by its linear program."""
    return 1 / solve.solve(Task("alltoall.master", topology)).objective


def name_of(links):
    """The smallest matrix of links that renaming the nodes gives."""
    orders = itertools.permutations(range(len(links)))
    return min(links[np.ix_(order, order)].tobytes() for order in orders)


def regular(n, degree, directed):
    """Names of all topologies in which every node has ``degree`` links, and reaches all others, from all matrices."""
    rows = [[v in chosen for v in range(n)] for chosen in itertools.combinations(range(n), degree)]
    found = set()
    for wiring in itertools.product(*([row for row in rows if not row[u]] for u in range(n))):
        links = np.array(wiring)
        fits = (links.sum(axis=0) == degree).all() and (directed or (links == links.T).all())
        if fits and np.linalg.matrix_power(links + np.eye(n, dtype=int), n).all():
            found.add(name_of(links))
    return found


@pytest.mark.parametrize(
    ("n", "degree", "directed"), [(4, 2, True), (5, 2, True), (5, 2, False), (5, 4, False), (4, 3, True)]
)
def test_every_regular_topology_is_listed(n, degree, directed):
    data = Design.of_nodes(n, degree, directed)
    listed = list(topologies(data, lambda *_: False, lambda: None))
    for links in listed:
        assert links.sum(axis=0).max() <= degree
        assert links.sum(axis=1).max() <= degree
        assert directed or (links == links.T).all()
    connected = [name_of(links) for links in listed if sums(links).max() < n * n]
    assert len(set(connected)) == len(connected)
    full = {name_of(links) for links in listed if (links.sum(axis=1) == degree).all() and sums(links).max() < n * n}
    assert full == regular(n, degree, directed)


def sums(links):
    """Sum of distances from every node, by powers of the matrix of links."""
    n, within, result = len(links), np.eye(len(links), dtype=bool), np.zeros(len(links), dtype=int)
    for _ in range(n):
        result += n - within.sum(axis=1)
        within = within | (within.astype(int) @ links > 0)
    return np.where(within.all(axis=1), result, n * n)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_no_completion_has_smaller_sums_of_distances(seed, directed):
    random = np.random.default_rng(seed)
    n, degree = int(random.integers(4, 8)), 2 + seed % 2
    links = np.zeros((n, n), dtype=bool)
    for u, v in random.permutation(list(itertools.permutations(range(n), 2))).tolist():
        new = [(u, v)] if directed else [(u, v), (v, u)]
        if all(links[a].sum() < degree and links[:, b].sum() < degree for a, b in new):
            for a, b in new:
                links[a, b] = True
    whole = sums(links)
    assert least_sums(links, n, degree, directed).tolist() == whole.tolist()
    for decided in range(n):
        partial = links.copy()
        partial[decided:, :] = False
        if not directed:
            partial |= partial.T
        assert (least_sums(partial, decided, degree, directed) <= whole).all()


@pytest.mark.parametrize(
    ("spec", "directed", "time"),
    [
        pytest.param("servers:n=8,degree=2", True, 20 / 3, marks=pytest.mark.slow),
        ("servers:n=8,degree=3", False, 4.0),
    ],
)
def test_designs_are_proven(spec, directed, time):
    run = solve.solve(Task(NAME, f"{spec},traffic=alltoall", settings={"directed": directed}))
    assert run.proof is Proof.OPTIMAL, run.record.message
    assert run.objective == pytest.approx(1 / time)
    assert run.record.metrics["partial_topologies"] > 100


@pytest.mark.parametrize(
    ("n", "degree", "directed"),
    [
        (5, 3, False),
        (4, 2, True),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((5, 2, True), (6, 3, False), (5, 3, True))),
    ],
)
def test_the_proof_agrees_with_the_stated_model(n, degree, directed):
    task = Task(NAME, f"servers:n={n},degree={degree},traffic=alltoall", settings={"directed": directed})
    stated, searched = (solve.solve(structs.replace(task, method=method)) for method in ("auto", "symmetric-search"))
    assert stated.proof is searched.proof is Proof.OPTIMAL
    assert searched.objective == pytest.approx(stated.objective, rel=2e-6)


def test_the_fastest_two_way_topology_of_eight_nodes_with_three_links():
    """Of all five connected cubic graphs (OEIS A002851), by a linear program for each."""
    data = Design.of_nodes(8, 3, False)
    listed = [links for links in topologies(data, lambda *_: False, lambda: None) if links.sum() == 24]
    assert len(listed) == 5
    assert min(time_of(Topology(8, *np.nonzero(links))) for links in listed) == pytest.approx(4.0)


def test_an_enumeration_that_is_too_long_proves_nothing():
    exclusion = Exclusion(Design.of_nodes(8, 2, True), 20 / 3, 1e-6, most=20)
    assert not exclusion.run(lambda _: (20 / 3, 20 / 3), lambda: None)


def test_a_slow_incumbent_is_replaced():
    exclusion, seen = Exclusion(Design.of_nodes(5, 2, True), 100.0, 1e-6, most=100_000), []

    def improved(topology):
        seen.append(time_of(topology))
        return seen[-1], min(seen)

    assert exclusion.run(improved, lambda: None)
    best = solve.solve(Task(NAME, "servers:n=5,degree=2,traffic=alltoall", settings={"directed": True})).objective
    assert min(seen) == pytest.approx(1 / best, rel=1e-6)
    assert exclusion.least == pytest.approx(1 / best, rel=1e-6)
    assert exclusion.least <= 1 / best


def test_a_topology_that_prices_do_not_exclude_is_excluded_by_its_program(monkeypatch):
    """Prices may fail because of round-off: the best time is proven by the lower bounds that ``improved`` returns."""
    monkeypatch.setattr(graph_enumeration, "least_load", lambda *_: (0.0, np.inf))
    exclusion = Exclusion(Design.of_nodes(6, 2, True), 4.2, 1e-6, most=100_000)
    assert exclusion.run(lambda topology: (time_of(topology), 4.2), lambda: None)
    assert exclusion.whole > 0
    assert exclusion.least == pytest.approx(4.2, rel=1e-6)


def test_a_topology_that_only_the_enumeration_finds_is_the_answer():
    """Of nine vertices and four links each; the spec of the fastest is one that can be parsed."""
    weak = {"most": 1, "starts": 1, "moves": 1, "exchanges": 0}
    run = solve.solve(Task(NAME, "servers:n=9,degree=4,traffic=alltoall", "symmetric-search", settings=weak))
    assert run.proof is Proof.OPTIMAL
    assert run.record.termination is Termination.OPTIMAL
    assert time_of(parse(run.record.metrics["found"])) == pytest.approx(3.0)
