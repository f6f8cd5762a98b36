"""Repairs of a failed circuit: loads by hand and ports."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import opticoll as oc
from opticoll.errors import NotApplicable
from opticoll.formulations.topoopt.topology import Wiring
from opticoll.instances import parse
from opticoll.instances.servers import AllReduceGroup, ServerPool
from opticoll.solvers.methods.topoopt import link_repair
from opticoll.solvers.methods.topoopt.design_search import Oracle, Routed
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder


def one_group(n: int, degree: int, direct: dict[tuple[int, int], float] | None = None) -> ServerPool:
    """All servers sum bytes, S = 1 over a hop of a ring; ``direct`` are bytes between servers."""
    matrix = np.zeros((n, n))
    for pair, size in (direct or {}).items():
        matrix[pair] = size
    return ServerPool(n, degree, matrix, groups=[AllReduceGroup(tuple(range(n)), 1.0)])


def best_on(problem: Wiring, circuits: np.ndarray) -> Routed:
    """The least maximum load over given circuits, all routes and shares of rings free, with a bound."""
    count = np.zeros((problem.n, problem.n), dtype=np.int64)
    np.add.at(count, (circuits[:, 0], circuits[:, 1]), 1)
    return Oracle(problem).route(count)


@pytest.mark.parametrize(("n", "degree"), [(5, 2), (8, 3), (16, 4)])
def test_a_ring_in_parts_by_hand(n, degree):
    """d rings share S: 1/d each. d - 1 rings carry 1/(d - 1), the least there is; a forwarded hop doubles a load."""
    pool = one_group(n, degree)
    design, problem = topology_finder(pool), Wiring.prepare(pool)
    assert design.max_load == pytest.approx(1 / degree)
    for pair in link_repair.pairs_of(design)[:4]:
        after = {way: link_repair.repaired(design, pair, way) for way in link_repair.WAYS}
        assert after["reroute"].max_load == pytest.approx(2 / degree)
        assert after["spread"].max_load == pytest.approx(1 / (degree - 1))
        assert after["swap"] is None, "all circuits are of rings"
        assert {link_repair.violation(design, pair, after[way]) for way in ("reroute", "spread")} == {0.0}
        least = best_on(problem, link_repair.without(design.circuits, pair))
        assert least.value == pytest.approx(1 / (degree - 1))
        assert least.bound == pytest.approx(1 / (degree - 1)), "the server that is left with d - 1 ports sends S"


def crossed() -> ServerPool:
    """One ring over four servers of two ports, and traffic across it, which gets circuits 0-2, 2-0, 1-3, 3-1."""
    return one_group(4, 2, {(0, 2): 1.0, (2, 0): 1.0, (1, 3): 1.0, (3, 1): 1.0})


def test_ports_are_swapped_by_hand():
    """0-1 fails: 0-2 and 3-1 become 0-1 and 3-2. Traffic 0-2 then passes 1, and 3-1 passes 0: 0-1 carries 1 + 1 + 1."""
    design = topology_finder(crossed())
    assert link_repair.pairs_of(design) == [(0, 1), (0, 2), (1, 2), (1, 3), (2, 0), (2, 3), (3, 0), (3, 1)]
    after = link_repair.repaired(design, (0, 1), "swap")
    assert after is not None
    assert link_repair.pairs_of(after) == [(0, 1), (1, 2), (1, 3), (2, 0), (2, 3), (3, 0), (3, 2)]
    assert after.max_load == pytest.approx(3.0)
    rerouted = link_repair.repaired(design, (0, 1), "reroute")
    assert rerouted is not None
    assert rerouted.max_load == pytest.approx(2.0), "the hop 0-1 of the ring takes 0-2, 2-3 and 3-1 beside 1 of each"
    assert link_repair.repaired(design, (0, 1), "spread") is None, "there is no other ring"
    assert link_repair.violation(design, (0, 1), after) == 0.0
    assert link_repair.violation(design, (0, 1), design) == 1.0, "the intact design uses a port too many"


def test_a_circuit_beside_the_failed_one_takes_its_ring():
    pool = one_group(4, 2, {(0, 1): 4.0})
    design = topology_finder(pool)
    assert Counter(map(tuple, design.circuits.tolist()))[0, 1] == 2
    assert link_repair.broken_rings(design, (0, 1)) == []
    after = link_repair.repaired(design, (0, 1), "reroute")
    assert after is not None
    assert (design.max_load, after.max_load) == pytest.approx((2.5, 5.0))
    assert link_repair.repaired(design, (0, 1), "spread") is None, "no ring is broken"


@pytest.mark.parametrize("spec", ["servers:n=8,degree=4,traffic=dlrm", "servers:n=8,degree=3,traffic=random,seed=2"])
def test_every_repair_passes_the_checker_on_the_ports_that_are_left(spec):
    pool = parse(spec)
    design, problem = topology_finder(pool), Wiring.prepare(pool)
    tail, head = (np.bincount(design.circuits[:, side], minlength=pool.n) for side in (0, 1))
    for pair in link_repair.pairs_of(design)[:6]:
        best = best_on(problem, link_repair.without(design.circuits, pair))
        for way in link_repair.WAYS:
            after = link_repair.repaired(design, pair, way)
            if after is None:
                continue
            assert max(problem.residuals(after.values()).values()) < 1e-9
            assert link_repair.violation(design, pair, after) < 1e-9
            assert (after.circuits[:, 0] == pair[0]).sum() <= tail[pair[0]] - 1
            assert (after.circuits[:, 1] == pair[1]).sum() <= head[pair[1]] - 1
            if way != "swap":
                assert after.max_load >= best.value * (1 - 1e-9)


def test_the_method_is_checked_like_any_other():
    pool = one_group(8, 2)
    settings = {"failed": "0-1", "repair": "spread"}
    run = oc.solve(oc.Task("topoopt.topology", pool, "link-repair", settings=settings))
    assert run.verified
    assert run.objective == pytest.approx(1.0)
    assert run.metrics["repair"] == "spread"
    assert run.metrics["port_violation"] == 0.0
    best = oc.solve(oc.Task("topoopt.topology", pool, "link-repair"))
    assert best.metrics["load_before"] == pytest.approx(0.5)
    assert best.objective == pytest.approx(1.0)


def test_bad_failures_are_refused():
    design = topology_finder(one_group(8, 1))
    for text, says in (
        ("0", "servers, such as 0-1"),
        ("0-x", "such as 0-1"),
        ("0-2", "circuits to 1"),
        ("9-1", "none"),
    ):
        with pytest.raises(NotApplicable, match=says):
            link_repair.parse_pair(text, design)
    assert link_repair.parse_pair("0-1", design) == (0, 1)
    assert [link_repair.repaired(design, (0, 1), way) for way in link_repair.WAYS] == [None] * 3
    shared = replace(design, rings=(replace(design.rings[0], share=0.5),) * 2)
    assert link_repair.rings_over(shared, (0, 1)) == [0, 1]
    assert link_repair.broken_rings(shared, (0, 1)) == [0, 1]
