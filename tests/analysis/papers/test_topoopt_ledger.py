"""The TopoOpt claims and figures: verdicts that can be had in seconds, findings with numbers."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from opticoll.analysis.ledger.claim import Laboratory
from opticoll.analysis.papers.topoopt import claims, network_claims
from opticoll.analysis.papers.topoopt.figures import FIGURES
from opticoll.solvers.methods.topoopt import totient_rings as rings

CLAIMS = (*claims.CLAIMS, *network_claims.CLAIMS)
BY_NAME = {claim.id.removeprefix("topoopt."): claim for claim in CLAIMS}
#: Swept over so many cases, or solved, that they are left to the slow tests.
LONG = ("theorem-2", "theorem-1", "primes", "coin-change", "optimal-alpha", "one-failure")
EXPECTED = {
    "twelve-servers": "reproduced", "kappa": "not-reproduced", "algorithm-4": "not-reproduced",
    "double-trees": "reproduced", "direct-rings": "reproduced", "dlrm-size": "self-contradicted",
    "all-reduce-size": "reproduced", "transfer-size": "reproduced", "all-to-all-share": "not-reproduced",
    "testbed-share": "not-reproduced", "hops-d4": "not-reproduced", "hops-d8": "reproduced",
    "tax-d4-64": "not-reproduced", "tax-d8-64": "reproduced", "tax-d4-2048": "not-reproduced",
    "tax-of-hops": "not-reproduced",
    "imbalance-d4": "not-reproduced", "imbalance-d8": "not-reproduced", "parallel-links": "reproduced",
    "over-fat-tree": "not-reproduced", "cost-ideal": "not-reproduced", "cost-ocs": "not-reproduced",
    "cost-expander": "reproduced", "fat-tree-ports": "self-contradicted", "fat-tree-26": "reproduced",
    "bandwidths": "self-contradicted", "fat-tree-at-128": "not-testable", "like-ideal": "not-testable",
    "loads": "self-contradicted", "ocs-ports": "reproduced",
}  # fmt: skip


def test_every_claim_has_an_id_and_a_reason_or_a_measure():
    assert len(BY_NAME) == len(CLAIMS) >= 30
    for claim in CLAIMS:
        assert claim.id.startswith("topoopt.")
        assert (claim.measure is None) == bool(claim.reason)
    untested = [name for name, claim in BY_NAME.items() if claim.measure is None]
    assert sorted([*EXPECTED, *LONG, *untested]) == sorted(BY_NAME)


@pytest.mark.parametrize("name", EXPECTED)
def test_verdicts(name):
    row = BY_NAME[name].examine(Laboratory(None))
    assert row["verdict"] == EXPECTED[name], row
    assert row["reason"]
    assert row["instances"]
    json.dumps(row)


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_swept_claims(name):
    row = BY_NAME[name].examine(Laboratory(None))
    assert row["verdict"] == ("not-reproduced" if name == "optimal-alpha" else "reproduced"), row
    assert row["count"] >= 15
    assert (row["violations"] > 0) == (name == "optimal-alpha")


def test_a_wrong_claim_would_be_found(monkeypatch):
    """The sweeps can fail: trees out of balance, coins miscounted, a walk that stops early."""
    monkeypatch.setattr(rings, "geometric_coins", lambda x, d: x * d)
    assert BY_NAME["kappa"].examine(Laboratory(None))["verdict"] == "reproduced"
    monkeypatch.setattr(rings, "double_binary_tree", lambda n: (np.arange(n) - 1, np.arange(n) - 1))
    row = BY_NAME["double-trees"].examine(Laboratory(None))
    assert (row["verdict"], row["counterexample"]) == ("not-reproduced", "n=2")
    monkeypatch.setattr(rings, "is_single_ring", lambda n, p: p in {1, 5})
    assert BY_NAME["twelve-servers"].examine(Laboratory(None))["verdict"] == "not-reproduced"


@pytest.mark.slow
def test_a_wrong_theorem_1_would_be_found(monkeypatch):
    monkeypatch.setattr("opticoll.analysis.papers.topoopt.claims.rings.theorem_1", lambda n, d: 0.9 * d * n ** (1 / d))
    row = BY_NAME["theorem-1"].examine(Laboratory(None))
    assert (row["verdict"], row["violations"] > 0) == ("not-reproduced", True)
    assert row["counterexample"]


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
    figure = next(one for one in FIGURES if one.name == "topoopt-15")
    quantiles = [1e6 * k for k in range(80, 101)]
    row = {
        "ok": True, "formulation": "topoopt.routing", "proof": "optimal", "n": 128,
        "instance": "servers:n=128,degree=4,traffic=dlrm,section=5.4,batch=128",
        "settings": json.dumps({"traffic": "point-to-point", "circuits": "topology-finder"}),
        "metrics": json.dumps({"load_quantiles": quantiles, "heuristic_quantiles": quantiles}),
    }  # fmt: skip
    other = {**row, "settings": json.dumps({"traffic": "all"})}
    rows = figure.select(pd.DataFrame([row, other]))
    found = rows[rows["routing"] == "optimal routing"]
    assert found[["degree", "batch"]].to_numpy().tolist() == [[4, 128]]
    assert set(rows["routing"]) == {"optimal routing", "shortest paths, hashed", "CoinChangeMod"}
    assert len(figure.draw(rows).axes) == 1
    assert "optimal routing 100.0 MB, least 0.80" in figure.finding(rows)
