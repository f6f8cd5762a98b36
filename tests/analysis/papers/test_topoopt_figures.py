"""The TopoOpt figures: drawn from constructions or from the store, with findings in numbers."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from opticoll.analysis.papers.topoopt import traffic_figures
from opticoll.analysis.papers.topoopt.figures import FIGURES
from opticoll.instances import parse
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder


def test_figure_15_takes_the_optimum_from_the_store():
    figure = next(figure for figure in FIGURES if figure.name == "topoopt-15")
    quantiles = [1e6 * k for k in range(80, 101)]
    row = {
        "ok": True,
        "formulation": "topoopt.routing",
        "proof": "optimal",
        "n": 128,
        "instance": "servers:n=128,degree=4,traffic=dlrm,section=5.4,batch=128",
        "settings": json.dumps({"traffic": "point-to-point", "circuits": "topology-finder"}),
        "metrics": json.dumps({"load_quantiles": quantiles, "heuristic_quantiles": quantiles}),
    }
    other = {**row, "settings": json.dumps({"traffic": "all"})}
    rows = figure.select(pd.DataFrame([row, other]))
    optimal = rows[rows["routing"] == "optimal routing"]
    assert optimal[["degree", "batch"]].to_numpy().tolist() == [[4, 128]]
    assert set(rows["routing"]) == {"optimal routing", "shortest paths, hashed", "CoinChangeMod"}
    assert len(figure.draw(rows).axes) == 1
    assert "optimal routing 100.0 MB, smallest 0.80" in figure.finding(rows)


def test_traffic_of_figures_1_8_and_9_by_hand():
    rows = {one.name: one.select(pd.DataFrame()) for one in traffic_figures.FIGURES}
    first = rows["topoopt-1"].groupby("panel")["bytes"]
    assert first.max().to_dict() == pytest.approx({"data parallel": 44e9, "hybrid": 4e9 + 8192 * 512 * 8})
    assert first.count()["data parallel"] == 16
    tables = (0, 3, 8, 13)
    for panel, group in rows["topoopt-8"].groupby("panel"):
        step = int(panel.removeprefix("+").removesuffix(" ring"))
        ring = group[(group["target"] - group["source"]) % 16 == step]
        assert len(ring) == 16
        assert ring["bytes"].min() >= 4e9
        rest = group[(group["target"] - group["source"]) % 16 != step]
        assert (rest["source"].isin(tables) | rest["target"].isin(tables)).all()
    circuits = rows["topoopt-9"][rows["topoopt-9"]["panel"] == "circuits"]
    assert set((circuits["target"] - circuits["source"]) % 16) == {1, 3, 7}


def test_trees_load_circuits_more_than_rings():
    """Data parallel, a pair of trees takes four ports and loads them n / (n - 1) times as much as rings."""
    for n in (8, 16, 32):
        for degree in (4, 8):
            pool = parse(f"servers:n={n},degree={degree},traffic=candle")
            rings, trees = topology_finder(pool), topology_finder(pool, trees=True)
            assert trees.max_load / rings.max_load == pytest.approx(n / (n - 1))
            assert trees.bandwidth_tax == pytest.approx(rings.bandwidth_tax)
