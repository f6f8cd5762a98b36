"""Any demand on ``alltoall.master``: one matrix, known optima, effects of scaling, files, paths, methods."""

from __future__ import annotations

import json
import os
from itertools import permutations

import numpy as np
import pytest
from case_families import each
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from reference import SMALL, optimum
from strategies import topologies
from weighted_path_checks import violations

import opticoll as oc
from opticoll.analysis.bounds.instance_bounds import bound_rows as instance_bounds
from opticoll.errors import BadFile, BadInput, BadOption, NotApplicable
from opticoll.formulations import formulation
from opticoll.formulations.alltoall.master import Master
from opticoll.formulations.flows import concurrent_flow as model
from opticoll.formulations.flows.flow_bounds import bounds
from opticoll.instances import Topology, parse
from opticoll.instances import demands as listed
from opticoll.instances.demands import DemandSpec, read_demand
from opticoll.instances.readers import reading
from opticoll.solvers import solve
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.flows.flow_orbits import find
from opticoll.solvers.methods.flows.pdhg_iteration import Saddle, TimeBounds
from opticoll.solvers.methods.flows.pdhg_kernels import Team
from opticoll.solvers.plan import make_plan
from opticoll.solvers.resume_key import resume_key
from opticoll.solvers.schedules import weighted_paths as wp
from opticoll.solvers.task import Task

NAME = "alltoall.master"
GENERATED = ("random:1", "gravity:2", "permutation:3", "longest-matching")
relaxed = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def data_of(topology, demand=None):
    """The master's data under a demand in words, or a matrix."""
    topology = parse(topology) if isinstance(topology, str) else topology
    if demand is None or isinstance(demand, str):
        return formulation(NAME).prepare(topology, {"demand": demand or "uniform"})
    return Master(model.ConcurrentFlow.by_source(topology, np.asarray(demand, dtype=float)))


def solved(data):
    form = compile_model(data.matrix())
    F, x = optimum(form)
    return F, form.values(x)


@st.composite
def cases(draw, most=6):
    """A strongly connected digraph with capacities and any demand on it, some of it zero."""
    topology = draw(topologies(most))
    n = topology.n
    value = st.sampled_from([0.0, 0.0, 0.125, 1.0, 3.0, 10.0])
    demand = np.array(draw(st.lists(value, min_size=n * n, max_size=n * n))).reshape(n, n)
    np.fill_diagonal(demand, 0.0)
    if not demand.any():
        demand[0, n - 1] = 1.0
    return topology, demand


# the model ----------------------------------------------------------------------------------------------------


@relaxed
@given(cases(), st.randoms(use_true_random=False), st.sampled_from([1e-3, 0.5, 7.0, 1e3]))
def test_what_changes_nothing_and_what_scales(case, random, factor):
    topology, demand = case
    F = solved(data_of(topology, demand))[0]
    order = list(range(topology.n))
    random.shuffle(order)
    back = np.argsort(order)
    assert solved(data_of(topology.relabelled(order), demand[np.ix_(back, back)]))[0] == pytest.approx(F, rel=1e-6)
    assert solved(data_of(topology.reversed(), demand.T))[0] == pytest.approx(F, rel=1e-6)
    assert solved(data_of(topology, factor * demand))[0] == pytest.approx(F / factor, rel=1e-6)
    assert solved(data_of(topology.scaled(factor), demand))[0] == pytest.approx(F * factor, rel=1e-6)


@pytest.mark.parametrize(
    ("spec", "demand"),
    [
        pytest.param(spec, demand, marks=[] if (s + d) % 4 == 0 else pytest.mark.slow)
        for s, spec in enumerate(SMALL)
        for d, demand in enumerate(GENERATED)
    ],
)
def test_every_analytic_bound_holds_on_every_family(spec, demand):
    data = data_of(spec, demand)
    F = solved(data)[0]
    result = bounds(data.flow)
    assert {bound.name for bound in result} == {"moore", "node-cut", "distance", "any-lengths", "sweep-cut"}
    assert all(F * (1 - 1e-7) <= bound.value < np.inf for bound in result)


def test_bounds_of_the_uniform_matrix_are_those_of_the_uniform_demand():
    """The general formulas give what those of the all-to-all do, number by number but for rounding."""
    spec = "genkautz:n=12,d=3+fail=2,seed=0"
    plain = {bound.name: bound.value for bound in bounds(data_of(spec).flow)}
    doubled = {bound.name: bound.value for bound in bounds(data_of(spec, 2.0 * (1.0 - np.eye(12))).flow)}
    assert plain.keys() == doubled.keys()
    for name, value in plain.items():
        assert 2 * doubled[name] == pytest.approx(value, rel=1e-9), name


