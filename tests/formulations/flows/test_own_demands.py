"""Demands on every all-to-all formulation: an independent LP, closed forms, bounds, schedules, data in memory."""

from __future__ import annotations

import json
import pickle
from contextlib import ExitStack
from itertools import product

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from case_families import each
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import flow_time, simple_paths, solved

import opticoll as oc
from opticoll.analysis.bounds.instance_bounds import bound_rows as instance_bounds
from opticoll.analysis.cli.main import cli
from opticoll.analysis.store import Store
from opticoll.analysis.study.cells import CellJob, attempt, record_attempt, run_cell
from opticoll.analysis.study.study_file import Cell
from opticoll.errors import BadInput, ModelError
from opticoll.formulations import formulation
from opticoll.formulations.alltoall.master import Master
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.flows.flow_bounds import sweep_cut_bound
from opticoll.instances import Topology, parse
from opticoll.instances.demands import DemandSpec, read_demand, traffic_of
from opticoll.solvers import solve
from opticoll.solvers.plan import make_plan
from opticoll.solvers.procedure import rebuild, send
from opticoll.solvers.process.executor import make_executor
from opticoll.solvers.resume_key import resume_key
from opticoll.solvers.schedules import link_schedule, shard_routes
from opticoll.solvers.schedules.schedule_json import moves_document, read_schedule, routes_document
from opticoll.solvers.schedules.verification import verify_document
from opticoll.solvers.solution_document import SolutionDocument
from opticoll.solvers.task import Task

relaxed = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])

#: Concurrent flows over all paths, with the parameters that ask for these.
FLOWS = (
    ("alltoall.master", {}),
    ("alltoall.link-mcf", {}),
    ("alltoall.path-mcf", {"paths": "all"}),
)


@st.composite
def cases(draw, most=5):
    """A digraph with capacities, not always strongly connected, and a sparse demand that it can carry."""
    n = draw(st.integers(2, most))
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda ends: ends[0] != ends[1])
    arcs = draw(st.lists(pair, min_size=1, max_size=2 * n, unique=True))
    capacity = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=len(arcs), max_size=len(arcs)))
    topology = Topology(n, [u for u, _ in arcs], [v for _, v in arcs], capacity)
    value = st.sampled_from([0.0, 0.0, 0.25, 1.0, 3.0])
    demand = np.array(draw(st.lists(value, min_size=n * n, max_size=n * n))).reshape(n, n)
    reached = np.isfinite(topology.hops) & ~np.eye(n, dtype=bool)
    demand = np.where(reached, demand, 0.0)
    if not demand.any():
        demand[tuple(np.argwhere(reached)[0])] = 2.0
    return topology, demand


# optima, bounds, certificates ------------------------------------------------------------------------------------


@relaxed
@given(cases())
def test_flows_meet_an_independent_lp_and_no_bound_is_on_the_wrong_side(case):
    topology, demand = case
    time = flow_time(topology, demand)
    for name, parameters in FLOWS:
        data, F, values = solved(name, topology, demand=demand, **parameters)
        assert pytest.approx(1.0 / time, rel=1e-6) == F, name
        assert max(data.residuals(values).values()) < 1e-6
        for bound in data.bounds():
            assert bound.value >= F * (1 - 1e-7), (name, bound)
            assert not bound.exact or bound.value == pytest.approx(F, rel=1e-6)
        random = np.random.default_rng(0)
        for lengths in (random.random(topology.arcs), random.exponential(size=topology.arcs) ** 4):
            assert data.certify({"capacity": lengths}).value >= F * (1 - 1e-7)
        (flow,) = values.keys() - {"F"}
        size = values[flow].shape
        for given_ in (values[flow], values[flow] + 1e-3 * random.random(size), random.random(size)):
            repaired = data.repair({**values, flow: given_})
            assert max(data.residuals(repaired).values()) < 1e-9
            assert data.objective(repaired) <= F * (1 + 1e-7)


