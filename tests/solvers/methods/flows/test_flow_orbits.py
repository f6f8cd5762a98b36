"""Automorphisms are verified; reductions to orbits keep the optimum and lift to feasible flows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from case_families import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import MEDIUM, SMALL, optimum
from strategies import topologies

from opticoll.formulations import formulation
from opticoll.formulations.flows.flow_bounds import closed_form
from opticoll.formulations.flows.flow_checks import flow_matrix, flow_residuals
from opticoll.instances import Topology, parse
from opticoll.instances.symmetry import arc_image, automorphisms, orbits_of
from opticoll.solvers import solve
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.flows import flow_orbits as reduction
from opticoll.solvers.plan import make_plan
from opticoll.solvers.task import Proof, Task

relaxed = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])

#: Vertex-transitive networks, uneven ones among them: several orbits of arcs, jumps that matter differently.
TRANSITIVE = (
    "torus:3x5",
    "torus:2x3x4",
    "torus:4x6",
    "circulant:n=12,offsets=1x5",
    "circulant:n=12,offsets=1x3x6",
    "circulant:n=11,offsets=1x2,directed",
    "circulant:n=16,offsets=1x6",
    "bipartite:5x5",
    "hypercube:4",
    "kautz:d=3,D=2",
    "slimfly:q=4",
    "ring:9,directed",
    "torus:3x4+host=1.5",
    "torus:4x4+scale=0.25",
)


def data_of(spec):
    return formulation("alltoall.master").prepare(parse(spec) if isinstance(spec, str) else spec, {}).flow


def generators(topology, **more):
    vertices, arcs = automorphisms(topology, **more)
    return vertices, arcs


def solved(data):
    """Reduced optimum, and its lifted flow: the orbits, T*, g."""
    orbits = reduction.find(data)
    form = compile_model(reduction.model(orbits))
    T, x = optimum(form)
    return orbits, T, orbits.lift(orbits.settle(form.values(x)["y"].copy()))


def assert_reduces(data):
    """The reduced model has the optimum of the full model, and its lifted flow is feasible."""
    F, _ = optimum(compile_model(flow_matrix(data, "g")))
    orbits, T, flow = solved(data)
    assert pytest.approx(F, rel=1e-8) == 1.0 / T
    assert max(flow_residuals(data, flow / T, 1.0 / T).values()) < 1e-9
    return orbits


@pytest.mark.parametrize(
    "spec",
    [
        *SMALL,
        *(spec for spec in TRANSITIVE if spec != "slimfly:q=4"),
        *(pytest.param(spec, marks=pytest.mark.slow) for spec in ("slimfly:q=4", *MEDIUM)),
    ],
)
def test_the_reduction_keeps_the_optimum(spec):
    assert_reduces(data_of(spec))


@each("spec", [*TRANSITIVE, "petersen", "complete:6", "slimfly:q=5"])
def test_vertex_transitive_networks_have_one_source(spec):
    orbits = reduction.find(data_of(spec))
    assert orbits.representative.size == 1
    assert orbits.weight.tolist() == [orbits.data.groups]


@each(
    ("spec", "sources", "arcs"),
    [
        ("torus:4x4", 1, 1),
        ("torus:3x5", 1, 2),
        ("torus:3x4x5", 1, 3),
        ("circulant:n=20,offsets=1x6", 1, 2),  # no unit takes 1 to 6
        ("circulant:n=13,offsets=1x5", 1, 1),  # 5 * 5 = -1 mod 13
        ("mesh:3x3", 3, 4),
        ("path:5", 3, 4),
        ("bipartite:2x3", 2, 2),
        ("genkautz:n=100,d=4", 10, 40),  # shifts by 20 and the reflection
        ("genkautz:n=64,d=4", 5, 14),  # de Bruijn words of 3 and of 4 letters up to renaming, without the loop
        ("hypercube:3+host=1.0", 1, 3),
    ],
)
def test_numbers_of_orbits(spec, sources, arcs):
    topology = parse(spec)
    vertices, moved = generators(topology, searched=False)
    assert np.unique(orbits_of(vertices, topology.n)[topology.terminals]).size == sources
    assert orbits_of(moved, topology.arcs).max() + 1 == arcs


@each("spec", [*SMALL, *TRANSITIVE, "genkautz:n=64,d=4", "genkautz:n=100,d=4"])
def test_every_generator_is_an_automorphism(spec):
    topology = parse(spec)
    vertices, arcs = generators(topology)
    ends = sorted(zip(topology.tail, topology.head, topology.capacity, strict=True))
    for image, moved in zip(vertices, arcs, strict=True):
        assert sorted(zip(image[topology.tail], image[topology.head], topology.capacity, strict=True)) == ends
        assert np.array_equal(topology.tail[moved], image[topology.tail])
        assert np.array_equal(topology.head[moved], image[topology.head])
        assert np.array_equal(topology.capacity[moved], topology.capacity)
        assert np.array_equal(np.sort(image[topology.terminals]), topology.terminals)


def test_proposals_of_a_family_are_verified():
    """A ring with a chord, a torus with one wider link and a hypercube with relays, under the specs of the families."""
    ring, torus, cube = parse("ring:8"), parse("torus:4x4"), parse("hypercube:3")
    chord = Topology(8, [*ring.tail, 0, 3], [*ring.head, 3, 0], spec="ring:8", parameters=ring.parameters)
    wide = Topology(
        16,
        torus.tail,
        torus.head,
        np.where(np.arange(torus.arcs) == 5, 2.0, 1.0),
        spec="torus:4x4",
        parameters=torus.parameters,
    )
    relay = Topology(8, cube.tail, cube.head, terminals=[0, 1, 2], spec="hypercube:3", parameters=cube.parameters)
    for changed, original in ((chord, ring), (wide, torus), (relay, cube)):
        orbits = assert_reduces(data_of(changed))
        assert orbits.representative.size > 1
        assert reduction.find(data_of(original)).representative.size == 1


def test_automorphisms_after_a_failed_link():
    """Exactly the stabiliser of the failed link remains."""
    whole, broken = (reduction.find(data_of(spec)) for spec in ("torus:4x4", "torus:4x4+fail=1,seed=0"))
    assert whole.representative.size == 1
    assert 1 < broken.representative.size < 16
    assert_reduces(data_of("torus:4x4+fail=1,seed=0"))
    assert reduction.find(data_of("genkautz:n=60,d=4+fail=5,seed=0")).trivial


def test_graphs_without_a_family_are_searched():
    hidden = parse("torus:3x4").relabelled(np.random.default_rng(0).permutation(12))
    assert hidden.spec.startswith("custom:")
    orbits = assert_reduces(data_of(hidden))
    assert orbits.representative.size == 1
    assert reduction.find(data_of(parse("petersen").reversed())).representative.size == 1


def test_wrong_images_are_refused():
    topology = parse("torus:3x3")
    shift = np.roll(np.arange(9).reshape(3, 3), 1, axis=0).ravel()
    assert arc_image(topology, shift) is not None
    swapped = shift.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    for wrong in (swapped, np.zeros(9, dtype=np.int64), np.arange(8), np.arange(9) + 1):
        assert arc_image(topology, wrong) is None


def test_equal_parallel_arcs_compose():
    """Images of arcs compose like images of vertices, also for equal parallel arcs."""
    tail, head = [0, 0, 1, 1, 2, 2], [1, 1, 2, 2, 0, 0]
    topology = Topology(3, tail, head)
    one = arc_image(topology, np.array([1, 2, 0]))
    two = arc_image(topology, np.array([2, 0, 1]))
    assert np.array_equal(one[one], two)


def test_demands_must_be_symmetric_as_well():
    data = data_of("torus:4x4")
    demand = data.demand.copy()
    demand[3, 0] = 5.0
    orbits = assert_reduces(replace(data, amounts=demand))
    assert orbits.representative.size > 1
    doubled = assert_reduces(replace(data, amounts=2.0 * data.demand))
    assert doubled.representative.size == 1


@st.composite
def cayley(draw):
    """A circulant digraph with capacities by jump, under any numbering."""
    n = draw(st.integers(3, 10))
    jumps = draw(st.lists(st.integers(1, n - 1), min_size=1, max_size=3, unique=True))
    jumps = [1, *(j for j in jumps if j != 1)]
    capacity = [draw(st.sampled_from([0.5, 1.0, 3.0])) for _ in jumps]
    nodes = np.arange(n)
    tail, head = np.tile(nodes, len(jumps)), np.concatenate([(nodes + j) % n for j in jumps])
    topology = Topology(n, tail, head, np.repeat(capacity, n))
    return topology.relabelled(draw(st.permutations(range(n))))


@relaxed
@given(cayley())
def test_any_circulant_under_any_numbering(topology):
    assert_reduces(data_of(topology))


@relaxed
@given(topologies(9, [1.0, 2.0], relays=True))
def test_any_graph(topology):
    assert_reduces(data_of(topology))


def test_folding_is_a_mean_over_orbits():
    orbits = reduction.find(data_of("circulant:n=12,offsets=1x3"))
    load = np.random.default_rng(0).random(orbits.data.topology.arcs)
    folded = orbits.fold(load)
    assert folded.sum() == pytest.approx(load.sum())
    np.testing.assert_allclose(folded[orbits.arc_images[0]], folded)


# Through the runner


@pytest.mark.parametrize(
    "spec", ["torus:6x6x6", "circulant:n=100,offsets=1x7x31", "genkautz:n=80,d=4", "bipartite:12x12"]
)
def test_the_runner_certifies_orbit_lp(spec):
    run = solve.solve(Task("alltoall.master", spec, method="orbit-lp"))
    assert run.proof == Proof.OPTIMAL
    assert run.record["gap"] <= 1e-6
    assert run.record["bound_source"] == "any-lengths"
    known = closed_form(parse(spec))
    assert known is None or run.objective == pytest.approx(known.value, rel=1e-9)


def test_auto_selects_orbit_lp_for_a_single_source():
    def chosen(spec, **more):
        return make_plan(Task("alltoall.master", spec, **more)).method_name

    assert chosen("torus:12x12") == "orbit-lp"
    assert chosen("torus:12x12", form="cvxpy") == "time-form"
    assert chosen("torus:12x12+fail=3,seed=0") == "certified-pdhg"
    assert chosen("torus:12x12+fail=3,seed=0", tol=9e-7) == "screened-lp"
    assert chosen("genkautz:n=144,d=4") == "screened-lp"
    assert chosen("torus:9x9+fail=3,seed=0") == "time-form"
    assert chosen("torus:8x8") == "time-form"
    assert chosen("torus:3x3") == "highs-simplex"


@pytest.mark.slow
def test_a_pod_of_4096():
    run = solve.solve(Task("alltoall.master", "torus:16x16x16"))
    assert run.proof == Proof.OPTIMAL
    assert run.record["method"] == "orbit-lp"
    assert run.objective == pytest.approx(1 / 8192, rel=1e-9)
    assert run.record["gap"] <= 1e-9


@each(
    ("spec", "time"),
    {
        "torus:4x4x8": "128",
        "twisted-torus:4x4x8": "220/3",
        "twisted-torus:4x4x8,twist=3x4": "72",
        "torus:4x8x8": "256",
        "twisted-torus:4x8x8": "184",
        "twisted-torus:4x8x8,twist=4x0": "256",
        "twisted-torus:4x8x8,twist=0x4": "256",
        "polarfly:q=5": "19/2",
        "slimfly:q=11": "31",
    }.items(),
)
def test_twisted_slices_and_finite_geometries_have_their_published_times(spec, time):
    """By linear programs of somebody else."""
    run = solve.solve(Task("alltoall.master", spec))
    assert run.proof is Proof.OPTIMAL
    assert 1 / run.objective == pytest.approx(float(Fraction(time)), rel=1e-7)
    known = closed_form(parse(spec))
    arcs_differ = spec == "polarfly:q=5" or spec.partition("twist=")[2] in {"3x4", "4x0", "0x4"}
    assert (known is None) == arcs_differ
    assert known is None or known.fraction == 1 / Fraction(time)
