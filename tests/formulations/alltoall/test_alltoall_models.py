"""The all-to-all models: the two builds of each agree and reach known optima; the sink-inflow reading does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from case_families import each
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import SMALL, compiled, optimum, solved
from slow_cases import marked
from strategies import topologies

import opticoll as oc
from opticoll.errors import BadInput, NotApplicable
from opticoll.formulations import formulation
from opticoll.formulations.alltoall import child, link_mcf, master
from opticoll.instances import Topology, parse
from opticoll.solvers.compile.compilation import compile_model

FORMS = ("pyomo", "cvxpy")


CLOSED_FORMS = {
    "hypercube:2": 2,
    "hypercube:3": 4,
    "hypercube:4": 8,
    "bipartite:2x2": 3 - 2 / 2,
    "bipartite:3x3": 3 - 2 / 3,
    "bipartite:5x5": 3 - 2 / 5,
    "ring:5": 3,
    "ring:8": 8,
    "ring:9": 10,
    "ring:5,directed": 10,
    "ring:7,directed": 21,
    "torus:4x4": 8,
    "torus:4x6": 18,
    "complete:2": 1,
    "complete:6": 1,
    "path:4": 4,
    "path:5": 6,
    "wdm-ring:n=6,wavelengths=3": 4.5,
}


@each(("spec", "time"), CLOSED_FORMS.items())
def test_closed_forms(spec, time):
    assert 1 / solved("alltoall.master", spec)[1] == pytest.approx(time, rel=1e-7)
    if parse(spec).n <= 9:
        assert 1 / solved("alltoall.link-mcf", spec)[1] == pytest.approx(time, rel=1e-7)


@each(
    "spec",
    [
        *("hypercube:3", "bipartite:4x4", "bipartite:2x5", "ring:8", "ring:6,directed", "path:5", "star:5", "petersen"),
        *("torus:4x4", "torus:2x4", "torus:3x5", "torus:2x2x3", "torus:1x7", "mesh:3x4", "mesh:2x2x3", "mesh:5x2"),
        *("folded-hypercube:2", "folded-hypercube:3", "folded-hypercube:4", "slimfly:q=3"),
        *("twisted-torus:3x6", "twisted-torus:2x4,twist=2", "twisted-torus:2x2x4", "twisted-torus:4x4,twist=0"),
        "twisted-torus:1x13,twist=5",
    ],
)
def test_the_listed_closed_form_is_the_optimum(spec):
    model = formulation("alltoall.master")
    exact = [b for b in model.prepare(parse(spec)).bounds() if b.exact]
    assert len(exact) == 1
    assert exact[0].value == pytest.approx(solved("alltoall.master", spec)[1], rel=1e-8)


def test_no_closed_form_where_the_family_was_changed():
    model = formulation("alltoall.master")
    for spec in ("ring:8+fail=1", "hypercube:3+host=1.0", "ring:8+scale=2.0", "twisted-torus:3x4,twist=1"):
        assert not any(b.exact for b in model.prepare(parse(spec)).bounds()), spec


@pytest.mark.parametrize(
    "spec",
    [marked(spec, slow=place % 3 > 0) for place, spec in enumerate(spec for spec in SMALL if parse(spec).n <= 12)],
)
def test_link_mcf_is_master(spec):
    assert solved("alltoall.link-mcf", spec)[1] == pytest.approx(solved("alltoall.master", spec)[1], rel=1e-7)


@each("q", [3, 4, 5, 7, 8, 9, 11, 13])
def test_slim_fly_is_bounded_by_lengths_and_attains_them_by_equal_split(q):
    """As its docstring says: distances with length 1 between the halves, loads of equally split shortest paths."""
    topology = parse(f"slimfly:q={q}")
    between = (topology.tail < q * q) != (topology.head < q * q)
    data = formulation("alltoall.master").prepare(topology)
    assert data.flow.length_bound(between.astype(float)) == pytest.approx(1 / (3 * q - 2), rel=1e-12)
    loads = two_hop_loads(topology)
    assert loads[between] == pytest.approx(3 * q - 2, rel=1e-12)
    assert loads[~between].max() <= (3 * q - 2) * (1 + 1e-12)


@each("q", [2, 3, 4, 5, 7, 8])
def test_shortest_paths_of_polarfly_load_links_of_quadrics_most(q):
    topology = parse(f"polarfly:q={q}")
    quadric = topology.out_degree == q
    loads = two_hop_loads(topology)
    assert loads == pytest.approx(2 * q - 1 + (quadric[topology.tail] | quadric[topology.head]))


def two_hop_loads(topology):
    """Load of every arc where all pairs of distance 2 split equally over their paths of two arcs."""
    links = np.zeros((topology.n, topology.n))
    links[topology.tail, topology.head] = 1
    apart = links + np.eye(topology.n) == 0
    share = np.divide(apart, links @ links, out=np.zeros_like(links), where=apart)
    assert (links @ links)[apart].min() > 0
    return (1 + share @ links + links @ share)[topology.tail, topology.head]


def test_a_name_alone_proves_nothing():
    """A topology that calls itself a ring but has chords must not inherit the ring's optimum as a bound."""
    i = np.arange(8)
    chords = Topology(8, np.tile(i, 3), np.concatenate([(i + 1) % 8, (i - 1) % 8, (i + 4) % 8]), spec="ring:8")
    data, F, _ = solved("alltoall.master", chords)
    assert 8 * F > 1 + 1e-6
    assert all(bound.value >= F * (1 - 1e-9) and not bound.exact for bound in data.bounds())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("spec", "printed", "true"), [("path:4", 3, 4), ("ring:8", 6, 8)])