def test_the_cut_around_a_hot_group_binds():
    """All of D crosses one arc: the sweep cut is the optimum."""
    demand = np.zeros((4, 4))
    demand[:2, 2:] = [[1.0, 2.0], [3.0, 4.0]]
    data = data_of("path:4", demand)
    assert solved(data)[0] == pytest.approx(0.1)
    assert next(b.value for b in bounds(data.flow) if b.name == "sweep-cut") == pytest.approx(0.1)
    assert data.metrics(0.1)["T"] == pytest.approx(10.0)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_an_unserved_small_demand_is_detected_beside_large_ones(size):
    demand = np.full((4, 4), size)
    demand[0, 2] = 1e-6
    np.fill_diagonal(demand, 0.0)
    data = data_of("complete:4", demand)
    _, values = solved(data)
    values = data.repair(values)
    assert max(data.residuals(values).values()) < 1e-9
    values["g"][(data.topology.head == 2), 0] = 0.0
    assert data.residuals(values)["balance"] > 0.5


def test_unreached_ranks_matter_only_where_something_is_sent(tmp_path):
    line = Topology(3, [0, 1], [1, 2], [1.0, 2.0])
    demand = np.zeros((3, 3))
    demand[0, 2] = demand[1, 2] = 1.0
    data = data_of(line, demand)
    assert solved(data)[0] == pytest.approx(1.0)
    assert np.isinf(data.topology.diameter)
    assert all(bound.value >= 1.0 - 1e-9 for bound in bounds(data.flow))
    file = tmp_path / "d.csv"
    np.savetxt(file, demand, delimiter=",")
    for method in ("certified-pdhg", "column-generation"):
        run = solve.solve(Task(NAME, line, method, settings={"demand": f"file:{file}"}))
        assert (run.verified, str(run.proof)) == (True, "optimal"), method
    demand[2, 0] = 1.0
    with pytest.raises(NotApplicable, match="no path from 2 to 0"):
        data_of(line, demand)


# methods ------------------------------------------------------------------------------------------------------


@relaxed
@given(cases(), st.sampled_from([1e-5, 1.0, 1e5]), st.booleans())
@example((parse("ring:4").scaled(2.0), np.diag([0.0, 0.0, 0.0, 1.0])[[3, 0, 1, 2]]), 1.0, True)  # one source
def test_pdhg_finds_what_simplex_does(case, unit, single):
    topology, demand = case
    data = data_of(topology, unit * demand)
    orbits = find(data.flow)
    F = solved(data_of(topology, demand))[0] / unit
    with Team(1) as team:
        kind = np.float32 if single else np.float64
        closing = TimeBounds(Saddle(orbits.reduced, team, kind, orbits), 1e-4, lambda: None, lambda _: None, 100_000)
        closing.run()
    assert closing.closed
    assert 1 / closing.upper <= F * (1 + 1e-7)
    assert 1 / closing.lower >= F * (1 - 1e-7)
    flows = orbits.lift(closing.flows / closing.upper / orbits.weight)
    assert max(data.residuals({"g": flows, "F": np.asarray(1 / closing.upper)}).values()) < 1e-9


METHODS = (
    "highs-simplex",
    "highs-ipx",
    "time-form",
    "certified-pdhg",
    "screened-lp",
    "orbit-lp",
    "column-generation",
    "certified-pdlp",
)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_proves_the_optimum(method):
    spec, demand = "genkautz:n=12,d=3", "gravity:1"
    run = solve.solve(Task(NAME, spec, method, settings={"demand": demand}))
    assert (run.verified, str(run.proof)) == (True, "optimal"), run.record["message"]
    assert run.objective == pytest.approx(solved(data_of(spec, demand))[0], rel=2e-6)
    assert run.record["settings"]["demand"] == demand
    assert run.record["metrics"]["shards"] == pytest.approx(132)


