"""Sweeps find violations of a bound, count isomorphic copies once, and resume."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from reference import labelled_digraphs

import opticoll as oc
from opticoll.analysis.bounds.bound_comparison import Quantity, compared
from opticoll.analysis.bounds.bound_values import ComparedBound
from opticoll.analysis.bounds.bounded_quantity import Sense
from opticoll.analysis.bounds.sweep import Case, Status, sweep
from opticoll.analysis.cli.main import main
from opticoll.analysis.ledger.comparisons import certified_flow
from opticoll.analysis.store import Store
from opticoll.analysis.study.cells import CellResult
from opticoll.analysis.study.running import Summary
from opticoll.analysis.study.study_file import Study
from opticoll.errors import BadInput, SolverUnavailable
from opticoll.formulations import Formulation
from opticoll.instances import Topology, parse
from opticoll.instances.spec import expand
from opticoll.solvers.task import Proof, Record

BOUNDS = '''
"""Bounds for the tests."""

def distance(instance):
    return instance.hops.sum() / instance.capacity.sum()

def loose(instance, data):
    return distance(instance) / 2 if data.topology.n > 3 else None

def broken(instance):
    if instance.n == 4:
        raise ValueError("four\\nnodes")
    return float("nan") if instance.n == 5 else distance(instance)

def always(instance):
    return instance.no_such_field

NOT_A_FUNCTION = 3
'''


@pytest.fixture
def bounds(tmp_path: Path) -> Path:
    path = tmp_path / "bounds.py"
    path.write_text(BOUNDS, encoding="utf-8")
    return path


def distance(instance: Topology) -> float:
    return float(instance.hops.sum() / instance.capacity.sum())


def test_a_false_theorem_is_refuted_by_the_smallest_digraph():
    """False: the hop-distance bound on T is attained by regular digraphs. It fails from 5 nodes on."""
    for n, d in ((3, 1), (3, 2), (4, 1), (4, 2), (4, 3)):
        assert all(1 / certified_flow(g) == pytest.approx(distance(g)) for g in labelled_digraphs(n, d))
    members = [spec for n in (3, 4, 5) for spec in expand(f"all-digraphs:n={n},d=2")]
    failing = [spec for spec in members if 1 / certified_flow(parse(spec)) > distance(parse(spec)) + 1e-6]
    result = sweep("alltoall.master", distance, "all-digraphs:n={3..5},d=2", on="T", sense="upper")
    assert (result.instances, result.classes, result.decided, result.violations) == (8, 8, 8, len(failing))
    assert [case.case for case in result.cases if case.status is Status.VIOLATED] == failing
    assert result.counterexample == min(failing)
    assert parse(result.counterexample).n == 5
    as_lower = sweep("alltoall.master", distance, "all-digraphs:n={3..5},d=2", on="T")
    assert (as_lower.violations, as_lower.counterexample) == (0, None)
    assert [[case.case for case in one.rows] for one in result.tables()] == [failing]
    assert as_lower.tables() == []
    assert as_lower.tightness.exact == 8 - len(failing)
    assert as_lower.tightness.max == pytest.approx(1.0)
    assert as_lower.tightness.min == pytest.approx(
        min(distance(parse(spec)) * certified_flow(parse(spec)) for spec in failing)
    )


def test_cases_are_those_of_an_independent_solver():
    result = sweep("alltoall.master", "moore", ["ring:{3..5}", "digraph:12.2.0"])
    assert result.sense == "upper"
    for case in result.cases:
        assert case.optimum == pytest.approx(certified_flow(parse(case.case)), rel=1e-6)
        assert case.status is Status.HOLDS
        assert case.ratio == pytest.approx(case.bound / case.optimum)
    frame = result.frame
    assert list(frame["case"]) == ["ring:3", "ring:4", "ring:5", "digraph:12.2.0"]
    assert frame["ratio"].min() >= 1 - 1e-9
    assert "violations" in repr(result)


def test_isomorphic_copies_are_one_case():
    copies = [parse("ring:5").relabelled(np.random.default_rng(s).permutation(5)) for s in range(3)]
    result = oc.sweep("alltoall.master", distance, ["ring:5", *copies, "ring:5", "complete:4"], on="T")
    assert [(case.case, case.copies) for case in result.cases] == [("ring:5", 5), ("complete:4", 1)]
    assert (result.instances, result.classes) == (6, 2)


def test_a_demand_keeps_copies_apart():
    copy = parse("path:3").relabelled([1, 0, 2])
    result = sweep("alltoall.master", distance, ["path:3", copy], on="T", settings={"demand": "permutation:1"})
    assert (result.instances, result.classes) == (2, 2)
    assert all(case.optimum is not None for case in result.cases)


def test_copies_are_kept_apart_where_their_optima_may_differ():
    """Disjoint paths break ties by number: relabelled, a formulation over them has another optimum."""
    copy = parse("path:3").relabelled([1, 0, 2])
    over = ["path:3", copy]
    for paths, classes in (("shortest", 1), ("all", 1), ("disjoint", 2), ("k", 2)):
        result = sweep("alltoall.path-mcf", distance, over, on="T", settings={"paths": paths})
        assert result.classes == classes, paths
    assert sweep("alltoall.child", lambda _: 9.0, over).classes == 2, "the source is rank 0"
    middle = sweep("alltoall.master", lambda topology: float(topology.out_degree[0]) / 9, over, on="T")
    assert [case.bound for case in middle.cases] == pytest.approx([1 / 9, 2 / 9]), "the bound depends on the numbering"


@pytest.mark.parametrize("returned", ["3", True, np.True_, 1j, np.ones(2), 10**400])
def test_what_a_bound_returns_must_be_a_number(returned):
    with pytest.raises(BadInput, match=r"returned .{1,60}; return a number, or None"):
        sweep("alltoall.master", lambda _instance: returned, ["ring:4"], on="T")


def test_a_sweep_that_decides_nothing_has_no_answer(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    command = ["sweep", "alltoall.master", "--bound", "moore", "--over", "genkautz:n={100,101},d=3"]
    assert main([*command, "--time-limit", "1e-9"]) == 3
    assert "undecided 2" in " ".join(capfd.readouterr().out.split())


def test_functions_of_the_data_and_errors_are_rows(bounds, private_store, capsys):
    command = ["sweep", "alltoall.master", "--on", "T", "--over", "ring:{3..6}"]
    assert main([*command, "--bound", f"{bounds}:loose", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["cases"]
    assert [row["status"] for row in rows] == ["inapplicable", "holds", "holds", "holds"]
    assert rows[1]["ratio"] == pytest.approx(0.5)
    assert rows[0]["optimum"] is None
    assert len(records(private_store)) == 3  # a case without a bound is not solved
    assert main([*command, "--bound", f"{bounds}:broken", "--json"]) == 1
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert [row["status"] for row in result["cases"]] == ["holds", "error", "error", "holds"]
    assert (result["errors"], result["decided"]) == (2, 2)
    assert "opticoll: sweep: broken on ring:4: ValueError: four nodes (bounds.py:" in err
    assert "returned nan" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--bound", "mooore"],
            "--bound mooore: alltoall.master has no bound of this name here; did you mean 'moore'?",
        ),
        (["--bound", "{file}:distanc"], "has no function 'distanc'; did you mean 'distance'?"),
        (["--bound", "{file}:NOT_A_FUNCTION"], "has no function 'NOT_A_FUNCTION'"),
        (["--bound", "{bad}:f"], "bad.py, line 1: SyntaxError"),
        (["--bound", "{file}:always"], "fails on every case, first on ring:4: AttributeError"),
        (["--bound", "moore", "--on", "X"], "--on X: a bound on a metric is a function"),
        (["--bound", "{file}:distance", "--on", "X", "--sense", "lower"], "--on X: no such metric; known: F, "),
        (["--bound", "moore", "--on", "T", "--sense", "upper"], "are lower bounds; omit --sense"),
        (["--bound", "moore", "--over", "ring:{5..4}"], "is not a valid range"),
        (["--bound", "moore", "--over", "servers:n=4,degree=1"], "servers:n=4,degree=1"),
        (["--bound", "moore", "--method", "hihgs"], "did you mean 'highs'?"),
        (["--bound", "moore", "--set", "k=2"], "'k'"),
        (["--bound", "moore", "--bound", "moore"], "--bound is given twice; run the command once for each"),
        (["--bound", "moore", "--jobs", "2", "--dask", "x"], "--jobs and --dask are mutually exclusive"),
    ],
)
def test_wrong_input_is_refused_in_one_line(bounds, tmp_path, private_store, capsys, options, message):
    bad = tmp_path / "bad.py"
    bad.write_text("def f(:\n", encoding="utf-8")
    options = [option.replace("{file}", str(bounds)).replace("{bad}", str(bad)) for option in options]
    assert main(["sweep", "alltoall.master", "--over", "ring:4", *options]) == 2
    err = capsys.readouterr().err.strip()
    assert message in err
    assert len(err.splitlines()) == 1
    records = private_store / "records"
    assert "--sense" in options or not records.exists()


@pytest.mark.parametrize(
    ("name", "over", "settings"),
    [
        ("alltoall.link-mcf", "ring:4", {"printed": True}),
        ("alltoall.child", "ring:4", {}),
        ("topoopt.routing", "servers:n=5,degree=2,traffic=dlrm", {}),
    ],
)
def test_no_bound_on_T_where_1_over_F_is_no_time(bounds, tmp_path, name, over, settings):
    with pytest.raises(BadInput, match=f"on='T': 1/F of {name} with these settings is not the time of a collective"):
        oc.sweep(name, f"{bounds}:distance", over, on="T", settings=settings, store=tmp_path / "own")
    assert not (tmp_path / "own" / "records").exists()


def test_an_unavailable_solver_is_reported_before_anything_runs(monkeypatch):
    from opticoll.solvers.adapters import Adapter

    monkeypatch.setattr(Adapter, "installed", lambda self: False)
    with pytest.raises(SolverUnavailable, match="highs"):
        sweep("alltoall.master", "moore", "ring:4", method="highs")


def test_a_solver_without_licence_ends_the_sweep(monkeypatch, capsys):
    def without_licence(study: Study, *_: object) -> Summary:
        results = {cell.key: CellResult(cell.key, "unavailable", message="no usable licence") for cell in study.cells}
        return Summary(study, results)

    monkeypatch.setattr("opticoll.analysis.study.running.run_with_progress", without_licence)
    assert main(["sweep", "alltoall.master", "--bound", "moore", "--over", "ring:{4,5}"]) == 4
    assert capsys.readouterr().err == "opticoll: no usable licence\n"


RECORD = Record(
    verified=True, sense="min", objective=10.0, bound=8.0, proof=Proof.CERTIFIED_GAP, metrics={"rounds": 10}
)


def judged(value: float, sense: Sense, record: Record | None = RECORD, *, metric: bool = False) -> Case:
    quantity = Quantity("rounds" if metric else "objective", sense, metric=metric)
    return compared(parse("ring:4"), 1, ComparedBound(value, Fraction(value), True), record, quantity)


def test_only_certain_violations_count_where_the_optimum_is_unknown():
    """The optimum lies in [8, 10]."""
    assert judged(9.0, "lower").status is Status.UNDECIDED
    assert judged(10.1, "lower").status is Status.VIOLATED
    assert judged(7.9, "upper").status is Status.VIOLATED
    assert judged(9.0, "upper").status is Status.UNDECIDED
    assert judged(20.0, "lower", metric=True).status is Status.UNDECIDED
    assert judged(20.0, "lower", None).status is Status.UNDECIDED
    assert all(judged(v, "lower").ratio is None for v in (9.0, 10.1))
    unverified = Record(verified=False, sense="min", objective=10.0, bound=8.0)
    assert judged(11.0, "lower", unverified).status is Status.UNDECIDED
    assert judged(7.0, "upper", unverified).status is Status.VIOLATED


def test_a_proven_optimum_decides():
    record = Record(verified=True, sense="min", objective=10.0, bound=10.0, proof=Proof.OPTIMAL, metrics={"rounds": 10})
    assert (judged(9.0, "lower", record).status, judged(9.0, "lower", record).ratio) == (Status.HOLDS, 0.9)
    assert judged(10.000001, "lower", record).status is Status.HOLDS
    assert judged(10.001, "lower", record).status is Status.VIOLATED
    assert judged(11.0, "lower", record, metric=True).status is Status.VIOLATED
    nothing = Record(verified=False, sense="min", infeasible_by="a bound")
    assert judged(9.0, "lower", nothing).status is Status.INAPPLICABLE


def records(store: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (store / "records").glob("*.json")}


#: The command line; from its fourth solve on it takes an hour for each.
SLOWER = """
import sys, time
from opticoll.analysis.cli.main import main
from opticoll.solvers import solve as module

