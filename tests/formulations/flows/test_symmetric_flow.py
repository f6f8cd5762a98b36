"""Flows given by one source of each orbit: checked without the others, made when asked for, refused when mutated."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from case_families import each
from reference import optimum

import opticoll as oc
from opticoll.analysis.store import Store
from opticoll.errors import NoSolution
from opticoll.formulations import formulation
from opticoll.formulations.flows import concurrent_flow as model
from opticoll.formulations.flows.flow_checks import flow_residuals, repaired_flow
from opticoll.formulations.flows.symmetric_flow import SymmetricFlow, from_parts, in_parts
from opticoll.formulations.variables import is_finite, stored
from opticoll.instances import Topology, parse
from opticoll.instances.symmetry import diameter, orbits_of
from opticoll.solvers import solve
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.flows import flow_orbits as reduction
from opticoll.solvers.task import Proof, Task

SPECS = (
    "torus:3x5",
    "torus:2x3x4",
    "circulant:n=12,offsets=1x3x6",
    "circulant:n=11,offsets=1x2,directed",
    "hypercube:4",
    "mesh:3x4",
    "bipartite:2x3",
    "genkautz:n=20,d=4",
    "torus:3x4+host=1.5",
    "torus:4x4+fail=1,seed=0",
)


def data_of(spec, **parameters):
    return formulation("alltoall.master").prepare(parse(spec) if isinstance(spec, str) else spec, parameters).flow


def solved(spec):
    """A problem, an optimal flow of it by orbits, and its F."""
    data = data_of(spec)
    orbits = reduction.find(data)
    form = compile_model(reduction.model(orbits))
    T, x = optimum(form)
    return data, orbits.symmetric(orbits.settle(form.values(x)["y"].copy()) / T), 1.0 / T


def worst(data, flow, F):
    return flow_residuals(data, flow, F)


@each("spec", SPECS)
def test_the_check_of_one_source_is_that_of_all(spec):
    data, flow, F = solved(spec)
    whole = np.asarray(flow)
    assert whole.shape == flow.shape == (data.topology.arcs, data.groups)
    np.testing.assert_allclose(whole.sum(axis=1), flow.load, rtol=1e-12)
    assert max(worst(data, flow, F).values()) < 1e-9
    for stated in (F, 1.25 * F):  # 1.25: too little is delivered
        few, all_ = worst(data, flow, stated), worst(data, whole, stated)
        assert few.keys() == all_.keys()
        assert list(few.values()) == pytest.approx(list(all_.values()), abs=1e-12)
    thin = replace(data, capacity=0.75 * data.capacity)
    assert worst(thin, flow, F)["capacity"] == pytest.approx(worst(thin, whole, F)["capacity"])
    assert worst(thin, flow, F)["capacity"] > 0.1


def group_of(flow):
    """All elements of the group, as images of vertices and arcs, by closing the generators under products."""
    gens = list(zip(flow.vertices, flow.arcs, strict=True))
    start = (np.arange(flow.vertices.shape[1]), np.arange(flow.shape[0]))
    found, todo = {start[0].tobytes(): start}, [start]
    while todo:
        vertices, arcs = todo.pop()
        for v, a in gens:
            one = (v[vertices], a[arcs])
            if one[0].tobytes() not in found:
                found[one[0].tobytes()] = one
                todo.append(one)
    return list(found.values())


@pytest.mark.parametrize("spec", ["torus:3x3", "circulant:n=9,offsets=1x2", "mesh:3x3", "bipartite:2x3"])
def test_a_flow_stands_for_its_mean_over_the_group(spec):
    """Also a flow that the stabiliser changes: one shortest-path tree."""
    data = data_of(spec)
    orbits = reduction.find(data)
    tree = np.full((data.topology.arcs, orbits.representative.size), 0.5)
    tree[np.random.default_rng(3).random(tree.shape) < 0.6] = 0.0
    unit = repaired_flow(orbits.reduced, {"g": tree}, "g")
    flow = orbits.symmetric(unit["g"] / unit["F"] / orbits.weight)
    mean, times = np.zeros(flow.shape), np.zeros(data.groups)
    place = {vertex: k for k, vertex in enumerate(data.sources.tolist())}
    for vertices, arcs in group_of(flow):
        for r, root in enumerate(orbits.representative.tolist()):
            k = place[int(vertices[data.sources[root]])]
            mean[arcs, k] += flow.flows[:, r]
            times[k] += 1
    mean /= times
    np.testing.assert_allclose(mean.sum(axis=1), flow.load, rtol=1e-12)
    F = float((data.capacity / flow.load).min())
    for one in (flow, mean):
        scaled = replace(flow, flows=flow.flows * F) if one is flow else mean * F
        assert max(worst(data, scaled, F).values()) < 1e-9
        assert worst(data, scaled, 1.01 * F)["balance"] > 1e-3


def test_a_flow_that_is_not_invariant_cannot_be_made():
    data, flow, _ = solved("torus:3x3")
    shift = np.zeros((data.topology.arcs, 1))
    shift[np.flatnonzero(data.topology.tail == data.sources[0])[0]] = 0.1
    with pytest.raises(NoSolution, match="not invariant"):
        np.asarray(replace(flow, flows=flow.flows + shift))


def test_mutations_are_refused():
    data, flow, F = solved("torus:3x4")
    swapped, crossed = flow.vertices.copy(), flow.arcs.copy()
    swapped[0, [0, 1]] = swapped[0, [1, 0]]
    crossed[0, [0, 1]] = crossed[0, [1, 0]]
    repeated = flow.arcs.copy()
    repeated[0, 0] = repeated[0, 1]
    mutants = [
        replace(flow, vertices=swapped),
        replace(flow, arcs=crossed),
        replace(flow, arcs=repeated),
        replace(flow, arcs=flow.arcs[:1]),
        replace(flow, vertices=flow.vertices[:, :-1]),
        replace(flow, sources=flow.sources[::-1]),
        replace(flow, flows=np.hstack([flow.flows, flow.flows])),
        replace(flow, vertices=flow.vertices[:0], arcs=flow.arcs[:0]),  # without symmetry, eleven sources have no flow
    ]
    for mutant in mutants:
        assert worst(data, mutant, F)["symmetry"] == np.inf
    for change in (-0.1, 0.1):
        flows = flow.flows.copy()
        flows[np.argmax(flows)] += change * F
        assert max(worst(data, replace(flow, flows=flows), F).values()) > 1e-3
    flows = flow.flows.copy()
    flows[0, 0] = np.nan
    assert not is_finite(replace(flow, flows=flows))
    wide = data.capacity.copy()
    wide[3] = 2.0
    assert worst(replace(data, capacity=wide), flow, F)["symmetry"] == np.inf
    demand = data.demand.copy()
    demand[3, 0] = 0.5
    assert worst(replace(data, amounts=demand), flow, F)["symmetry"] == np.inf
    barred = data.blocked.copy()
    barred[np.flatnonzero(~barred[:, 0])[0], 0] = True
    assert worst(replace(data, barred=barred), flow, F)["symmetry"] == np.inf
    other = Topology(12, data.topology.tail, data.topology.head, terminals=range(11))
    assert worst(data_of(other), flow, F)["symmetry"] == np.inf


def test_what_is_not_stored_is_what_would_be():
    for spec in ("torus:3x4", "ring:5+host=0.5", "genkautz:n=12,d=3"):
        data = data_of(spec)
        ends = data.topology.terminals
        demand = np.zeros((data.topology.n, ends.size))
        demand[ends] = 1.0 - np.eye(ends.size)
        given = data_of(spec)
        given = replace(given, amounts=demand, barred=data.topology.head[:, None] == ends[None, :])
        for name in ("demand", "blocked", "served", "traffic", "uniform", "amount_range"):
            np.testing.assert_array_equal(getattr(data, name), getattr(given, name))
        some = np.array([2, 0])
        for method in ("demand_of", "blocked_of", "served_of"):
            np.testing.assert_array_equal(getattr(data, method)(some), getattr(given, method)(some))


@pytest.mark.parametrize("spec", ["torus:3x5", "genkautz:n=20,d=4", "mesh:3x4", "ring:5+host=0.5"])
def test_lengths_are_bounded_on_one_source_of_each_orbit(spec, monkeypatch):
    data = data_of(spec)
    by_orbit = np.random.default_rng(1).random(data.topology.arcs)[reduction.find(data).arc_orbit]
    uneven = np.random.default_rng(2).random(data.topology.arcs)
    expected = [data.length_bound(one) for one in (by_orbit, uneven, np.ones(data.topology.arcs))]
    asked = []
    original = model.ConcurrentFlow._distances
    monkeypatch.setattr(model, "MANY_VERTICES", 0)
    monkeypatch.setattr(
        model.ConcurrentFlow, "_distances", lambda *given: asked.append(given[2].size) or original(*given)
    )
    found = [data.length_bound(one) for one in (by_orbit, uneven, np.ones(data.topology.arcs))]
    assert found == pytest.approx(expected, rel=1e-14)
    assert data.hop_sum() == data.topology.hops[:, data.topology.terminals].sum()
    assert asked[0] == asked[2] < data.groups == asked[1]


@pytest.mark.parametrize("spec", ["torus:11x11x11+fail=2,seed=1", "genkautz:n=1100,d=4+host=2.0"])
def test_the_diameter_is_that_of_all_terminals(spec):
    topology = parse(spec)
    found = diameter(topology)
    assert found == topology.diameter
    assert spec != "torus:11x11x11" or found == 15


@pytest.mark.parametrize(
    "spec", ["torus:3x5", "torus:2x3x4", "hypercube:4", "circulant:n=16,offsets=1x6", "slimfly:q=4"]
)
def test_random_elements_generate_the_stabiliser(spec):
    """Schreier's lemma: the t_(g s)^-1 g t_s generate it, for generators g and t_s that take the first group to s."""
    found = reduction.find(data_of(spec))
    n, m = found.data.topology.n, found.data.topology.arcs
    generators = np.hstack([found.vertex_images, n + found.arc_images])
    for root, arc_class in zip(found.representative.tolist(), found.arc_class, strict=True):
        start = int(found.data.sources[root])
        to, reached = {start: np.arange(n + m)}, [start]
        for s in reached:
            for g in generators:
                if int(g[s]) not in to:
                    to[int(g[s])] = g[to[s]]
                    reached.append(int(g[s]))
        fixing = np.array([np.argsort(to[int(g[s])])[g[to[s]]] for g in generators for s in reached])
        assert (fixing[:, start] == start).all()
        assert (orbits_of(fixing[:, n:] - n, m) == (np.arange(m) if arc_class is None else arc_class)).all()