def test_symmetry_is_used_as_far_as_the_demand_has_it():
    n = 8
    circulant = np.array([[((v - s) % n) ** 2 for v in range(n)] for s in range(n)], dtype=float)
    two = circulant.copy()
    two[0, 1] += 1.0
    for demand, orbits_left in ((circulant, 1), (two, n)):
        data = data_of("ring:8,directed", demand)
        orbits = find(data.flow)
        assert orbits.representative.size == orbits_left
        assert find(data_of("ring:8").flow).representative.size == 1
    # A swap that keeps the ring but turns the demand round is no symmetry of both.
    data = data_of("ring:8", circulant)
    assert find(data.flow).representative.size == 1
    for generator in find(data.flow).arc_images:
        tail = data.topology.tail[generator]
        assert ((data.topology.head[generator] - tail) % n == (data.topology.head - data.topology.tail) % n).all()


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("alltoall.all-gather", "tree-packing"),
        ("alltoall.virtual-channels", "layer-assignment"),
        ("lumorph.min-overlap", "exact-routing"),
        ("alltoall.all-gather", "highs"),
    ],
)
def test_other_formulations_say_that_they_take_no_demand(name, method):
    with pytest.raises(BadOption, match="no setting 'demand'"):
        make_plan(Task(name, "ring:4", method, settings={"demand": "random:1"}))


# paths, schedules, documents ----------------------------------------------------------------------------------


@each("spec", ["genkautz:n=7,d=3", "hypercube:2+host=1.5", "torus:3x4"])
@each("demand", GENERATED)
def test_paths_carry_the_demand_of_every_pair(spec, demand):
    data = data_of(spec, demand)
    F, values = solved(data)
    paths = wp.from_flow(data.flow, values["g"])
    assert max(violations(data.flow, paths).values()) < 1e-9
    assert pytest.approx(F, rel=1e-6) == paths.F
    served, sources, targets = np.bincount(paths.paths.pair, paths.rate), paths.paths.sources, paths.paths.targets
    ends = data.topology.terminals
    wanted = read_demand(demand, data.topology, "test")
    at = np.searchsorted(ends, sources), np.searchsorted(ends, targets)
    np.testing.assert_allclose(served, paths.F * wanted[at], rtol=1e-8)
    assert sources.size == np.count_nonzero(wanted)
    twice = paths.rate.copy()
    twice[0] *= 2.0
    assert violations(data.flow, paths._replace(rate=twice))["rate"] > 1e-6
    sparse = not demand.startswith(("random", "gravity"))
    assert violations(data_of(spec).flow, paths)["commodities" if sparse else "rate"] > 1e-3


def test_solutions_are_checked_against_the_demand_asked_for(tmp_path):
    demand, file = tmp_path / "demand.csv", tmp_path / "solution.json"
    matrix = read_demand("random:4", parse("ring:5"), "test")
    matrix[3] = 0.0
    np.savetxt(demand, matrix, delimiter=",")
    result = oc.solve(NAME, "ring:5", demand=demand)
    result.save(file)
    assert result.metrics["sources"] == 4
    rows = instance_bounds("ring:5", NAME, {"demand": f"file:{demand}"})
    assert all(row["value"] >= result.objective * (1 - 1e-7) for row in rows)
    assert oc.check(NAME, "ring:5", file, demand=f"file:{demand}")["verified"]
    with pytest.raises(BadFile, match="demand=uniform was requested"):
        oc.check(NAME, "ring:5", file)
    np.savetxt(demand, matrix + np.eye(5, k=1), delimiter=",")
    with pytest.raises(BadFile, match="was requested"):  # the same name, other contents
        oc.check(NAME, "ring:5", file, demand=f"file:{demand}")
    document = json.loads(file.read_text())
    document["settings"]["demand"] = "uniform"
    file.write_text(json.dumps(document))
    with pytest.raises(BadFile):  # four sources where a uniform demand has five
        oc.check(NAME, "ring:5", file)


def test_programs_are_of_equal_shards(tmp_path):
    with pytest.raises(BadInput, match="equal shards"):
        oc.solve(NAME, "ring:5", demand="random").schedule().save(tmp_path / "s.xml")


# demands in words and files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("demand", GENERATED)
def test_generators_are_seeded_and_have_the_volume_of_the_uniform_demand(demand):
    topology = parse("torus:4x5")
    matrix = read_demand(demand, topology, "test")
    np.testing.assert_array_equal(matrix, read_demand(demand, topology, "test"))
    assert matrix.sum() == pytest.approx(20 * 19, rel=1e-5)
    assert not np.diagonal(matrix).any()
    assert (matrix >= 0).all()
    kind, colon, _ = demand.partition(":")
    if colon:
        assert (read_demand(f"{kind}:77", topology, "test") != matrix).any()
    if kind in ("permutation", "longest-matching"):
        assert (np.count_nonzero(matrix, axis=0) == 1).all()
        assert (np.count_nonzero(matrix, axis=1) == 1).all()
    if kind == "gravity":  # of rank one but for the diagonal
        minor = matrix[np.ix_([0, 1], [2, 3])]
        assert minor[0, 0] * minor[1, 1] == pytest.approx(minor[0, 1] * minor[1, 0])


