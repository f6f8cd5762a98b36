"""Fractions of bounds: recomputed in rational arithmetic, next to their floats, and never beyond exact optima."""

from __future__ import annotations

import json
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from case_families import each

import opticoll as oc
from opticoll.analysis.bounds.instance_bounds import bound_rows
from opticoll.analysis.cli.main import main
from opticoll.formulations import rounding
from opticoll.formulations.model import Bound, Formulation
from opticoll.instances import Topology

DECIMALS = oc.topology([(0, 1, 0.1), (1, 2, 0.3), (2, 0, 0.7), (1, 0, 1.1), (0, 2, 0.2)])
TOPOLOGIES = [oc.parse(spec) for spec in ("genkautz:n=16,d=4", "path:4", "torus:3x4", "ring:5,directed", "dgx1")]
TOPOLOGIES.append(DECIMALS)


def graph_of(topology: Topology) -> nx.DiGraph:
    graph = nx.DiGraph()
    ends = zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True)
    for u, v, capacity in ends:
        held = graph.get_edge_data(u, v, {"capacity": Fraction(0)})["capacity"]
        graph.add_edge(u, v, capacity=held + Fraction(repr(capacity)))
    return graph


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=lambda topology: topology.spec)
def test_distances_and_ports_are_those_of_networkx(topology):
    graph = graph_of(topology)
    ranks = topology.terminals.tolist()
    hops = sum(nx.shortest_path_length(graph, s, t) for s in ranks for t in ranks)
    total = sum(capacity for *_, capacity in graph.edges.data("capacity"))
    rows = {row["name"]: row for row in bound_rows(topology)}
    assert Fraction(rows["distance"]["value_exact"]) == total / hops
    assert Fraction(rows["distance"]["T_exact"]) == hops / total
    least = min(side(v, weight="capacity") for side in (graph.in_degree, graph.out_degree) for v in ranks)
    assert Fraction(rows["node-cut"]["value_exact"]) == least / (len(ranks) - 1)


@pytest.mark.parametrize(
    ("topology", "demand"),
    [
        pytest.param(topology, demand, marks=[] if (t + d) % 3 == 0 or topology is DECIMALS else pytest.mark.slow)
        for t, topology in enumerate(TOPOLOGIES)
        for d, demand in enumerate((None, "permutation:1", "random:2"))
    ],
    ids=lambda given: given.spec if isinstance(given, Topology) else str(given),
)
def test_fractions_bound_the_exact_optimum(topology, demand):
    optimum = oc.solve("alltoall.master", topology, demand=demand, exact=True).objective_exact
    assert optimum is not None
    rows = bound_rows(topology, "alltoall.master", demand=demand)
    exact = {row["name"] for row in rows if row["value_exact"]}
    if demand != "random:2":  # sums of random decimals are too long to be shown as fractions
        assert exact >= {"distance", "sweep-cut", "moore", "node-cut"}
    for row in rows:
        if row["value_exact"] is not None:
            assert Fraction(row["value_exact"]) >= optimum
            assert float(Fraction(row["value_exact"])) == pytest.approx(row["value"], rel=1e-12)


def test_whole_data_give_the_nearest_floats():
    rows = {row["name"]: row for row in bound_rows("genkautz:n=16,d=4")}
    assert rows["distance"]["T"] == 7.0
    assert rows["moore"]["T_exact"] == "104/15"
    assert rows["any-lengths"]["T_exact"] is None, "found in floating point"
    table = oc.bounds("genkautz:n=16,d=4")
    assert set(table["T_exact"]) == {7, Fraction(104, 15), 5, None}
    assert "104/15" in table.to_latex()


@each(
    ("name", "instance", "settings"),
    [
        ("alltoall.all-gather", DECIMALS, {}),
        ("alltoall.broadcast", DECIMALS, {}),
        ("alltoall.all-reduce", DECIMALS, {}),
        ("alltoall.reduce-scatter", DECIMALS, {}),
        ("alltoall.path-mcf", "torus:3x3", {"paths": "shortest"}),
        ("alltoall.path-mcf", DECIMALS, {"paths": "k", "k": 2}),
        ("alltoall.min-congestion", "ring:4", {}),
        ("alltoall.min-congestion", "ring:4", {"kappa": 2}),
        ("alltoall.timestep-mcf", "ring:4", {"steps": 2}),
        ("topology.design", "servers:n=5,degree=2,traffic=alltoall", {}),
        ("topology.matchings", "servers:n=4,degree=2", {"delay": 0.5}),
        ("topology.sequence", "servers:n=4,degree=1,traffic=alltoall", {"configurations": 2, "delay": 0.1}),
    ],
)
def test_fractions_of_other_formulations(name, instance, settings):
    result = oc.solve(name, instance, exact=True, **settings)
    optimum = result.objective_exact
    assert optimum is not None
    rows = bound_rows(instance, name, settings)
    known = [row for row in rows if row["value_exact"] is not None]
    assert known
    for row in known:
        bound = Fraction(row["value_exact"])
        assert bound >= optimum if row["sense"] == "upper" else bound <= optimum, row["name"]
        assert float(bound) == pytest.approx(row["value"], rel=1e-9)