# Through the runner


def test_it_is_stored_and_sent_in_parts(tmp_path):
    run = solve.solve(Task("alltoall.master", "torus:5x5", method="orbit-lp"))
    flow = stored(run.values)["g"]
    assert isinstance(flow, SymmetricFlow)
    store = Store(tmp_path)
    values, duals = store.solution(store.save(run))
    assert isinstance(stored(values)["g"], SymmetricFlow)
    assert duals.keys() == run.duals.keys()
    for name in ("g", "F"):
        assert type(values[name]) is type(run.values[name]) is np.ndarray
        np.testing.assert_array_equal(values[name], run.values[name])
    again = from_parts(in_parts({"g": flow}))["g"]
    assert all(np.array_equal(getattr(again, one.name), getattr(flow, one.name)) for one in fields(flow))


def test_a_result_makes_the_flow_when_asked():
    result = oc.solve("alltoall.master", "torus:6x6x6", method="orbit-lp")
    assert result.link_loads()["utilisation"].to_numpy() == pytest.approx(1.0)
    assert isinstance(stored(result.values)["g"], SymmetricFlow)
    assert result.values["g"].shape == (6 * 216, 216)
    assert max(result.check().values()) < 1e-9


def test_a_torus_of_1728_ranks_has_its_closed_form():
    """T = n^4 / 8 hops over 3 n^3 links each way: n^4 / 8 for even n."""
    run = solve.solve(Task("alltoall.master", "torus:12x12x12"))
    assert (run.record.method, run.proof) == ("orbit-lp", Proof.OPTIMAL)
    assert run.objective == pytest.approx(8 / 12**4, rel=1e-9)
    assert stored(run.values)["g"].flows.shape == (6 * 1728, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "time"),
    [("torus:32x32x32", 32**4 / 8), ("hypercube:14", 2.0**13), ("circulant:n=4096,offsets=1x64", 2.0**15)],
)
def test_pods_of_tens_of_thousands(spec, time):
    run = solve.solve(Task("alltoall.master", spec))
    assert (run.record.method, run.proof) == ("orbit-lp", Proof.OPTIMAL)
    assert 1 / run.objective == pytest.approx(time, rel=1e-9)
    assert run.record.peak_memory_mb < 2000


@pytest.mark.slow
def test_the_largest_digraphs_fit_into_little_memory():
    """GK(4096,4): 67 million flows, of which those of 187 sources are solved, sent and checked."""
    run = solve.solve(Task("alltoall.master", "genkautz:n=4096,d=4", tol=1e-2, memory_limit_gib=1.0))
    assert (run.record.method, run.proof) == ("certified-pdhg", Proof.OPTIMAL)
    assert run.record.metrics["source_orbits"] == 187
    assert run.record.peak_memory_mb < 1000