@relaxed
@given(cases(4))
def test_the_printed_relaxation_serves_at_least_as_much_and_its_bound_holds(case):
    topology, demand = case
    exact = solved("alltoall.link-mcf", topology, demand=demand)[1]
    data, F, values = solved("alltoall.link-mcf", topology, demand=demand, printed=True)
    assert exact * (1 - 1e-7) <= F
    assert max(data.residuals(values).values()) < 1e-6
    assert all(bound.value >= F * (1 - 1e-7) for bound in data.bounds())


@relaxed
@given(cases(4))
def test_single_paths_are_the_best_of_all_choices(case):
    topology, demand = case
    ends = topology.terminals.tolist()
    pairs = np.argwhere(demand > 0)[:3].tolist()
    few = np.zeros_like(demand)
    few[tuple(np.transpose(pairs))] = demand[tuple(np.transpose(pairs))]
    ways = [simple_paths(topology, ends[s], ends[t]) for s, t in pairs]
    best = np.inf
    for chosen in product(*ways):
        load = np.zeros(topology.arcs)
        for (s, t), path in zip(pairs, chosen, strict=True):
            load[path] += few[s, t]
        best = min(best, float((load / topology.capacity).max()))
    data, value, values = solved("alltoall.min-congestion", topology, demand=few, paths="all")
    assert value == pytest.approx(best)
    assert max(data.residuals(values).values()) < 1e-6
    assert data.objective(values) == pytest.approx(best)
    assert all(bound.value <= best * (1 + 1e-9) for bound in data.bounds())


def test_children_split_what_the_master_sends():
    demand = np.zeros((6, 6))
    demand[1, [0, 4]], demand[4, 2], demand[5, 0] = (2.0, 0.5), 3.0, 1.0
    master = solve.solve(Task("alltoall.master", "ring:6", settings={"demand": demand}))
    for source in (1, 4, 5):
        run = solve.solve(Task("alltoall.child", "ring:6", "highs", settings={"demand": demand, "source": source}))
        assert run.verified
        assert run.objective >= master.objective * (1 - 1e-6)
    with pytest.raises(BadInput, match="source=0 sends nothing"):
        make_plan(Task("alltoall.child", "ring:6", settings={"demand": demand}))


# closed forms ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "parameters"), FLOWS)
def test_closed_forms(name, parameters):
    """A shift on the directed ring takes as many hops as it shifts; one pair alone is a maximum flow."""
    n, shift = 6, 4
    ring = parse(f"ring:{n},directed")
    demand = np.zeros((n, n))
    demand[np.arange(n), (np.arange(n) + shift) % n] = 2.0
    assert 1.0 / solved(name, ring, demand=demand, **parameters)[1] == pytest.approx(2.0 * shift)
    topology = parse("genkautz:n=7,d=2").scaled(1.5)
    graph = nx.DiGraph()
    for u, v, c in zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True):
        graph.add_edge(u, v, capacity=c + graph.get_edge_data(u, v, {"capacity": 0.0})["capacity"])
    one = np.zeros((7, 7))
    one[1, 5] = 4.0
    assert solved(name, topology, demand=one, **parameters)[1] == pytest.approx(
        nx.maximum_flow_value(graph, 1, 5) / 4.0
    )
    star = np.zeros((7, 7))
    star[2] = 1.0
    star[2, 2] = 0.0  # one source: as much as the least cut of any set of targets lets through
    cuts = [
        topology.capacity[~inside[topology.tail] & inside[topology.head]].sum() / inside.sum()
        for inside in (np.array(bits, dtype=bool) for bits in product((0, 1), repeat=7))
        if inside.any() and not inside[2]
    ]
    assert solved(name, topology, demand=star, **parameters)[1] == pytest.approx(min(cuts))


def test_a_shift_on_a_ring_in_time_steps_and_on_single_paths():
    demand = np.zeros((5, 5))
    demand[np.arange(5), (np.arange(5) + 3) % 5] = 1.5
    ring = parse("ring:5,directed")
    assert solved("alltoall.timestep-mcf", ring, demand=demand)[1] == pytest.approx(4.5)
    assert solved("alltoall.min-congestion", ring, demand=demand)[1] == pytest.approx(4.5)
    bound = next(
        b for b in solved("alltoall.min-congestion", ring, demand=demand)[0].bounds() if b.name == "widest-path"
    )
    assert bound.value == pytest.approx(1.5)


