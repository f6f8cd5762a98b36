"""Figure 16 with jobs that queue: means by hand from the table of iteration times, tails, and shared racks."""

from __future__ import annotations

import pandas as pd
import pytest

from opticoll.analysis.papers.topoopt import cluster_claims, cluster_figures
from opticoll.analysis.papers.topoopt.simulated_iterations import tabulated
from opticoll.analysis.training.cluster_jobs import MIX


@pytest.mark.parametrize("network", ["TopoOpt", "Ideal Switch"])
def test_isolated_jobs_have_the_mean_of_the_table(network):
    """200 jobs have exactly 80, 60, 40 and 20 of the models; the table has the times of figure 16, at 0.2 %."""
    times = {model: tabulated(16, model, network, degree=8) for model in MIX}
    mean, tail = cluster_figures.simulated(network, 27)
    assert mean == pytest.approx(sum(MIX[model] * times[model] for model in MIX), rel=3e-3)
    assert tail == pytest.approx(times["candle"], rel=3e-3)
    assert cluster_figures.simulated(network, 5) == pytest.approx((mean, tail))


def test_published_numbers_are_those_of_the_paper():
    printed = {5: 64.4, 10: 70.6, 15: 63.1, 20: 61.4, 27: 60.4}
    for jobs, mean in printed.items():
        own = cluster_claims.published("topoopt", jobs=jobs)
        assert 1e3 * cluster_claims.published_mean(own) == pytest.approx(mean, abs=0.05)
        assert sum(one.samples for one in own) == 5 * jobs
        assert 1e3 * max(one.most for one in own) == pytest.approx(131.5, abs=0.05)


@pytest.mark.slow
def test_scattered_jobs_lose_and_neighbours_do_not():
    figure = next(one for one in cluster_figures.FIGURES if one.name == "topoopt-16-cluster")
    rows = figure.select(pd.DataFrame())
    ours = rows[rows["source"] == "simulated"].set_index(["network", "jobs"])
    neighbours = ours.loc["Oversub. fat-tree, jobs on neighbours"]
    scattered = ours.loc["Oversub. fat-tree, jobs scattered"]
    assert neighbours["mean"].to_numpy() == pytest.approx(ours.loc["Ideal Switch"]["mean"].to_numpy())
    over = scattered[["mean", "tail"]] / neighbours[["mean", "tail"]]
    assert (over > 1.0).all(axis=None)
    assert over["mean"].max() < 1.5, "the uplinks have half of the bandwidth"
    assert over["tail"].max() < 1.8
    assert "jobs scattered" in figure.finding(rows)
