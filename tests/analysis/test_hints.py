"""Natural mistakes are answered by what was probably meant."""

from __future__ import annotations

import re

import cvxpy as cp
import networkx as nx
import pytest

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.errors import BadInput

MISTAKES = {
    "solve all-to-all ring:4": "'alltoall.master'",
    "solve alltoall ring:4": "'alltoall.link-mcf'",
    "solve mcf ring:4": "'alltoall.link-mcf', 'alltoall.path-mcf'",
    "solve alltoall.LINK_MCF ring:4": "did you mean 'alltoall.link-mcf'?",
    "solve alltoall.master ring:4 --method simplex": "did you mean 'highs-simplex'?",
    "solve alltoall.master ring:4 --steps 9": "--set steps=VALUE",
    "solve alltoall.master ring 4": "this command takes FORMULATION INSTANCE",
    "bounds alltoall.master ring:4": "this command takes INSTANCE",
    "solv": "did you mean 'solve'?",
    "benchmark foo": "known: compare",
    "claims theorem-1": "one of 'optree.theorem1', 'topoopt.theorem-1'?",
    "claims theorem-2": "one of 'alltoall.theorem-2', 'optree.theorem2', 'topoopt.theorem-2'?",
    "figure 8": "one of 'alltoall-8', 'lumorph-8'",
    "figure list": "`opticoll list figures`",
    "study list": "no study 'list'; `opticoll list studies`",
    "results latest": 'write SQL, such as "SELECT * FROM latest"',
    "solve alltoall.master ring:4 --method ipopt": "known: auto",
    "solve alltoall.master ring:4 --method ortools": "its solvers: cp-sat, glop, pdlp",
    "solve alltoall.master ring:4 --set ranks=h*": "in a spec file:PATH,ranks=PATTERN",
    "solve alltoall.master ring:8,unit=9Gb/s": "write +unit=9Gb/s behind the arguments",
    "solve alltoall.master ring:4 --shard 64MB": "give one: ring:4+unit=100Gb/s",
    "solve alltoall.master ring:4 --demand no.csv": "demand='no.csv' is unknown, and there is no such file",
    "solve topology.design servers:n=8,d=3": "did you mean 'degree'?",
    "list foo": "Invalid value for 'KIND': 'foo'",
    "results --store missing": "no such folder",
    "compare demo --store missing": "no such folder",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_answered_in_one_line_by_what_was_meant(words, capsys):
    assert main(words.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert MISTAKES[words] in printed.err


@pytest.mark.parametrize("command", ["results", "compare demo", "report", "figure alltoall-8"])
def test_a_store_that_is_named_and_missing_is_refused(command, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("OPTICOLL_STORE", str(tmp_path / "missing"))
    assert main(command.split()) == 2
    assert "no such folder; name a store" in capsys.readouterr().err
    with pytest.raises(BadInput, match="no such folder"):
        oc.Store().sql()


def test_arrays_that_are_missing_are_answered():
    linear, integer = oc.solve("alltoall.master", "ring:4"), oc.solve("alltoall.min-congestion", "ring:4")
    x = cp.Variable(name="x")
    none = oc.solve(cp.Problem(cp.Minimize(x), [x >= 1, x <= 0]))
    for of, name, said in [
        (linear.values, "flo", "values: none is called 'flo'; known: F, g"),
        (linear.duals, "capacit", "duals: none is called 'capacit'; did you mean 'capacity'?"),
        (integer.duals, "capacity", "there are no duals"),
        (none.values, "x", "there are no values"),
    ]:
        with pytest.raises(BadInput, match=re.escape(said)):
            of[name]


def test_lab_passes_options_on_to_jupyterlab(monkeypatch):
    started = []
    done = type("Done", (), {"returncode": 0})
    monkeypatch.setattr("subprocess.run", lambda command, **_: started.append(command) or done)
    assert main(["lab", "--no-browser", "--port=9"]) == 0
    assert started[0][-2:] == ["--no-browser", "--port=9"]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"ranks": [0, 1]}, "ranks=..."),
        ({"ranks": "gpu*"}, "ranks=..."),
        ({"capacity": "100Gb/s", "shard": "64MB"}, "capacity=..."),
        ({"capacity": 2, "unit": "Gb/s", "shard": "64MB"}, "capacity=..., unit=..."),
        ({"loops": "drop"}, "loops=..."),
    ],
)
def test_a_property_of_the_topology_among_the_settings_names_the_function_that_takes_it(given, named):
    with pytest.raises(BadInput, match=re.escape(f"oc.topology(INSTANCE, {named})")):
        oc.solve("alltoall.master", nx.cycle_graph(4), **given)
    settings = {name: value for name, value in given.items() if name != "shard"}
    for call in (oc.model, oc.study):
        with pytest.raises(BadInput, match=re.escape(f"oc.topology(INSTANCE, {named})")):
            call("alltoall.master", nx.cycle_graph(4), **settings)


def test_a_demand_that_is_the_name_of_a_file_is_answered_by_how_files_are_named(tmp_path):
    file = tmp_path / "demand.csv"
    file.write_text("0 1\n1 0\n")
    with pytest.raises(BadInput, match=re.escape(f"is a file; write demand=file:{file}")):
        oc.solve("alltoall.master", "ring:4", demand=str(file))


def test_a_graph_without_a_unit_names_the_function_that_takes_it():
    with pytest.raises(BadInput, match=re.escape("give one: oc.topology(..., unit='100Gb/s')")):
        oc.solve("alltoall.master", nx.cycle_graph(4), shard="64MB")


def test_a_model_of_another_layer_is_answered_by_the_function_that_takes_it(tmp_path):
    x = cp.Variable(2, nonneg=True, name="x")
    model = cp.Problem(cp.Minimize(x[0] + x[1]), [x[0] + 2 * x[1] >= 3])
    for call in (
        lambda: oc.model(model),
        lambda: oc.model(model, "ring:4"),
        lambda: oc.export(model, "m.lp"),
        lambda: oc.bounds("ring:4", model),
        lambda: oc.check(model, "ring:4", "x.json"),
    ):
        with pytest.raises(BadInput, match=r"r\.instance is an instance of 'matrix.program'"):
            call()
    file = tmp_path / "m.mps"
    oc.export("matrix.program", oc.solve(model).instance, file)
    assert oc.solve("matrix.program", f"mps:{file}").value == pytest.approx(1.5)
    with pytest.raises(BadInput, match="model: no instance"):
        oc.model("alltoall.master")
    with pytest.raises(BadInput, match="export: needs the name of a file"):
        oc.export("alltoall.master", "x.lp")


def test_a_graph_with_named_rates_names_the_function_that_takes_them():
    graph = nx.cycle_graph(4)
    nx.set_edge_attributes(graph, 10, "gbps")
    for extra in ({}, {"capacity": "gbps"}):
        with pytest.raises(BadInput, match='topology capacity="gbps"'):
            oc.solve("alltoall.master", graph, **extra)


class _OtherGraph:
    """Has nodes and edges, as graphs of other packages, and other signatures than networkx."""

    def nodes(self):
        return [0, 1]

    def edges(self):
        return [None]


class _Triples(_OtherGraph):
    def nodes(self, data):
        return [(0, {}), (1, {})]

    def edges(self, data):
        return [(0, 1)]


@pytest.mark.parametrize("graph", [_OtherGraph(), _Triples()])
def test_graphs_of_other_packages_are_refused_in_one_line(graph):
    with pytest.raises(BadInput, match="which is no networkx graph; give a list of its links"):
        oc.topology(graph)
