"""``opticoll cluster``: what it prints and returns."""

from __future__ import annotations

import json

import numpy as np
import pytest

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.analysis.training import cluster as clusters
from opticoll.analysis.training.cluster_jobs import ClusterJob
from opticoll.analysis.training.cluster_schedule import ClusterSchedule
from opticoll.errors import BadInput

SMALL = {"servers": 24, "job_servers": 4, "degree": 2, "jobs": 40, "mix": {"vgg": 1.0, "bert": 1.0}}


def test_shards_are_as_fast_as_alone():
    """The mean over the jobs is that of the iterations alone, weighted by the numbers of jobs; the tail the slower."""
    result = oc.cluster("topoopt", load=0.7, **SMALL)
    rows = {row.model: row for row in result.models}
    assert sum(row.jobs for row in result.models) == 40
    for model, row in rows.items():
        own = oc.iteration(model, "circuits:n=4,degree=2", section="5.6").seconds
        assert (row.alone_s, row.mean_s, row.most_s) == pytest.approx((own, own, own))
    assert result.mean_s == pytest.approx(sum(row.jobs * row.alone_s for row in result.models) / 40)
    assert result.tail_s == pytest.approx(max(row.alone_s for row in result.models))
    assert result.violation < 1e-9
    assert result.setup_s == 0.0


def test_jobs_kept_active_fill_their_share_of_the_servers():
    result = oc.cluster("ideal-switch", active=3, work=10.0, **(SMALL | {"jobs": 30}))
    assert 0.4 < result.utilisation <= 0.5 + 1e-9, "3 of 6 places, fewer at the end"
    assert result.waiting == pytest.approx(0.9)
    assert result.load is None


def test_oversubscription_matters_for_scattered_jobs_alone(monkeypatch):
    monkeypatch.setattr(clusters, "RACK", 4)
    given = {**SMALL, "mix": {"candle": 1.0}, "jobs": 12, "active": 6}
    packed = oc.cluster("oversubscribed-fat-tree", placement="first", **given)
    assert packed.models[0].most_s == pytest.approx(packed.models[0].alone_s), "a rack a job"
    scattered = oc.cluster("oversubscribed-fat-tree", placement="random", **given)
    assert scattered.models[0].mean_s > 1.1 * packed.models[0].mean_s
    half = oc.iteration("candle", "ideal-switch:n=4,capacity=2", link="50Gb/s", section="5.6").seconds
    assert scattered.models[0].most_s <= half * (1 + 1e-9), "with all hops over the uplinks, half of the bandwidth"
    assert scattered.violation < 1e-9


def test_a_fat_tree_of_similar_cost_has_less_bandwidth():
    given = {**SMALL, "mix": {"candle": 1.0}, "jobs": 4}
    slow = oc.cluster("fat-tree", **given)
    link = f"{100 / clusters.FAT_TREE}Gb/s"
    alone = oc.iteration("candle", "ideal-switch:n=4,capacity=2", link=link, section="5.6").seconds
    assert slow.mean_s == pytest.approx(alone)


def test_slowdown_is_between_the_simulated_ones():
    assert clusters.slowed("candle", 4, 2, 1e11, 1.0) == 1.0
    half = clusters.alone("candle", "ideal-switch", 4, 2, 5e10) / clusters.alone("candle", "ideal-switch", 4, 2, 1e11)
    assert clusters.slowed("candle", 4, 2, 1e11, 0.5) == pytest.approx(half)
    parts = [clusters.slowed("candle", 4, 2, 1e11, part) for part in np.linspace(0.2, 1.0, 17)]
    assert (np.diff(parts) <= 1e-12).all()


def test_statistics_are_of_a_random_iteration_of_a_random_job():
    """A job half of whose work is at half speed: two thirds of its time, half of its iterations."""
    jobs = (ClusterJob("vgg", 1, 0.0, 2.0), ClusterJob("vgg", 1, 0.0, 5.0))
    held = (np.array([0]), np.array([1]))
    number, begin, end = np.array([0, 0, 1]), np.array([0.0, 1.0, 0.0]), np.array([1.0, 3.0, 5.0])
    times = np.array([3.0, 5.0])
    schedule = ClusterSchedule(
        jobs, 2, held, 0 * times, 0 * times, times, number, begin, end, np.array([1.0, 2.0, 1.0])
    )
    assert clusters.statistics(schedule, np.array([1.0, 1.0])) == pytest.approx((1.25, 2.0))
    assert clusters.statistics(schedule, np.array([1.0, 1.0]), 0.75)[1] == 1.0
    assert schedule.mean_slowdown == pytest.approx([1.5, 1.0])


def test_the_command_prints_what_the_function_returns(capsys):
    words = ["cluster", "topoopt", "--servers", "24", "--job-servers", "4", "--jobs", "12", "--degree", "2"]
    words += ["--setup", "180", "--look-ahead", "sequence", "--load", "0.9"]
    assert main([*words, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    given = {"servers": 24, "job_servers": 4, "jobs": 12, "degree": 2}
    expected = oc.cluster("topoopt", setup=180.0, look_ahead="sequence", load=0.9, **given)
    assert shown["mean_s"] == expected.mean_s
    assert [row["model"] for row in shown["models"]] == [row.model for row in expected.models]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "of the servers' time" in text
    assert "load 0.9" in text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"network": "ring"}, "topoopt, ideal-switch"),
        ({"network": "topoopt", "load": 0.5, "active": 3}, "exclude each other"),
        ({"network": "topoopt", "load": 0.0}, "load: must be a positive number, not 0"),
        ({"network": "topoopt", "job_servers": 500}, "jobs of 500 of 432 servers"),
        ({"network": "topoopt", "link": "fast"}, "link"),
        ({"network": "topoopt", "mix": {"gpt": 1.0}}, "gpt"),
        ({"mix": ["dlrm"]}, "mix: must be a mapping"),
        ({"servers": "432"}, "servers: must be a whole number of at least 2, not '432'"),
        ({"active": 1.5}, "active: must be a whole number"),
        ({"work": "1h"}, "work: must be a positive number, not '1h'"),
        ({"setup": "3min"}, "setup: must be a finite number"),
        ({"setup": -1.0}, "set-up of -1.0 s"),
        ({"jobs": 0}, "jobs: must be a whole number of at least 1"),
        ({"active": 0}, "active: must be a whole number of at least 1"),
        ({"placement": "last"}, "first, random"),
        ({"look_ahead": "always"}, "none, arrival, sequence"),
        ({"seed": -1}, "seed: must be a whole number of at least 0"),
    ],
)
def test_bad_input_is_one_line(given, message):
    with pytest.raises(BadInput, match=message):
        oc.cluster(**given)