def test_a_demand_that_cannot_be_split_is_bounded_by_its_widest_path():
    demand = np.zeros((4, 4))
    demand[0, 2] = 3.0
    ring = parse("ring:4")
    data, value, _ = solved("alltoall.min-congestion", ring, demand=demand)
    assert value == pytest.approx(3.0)  # 1.5 if it were split
    result = {bound.name: bound.value for bound in data.bounds()}
    assert result["widest-path"] == pytest.approx(3.0)
    assert result["sweep-cut"] <= 3.0


# methods --------------------------------------------------------------------------------------------------------

SOLVED_BY = (
    ("alltoall.link-mcf", {}, "column-generation"),
    ("alltoall.link-mcf", {}, "flow-decomposition"),
    ("alltoall.link-mcf", {}, "master-child"),
    ("alltoall.link-mcf", {}, "certified-pdlp"),
    ("alltoall.path-mcf", {"paths": "all"}, "column-generation"),
    ("alltoall.path-mcf", {"paths": "all"}, "mcf-extp"),
    ("alltoall.path-mcf", {"paths": "all", "lmax": 6}, "column-generation"),
)


@pytest.mark.parametrize(("name", "parameters", "method"), SOLVED_BY)
def test_methods_prove_the_optimum_of_a_demand(name, parameters, method):
    topology = parse("genkautz:n=6,d=2")
    demand = read_demand("random:3", topology, "test") * np.tri(6, k=2)
    demand[3] = 0.0
    run = solve.solve(Task(name, topology, method, settings={**parameters, "demand": demand}))
    assert (run.verified, str(run.proof)) == (True, "optimal"), run.record.message
    assert run.objective == pytest.approx(1.0 / flow_time(topology, demand), rel=2e-6)
    assert run.record.settings["demand"].startswith("matrix:")


@pytest.mark.parametrize("method", ["exact-routing", "sssp", "lp-rounding"])
def test_routing_methods_route_amounts(method):
    topology = parse("genkautz:n=6,d=2").scaled(0.5)
    demand = np.triu(read_demand("gravity:1", topology, "test"))
    run = solve.solve(Task("alltoall.min-congestion", topology, method, settings={"paths": "all", "demand": demand}))
    best = solved("alltoall.min-congestion", topology, demand=demand, paths="all")[1]
    assert run.verified, run.record.message
    assert best * (1 - 1e-9) <= run.objective
    assert run.bound <= best * (1 + 1e-9)
    assert run.objective <= best * (1 + 1e-6) or method != "exact-routing"


# data in memory ---------------------------------------------------------------------------------------------------


def network():
    """A labelled graph with a switch."""
    graph = nx.Graph()
    graph.add_edge("a", "switch", bandwidth=4.0)
    graph.add_edge("b", "switch", bandwidth=2.0)
    graph.add_edge("c", "switch", bandwidth=1.0)
    return oc.topology(graph, ranks=["a", "b", "c"])


FRAME = pd.DataFrame({"src": ["a", "a", "b"], "dst": ["b", "c", "a"], "bytes": [6e6, 1e6, 2e6]})
PAIRS = {("a", "b"): 6e6, ("a", "c"): 1e6, ("b", "a"): 2e6}
MATRIX = np.array([[0, 6e6, 1e6], [2e6, 0, 0], [0, 0, 0]])
SQUARE = pd.DataFrame(MATRIX, index=list("abc"), columns=list("abc")).loc[list("cab"), list("bca")]


SERIES = FRAME.groupby(["src", "dst"])["bytes"].sum()


