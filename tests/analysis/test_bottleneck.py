"""Prices of links and bottlenecks: what duals say, checked by second solves."""

import json
import re

import networkx as nx
import numpy as np
import pyomo.environ as pyo
import pytest

import opticoll as oc
from opticoll.instances.link_changes import with_links_of

PRICED = (
    "alltoall.master",
    "alltoall.link-mcf",
    "alltoall.path-mcf",
    "alltoall.all-gather",
    "alltoall.broadcast",
    "alltoall.reduce-scatter",
    "alltoall.all-reduce",
)


def network(seed, n=5):
    rng = np.random.default_rng(seed)
    edges = {(u, (u + 1) % n): rng.uniform(0.5, 2) for u in range(n)}
    edges |= {(int(u), int(v)): rng.uniform(0.5, 2) for u, v in rng.integers(0, n, (2 * n, 2)) if u != v}
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(u, v, c) for (u, v), c in edges.items()], weight="capacity")
    return oc.topology(graph)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
@pytest.mark.parametrize("name", PRICED)
def test_prices_are_a_derivative_from_below(name, seed):
    net = network(seed)
    given = {"paths": "all"} if name == "alltoall.path-mcf" else {}
    result = oc.solve(name, net, method="highs", **given)
    price = result.link_loads()["price"].to_numpy()
    assert (price <= 0).all()
    assert net.capacity @ price == pytest.approx(-result.T)
    rng = np.random.default_rng(seed + 100)
    for _ in range(2):
        changed = with_links_of(net, net.capacity * rng.uniform(0.5, 1.5, net.arcs))
        then = oc.solve(name, changed, method="highs", **given)
        assert result.T + price @ (changed.capacity - net.capacity) - 1e-6 * then.T <= then.T


def test_a_cut_is_named_by_its_two_sides():
    ends = {("a", "b"): 1.0, ("b", "c"): 0.5, ("c", "d"): 1.0, ("a", "c"): 0.25}
    net = oc.topology({**ends, **{(v, u): c for (u, v), c in ends.items()}})
    result = oc.solve("alltoall.master", net, method="highs")
    found = result.bottleneck()
    assert found.kind == "cut"
    inside, outside = map(set, found.sides)
    assert inside | outside == set("abcd")
    room = sum(
        c
        for (u, v), c in {**ends, **{(v, u): c for (u, v), c in ends.items()}}.items()
        if {u} <= inside and v in outside
    )
    assert len(inside) * len(outside) / room == pytest.approx(result.T)
    assert found.links["price"].max() < 0


@pytest.mark.parametrize("spec", ["nvswitch:boxes=3,gpus=2", "genkautz:n=9,d=2", "star:5", "torus:3x4"])
@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("alltoall.all-gather", "receiver-flows"),
        ("alltoall.broadcast", "receiver-flows"),
        ("alltoall.reduce-scatter", "receiver-flows"),
        ("alltoall.all-reduce", "tree-packing"),
    ],
)
def test_the_links_of_a_cut_have_prices_where_a_method_returns_no_duals(name, method, spec):
    result = oc.solve(name, spec, method=method)
    assert not result.duals
    if result.gap > 1e-6:
        assert "price" not in result.link_loads()
        return
    found, loads, net = result.bottleneck(), result.link_loads(), result.links.topology
    price = loads["price"].to_numpy()
    priced = price < 0
    assert net.capacity @ price == pytest.approx(-result.T)
    assert np.ptp(price[priced]) == pytest.approx(0)
    assert found.links["utilisation"].to_numpy() == pytest.approx(1)
    assert found.reason.endswith(f"T >= {result.T:.12g}")
    if found.kind == "cut":
        inside, outside = map(set, found.sides)
        assert inside | outside == set(net.labels)
        assert list(priced) == [u in inside and v in outside for u, v in zip(loads["src"], loads["dst"], strict=True)]
    rng = np.random.default_rng(5)
    for _ in range(3):
        changed = with_links_of(net, net.capacity * rng.uniform(0.5, 1.5, net.arcs))
        least = result.T * (net.capacity @ priced) / (changed.capacity @ priced)
        assert least <= oc.solve(name, changed, method="highs").T * (1 + 1e-6)


def test_lengths_are_named_where_no_cut_proves_the_bound():
    result = oc.solve("alltoall.master", "genkautz:n=8,d=2", method="highs")
    found = result.bottleneck()
    assert found.kind == "lengths"
    arc, length = max(found.lengths.items(), key=lambda one: one[1])
    assert f"{arc}: {length:.6g}" in str(found)
    assert f"{arc}: {length:.6g}" in str(result.why())  # which speaks of "the lengths below"
    assert result.why().document()["lengths"] == found.lengths
    lengths = nx.DiGraph()
    for name, length in found.lengths.items():
        u, v = name.split("->")
        lengths.add_edge(u, v, weight=length)
    distance = dict(nx.all_pairs_dijkstra_path_length(lengths))
    total = sum(distance[u][v] for u in distance for v in distance)
    assert total / sum(found.lengths.values()) == pytest.approx(result.T)


def test_the_most_valuable_links():
    result = oc.solve("alltoall.master", network(3), method="highs")
    table = result.bottleneck().links
    assert table["price"].is_monotonic_increasing
    loads = result.link_loads()
    assert (loads.loc[loads["price"] < 0, "price"] * loads.loc[loads["price"] < 0, "capacity"]).sum() == pytest.approx(
        -result.T
    )
    assert table.index.equals(loads[loads["price"] < 0].sort_values("price").index)