@pytest.mark.parametrize("spec", ["mesh:2x3", "star:5", "genkautz:n=6,d=2"])
def test_the_longest_matching_is_the_longest(spec):
    topology = parse(spec)
    hops = topology.hops[:, topology.terminals]
    n = topology.num_ranks
    best = max(
        sum(hops[s, image[s]] for s in range(n))
        for image in permutations(range(n))
        if all(image[s] != s for s in range(n))
    )
    assert (read_demand("longest-matching", topology, "test") * hops).sum() == pytest.approx(best * (n - 1))


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".csv", "0, 1, 2.5\n# comment\n\n3,0,1e-3\n0,0,0\n"),
        (".txt", "0 1 2.5\n3 0 1e-3\n-0 0 0"),
        (".json", "[[0, 1, 2.5], [3, 0, 0.001], [0, 0, 0]]"),
        (".json", '{"demand": [[0,1,2.5],[3,0,1e-3],[0,0,0]]}'),
    ],
)
def test_demand_files(tmp_path, suffix, text):
    path = tmp_path / f"demand{suffix}"
    path.write_text(text)
    result = read_demand(f"file:{path}", parse("ring:3"), "test")
    np.testing.assert_array_equal(result, [[0, 1, 2.5], [3, 0, 1e-3], [0, 0, 0]])
    assert not np.signbit(result).any()


@each(
    ("suffix", "text", "word"),
    [
        (".csv", "", "is empty"),
        (".csv", "0,1\n1,0\n", "a matrix of 2x2 for the 3 ranks of ring:3"),
        (".csv", "0,1,1\n1,0,1\n", "line 1: 3 entries in a matrix of 2 rows"),
        (".csv", "0,1,1\n1,0,1\n1,1,0\n1,1,0\n", "line 1: 3 entries in a matrix of 4 rows"),
        (".csv", "0,1,1\n1,0,x\n1,1,0\n", "line 2, column 3: amount 'x' is unknown"),
        (".csv", "0,1,nan\n1,0,1\n1,1,0\n", "finite"),
        (".csv", "0,inf,1\n1,0,1\n1,1,0\n", "finite"),
        (".csv", "0,-1,1\n1,0,1\n1,1,0\n", "nonnegative"),
        (".csv", "0,1,1\n1,2,1\n1,1,0\n", "to itself"),
        (".csv", "0,0,0\n0,0,0\n0,0,0\n", "no rank sends"),
        (".csv", "0,1e16,1e9\n1e9,0,1e9\n1e9,1e9,0\n", "another unit"),
        (".csv", "0,1e-9,1\n1,0,1\n1,1,0\n", "another unit"),
        (".csv", "0,1e999,1\n1,0,1\n1,1,0\n", "finite"),
        (".csv", "0,1e9,1\n1,0,1e-5\n1,1,0\n", "apart"),
        (".json", "{", "not valid JSON"),
        (".json", "3", "demand must be a list, not a whole number"),
        (".json", "[[0,1],[1,0]]", "a matrix of 2x2 for the 3 ranks of ring:3"),
        (".json", "[[0,1,1],[1,0,1],[1,1]]", "row 3: 2 entries in a matrix of 3 rows"),
        (".json", "[[0,1,true],[1,0,1],[1,1,0]]", r"demand\[0\]\[2\] must be a number, not true or false"),
        (".json", '[[0,1,"1"],[1,0,1],[1,1,0]]', r"demand\[0\]\[2\]"),
        (".json", "[" * 10_000, "not valid JSON"),
        (".json", "[[0,1,NaN],[1,0,1],[1,1,0]]", "NaN is not"),
        (".json", '{"matrix": []}', "unknown field 'matrix'; known: demand"),
        (".json", f"[[0,1,1{'0' * 400}],[1,0,1],[1,1,0]]", "in the range of floating-point numbers"),
        (".json", "[[0,1,[1]],[1,0,1],[1,1,0]]", r"demand\[0\]\[2\]"),
    ],
)
def test_bad_demand_files_are_refused(tmp_path, suffix, text, word):
    path = tmp_path / f"demand{suffix}"
    path.write_text(text)
    with pytest.raises(BadFile, match=word):
        solve.solve(Task(NAME, "ring:3", settings={"demand": f"file:{path}"}))