@pytest.mark.parametrize(
    "demand", [FRAME, PAIRS, SERIES, MATRIX, sp.csr_array(MATRIX), SQUARE, MATRIX.tolist(), FRAME.iloc[::-1]]
)
def test_one_demand_in_any_form_has_one_key_and_one_value(demand):
    topology = network()
    np.testing.assert_array_equal(read_demand(demand, topology, "test"), MATRIX)
    task = Task("alltoall.master", topology, "highs-simplex", settings={"demand": demand})
    plan = make_plan(task)
    assert plan.parameters["demand"] == DemandSpec(MATRIX)
    key = resume_key(Task("alltoall.master", topology, "highs-simplex", settings={"demand": MATRIX}))
    other = resume_key(Task("alltoall.master", topology, "highs-simplex", settings={"demand": 2 * MATRIX}))
    assert resume_key(task) == key != other
    received = rebuild(send(task, topology)["sent"])
    assert make_plan(received).parameters["demand"] == DemandSpec(MATRIX)
    np.testing.assert_array_equal(read_demand(received.settings["demand"], topology, "test"), MATRIX)
    again = pickle.loads(pickle.dumps(task))  # noqa: S301
    assert resume_key(again) == key


@pytest.mark.parametrize(
    "text",
    [
        "src,dst,bytes\na,b,6e6\na,c,1e6 # note\n\nb,a,2e6\n",
        "dst bytes src\nb 6000000 a\nc 1e6 a\na 2e6 b\n",
        "Source,Target,Amount\n0,1,6e6\n0,2,1e6\n1,0,2e6\n",
        ",a,b,c\na,0,6e6,1e6\nc,0,0,0\nb,2e6,0,0\n",
        "0,6e6,1e6\n2e6,0,0\n0,0,0\n",
        "0 6MB 1MB\n2MB 0 0\n0 0 0\n",
        "src,dst,bytes\na,b,6MB\na,c,1000kB\nb,a,16 Mb\n",
        ",a,b,c\na,0,6MB,1MB\nc,0,0,0\nb,2MB,0,0\n",
        "rank,a,b,c\na,0,6MB,1MB\nc,0,0,0\nb,2MB,0,0\n",
    ],
)
def test_files_of_pairs_and_of_labelled_rows(tmp_path, text):
    path = tmp_path / "traffic.csv"
    path.write_text(text)
    np.testing.assert_array_equal(read_demand(f"file:{path}", network(), "test"), MATRIX)


def test_labels_come_before_rank_numbers_and_switches_are_no_ranks():
    numbered = oc.topology([(2, 1), (1, 0), (0, 2)], directed=False)
    assert read_demand({(2, 0): 1.0}, numbered, "test")[2, 0] == 1.0
    assert read_demand({(2, 0): "1GiB"}, numbered, "test")[2, 0] == 2**30
    frame = pd.DataFrame({"src": [2, 0], "dst": [0, 1], "bytes": ["400MB", 0]})
    assert read_demand(frame, numbered, "test")[2, 0] == 4e8
    named = oc.topology([("2", "0"), ("0", "5")], directed=False)
    assert read_demand({("2", "5"): 1.0}, named, "test")[0, 2] == 1.0
    assert read_demand({(1, 2): 1.0}, oc.topology([("x", "y"), ("y", "z")], directed=False), "test")[1, 2] == 1.0
    hosts = oc.topology([(0, 1), (1, 2)], directed=False, ranks=[1, 2])
    assert read_demand({(1, 2): 1.0}, hosts, "test")[0, 1] == 1.0
    with pytest.raises(BadInput, match="vertex, but not a rank"):
        read_demand({(0, 1): 1.0}, hosts, "test")


