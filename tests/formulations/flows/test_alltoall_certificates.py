"""Checker, repair, bounds and certificates: corrupted solutions are refused, bounds hold whatever the lengths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import MEDIUM, SMALL, optimum, solved
from strategies import topologies

from opticoll.errors import BadInput
from opticoll.formulations import formulation
from opticoll.formulations.alltoall.link_mcf import LinkFlow
from opticoll.formulations.alltoall.link_mcf_bounds import printed_length_bound
from opticoll.formulations.flows import concurrent_flow as model
from opticoll.formulations.flows.flow_bounds import ShortestTrees, bounds, moore_depths
from opticoll.formulations.flows.single_source import cancel_cycles, strip_paths
from opticoll.instances import Topology, parse
from opticoll.solvers.compile.compilation import compile_model

relaxed = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("spec", [*SMALL, *(pytest.param(spec, marks=pytest.mark.slow) for spec in MEDIUM)])
def test_every_analytic_bound_holds(spec):
    data, F, _ = solved("alltoall.master", spec)
    for bound in bounds(data.flow):
        assert bound.value >= F * (1 - 1e-7), bound
        if bound.exact:
            assert bound.value == pytest.approx(F, rel=1e-7)


def test_the_moore_count():
    assert moore_depths(7, 2).sum() == 1 * 2 + 2 * 4 + 3 * 1
    assert moore_depths(4, 1).sum() == 1 + 2 + 3 + 4
    assert moore_depths(0, 3).sum() == 0
    # A complete layer tree: N - 1 = d + d^2; Kautz graphs of diameter 2 attain it.
    assert 1 / solved("alltoall.master", "kautz:d=2,D=2")[1] >= moore_depths(5, 2).sum() / 2 * (1 - 1e-9)


def test_the_printed_relaxation_has_a_certificate_of_its_own():
    for spec in ("path:4", "ring:8", "genkautz:n=6,d=2"):
        data = LinkFlow.prepare(parse(spec), {"printed": True})
        form = compile_model(data.cvxpy())
        F, x = optimum(form)
        assert max(data.residuals(form.values(x)).values()) < 1e-7
        random = np.random.default_rng(1)
        for _ in range(20):
            assert printed_length_bound(data, random.random(data.flow.topology.arcs) + 1e-6) >= F * (1 - 1e-9)
        for bound in data.bounds():
            assert bound.value >= F * (1 - 1e-9)
    # Six arcs; a cycle through the target has two hops, so that pairs count for one hop (6) or two (6).
    (bound,) = LinkFlow.prepare(parse("path:4"), {"printed": True}).bounds()
    assert bound.value == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("spec", "name", "value", "within"),
    [
        ("path:6", "sweep-cut", 1 / 9, 1e-9),  # one link between three and three ranks
        ("ring:8", "sweep-cut", 2 / 16, 1e-9),
        ("mesh:4x4", "sweep-cut", 4 / 64, 1e-9),
        ("complete:2", "closed-form", 1.0, 1e-9),
        ("path:6", "any-lengths", 1 / 9, 0.04),  # by steps towards the length of the middle link; 1/7 without them
    ],
)
def test_bounds_attain_what_is_known(spec, name, value, within):
    data = formulation("alltoall.master").prepare(parse(spec), {})
    found = {bound.name: bound.value for bound in bounds(data.flow)}
    assert value * (1 - 1e-12) <= found[name] <= value * (1 + within)


@relaxed
@given(topologies(6), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-9, 1e-6, 1e-3, 0.1]))
def test_repair_always_gives_a_feasible_flow(topology, seed, noise):
    data, F, values = solved("alltoall.master", topology)
    random = np.random.default_rng(seed)
    spoiled = {
        "g": values["g"] + noise * random.normal(size=values["g"].shape) * topology.capacity.max(),
        "F": values["F"] * (1 + noise),
    }
    repaired = data.repair(spoiled)
    assert repaired is not None
    assert max(data.residuals(repaired).values()) < 1e-9
    assert float(repaired["F"]) <= F * (1 + 1e-6)
    if noise == 0.0:
        assert float(repaired["F"]) >= F * (1 - 1e-5)


def test_repair_of_circulations_loses_nothing():
    """A free circulation on unsaturated arcs, far larger than the flow, must not cost throughput."""
    slow, fast = [(0, 1), (1, 0)], [(1, 2), (2, 3), (3, 1), (2, 1), (3, 2), (1, 3)]
    arcs = slow + fast
    topology = Topology(4, [u for u, _ in arcs], [v for _, v in arcs], [1.0] * 2 + [100.0] * 6)
    data, F, values = solved("alltoall.master", topology)
    assert pytest.approx(1 / 3) == F
    wheel = np.isin(topology.tail * 4 + topology.head, [1 * 4 + 2, 2 * 4 + 3, 3 * 4 + 1])
    spun = {"g": values["g"] + 20.0 * wheel[:, None], "F": values["F"]}
    repaired = data.repair(spun)
    assert float(repaired["F"]) == pytest.approx(F, rel=1e-6)


def test_from_nothing_at_all_shortest_paths_are_a_flow():
    data, _, values = solved("alltoall.master", "ring:5")
    nothing = data.repair({"g": np.zeros_like(values["g"]), "F": np.asarray(0.0)})
    assert max(data.residuals(nothing).values()) < 1e-12


@relaxed
@given(st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_cancelling_cycles_keeps_net_flow_and_leaves_no_cycle(n, seed):
    import networkx as nx

    random = np.random.default_rng(seed)
    tail, head = np.nonzero(~np.eye(n, dtype=bool) & (random.random((n, n)) < 0.6))
    if not tail.size:
        return
    topology = Topology(n, tail, head)
    flow = random.integers(0, 4, size=tail.size) * random.choice([1.0, 0.3])
    before = topology.incidence() @ flow
    after = flow.copy()
    cancel_cycles(topology, after)
    assert (after >= 0).all()
    assert (after <= flow).all()
    np.testing.assert_allclose(topology.incidence() @ after, before, atol=1e-12)
    support = nx.DiGraph([(topology.tail[a], topology.head[a]) for a in np.flatnonzero(after > 1e-12)])
    assert nx.is_directed_acyclic_graph(support)


@pytest.mark.parametrize("spec", ["ring:8", "genkautz:n=12,d=4", "torus:3x4", "hypercube:2+host=1.5"])
def test_stripped_paths_are_paths_and_carry_the_flow(spec):
    data, F, values = solved("alltoall.master", spec)
    topology = data.topology
    total = np.zeros(topology.arcs)
    for i, source in enumerate(topology.terminals.tolist()):
        targets = np.delete(topology.terminals, i)
        result = strip_paths(topology, source, values["g"][:, i], targets, F)
        for target, paths in zip(targets, result, strict=True):
            assert sum(p.amount for p in paths) == pytest.approx(F, rel=1e-9)
            for path in paths:
                assert topology.tail[path.arcs[0]] == source
                assert topology.head[path.arcs[-1]] == target
                assert (topology.head[path.arcs[:-1]] == topology.tail[path.arcs[1:]]).all()
                assert len({*topology.tail[path.arcs].tolist(), int(target)}) == len(path.arcs) + 1
                total[path.arcs] += path.amount
    assert (total <= topology.capacity * (1 + 1e-7)).all()


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("alltoall.master", {}), ("alltoall.link-mcf", {}), ("alltoall.link-mcf", {"printed": True})],
)
def test_a_bound_by_its_name_is_that_of_the_list(name, parameters):
    data = formulation(name).prepare(parse("random-regular:n=10,d=3,seed=1"), parameters)
    listed = {bound.name: bound for bound in data.bounds()}
    parts = data._bound_parts()
    assert {one: parts[one]() for one in listed} == listed
    assert all(parts[one]() is None for one in parts.keys() - listed)


def test_stripping_a_flow_that_delivers_too_little_is_refused():
    topology = parse("path:3")
    with pytest.raises(BadInput, match="serves every target"):
        strip_paths(topology, 0, np.zeros(topology.arcs), np.array([1, 2]), 1.0)


@relaxed
@given(topologies(8), st.integers(0, 2**32 - 1))
def test_shortest_path_loads_add_up(topology, seed):
    """Load times length is demand times distance, and the two ways to the bound agree."""
    data = model.ConcurrentFlow.by_source(topology)
    lengths = np.random.default_rng(seed).random(topology.arcs) + 0.01
    value, load = ShortestTrees(data).bound_and_load(lengths)
    assert value == pytest.approx(data.length_bound(lengths), rel=1e-9)
    distance = data.distances(lengths)
    assert load @ lengths == pytest.approx(float((data.demand * distance).sum()), rel=1e-9)