def test_files_that_cannot_be_read_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "demand.csv"
    path.write_bytes(b"\xff\xfe0,1")
    os.mkfifo(tmp_path / "pipe.csv")
    for where, word in (
        (path, "UTF-8"),
        (tmp_path / "none.csv", "No such file"),
        (tmp_path, "directory"),
        (tmp_path / "pipe.csv", "not a regular file"),
        ("\0", "not a path"),
    ):
        with pytest.raises(BadFile, match=word):
            data_of("ring:3", f"file:{where}")
    path.write_text("0,1,1\n1,0,1\n1,1,0\n")
    monkeypatch.setattr(reading, "MOST_PINNED", 5)
    with pytest.raises(BadFile, match="18 bytes"):
        data_of("ring:3", f"file:{path}")
    monkeypatch.setattr(listed, "MAX_RANKS", 2)
    with pytest.raises(BadInput, match="too large"):
        data_of("ring:3", "random:1")


@each(
    "text",
    [
        "some",
        "",
        "file:",
        "random:x",
        "random:-1",
        "random:1.5",
        "random:9999999999",
        "uniform:1",
        "longest-matching:2",
        "random:٣x",
        "gravity:seed=1",
    ],
)
def test_unknown_demands_are_refused(text):
    with pytest.raises(BadInput):
        make_plan(Task(NAME, "ring:4", settings={"demand": text}))


def test_one_spelling_makes_one_key_and_a_changed_file_another(tmp_path):
    def key(demand):
        return resume_key(Task(NAME, "ring:4", settings={} if demand is None else {"demand": demand}))

    assert key("random") == key("random:0") == key(" random:00 ") != key("random:1")
    assert key(None) == key("uniform")
    path = tmp_path / "demand.csv"
    np.savetxt(path, np.ones((4, 4)) - np.eye(4), delimiter=",")
    before, pinned = key(f"file:{path}"), DemandSpec(f"file:{path}")
    assert key(pinned) == before
    np.savetxt(path, 2 * np.ones((4, 4)) - 2 * np.eye(4), delimiter=",")
    assert key(f"file:{path}") != before
    with pytest.raises(BadFile, match="has changed"):
        data_of("ring:4", pinned)


def test_a_path_is_a_demand(tmp_path):
    (tmp_path / "traffic.csv").write_text("src,dst,bytes\n0,1,3\n1,2,1\n")
    asked = tmp_path / "traffic.csv"
    given = oc.solve(NAME, "ring:3", demand=asked)
    assert given.objective == pytest.approx(oc.solve(NAME, "ring:3", demand=f"file:{asked}").objective, rel=1e-9)


@pytest.mark.parametrize("spec", ["ring:5", "dgx1", "torus:3x3+host=2.0", "sp-expander:n=16,d=4,seed=1"])
def test_the_uniform_demand_is_filled_in_blocks(spec, monkeypatch):
    topology = parse(spec)
    monkeypatch.setattr(model, "CHECK_ENTRIES", 7)
    data, ranks = model.ConcurrentFlow.by_source(topology), topology.terminals
    demand = np.zeros((topology.n, ranks.size))
    demand[ranks] = 1 - np.eye(ranks.size)
    assert (data.demand == demand).all()
    assert (data.blocked == (topology.head[:, None] == ranks)).all()


@pytest.mark.parametrize("name", [NAME, "alltoall.link-mcf", "alltoall.min-congestion"])
def test_terabytes_in_bytes_are_served_and_proven(name):
    small, large = ({("a", "b"): 2.0 * unit, ("b", "c"): 1.0 * unit} for unit in (1.0, 1e13))
    network = oc.topology([("a", "b", 1.0), ("b", "c", 2.0), ("c", "a", 1.0)], directed=False)
    one, other = (oc.solve(name, network, demand=demand) for demand in (small, large))
    assert other.proof == one.proof == "optimal"
    assert other.metrics["T"] == pytest.approx(1e13 * one.metrics["T"], rel=1e-6)


@pytest.mark.parametrize("name", ["alltoall.link-mcf", "alltoall.min-congestion"])
def test_pairs_of_ranks_that_no_memory_holds_are_refused_before_they_are_listed(name):
    with pytest.raises(oc.NotApplicable, match=r"27,000 ranks have too many pairs to list; solve alltoall\.master"):
        oc.solve(name, "torus:30x30x30", method="highs")