@each(
    ("demand", "word"),
    [
        ({("a", "b"): -1.0}, "nonnegative"),
        ({("a", "b"): float("nan")}, "finite"),
        ({("a", "z"): 1.0}, "'z' is not a"),
        ({("a", "switch"): 1.0}, "not a rank"),
        ({("a", "a"): 1.0}, "to itself"),
        ({"ab": 1.0}, "pair"),
        (pd.Series([1.0, 2.0]), "key '0' must be a pair"),
        (pd.concat([SERIES, SERIES]), "occurs twice"),
        ({("a", "b"): [1.0]}, "amounts must be numbers, one per entry"),
        ({}, "no rank"),
        ({("a", "b"): "much"}, "numbers"),
        (np.ones((2, 2)), "2x2"),
        (np.ones((3, 2)), "square"),
        (np.ones((3, 3)), "itself"),
        (np.array([[0, np.nan, 1], [1, 0, 1], [1, 1, 0]]), "finite"),
        (7, "int"),
        ([], "square"),
        ([[0, 1], [1]], "numbers"),
        (pd.DataFrame({"src": ["a", "a"], "dst": ["b", "b"], "bytes": [1, 2]}), "occurs twice"),
        (pd.DataFrame({"src": ["a"], "dst": ["b"], "x": [1]}), "no column has"),
        (pd.DataFrame({"src": ["a"], "dst": ["b"], "bytes": [1], "amount": [2]}), "2 columns"),
        (pd.DataFrame(MATRIX, index=list("abc"), columns=list("abd")), "only a row"),
        (pd.DataFrame(MATRIX, index=list("aab"), columns=list("aab")), "occurs twice"),
        (pd.DataFrame([["x", 1], [1, 0]], index=list("ab"), columns=list("ab")), "numbers"),
        ("matrix:0123456789abcdef", "Python session"),
    ],
)
def test_invalid_demand_data_are_refused(demand, word):
    with pytest.raises(BadInput, match=word):
        make_plan(Task("alltoall.master", network(), settings={"demand": demand}))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("src,dst\na,b\n", "no column has"),
        ("src,dst,bytes\na,b\n", "line 2"),
        ("src,dst,bytes\na,b,many\n", "line 2"),
        ("src,dst,bytes\na,b,1\na,b,2\n", "occurs twice"),
        ("src,dst,bytes\na,q,1\n", "'q' is not a rank"),
        ("src,dst,bytes\na,b,-1\n", "nonnegative"),
        ("src,dst,bytes\na,b,nan\n", "finite"),
        ("a,b,6e6\n", "line 1: 'a,b,6e6' is neither a heading nor amounts; write src,dst,bytes above"),
        ("0 1_0 2\n3 0 4\n5 6 0\n", "line 1: '0,1_0,2' is neither a heading nor amounts"),
        ("src,source,dst,bytes\nx,a,b,1\n", "'src' and 'source' may all name the source"),
        ("src,dst,bytes,bytes\na,b,1,2\n", "heads several columns"),
        ("one,two,three\na,b,1\n", "heading"),
        (",a,b\na,0\n", "line 2"),
        ("src,dst,bytes\n", "no rank"),
        ("src;dst;bytes\na;b;1\n", "use commas"),
        ('src,dst,bytes\n"' + "x" * 200_000 + ",b,1\n", "is not a rank"),
        ("src,dst,bytes\na,b,1GiB\na,c,3\n", "line 3: amount 3 has no unit"),
        ("src,dst,bytes\na,b,4GB/s\n", "line 2"),
        (",a,b\na,0,1MB\nb,2,0\n", "line 3, column 1: amount 2 has no unit"),
    ],
)
def test_bad_lists_of_pairs_are_refused(tmp_path, text, word):
    path = tmp_path / "traffic.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=word):
        make_plan(Task("alltoall.master", network(), settings={"demand": f"file:{path}"}))


def test_the_uniform_matrix_is_the_all_to_all():
    topology = parse("ring:4")
    assert traffic_of({"demand": np.ones((4, 4)) - np.eye(4)}, topology) is None
    assert traffic_of({}, topology) is None
    uniform = solve.solve(Task("alltoall.master", "ring:4", settings={"demand": np.ones((4, 4)) - np.eye(4)}))
    assert uniform.objective == pytest.approx(0.5)
    assert "shards" not in uniform.record.metrics
    assert any(bound.exact for bound in uniform.plan.problem.bounds())


# bounds and the command line -----------------------------------------------------------------------------------