@pytest.mark.parametrize("spec", ["path:4", "torus:4x4"])
def test_the_plot_counts_links_with_a_price(spec):
    result = oc.solve("alltoall.master", spec, method="highs")
    priced = int((result.link_loads()["price"] < 0).sum())
    assert priced > 0
    assert f"{priced} link{'s' * (priced > 1)} with a price, the dearest " in result.plot().get_suptitle()


def test_seconds_per_gigabit():
    result = oc.solve("alltoall.master", "path:3+unit=100Gb/s", method="highs", shard="1MB")
    loads = result.link_loads()
    assert loads["price [s per Gb/s]"].to_numpy() == pytest.approx(loads["price"] * (8e6 / 1e11) / 100)
    cut = (
        r"1 of capacity = 100 Gb/s leads out of [12] vertices, and 2 shards = 2e\+06 bytes have to: T >= 2 = 0.00016 s"
    )
    assert result.bottleneck().reason == result.why().reason
    assert re.fullmatch(cut, result.why().reason)
    assert "capacity [Gb/s]" in result.why().tables()[0].columns
    assert result.bottleneck().links["capacity [Gb/s]"].eq(100).all()
    ring = oc.solve("alltoall.master", "genkautz:n=8,d=2+unit=100Gb/s", method="highs", shard="1MB")
    assert ring.bottleneck().reason.endswith(f" = {ring.T_s:.6g} s")


def test_an_integer_program_says_what_its_bound_rests_on():
    result = oc.solve("alltoall.min-congestion", "hypercube:3")
    found = result.bottleneck()
    assert found.kind == result.record.bound_source
    assert "Theorem" in found.reason
    assert "price" not in result.link_loads()


def test_the_command_line_shows_what_limits_the_time(capsys):
    from opticoll.analysis.cli.main import main

    assert main(["solve", "alltoall.master", "path:3", "--no-store", "--why", "--method", "highs"]) == 0
    shown = capsys.readouterr().out
    assert "bottleneck" in shown
    assert "links with a price" in shown
    assert main(["solve", "alltoall.master", "path:3", "--no-store", "--why", "--json", "--method", "highs"]) == 0
    why = json.loads(capsys.readouterr().out)["why"]
    assert why["kind"] == "cut"
    assert why["links"][0]["price"] < 0
    assert oc.solve("alltoall.master", "path:3", method="highs").why().document() == why


def test_the_command_line_shows_rows_that_contradict_each_other(capsys, tmp_path):
    from opticoll.analysis.cli.main import main

    path = tmp_path / "none.lp"
    path.write_text("Minimize\n obj: x\nSubject To\n c1: x + y >= 3\n c2: x <= 1\n c3: y <= 1\n c4: x + y <= 9\nEnd\n")
    assert main(["solve", "matrix.program", f"mps:{path}", "--no-store", "--why", "--json"]) == 3
    why = json.loads(capsys.readouterr().out)["why"]
    assert (why["kind"], why["irreducible"]) == ("conflict", True)
    assert [row["name"] for row in why["rows"]] == ["c1", "c2", "c3"]
    found = oc.solve("matrix.program", f"mps:{path}").why()
    assert found.document() == why
    assert str(found).startswith("no solution")


def test_a_model_that_was_changed_by_hand_has_no_prices():
    model = oc.model("alltoall.master", "ring:4")
    model.pyomo.half = pyo.Constraint(expr=model.pyomo.g["0->1", 0] <= 0.5 * model.pyomo.c["0->1"])
    result = model.solve()
    assert "price" not in result.link_loads()
    assert result.bottleneck().reason.endswith("half")


def test_numbers_are_labels_where_labels_are_numbers():
    net = oc.topology([(u, u % 4 + 1) for u in range(1, 5)] + [(u % 4 + 1, u) for u in range(1, 5)])
    model = oc.model("alltoall.master", net)
    assert model.update(capacity={(1, 2): 2}).instance.capacity.sum() == 9
    for link in ((0, 1), (0, 2)):
        with pytest.raises(oc.BadInput, match=f"'0->{link[1]}': .* has no such link"):
            model.update(capacity={link: 2})
    with pytest.raises(oc.BadInput, match="'0' is not a rank"):
        oc.solve("alltoall.master", net, demand={(0, 1): 1, (1, 2): 1})
    named = oc.topology([("a", "b"), ("b", "a")])
    one = oc.model("alltoall.master", named, demand={(0, 1): 2, (1, 0): 1})
    assert one.update(capacity={(0, 1): 2}).instance.capacity.tolist() == [2, 1]


@pytest.mark.parametrize(
    "changes", [{"a--b": 0.5, "b--a": 0.5}, {"a->b": 0.5, ("a", "b"): 0.25}, {"a--b": 2, "b->a": 1}]
)
def test_a_link_is_changed_under_one_name(changes):
    triangle = oc.topology([("a", "b"), ("b", "c"), ("c", "a")], directed=False)
    with pytest.raises(oc.BadInput, match="another name given here stands for the same link"):
        oc.model("alltoall.master", triangle).update(capacity=changes)


def test_why_of_a_formulation_without_links_says_what_its_bound_rests_on():
    found = oc.solve("topoopt.circuits", "tasks:moe,n=3,degree=1").why()
    assert (found.kind, found.reason) == ("waves", "2 intervals for chains of 2 transfers, one for each")
    assert found.tables() == []
