"""Weighted paths of every commodity: rates add up, loads fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from case_families import each
from reference import SMALL, solved
from weighted_path_checks import violations

from opticoll.errors import BadInput
from opticoll.formulations.flows import concurrent_flow as model
from opticoll.instances import parse
from opticoll.solvers.schedules import weighted_paths as wp


@each("spec", SMALL)
def test_paths_carry_the_masters_flow(spec):
    problem, F, values = solved("alltoall.master", spec)
    data, paths = problem.flow, wp.from_flow(problem.flow, values["g"])
    assert max(violations(data, paths).values()) < 1e-9
    assert pytest.approx(F, rel=1e-6) == paths.F
    # Few: a source has at most one path for each arc and target.
    assert paths.rate.size <= data.groups * (data.topology.arcs + data.topology.num_ranks)


def test_circulations_and_noise_are_no_paths():
    problem, F, values = solved("alltoall.master", "genkautz:n=12,d=3")
    data, flow = problem.flow, values["g"]
    noisy = flow + 1e-12 + 5.0 * (np.arange(flow.shape[1]) == 3)
    paths = wp.from_flow(data, noisy)
    assert max(violations(data, paths).values()) < 1e-9
    assert paths.F <= F * (1 + 1e-9)
    assert wp.from_flow(data, np.zeros_like(flow)).F > 0  # breadth-first trees: a poor but correct answer


def test_corrupted_paths_are_refused():
    problem, _, values = solved("alltoall.master", "genkautz:n=12,d=3")
    data, good = problem.flow, wp.from_flow(problem.flow, values["g"])
    listed = good.paths
    arcs = listed.arcs.copy()
    arcs[3] = (arcs[3] + 1) % data.topology.arcs
    rate = good.rate.copy()
    rate[5] *= 1.5
    negative = good.rate.copy()
    negative[0] = -negative[0]
    pair = listed.pair.copy()
    pair[np.flatnonzero(pair == 1)[0]] = 0
    beyond = listed.arcs.copy()
    beyond[0] = data.topology.arcs
    for field, wrong, block in (("rate", rate, "rate"), ("rate", negative, "rate"), ("F", 2 * good.F, "rate")):
        assert violations(data, good._replace(**{field: wrong}))[block] > 1e-3
    for field, wrong, block in (
        ("arcs", arcs, "path"),
        ("pair", pair, "path"),
        ("arcs", beyond, "rate"),
        ("targets", listed.sources, "commodities"),
    ):
        assert violations(data, good._replace(paths=replace(listed, **{field: wrong})))[block] > 1e-3
    doubled = good._replace(rate=2 * good.rate, F=2 * good.F)
    assert violations(data, doubled)["capacity"] > 0.5


def test_too_little_flow_is_reported():
    data = model.ConcurrentFlow.by_source(parse("ring:4,directed").with_arcs([0, 1, 2], [1, 2, 3], [1.0] * 3))
    with pytest.raises(BadInput):
        wp.from_flow(data, np.zeros((3, 4)))