def test_bounds_take_demands_ranges_and_objects(tmp_path):
    topology = network()
    rows = instance_bounds(topology, demand=PAIRS)
    time = flow_time(topology, MATRIX)
    assert all(row["value"] >= (1 - 1e-9) / time for row in rows)
    assert all("instance" not in row for row in rows)
    assert instance_bounds(topology, "alltoall.master", {"demand": MATRIX}) == rows
    ranged = instance_bounds("ring:{4..8..2}", demand="permutation:2")
    assert list(dict.fromkeys(row["instance"] for row in ranged)) == ["ring:4", "ring:6", "ring:8"]
    single = instance_bounds("ring:6", demand="permutation:2")
    assert [{**row, "instance": "ring:6"} for row in single] == [row for row in ranged if row["instance"] == "ring:6"]
    path = tmp_path / "d.csv"
    path.write_text("src,dst,bytes\n0,1,5\n")
    run = CliRunner().invoke(cli, ["bounds", "ring:{4,6}", "--demand", str(path), "--json"])
    assert run.exit_code == 0, run.output
    assert {row["instance"] for row in json.loads(run.output)} == {"ring:4", "ring:6"}
    stated = CliRunner().invoke(cli, ["bounds", "ring:4", "--set", f"demand=file:{path}"])
    assert stated.exit_code == 0
    assert "sweep-cut" in stated.output
    with pytest.raises(BadInput, match="must be a pair"):
        instance_bounds(topology, demand={"ab": 1.0})
    for words, reason in ((["ring:4", "--set", "steps=3"], "no parameter 'steps'"), (["ring:{4"], "braces")):
        refused = CliRunner().invoke(cli, ["bounds", *words])
        assert isinstance(refused.exception, BadInput)
        assert reason in str(refused.exception)


def test_the_closed_form_of_a_family_is_not_used_for_a_demand():
    names = {row["name"] for row in instance_bounds("ring:6", demand="gravity:1")}
    assert "closed-form" not in names
    assert "closed-form" in {row["name"] for row in instance_bounds("ring:6")}
    data = solved("alltoall.master", parse("path:3"), demand=np.diag([2.0, 3.0], k=1))[0]
    assert sweep_cut_bound(data.flow).value == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "name",
    [
        "alltoall.master",
        "alltoall.link-mcf",
        "alltoall.path-mcf",
        "alltoall.timestep-mcf",
        "alltoall.min-congestion",
    ],
)
def test_the_command_line_solves_schedules_and_checks_a_file_of_traffic(tmp_path, name):
    topology, net, traffic = network(), tmp_path / "net.json", tmp_path / "traffic.csv"
    oc.save_topology(topology, net)
    FRAME.to_csv(traffic, index=False)
    solution, schedule = tmp_path / "s.json", tmp_path / "t.json"
    words = [name, f"file:{net}", "--set", f"demand=file:{traffic}"]
    run = CliRunner().invoke(
        cli,
        [
            "solve",
            *words,
            "--no-store",
            "--json",
            "--solution",
            str(solution),
            "--schedule",
            str(schedule),
        ],
    )
    assert run.exit_code == 0, run.output
    record = json.loads(run.output)
    assert record["proof"] == "optimal"
    assert record["metrics"]["shards"] == 9e6
    assert record["schedule"]["delivers"], record["schedule"]
    fluid = record["objective"] if record["sense"] == "min" else 1 / record["objective"]
    if name != "alltoall.timestep-mcf":  # its steps count what schedules let pass the switch within a step
        assert record["schedule"]["simulated_time"] >= fluid * (1 - 1e-6)
    for file in (solution, schedule):
        checked = CliRunner().invoke(cli, ["check", name, f"file:{net}", str(file), *words[2:], "--json"])
        assert checked.exit_code == 0, checked.output
        assert json.loads(checked.output)["verified"]
    other = CliRunner().invoke(cli, ["check", name, f"file:{net}", str(solution)])
    assert isinstance(other.exception, BadInput)
    refused = CliRunner().invoke(cli, ["check", name, f"file:{net}", str(schedule), "--json"])
    assert json.loads(refused.stdout)["schedule"]["violation"] == "demand"


