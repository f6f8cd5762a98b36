"""oc.solve and its Result, as a new user would use them: tables, loads, schedules, files, plots and units."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from html.parser import HTMLParser
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from case_families import each
from cases import CASES, first_case, first_result
from mutated_solutions import CASES as MUTATED
from mutated_solutions import declared

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.analysis.plots.style import png
from opticoll.errors import BadFile, BadInput, LimitSpent, NoSolution
from opticoll.formulations import formulation
from opticoll.formulations.model import states
from opticoll.instances.quantities import parse_rate, parse_size
from opticoll.solvers import solve
from opticoll.solvers.task import Termination

MESH, POOL = "lightpath:2x2,lasers=2", "servers:n=4,degree=3,traffic=alltoall"
NAMES = sorted(CASES)
#: Array whose entries add up to the load of every link, by the column that names links.
SUMMED = {
    "alltoall.child": "f",
    "alltoall.link-mcf": "f",
    "alltoall.master": "g",
    "alltoall.timestep-mcf": "f",
}


def clos() -> nx.Graph:
    """Three racks and two more nodes, with names and capacities."""
    graph: nx.Graph = nx.Graph()
    for rack in "abc":
        graph.add_edge(f"rack {rack}", "top 1", capacity=2.0)
        graph.add_edge(f"rack {rack}", "top 2", capacity=1.0)
    return graph


def test_what_an_outsider_writes(tmp_path):
    result = oc.solve("alltoall.master", clos())
    loads = result.link_loads()
    schedule = result.schedule(chunks=4)
    saved = schedule.save(tmp_path / "plan.json")
    figure = result.plot()

    assert result.proof == "optimal"
    assert loads.loc["rack a->top 1", "capacity"] == 2.0
    assert set(loads["src"]) == {"rack a", "rack b", "rack c", "top 1", "top 2"}
    assert loads["utilisation"].max() == pytest.approx(1.0)
    assert max(result.check().values()) <= 1e-6
    assert schedule.check() is None
    assert saved["delivers"]
    assert schedule.time >= result.metrics["T"] * (1 - 1e-9)
    assert "rack a" in {text.get_text() for text in figure.axes[0].texts}


def test_rounds_take_no_chunks(tmp_path, capfd):
    rounds = "lumorph.rounds", MESH
    with pytest.raises(BadInput, match="omit chunks"):
        oc.solve(*rounds).schedule(chunks=4)
    path = tmp_path / "rounds.json"
    assert main(["solve", *rounds, "--schedule", str(path), "--chunks", "4", "--no-store"]) == 2
    assert "omit chunks" in capfd.readouterr().err
    assert not path.exists()


# the summary --------------------------------------------------------------------------------------------------


@each("name", NAMES)
def test_summary_is_a_screenful_with_value_proof_and_checker(name):
    lines = repr(first_result(name)).splitlines()
    assert len(lines) <= 28
    assert max(map(len, lines)) <= 190
    text = "\n".join(lines)
    assert lines[0].startswith(f"{name} on ")
    assert formulation(name).meaning == "" or re.search(r"meaning +\w", text)
    for word in ("bound", "gap", "proof", "verified yes", "model", "time"):
        assert word in re.sub(" +", " ", text)
    problem = first_result(name).plan.problem
    assert (problem.meaning if isinstance(problem.meaning, str) else problem.meaning(problem)) in text


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)


def test_results_in_lists_and_sets_are_objects():
    first, second = (oc.solve("alltoall.link-mcf", "ring:3") for _ in range(2))
    assert [first, second].index(second) == 1
    assert {first, second} - {first} == {second}


def test_hostile_names_stay_text(tmp_path):
    nasty = "<img src=x onerror=alert(1)>\x1b[31m\n& \"'"
    topology = oc.Topology(3, [0, 1, 2], [1, 2, 0], spec=nasty, labels=(nasty, "b", "<b>c</b>"))
    result = oc.solve("alltoall.master", topology)
    tags = _Tags()
    tags.feed(result._repr_html_())
    assert set(tags.seen) == {"table", "caption", "tr", "th", "td"}
    assert "&lt;img" in result._repr_html_()
    assert "\x1b" not in repr(result)
    assert len(png(result.plot())) > 1000
    assert result.link_loads()["src"].tolist()[0] == nasty
    assert oc.load(result.save(tmp_path / "s.json")).instance.labels == topology.labels


# tables -------------------------------------------------------------------------------------------------------


@each("case", MUTATED)
def test_every_array_names_its_axes(case):
    _, arrays = declared(*case)
    for name, array in arrays.items():
        assert len({axis.name for axis in array.axes}) == len(array.axes), name
        assert not any(axis.name.startswith("index_") for axis in array.axes), name


@each("name", NAMES)
def test_frames_hold_the_values(name):
    result = first_result(name)
    frames = result.frames
    assert frames.keys() == result.values.keys()
    for array, frame in frames.items():
        content = np.asarray(result.values[array])
        if array in frame and frame[array].dtype.kind == "f":
            assert frame[array].sum() == pytest.approx(content.sum())
            assert content.ndim == 0 or (frame[array] != 0).all()
            assert len(result.frame(array, zeros=True)) == content.size
        assert not [column for column in frame if str(column).startswith("index_")]


@pytest.mark.parametrize("name", sorted(SUMMED))
def test_frames_add_up_to_the_link_loads(name):
    result = first_result(name)
    sums = result.frame(SUMMED[name]).groupby("arc")[SUMMED[name]].sum()
    loads = result.link_loads()["load"]
    assert sums.reindex(loads.index, fill_value=0.0).to_numpy() == pytest.approx(loads.to_numpy())


def test_paths_add_up_to_the_link_loads():
    for name, weight in (("alltoall.path-mcf", "f"), ("alltoall.min-congestion", "x")):
        result = first_result(name)
        total: dict[str, float] = {}
        for path, amount in result.frame(weight)[["path", weight]].itertuples(index=False):
            vertices = path.split("->")
            for arc in pairwise(vertices):
                total["->".join(arc)] = total.get("->".join(arc), 0.0) + amount
        loads = result.link_loads()["load"]
        assert {arc: load for arc, load in loads.items() if load} == pytest.approx(total)


@each("name", NAMES)
def test_loads_of_every_formulation_with_links(name):
    result = first_result(name)
    if not states(formulation(name), "links"):
        with pytest.raises(BadInput, match="no link loads"):
            result.link_loads()
        return
    loads = result.link_loads()
    assert list(loads.columns[:5]) == ["src", "dst", "capacity", "load", "utilisation"]
    assert set(loads.attrs["units"]) - {"price"} == {"capacity", "load"}
    assert loads["load"].max() > 0
    assert 0 < loads["utilisation"].max() <= 1 + 1e-6


def test_names_of_vertices_arcs_commodities_and_steps():
    assert first_result("alltoall.link-mcf").frame("f").loc[0].tolist()[:2] == ["0->1", "0->1"]
    assert first_result("alltoall.timestep-mcf").frame("f")["step"].min() == 1
    assert list(first_result("alltoall.child").frame("f").columns) == ["arc", "destination", "f"]
    assert "0" not in set(first_result("alltoall.child").frame("f")["destination"]), (
        "the source is not its own destination"
    )
    circuits = oc.solve("sipml.ring-wavelengths", "wdm-ring:n=5,wavelengths=4", method="ring-sets").frame("circuits")
    assert list(circuits.columns) == ["circuit", "pair", "direction", "wavelength"]
    assert set(circuits["direction"]) <= {"clockwise", "anticlockwise"}
    assert set(first_result("lumorph.rounds").frame("circuit_source")["circuit_source"]) == {"0.0", "0.1", "1.0", "1.1"}


def test_parallel_arcs_have_names_of_their_own():
    topology = oc.Topology(2, [0, 0, 1], [1, 1, 0], [1.0, 3.0, 4.0], labels=("a", "b"))
    loads = oc.solve("alltoall.master", topology).link_loads()
    assert loads.index.tolist() == ["a->b", "a->b#2", "b->a"]


def test_an_unknown_array_is_named():
    with pytest.raises(BadInput, match=r"no array 'q' in the solution; it has g, F|F, g"):
        first_result("alltoall.master").frame("q")


# schedules ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_schedules_where_there_are_some(name, tmp_path):
    result = first_result(name)
    stepped = {"master", "link-mcf", "path-mcf", "few-paths", "min-congestion", "timestep-mcf", "sccl"}
    layered = {"channels", "virtual-channels"}
    if name.removeprefix("alltoall.") in stepped | layered:
        schedule = result.schedule()
        assert schedule.check() is None
        assert str(schedule.steps.steps) in repr(schedule)
        assert "simulated T" in repr(schedule)
        for ending in ("xml", "json", "routes.json"):
            path = tmp_path / f"s.{ending}"
            assert schedule.save(path)["delivers"]
            if name.removeprefix("alltoall.") in layered and ending != "routes.json":
                with pytest.raises(BadFile, match="no layer for its routes"):
                    oc.check(name, result.instance, path)
                assert oc.check("alltoall.master", result.instance, path)["verified"]
            else:
                assert oc.check(name, result.instance, path)["verified"]
        assert {shard.split("->")[0] for shard in schedule.frame["shard"]} == set(result.instance.labels)
        with pytest.raises(BadInput, match="unknown schedule format"):
            schedule.save(tmp_path / "s.txt")
    elif name.removeprefix("alltoall.") in {"all-gather", "all-reduce", "broadcast", "reduce-scatter"}:
        moves = result.schedule()
        assert moves.check() is None
        assert "simulated T" in repr(moves)
        assert len(moves.frame) == moves.steps.moves
        assert set(moves.frame["adds"]) <= {"all-gather": {False}, "broadcast": {False}, "reduce-scatter": {True}}.get(
            name.removeprefix("alltoall."), {False, True}
        )
        for ending in ("json",) if name == "alltoall.broadcast" else ("xml", "json"):
            assert moves.save(tmp_path / f"s.{ending}")["delivers"]
        with pytest.raises(BadInput, match="unknown schedule format"):
            moves.save(tmp_path / "s.txt")
    elif name in {
        "lumorph.rounds",
        "lumorph.sum-rounds",
        "lumorph.forwarded-rounds",
        "optree.tree",
        "optree.one-stage",
    }:
        rounds = result.schedule()
        assert rounds.save(tmp_path / "r.json")["delivers"]
        assert rounds.frame["round"].max() + 1 == result.metrics["rounds"]
        assert max(rounds.check().values()) <= 1e-6
        assert f"{result.metrics['rounds']} round" in repr(rounds)
        assert all("->" in path for path in rounds.circuits["path"])
    elif name == "topology.sequence":
        schedule = result.schedule()
        assert schedule.save(tmp_path / "s.json")["delivers"]
        assert oc.check(name, result.instance, tmp_path / "s.json", **first_case(name)[1])["verified"]
        assert schedule.frame["amount"].sum() >= result.plan.problem.demand.sum() * (1 - 1e-9)
    else:
        with pytest.raises(BadInput, match="hold no routes"):
            result.schedule()


# files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_saved_solutions_are_read_and_checked_again(name, tmp_path, capsys):
    result = first_result(name)
    path = result.save(tmp_path / "solution.json")
    spec, settings = first_case(name)
    options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    assert main(["check", name, spec, str(path), *options]) == 0, capsys.readouterr().err
    again = oc.load(path)
    assert again.verified
    assert again.objective == pytest.approx(result.objective, rel=1e-9)
    assert again.values.keys() == result.values.keys()
    assert all(np.array_equal(again.values[key], result.values[key]) for key in result.values)
    assert max(again.check().values()) <= 1e-6
    assert again.record.method == result.record.method
    assert again.bound is None or again.record.sense == "min" or again.bound >= again.objective * (1 - 1e-9)
    assert repr(again).splitlines()[0] == repr(result).splitlines()[0]


def test_a_saved_topology_of_ones_own_is_rebuilt(tmp_path):
    result = oc.solve("alltoall.master", clos())
    again = oc.load(result.save(tmp_path / "s.json"))
    assert again.instance == result.instance
    assert again.instance.labels == result.instance.labels
    assert again.link_loads().equals(result.link_loads())
    for model in ("alltoall.master", formulation("alltoall.master")):
        assert oc.check(model, clos(), tmp_path / "s.json")["verified"]


def test_a_solution_of_an_unknown_formulation_says_how_to_load_it(tmp_path):
    path = oc.solve("alltoall.master", "ring:4").save(tmp_path / "s.json")
    path.write_text(path.read_text(encoding="utf-8").replace('"alltoall.master"', '"own.notebook"'), encoding="utf-8")
    with pytest.raises(BadInput, match=r"formulation=YOUR_CLASS\), or oc\.load_plugin"):
        oc.load(path)


@pytest.mark.parametrize("name", ["all-gather", "reduce-scatter", "broadcast", "all-reduce"])
def test_bounds_of_an_objective_that_is_a_time_are_times(name):
    """The metrics of a solution say which is which."""
    rows = oc.bounds("torus:3x3+unit=100Gb/s", f"alltoall.{name}", shard="1MB")
    best = rows.iloc[0]
    metrics = oc.solve(f"alltoall.{name}", "torus:3x3+unit=100Gb/s", shard="1MB").metrics
    assert {one: best[one] for one in ("F", "T", "T_s")} == pytest.approx({k: metrics[k] for k in ("F", "T", "T_s")})
    assert set(rows["quantity"]) == {"T"}
    assert (rows["F"] * rows["T"]).to_numpy() == pytest.approx(1.0)
    assert [float(Fraction(str(one))) for one in rows["T_exact"]] == pytest.approx(rows["T"].to_list())


def test_a_saved_solution_keeps_the_size_of_its_shards(tmp_path):
    result = oc.solve("alltoall.master", "ring:4+unit=100Gb/s", shard="64MB")
    path = result.save(tmp_path / "s.json")
    assert oc.load(path).metrics["T_s"] == result.metrics["T_s"]
    assert oc.load(path, shard="32MB").metrics["T_s"] == pytest.approx(result.metrics["T_s"] / 2)
    path.write_text(path.read_text(encoding="utf-8").replace('"shard_bytes": 64000000.0', '"shard_bytes": "64MB"'))
    with pytest.raises(BadFile, match="shard_bytes must be a number or null"):
        oc.load(path)


def test_a_changed_file_fails_its_check(tmp_path):
    path = oc.solve("alltoall.master", "ring:4").save(tmp_path / "s.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    document["values"]["g"]["value"][0] += 0.5
    document["bound"] = document["objective"]
    path.write_text(json.dumps(document), encoding="utf-8")
    changed = oc.load(path)
    assert not changed.verified
    assert changed.proof != "optimal"
    assert changed.summary()["verified"].startswith("no ")
    with pytest.raises(NoSolution, match="no verified solution"):
        changed.link_loads()


@pytest.mark.parametrize(
    "change",
    [{"record": 3}, {"record": {"time": {"solve_s": "x"}}}, {"formulation": 1}, {"settings": []}, {"values": {}}],
    ids=str,
)
def test_malformed_files_are_refused(tmp_path, change):
    path = oc.solve("alltoall.master", "ring:3").save(tmp_path / "s.json")
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8")
    with pytest.raises(BadFile):
        oc.load(path)


def test_files_that_cannot_be_written(tmp_path):
    with pytest.raises(BadInput, match="cannot be written"):
        first_result("alltoall.master").save(tmp_path / "missing" / "s.json")
    with pytest.raises(BadInput, match=r"name a solution \.json"):
        first_result("alltoall.master").save(tmp_path / "s.xml")


# refusals and failures ----------------------------------------------------------------------------------------


def test_bad_input_is_refused():
    for call, words in (
        (lambda: oc.solve("alltoall.mastr", "ring:4"), "did you mean"),
        (lambda: oc.solve("alltoall.master"), "no instance"),
        (lambda: oc.solve([5]), "cannot solve an object of builtins.list; give the name of a formulation"),
        (lambda: oc.solve("alltoall.master", "ring:4", demnad="uniform"), "did you mean 'demand'"),
        (lambda: oc.solve("alltoall.master", 3.5), "instance|topology"),
        (lambda: oc.solve(oc.Task("alltoall.master", "ring:4"), "ring:5"), "a Task holds"),
        (lambda: oc.solve("alltoall.master", "ring:4", shard="64MB"), "have no unit"),
        (lambda: oc.solve("alltoall.master", "ring:4+unit=1Gb/s", shard="64"), "not a positive size"),
        (lambda: oc.solve("optree.tree", "wdm-ring:n=6,wavelengths=2", shard="1MB"), "has no shards"),
    ):
        with pytest.raises(BadInput, match=words):
            call()


@pytest.mark.parametrize("given", [None, 3, ["highs"]])
def test_methods_and_files_that_are_no_names_are_refused(given):
    figure = oc.plot_topology("ring:4")
    for call, words in (
        (lambda: oc.solve("alltoall.master", "ring:4", method=given), "method: must be the name of a solver"),
        (lambda: oc.model("alltoall.master", "ring:4").solve(given), "method: must be the name of a solver"),
        (lambda: oc.study("alltoall.master", "ring:4", [given]), "must be the name of a solver"),
        (lambda: oc.figure(given), "no figure"),
        (lambda: oc.parse(given), "needs a spec such as 'ring:8', not .*; read objects by oc.topology"),
        (lambda: oc.load(given), "load: needs the name of a file, not"),
        (lambda: figure.save(given), "save: needs the name of a file, not"),
        (lambda: oc.export("alltoall.master", "ring:4", given), "export: needs the name of a file, not"),
        (lambda: oc.save_topology(oc.parse("ring:4"), given), "save_topology: needs the name of a file, not"),
        (lambda: oc.save_topology(given, "x.json"), r"needs a topology, not .*oc.topology\(graph\)"),
    ):
        with pytest.raises(BadInput, match=words):
            call()


def test_arguments_in_another_order_are_refused():
    ring = oc.parse("ring:4")
    for call in (
        lambda: oc.solve("ring:4", "alltoall.master"),
        lambda: oc.solve(ring, "alltoall.master"),
        lambda: oc.model("ring:4", "alltoall.master"),
        lambda: oc.study("ring:4", "alltoall.master"),
        lambda: oc.export("ring:4", "alltoall.master", "x.mps"),
    ):
        with pytest.raises(BadInput, match="the formulation comes first, then the instance"):
            call()
    with pytest.raises(BadInput, match="save_topology: needs a topology, not str"):
        oc.save_topology("x.json", ring)
    for wrong in (3, None):
        with pytest.raises(BadInput, match="methods must be a name or a list of names"):
            oc.study("alltoall.master", "ring:4", methods=wrong)
    for name in ("shard", "time_limit", "method"):
        with pytest.raises(BadInput, match=rf"model: {name} is given to the solve: m.solve\({name}=...\)"):
            oc.model("alltoall.master", "ring:4", **{name: "1MB"})


def test_no_change_and_ranks_named_twice_are_refused():
    with pytest.raises(BadInput, match="no link is given"):
        oc.model("alltoall.master", "ring:4").update(capacity={})
    for obj in (clos(), oc.topology(clos())):
        with pytest.raises(BadInput, match="ranks: 'rack a' occurs twice"):
            oc.topology(obj, ranks=["rack a", "rack b", "rack a"])


def test_refusals_of_a_demand_name_the_ranks():
    net = oc.topology(clos(), ranks=["rack a", "rack b", "rack c"])
    for entry, words in (
        ((0, 2, np.nan), "rank rack a sends nan to rank rack c"),
        ((1, 0, -1.0), "rank rack b sends -1.0 to rank rack a"),
        ((2, 2, 4.0), "rank rack c sends 4 to itself"),
    ):
        demand = np.ones((3, 3)) - np.eye(3)
        demand[entry[:2]] = entry[2]
        with pytest.raises(BadInput, match=words):
            oc.solve("alltoall.master", net, demand=demand)


def test_a_limit_reached_while_the_instance_is_read_ends_the_run(monkeypatch, capfd):
    def spent(task, **_):
        msg = "the time limit was reached while the instance was read"
        raise LimitSpent(msg)

    monkeypatch.setattr(solve, "solve", spent)
    result = oc.solve("alltoall.master", "torus:4x4", time_limit=1.0)
    assert result.termination is Termination.TIME_LIMIT
    assert (result.record.instance, result.plan) == ("torus:4x4", None)
    assert "while the instance was read" in repr(result)
    assert main(["solve", "alltoall.master", "torus:4x4", "--json", "--no-store"]) == 3
    out, err = capfd.readouterr()
    assert json.loads(out)["termination"] == "time-limit"
    assert err == "opticoll: the time limit was reached while the instance was read\n"


def test_a_solve_without_solution_is_a_result():
    failed = oc.solve("alltoall.child", "torus:4x4", time_limit=1e-6)
    assert failed.exit_status == 3
    assert "takes its data from alltoall.master" in repr(failed)
    result = oc.solve("sipml.ocs-circuits", "servers:n=6,degree=2,traffic=alltoall")
    assert not result.verified
    assert result.exit_status == 3
    assert result.summary()["infeasible"].startswith("proven by")
    assert result.summary()["verified"] == "no"
    for use in (result.link_loads, result.schedule, result.check, result.plot, lambda: result.frames):
        with pytest.raises(NoSolution):
            use()


# units --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [("64MB", 64e6), ("64MiB", 64 * 2**20), ("1.5 kB", 1500.0), ("8Mb", 1e6), ("1e3B", 1000.0), (12, 12.0)],
)
def test_sizes(text, expected):
    assert parse_size(text) == expected


@each("text", ["64", "MB", "64 mb", "-1MB", "0MB", "1e999MB", "64MB/s", "1_0MB", "٣MB", True, float("nan")])
def test_wrong_sizes(text):
    with pytest.raises(BadInput, match="not a positive size"):
        parse_size(text)


def test_rates():
    assert parse_rate("Gb/s") == parse_rate("1Gbps") == parse_rate("1 Gbit/s") == 1e9
    assert parse_rate("12.5GB/s") == 1e11
    for text in ("100", "100Gb", "0Gb/s", "Gb/h"):
        with pytest.raises(BadInput, match="not a positive rate"):
            parse_rate(text)


def test_seconds_bytes_and_bits_per_second():
    result = oc.solve("alltoall.master", "ring:8+unit=100Gb/s", shard="64MB")
    assert result.metrics["T"] == pytest.approx(8.0)
    assert result.metrics["T_s"] == pytest.approx(8 * 64e6 * 8 / 100e9)
    assert result.summary()["T"] == "0.04096 s = 8   [shards / link bandwidth]"
    assert result.frame("g")["Gb/s"].max() == pytest.approx(result.frame("g")["g"].max() * 100)
    assert result.link_loads()["load [Gb/s]"].max() == pytest.approx(100.0)
    assert "Gb/s" in result.plot().axes[1].get_ylabel()
    gathered = oc.solve("alltoall.all-gather", "ring:4+unit=Gb/s", shard=1e9)
    assert gathered.metrics["T_s"] == pytest.approx(1.5 * 8)
    assert gathered.link_loads()["load [bytes]"].max() == pytest.approx(gathered.link_loads()["load"].max() * 1e9)


def test_without_units_nothing_changes():
    result = first_result("alltoall.master")
    assert "T_s" not in result.metrics
    assert list(result.frame("g").columns) == ["arc", "source", "g"]
    assert oc.parse("ring:8+unit=100Gb/s").hash == oc.parse("ring:8").hash


# plots --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_plots_have_a_heading_a_scale_and_units(name):
    result = first_result(name)
    if not states(formulation(name), "links"):
        with pytest.raises(BadInput, match="no link loads"):
            result.plot()
        return
    figure = result.plot()
    heading = figure.get_suptitle()
    assert name in heading
    assert result.record.instance in heading
    scales = [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()]
    if "all on one wavelength" in heading:
        assert not scales
        return
    assert len(scales) == 1
    assert re.search(r"\[.+\]", scales[0])
    assert len(png(figure, dpi=50)) > 3000


def test_plots_leave_no_global_state():
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    first_result("alltoall.master").plot()
    assert dict(mpl.rcParams) == before


# models and drawings -------------------------------------------------------------------------------------------


def test_models_are_stated_in_both_layers():
    import cvxpy as cp
    import pyomo.environ as pyo

    first, second = oc.model("alltoall.master", "ring:4"), oc.model("alltoall.master", "ring:4", form="cvxpy")
    assert isinstance(first.stated, pyo.ConcreteModel)
    assert isinstance(second.stated, cp.Problem)
    assert first.matrix.size == second.matrix.size
    assert first.mathematics.startswith("Maximum concurrent flow grouped by source")
    assert "33 variables" in repr(first)
    for call, words in (
        (lambda: oc.model("alltoall.child", "ring:4"), "takes its data from a solution of alltoall.master"),
        (lambda: oc.problem("alltoall.child", "ring:4"), "takes its data from a solution of alltoall.master"),
        (lambda: oc.model("alltoall.master", "ring:4", form="gams"), "not stated in 'gams'"),
        (lambda: oc.model("alltoall.master", "ring:4", demnad="uniform"), "did you mean 'demand'"),
        (lambda: oc.plot_topology("servers:n=4,degree=2,traffic=alltoall"), "not a topology"),
        (lambda: oc.plot_topology("ring:4", layout="round"), "unknown layout"),
        (lambda: oc.plot_topology("ring:4", layout="grid"), "needs a mesh or torus"),
    ):
        with pytest.raises(BadInput, match=words):
            call()


@each(
    "spec",
    [
        "path:4",
        "star:5",
        "mesh:2x3x2",
        "torus:2x2x2x3",
        "hypercube:5",
        "twisted-hypercube:3",
        "bipartite:3x2",
        "petersen",
        "dgx1",
        "dragonfly:a=3,h=1",
        "kautz:d=2,D=2",
        "debruijn:d=2,D=3",
        "xpander:n=8,d=3,seed=1",
        "wdm-line:n=4,wavelengths=2",
        "ring:4+host=2.0",
        "mesh:3x3+fail=2",
        "torus:2x1",
        "ring:2",
        "fat-tree:k=4",
        "nvswitch:boxes=2,gpus=4",
        "ideal-switch:n=3",
    ],
)
def test_no_family_draws_vertices_on_top_of_each_other(spec):
    from scipy.spatial.distance import pdist

    from opticoll.analysis.plots.layouts import arrangement

    topology = oc.parse(spec)
    place = arrangement(topology).place
    assert place.shape == (topology.n, 2)
    assert np.isfinite(place).all()
    assert pdist(place).min(initial=np.inf) > 0.05


def test_a_loaded_integer_program_says_why_its_bound_is_not_proven(tmp_path):
    program = tmp_path / "two.lp"
    program.write_text("Maximize\n obj: 5 x + 4 y\nSubject To\n c1: 2 x + 3 y <= 7\nGeneral\n x y\nEnd\n")
    solved = oc.solve("matrix.program", f"mps:{program}")
    file = solved.save(tmp_path / "two.json")
    assert solved.proof == "optimal"
    for _ in range(2):  # saved again, it says so once
        loaded = oc.load(file)
        assert loaded.proof == "feasible"
        assert loaded.record.message.count("is not in the file; solve again with start=") == 1
        loaded.save(file)
    assert oc.solve("matrix.program", f"mps:{program}", start=loaded).proof == "optimal"
    flow = oc.solve("alltoall.master", "ring:4").save(tmp_path / "flow.json")  # proven by its duals
    assert not oc.load(flow).record.message


def test_bounds_go_on_to_seconds_and_restate_no_floating_point_number():
    rows = oc.bounds("ring:6+unit=100Gb/s", shard="1MB")
    assert rows["T_s"].to_numpy(dtype=float) == pytest.approx(rows["T"].to_numpy(dtype=float) * 8e-5)
    assert "T_s" not in oc.bounds("ring:6")
    assert str(oc.bounds("ring:6").set_index("name")["T_exact"]["distance"]) == "9/2"
    assert oc.bounds("ring:6", demand="random:1")["T_exact"].isna().all()
    result = oc.solve("alltoall.master", "ring:6+unit=100Gb/s", shard="1MB")
    assert all(row["T_s"] == pytest.approx(8e-5 * row["T"]) for row in result.bound_rows())


def test_a_notebook_shows_the_own_lines_and_the_message():
    """As IPython asks an exception for it."""
    with pytest.raises(oc.BadInput) as caught:
        oc.parse("rong:4")
    lines = caught.value._render_traceback_()
    assert lines[-1] == f"BadSpec: {caught.value}"
    assert [line for line in lines if line.startswith("  File")][-1].startswith(f'  File "{__file__}"')