def test_the_printed_link_mcf_is_visibly_too_good(spec, printed, true, form):
    assert 1 / solved("alltoall.link-mcf", spec, form, printed=True)[1] == pytest.approx(printed, rel=1e-7)
    assert 1 / solved("alltoall.link-mcf", spec, form)[1] == pytest.approx(true, rel=1e-7)


def test_one_source_alone_can_be_faster_than_the_collective():
    """The master's balance is an inequality: its flow may bring more than F to a destination."""
    pair = Topology(2, [0, 1], [1, 0], [5.0, 1.0])
    g = np.array([[5.0, 0.0], [0.0, 1.0]])  # arc, source
    data = master.FORMULATION.prepare(pair)
    assert max(master.FORMULATION.residuals(data, {"g": g, "F": np.array(1.0)}).values()) <= 0
    flows = []
    for source in range(2):
        problem = child.FORMULATION.prepare(pair, {"source": source}, {"g": g})
        flows.append(optimum(compile_model(problem.pyomo()))[0])
        values = {"f": problem.flow.capacity[:, None], "F": np.array(flows[-1])}
        assert child.FORMULATION.links(problem, values).capacity.tolist() == [5.0, 1.0]
    assert flows == pytest.approx([5.0, 1.0])
    assert child.FORMULATION.metrics(problem, 5.0) == {"F_s": 5.0, "ranks": 2}


@settings(max_examples=10, deadline=None)
@given(topologies(most=5), st.integers(0, 2**32 - 1))
def test_children_of_an_optimal_master_attain_its_flow_together(topology, seed):
    """F_s >= F* for every source, and min F_s = F*, for a random one of the optimal solutions of the master."""
    model = formulation("alltoall.master")
    form = compile_model(model.prepare(topology).matrix())
    F = optimum(form)[0]
    fixed, column = form.col_lower.copy(), int(form.columns["F"].index[0])
    fixed[column] = F * (1 - 1e-9)
    cost = np.random.default_rng(seed).random(form.cost.size)  # any flow that attains F, with as much on top as fits
    _, x = optimum(replace(form, col_lower=fixed, cost=cost))
    flows = []
    for source in range(topology.num_ranks):
        problem = child.FORMULATION.prepare(topology, {"source": source}, form.values(x))
        flows.append(optimum(compile_model(problem.matrix()))[0])
    assert min(flows) == pytest.approx(F, rel=1e-6)
    assert max(flows) >= F * (1 - 1e-6)


@pytest.mark.parametrize(
    ("name", "chosen", "timed"),
    [
        ("alltoall.master", {}, True),
        ("alltoall.link-mcf", {}, True),
        ("alltoall.path-mcf", {}, True),
        ("alltoall.child", {"source": 1}, False),
        ("alltoall.link-mcf", {"printed": True}, False),
    ],
)
def test_T_is_the_time_of_the_whole_collective_or_not_given(name, chosen, timed):
    result = oc.solve(name, "path:4+unit=100Gb/s", shard="1MB", **chosen)
    assert ("T" in result.metrics, "T_s" in result.metrics) == (timed, timed)
    assert ("T" in result.summary()) == timed
    if timed:
        assert result.metrics["T"] == pytest.approx(4)
    else:
        with pytest.raises(BadInput, match=r"its solutions hold no routes|solve without printed=true"):
            result.schedule()


@pytest.mark.parametrize("spec", ["path:4", "genkautz:n=8,d=3"])
def test_sizes_are_as_the_docstrings_say(spec):
    topology = parse(spec)
    n, m = topology.n, topology.arcs
    assert compiled("alltoall.master", spec)[1].size["variables"] == n * m + 1
    assert compiled("alltoall.link-mcf", spec)[1].size["variables"] == n * (n - 1) * m + 1


@pytest.mark.parametrize("prepare", [module.FORMULATION.prepare for module in (master, link_mcf, child)])
@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("path:4+fail=1,seed=0", "disconnected"),
        (Topology(1, [], []), "at least 2"),
        ("servers:n=4,degree=2,traffic=alltoall", "needs a topology"),
    ],
)
def test_instances_that_have_no_all_to_all_are_refused(prepare, spec, word):
    with pytest.raises(NotApplicable, match=word):
        prepare(parse(spec) if isinstance(spec, str) else spec)


def test_a_child_of_no_rank_is_refused():
    with pytest.raises(NotApplicable, match=r"ranks are 0\.\.3"):
        child.FORMULATION.prepare(parse("path:4"), {"source": 4})


def test_host_bottleneck_binds_as_it_must():
    """A host of bandwidth B takes in N-1 shards and what it forwards: on a complete graph T = (N-1)/B."""
    for bandwidth in (0.5, 1.0, 2.0):
        F = solved("alltoall.master", f"complete:5+host={bandwidth}")[1]
        assert pytest.approx(4 / bandwidth, rel=1e-7) == 1 / F
    assert solved("alltoall.master", "complete:5+host=100.0")[1] == pytest.approx(1.0, rel=1e-7)
    # On a ring every relayed shard passes the host again: total hop count over N B.
    assert 1 / solved("alltoall.master", "ring:8+host=1.0")[1] == pytest.approx(16.0, rel=1e-7)


@pytest.mark.parametrize("spec", ["ring:5", "hypercube:3", "genkautz:n=7,d=3", "mesh:2x4"])
def test_every_child_attains_the_master(spec):
    data, form = compiled("alltoall.master", spec)
    F, x = optimum(form)
    g = form.values(x)
    for source in range(data.topology.num_ranks):
        problem = child.FORMULATION.prepare(data.topology, {"source": source}, g)
        form_child = compile_model(problem.cvxpy())
        assert optimum(form_child)[0] == pytest.approx(F, rel=1e-6)