def test_a_solution_of_data_in_memory_is_checked_with_the_file_of_the_same_demand(tmp_path):
    topology = network()
    run = solve.solve(Task("alltoall.link-mcf", topology, settings={"demand": PAIRS}))
    file, traffic, net = tmp_path / "s.json", tmp_path / "traffic.csv", tmp_path / "net.csv"
    file.write_text(json.dumps(SolutionDocument.of(run).as_json()))
    FRAME.to_csv(traffic, index=False)
    oc.save_topology(topology, net)
    result = oc.check("alltoall.link-mcf", f"file:{net}", file, demand=f"file:{traffic}")
    assert result["verified"]
    assert oc.check("alltoall.link-mcf", topology, file, demand=FRAME)["verified"]
    with pytest.raises(BadInput, match="was requested"):
        oc.check("alltoall.link-mcf", topology, file, demand={**PAIRS, ("c", "a"): 1.0})


# schedules ------------------------------------------------------------------------------------------------------


@relaxed
@given(cases(4), st.sampled_from(["alltoall.link-mcf", "alltoall.timestep-mcf", "alltoall.master"]))
def test_schedules_of_weighted_demands_deliver(tmp_path_factory, case, name):
    topology, demand = case
    data, value, values = solved(name, topology, demand=demand)
    routes = shard_routes.routes_of(name, data, values)
    sent = {(r.source, r.target): 0.0 for r in routes.rows()}
    for r in routes.rows():
        sent[r.source, r.target] += r.weight * r.amount
    assert sent == pytest.approx({(int(s), int(t)): demand[s, t] for s, t in np.argwhere(demand > 0)})
    schedule = link_schedule.schedule_routes(topology, routes)
    path = tmp_path_factory.mktemp("s") / "s.json"
    fluid = value if name == "alltoall.timestep-mcf" else 1.0 / value
    chunked = shard_routes.cut(topology, shard_routes.without_steps(routes))
    traffic = None if data_is_uniform(demand) else demand
    for document, time in (
        (moves_document(topology, schedule.steps), schedule.time),
        (routes_document(topology, chunked), chunked.time),
    ):
        document = json.loads(json.dumps(document))
        verdict = verify_document(document, path, topology, traffic=traffic)
        assert verdict.valid, verdict.message
        assert verdict.metrics["time"] == pytest.approx(time, rel=1e-6)
        assert verdict.metrics["T_bound"] <= verdict.metrics["time"] * (1 + 1e-6)
        if name != "alltoall.timestep-mcf":
            assert verdict.metrics["time"] >= fluid * (1 - 1e-6)
        wrong = verify_document(document, path, topology, traffic=demand * 2.0)
        assert (wrong.valid, wrong.reason) == (False, "demand")


def data_is_uniform(demand):
    return np.array_equal(demand, 1.0 - np.eye(demand.shape[0]))


def test_changed_schedules_of_a_demand_are_refused(tmp_path):
    topology, demand = parse("ring:4"), np.zeros((4, 4))
    demand[0, [1, 2]], demand[3, 1] = (1.0, 4.0), 2.5
    data, _, values = solved("alltoall.master", topology, demand=demand)
    routes = shard_routes.routes_of("alltoall.master", data, values)
    steps = link_schedule.schedule_routes(topology, routes).steps
    document = json.loads(json.dumps(moves_document(topology, steps)))

    def reason(change):
        changed = json.loads(json.dumps(document))
        change(changed)
        return verify_document(changed, tmp_path / "s.json", topology, traffic=demand).reason

    assert reason(lambda d: None) == ""
    assert reason(lambda d: d["steps"][-1].clear()) == "missing-chunk"
    assert reason(lambda d: d["steps"][0].append([[1, 2], [1, 2], 0, "copy"])) == "no-chunk"  # 1 sends nothing to 2
    assert reason(lambda d: d["demand"].pop()) == "demand"
    assert reason(lambda d: d.pop("demand")) == "demand"
    assert reason(lambda d: d["demand"][0].__setitem__(2, 9.0)) == "demand"
    for bad in ([[0, 0, 1.0]], [[0, 1, 0]], [[0, 1, 1.0], [0, 1, 1.0]], [[0, 9, 1.0]], [[0, 1]], 3, [[0, 1, True]]):
        changed = {**document, "demand": bad}
        with pytest.raises(BadInput, match=r"demand|vertex 9"):
            read_schedule(changed, tmp_path / "s.json", topology)


