"""The TopoOpt figures: drawn from constructions or from the store, with findings in numbers."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from opticoll.analysis.papers.topoopt.figures import FIGURES


@pytest.mark.parametrize("figure", [f for f in FIGURES if f.study is None], ids=lambda figure: figure.name)
def test_figures_of_constructions(figure):
    """They need no store."""
    empty = pd.DataFrame({name: [] for name in ("ok", "formulation", "proof", "metrics", "settings", "instance", "n")})
    rows = figure.select(empty.astype({"ok": bool}))
    assert len(rows) >= 4
    drawn = figure.draw(rows)
    assert all(axes.get_xlabel() for axes in drawn.axes)
    assert any(digit in figure.finding(rows) for digit in "123456789")


def test_figure_15_takes_the_optimum_from_the_store():
    figure = next(figure for figure in FIGURES if figure.name == "topoopt-15")
    quantiles = [1e6 * k for k in range(80, 101)]
    row = {
        "ok": True, "formulation": "topoopt.routing", "proof": "optimal", "n": 128,
        "instance": "servers:n=128,degree=4,traffic=dlrm,section=5.4,batch=128",
        "settings": json.dumps({"traffic": "point-to-point", "circuits": "topology-finder"}),
        "metrics": json.dumps({"load_quantiles": quantiles, "heuristic_quantiles": quantiles}),
    }  # fmt: skip
    other = {**row, "settings": json.dumps({"traffic": "all"})}
    rows = figure.select(pd.DataFrame([row, other]))
    optimal = rows[rows["routing"] == "optimal routing"]
    assert optimal[["degree", "batch"]].to_numpy().tolist() == [[4, 128]]
    assert set(rows["routing"]) == {"optimal routing", "shortest paths, hashed", "CoinChangeMod"}
    assert len(figure.draw(rows).axes) == 1
    assert "optimal routing 100.0 MB, least 0.80" in figure.finding(rows)