def test_sums_of_decimals_are_exact():
    assert rounding.exact_sum([0.1] * 10) == 1
    assert rounding.exact_sum(np.full(1000, 3.0)) == 3000
    assert rounding.exact_sum([]) == 0
    assert rounding.exact_sum([1.5, np.inf]) is None
    assert rounding.quotient(Fraction(1), None) is None
    assert rounding.quotient(Fraction(1), Fraction(0)) is None


def test_counts_are_their_own_fractions():
    assert Bound("count", 3.0, "").rational == 3
    assert Bound("time", 0.5, "").rational is None
    assert Bound("none", np.inf, "").rational is None
    assert Bound("third", 1 / 3, "", fraction=Fraction(1, 3)).rational == Fraction(1, 3)


class Own(Formulation):
    """A formulation with a bound that is a fraction."""

    name, sense = "own.fractions", "max"

    def cvxpy(self):
        raise NotImplementedError

    def residuals(self, values):
        return {}

    def objective(self, values):
        return 0.0

    def bounds(self):
        return [Bound("third", Fraction(1, 3), "a third")]


@pytest.mark.usefixtures("forgotten_plugins")
def test_own_bounds_may_be_fractions(tmp_path, capsys):
    (row,) = bound_rows("ring:4", Own)
    assert row["value_exact"] == "1/3"
    assert Fraction(row["value"]) >= Fraction(1, 3)
    file = tmp_path / "own.py"
    file.write_text(
        "from fractions import Fraction\nimport opticoll as oc\n"
        "@oc.bound_on('T')\ndef seventh(g):\n    'A bound on T.'\n    return Fraction(7, 3)\n"
        "BOUNDS = {'alltoall.master': seventh}\n",
        encoding="utf-8",
    )
    assert main(["bounds", "ring:4", "--plugin", str(file), "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert (rows["seventh"]["value_exact"], rows["seventh"]["T_exact"]) == ("3/7", "7/3")
    file.write_text(file.read_text().replace("'T'", "'rounds'"), encoding="utf-8")
    assert main(["bounds", "ring:4", "--plugin", str(file)]) == 2
    assert "BOUNDS takes bounds on 'objective' or 'T'" in capsys.readouterr().err


def test_random_demands_have_bounds_without_fractions():
    """Bounds hold for the float and for the decimal of every number, so no fraction of decimals states them."""
    rows = bound_rows("servers:n=6,degree=2", "topology.matchings", demand="random:1")
    assert {row["name"] for row in rows} == {"ports", "partners"}
    assert all(row["value_exact"] is None for row in rows)


@pytest.mark.parametrize(
    ("instance", "name", "settings", "found"),
    [
        ("servers:n=8,degree=2", None, {}, {"topology.design", "topology.sequence", "topology.matchings"}),
        ("servers:n=8,degree=2", None, {"demand": "permutation:1"}, {"topology.sequence", "topology.matchings"}),
        ("ring:8", "topology.steps", {}, {"topology.steps"}),
        ("ring:8", None, {"demand": "permutation:1"}, {"alltoall.master"}),
    ],
)
def test_bounds_of_circuits_that_change_are_listed(instance, name, settings, found):
    rows = bound_rows(instance, name, settings)
    assert {row["formulation"] for row in rows} >= found
    assert name is not None or not settings or {row["formulation"] for row in rows} == found


@pytest.mark.parametrize(
    ("name", "bound", "over", "settings"),
    [
        ("topology.sequence", "hops", "servers:n={3..4},degree=1", {"configurations": 2}),
        ("topology.design", "moore", "servers:n={4..5},degree=2", {}),
        ("topology.matchings", "ports", "servers:n={3..4},degree=2", {"demand": "permutation:1", "delay": 0.5}),
        ("topology.steps", "stay-or-change", "ring:4", {}),
    ],
)
def test_bounds_of_circuits_that_change_are_swept(name, bound, over, settings, tmp_path):
    result = oc.sweep(name, bound, over, settings=settings, exact=True, store=tmp_path)
    assert (result.violations, result.errors) == (0, 0)
    assert result.decided > 0
    decided = [case for case in result.cases if case.bound_exact is not None and case.attained is not None]
    assert decided
    assert all(case.optimum_exact is not None for case in decided)