# studies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cluster", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_cells_with_data_run_in_other_processes_and_are_stored(tmp_path, cluster):
    topology = network()
    tasks = [
        Task("alltoall.path-mcf", topology, m, settings={"demand": FRAME, "paths": "all"})
        for m in ("highs", "column-generation")
    ]
    cells = [Cell(task, resume_key(task), topology.spec) for task in tasks]
    with ExitStack() as stack:
        address = None
        if cluster:
            from distributed import LocalCluster

            address = stack.enter_context(
                LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0")
            ).scheduler_address
        executor = stack.enter_context(make_executor(jobs=None if cluster else 2, dask=address))
        made = dict(executor.map_unordered(attempt, cells))
    store = Store(tmp_path / "results")
    for i, cell in enumerate(cells):
        assert record_attempt(CellJob(cell, store, "data"), made[i]).status == "done"
        run_again = run_cell(CellJob(cell, store, "data"))
        assert run_again.status == "skipped"
    result = store.sql("SELECT instance, instance_hash, objective FROM latest")
    assert result["instance"].tolist() == [topology.spec] * 2
    assert result["instance_hash"].tolist() == [topology.hash] * 2
    np.testing.assert_allclose(result["objective"], 1.0 / flow_time(topology, MATRIX), rtol=1e-6)


def test_a_demand_in_bytes_has_shards_of_one_byte(tmp_path):
    """A shard of another size would count the bytes again."""
    net = oc.topology([("a", "b"), ("b", "a")], unit="8Gb/s")
    file = tmp_path / "d.csv"
    file.write_text("src,dst,bytes\na,b,2e9\n", encoding="utf-8")
    square = tmp_path / "m.txt"
    square.write_text("0 2GB\n0 0\n", encoding="utf-8")
    frame = pd.DataFrame({"src": ["a"], "dst": ["b"], "bytes": [2e9]})
    for demand in ({("a", "b"): "2GB"}, frame, f"file:{file}", f"file:{square}"):
        assert oc.solve("alltoall.master", net, demand=demand).metrics["T_s"] == pytest.approx(2.0)
        assert oc.solve("alltoall.master", net, demand=demand, shard="1B").metrics["T_s"] == pytest.approx(2.0)
        with pytest.raises(oc.BadInput, match="the demand is in bytes, so that a shard is one byte, not 1MB"):
            oc.solve("alltoall.master", net, demand=demand, shard="1MB")
    shards = oc.solve("alltoall.master", net, demand={("a", "b"): 2.0}, shard="1GB")
    assert shards.metrics["T_s"] == pytest.approx(2.0)


def test_nothing_may_be_written_with_a_unit_and_nan_is_named():
    demand = {("a", "b"): "2GB", ("b", "a"): "0MB"}
    net = oc.topology([("a", "b"), ("b", "a")], unit="8Gb/s")
    assert oc.solve("alltoall.master", net, demand=demand).metrics["T_s"] == pytest.approx(2.0)
    frame = pd.DataFrame(np.full((2, 2), np.nan), index=["a", "b"], columns=["a", "b"])
    with pytest.raises(BadInput, match="rank a sends nan to rank a; give finite nonnegative numbers"):
        oc.solve("alltoall.master", net, demand=frame)


@pytest.mark.parametrize("name", ["master", "link-mcf", "path-mcf", "timestep-mcf", "min-congestion"])
def test_the_demand_of_a_problem_is_the_given_one(name):
    wanted = read_demand("permutation:1", parse("ring:4"), "demand")
    assert not np.array_equal(wanted, wanted.T)
    plan = make_plan(Task(f"alltoall.{name}", "ring:4", settings={"demand": "permutation:1"}))
    prepared = formulation(f"alltoall.{name}").prepare(parse("ring:4"), {"demand": "permutation:1"})
    for problem in (plan.problem, prepared):
        assert np.array_equal(problem.demand_matrix, wanted)


def test_a_problem_that_keeps_no_demand_does_not_pass_for_uniform():
    topology = parse("ring:4")
    made = Master(ConcurrentFlow.by_source(topology, read_demand("permutation:1", topology, "demand")))
    with pytest.raises(ModelError, match="keeps no demand; make it by prepare"):
        _ = made.demand_matrix