inner, tasks = module.solve, []

def solve(task, **named):
    tasks.append(task)
    if len(tasks) > 3:
        time.sleep(3600)
    return inner(task, **named)

module.solve = solve
sys.exit(main())
"""


@pytest.mark.parametrize("number", [pytest.param(signal.SIGKILL, marks=pytest.mark.slow), signal.SIGINT])
def test_an_interrupted_sweep_resumes(tmp_path, number, capsys):
    store, over = tmp_path / "store", "all-digraphs:n={3..5},d=2"
    words = ["sweep", "alltoall.master", "--bound", "moore", "--over", over, "--store", str(store), "--json"]
    process = subprocess.Popen(
        [sys.executable, "-c", SLOWER, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        while len(records(store)) < 2:
            assert process.poll() is None
            time.sleep(0.02)
        os.kill(process.pid, number)
        out, err = process.communicate(timeout=240)
    finally:
        process.kill()
    before = records(store)
    assert 2 <= len(before) <= 3
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert json.loads(out)["interrupted"] is True
        assert "run the same command again to resume" in err
    assert main(words) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["classes"], result["decided"], result["interrupted"]) == (8, 8, False)
    after = records(store)
    assert len(after) == 8
    assert all(after[name] == text for name, text in before.items())
    assert len({record.key for record in map(Store(store).read, Store(store).names())}) == 8


def test_a_sweep_needs_a_case():
    with pytest.raises(BadInput, match="names no instance"):
        sweep("alltoall.master", "moore", [])


class Circulation(Formulation):
    """The largest circulation with unit capacities, as a user states it."""

    name, sense = "own.circulation", "max"

    def cvxpy(self):
        import cvxpy as cp

        x = cp.Variable(self.instance.arcs, name="x", bounds=[0, 1])
        return cp.Problem(cp.Maximize(cp.sum(x)), [self.instance.incidence() @ x == 0])

    def residuals(self, values):
        return {"balance": float(abs(self.instance.incidence() @ values["x"]).max())}

    def objective(self, values):
        return float(values["x"].sum())


class Unlabelled(Circulation):
    @classmethod
    def _label_invariant(cls, parameters):
        return True


@pytest.mark.parametrize(("own", "copies"), [(Circulation, [1, 1, 1, 1]), (Unlabelled, [1, 2, 1])])
def test_own_formulation_on_graphs_and_matrices(own, copies):
    graph = nx.DiGraph([(0, 1), (1, 2), (2, 0), (1, 3)])  # no circuit through the last arc
    over = [graph, nx.cycle_graph(4), np.ones((3, 3)) - np.eye(3), nx.relabel_nodes(nx.cycle_graph(4), {1: 2, 2: 1})]
    result = oc.sweep(own, lambda topology: float(topology.arcs), over)
    assert [case.copies for case in result.cases] == copies
    assert [case.optimum for case in result.cases][:3] == pytest.approx([3, 8, 6])
    assert (result.formulation, result.violations) == ("own.circulation", 0)
    alone = oc.sweep(Circulation, lambda topology: 3.0, graph)
    assert [case.ratio for case in alone.cases] == pytest.approx([1.0])


def test_named_bound_of_a_plugin(bounds, capsys):
    text = "def half(topology):\n    return 0.5 if topology.n > 3 else None\nBOUNDS = {'alltoall.master': half}\n"
    own = bounds.parent / "own.py"
    own.write_text(text, encoding="utf-8")
    command = ["sweep", "alltoall.master", "--over", "complete:{3..5}", "--plugin", str(own), "--json"]
    assert main([*command, "--bound", "half"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [case["status"] for case in result["cases"]] == ["inapplicable", "violated", "violated"]
    assert result["counterexample"] == "complete:4"
