"""Designs of pods: the table of records, the search, and the command."""

from __future__ import annotations

import csv
import json
from importlib.resources import files

import numpy as np
import pytest

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.analysis.designs.pods import after_a_loss, alike_switches, pod_records
from opticoll.errors import BadInput
from opticoll.formulations.topology.pod import PodWiring
from opticoll.formulations.topology.pod_bounds import all_to_all_least, least_time
from opticoll.instances import parse
from opticoll.instances.families.pods import torus_time, wiring_of
from opticoll.instances.spec import family_of

SLICES = (1, 2, 4, 8, 16, 64)


def wiring(spec):
    return wiring_of(**family_of(parse(spec))[1])


def test_the_table_has_every_slice():
    rows = pod_records()
    assert [cubes for cubes, side, places in rows if (side, places) == (4, "free")] == list(SLICES)
    for (cubes, side, places), row in rows.items():
        stated = wiring(row.pod)
        assert stated.shape == (3, side**2, cubes)
        assert places in ("free", "survive") or (stated == stated[:, :1]).all()
        assert float(row.bound) <= row.time * (1 + 1e-6)
        assert row.time <= float(torus_time(None, cubes, side, "torus")) * (1 + 1e-6)
        assert row.lost_switch is None or row.lost_switch >= row.time * (1 - 1e-3)


def test_the_gaps_are_what_was_asked_for():
    """At most 10 % up to 8 cubes, 20 % at 64."""
    rows = pod_records()
    assert all(rows[cubes, 4, "free"].gap <= (0.1 if cubes <= 8 else 0.2) for cubes in SLICES)


@pytest.mark.parametrize("cubes", [1, 2, *(pytest.param(k, marks=pytest.mark.slow) for k in (4, 8))])
def test_records_are_solved_again(cubes):
    """With their bounds, which are those of the formulation."""
    for (k, side, places), row in pod_records().items():
        if k == cubes and places != "survive":
            assert row.time == pytest.approx(oc.solve("alltoall.master", row.pod).T, rel=1e-6)
            assert row.bound == all_to_all_least(k, side, same=places != "free")[0]


@pytest.mark.slow
@pytest.mark.parametrize("cubes", [2, 4])
def test_enumerations_prove_records_again(cubes):
    row = pod_records()[cubes, 4, "same"]
    found = oc.solve("topology.pod", f"pod:cubes={cubes}", method="pod-enumeration")
    assert (found.proof, found.record.metrics["classes"]) == ("optimal", row.enumerated)
    assert row.time == pytest.approx(found.T, rel=1e-6)


def routes():
    """The rows of the table of routes, as whole numbers."""
    text = (files("opticoll.analysis.designs") / "pod_routes.csv").read_text(encoding="utf-8")
    return [{name: int(value) for name, value in row.items()} for row in csv.DictReader(text.splitlines())]


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=[pytest.mark.slow] if row["cubes"] * row["layers"] > 4 else []) for row in routes()],
    ids=lambda row: f"{row['cubes']}-{row['layers']}",
)
def test_the_bounds_of_routes(row):
    """Those of the formulation, which hold for the load that was found."""
    pod, given = pod_records()[row["cubes"], 4, "free"].pod, {"layers": row["layers"]}
    load = oc.bounds(pod, "alltoall.channels", given)["value"].max()
    layers = oc.bounds(pod, "alltoall.channels", given | {"objective": "channels", "load": float(row["load"])})
    assert (load, layers["value"].max()) == (row["bound"], row["layer_bound"])
    assert row["bound"] <= row["load"]
    assert row["layer_bound"] <= row["layers"]


@pytest.mark.slow
@pytest.mark.parametrize("row", routes(), ids=lambda row: f"{row['cubes']}-{row['layers']}")
def test_routes_are_found_again(row, tmp_path):
    """By the same seed, as a file that is checked."""
    pod, given = pod_records()[row["cubes"], 4, "free"].pod, {"layers": row["layers"]}
    found = oc.solve("alltoall.channels", pod, **given, time_limit=600 if row["cubes"] < 64 else 2000)
    assert found.value <= row["load"]
    found.schedule().save(tmp_path / "pod.routes.json")
    checked = oc.check("alltoall.channels", pod, tmp_path / "pod.routes.json", **given)
    assert (checked["verified"], checked["objective"]) == (True, found.value)


@pytest.mark.slow
@pytest.mark.parametrize("cubes", [16, 64])
def test_large_records_are_solved_again(cubes):
    for (k, side, places), row in pod_records().items():
        if k == cubes and places != "survive":
            assert row.time == pytest.approx(oc.solve("alltoall.master", row.pod, tol=1e-3).T, rel=2e-3)
            assert row.bound == all_to_all_least(k, side, same=places != "free")[0]


@pytest.mark.slow
@pytest.mark.parametrize("cubes", [2, 4])
def test_designs_for_the_loss_of_a_switch_are_solved_again(cubes):
    """The command solves losses until one costs what the record states; no other loss costs more."""
    row = pod_records()[cubes, 4, "survive"]
    design, worst = oc.pod_design(cubes, survive=1), after_a_loss(row.pod).T
    assert worst == pytest.approx(row.time, rel=1e-6)
    assert (design.pod, design.lost_switch) == (row.pod, pytest.approx(row.time, rel=1e-6))
    assert design.lost_bound == pytest.approx(float(row.bound))
    assert row.time <= pod_records()[cubes, 4, "free"].lost_switch * (1 + 1e-5)


@pytest.mark.parametrize(("cubes", "side"), [(2, 2), (4, 1)])
def test_a_design_for_the_loss_of_a_switch(cubes, side):
    """Its worst T is that of all switches, and none is below the bound; the pod with all switches is faster."""
    design = oc.pod_design(cubes, side=side, survive=1, starts=1)
    every = [
        oc.solve("alltoall.master", f"{design.pod}+fail=switch:{d}.{p}").T for d in range(3) for p in range(side**2)
    ]
    assert design.lost_switch == pytest.approx(max(every), rel=1e-6)
    assert design.lost_switch >= design.T
    assert design.lost_bound <= design.lost_switch * (1 + 1e-9)
    assert f"T {design.lost_switch:.8g} at worst" in design.lines()["lost switch"]


@pytest.mark.parametrize("spec", ["pod:cubes=2,side=2,wiring=1/0/0/1/1/1/1/1/0/1/1/0", "pod:cubes=3,side=2"])
def test_switches_that_are_alike_cost_the_same(spec):
    known, arguments = family_of(parse(spec))
    classes = alike_switches(known.automorphisms(**arguments), 2)
    times = np.array([oc.solve("alltoall.master", f"{spec}+fail=switch:{w // 4}.{w % 4}").T for w in range(12)])
    assert len(np.unique(classes)) < 12
    for one in np.unique(classes):
        assert np.ptp(times[classes == one]) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("cubes", [2, 4])
def test_what_a_lost_switch_costs(cubes):
    row = pod_records()[cubes, 4, "free"]
    every = [
        oc.solve("alltoall.master", f"{row.pod}+fail=switch:{d}.{p}", tol=1e-3).T for d in range(3) for p in range(16)
    ]
    assert row.lost_switch == pytest.approx(max(every), rel=2e-3)


@pytest.mark.parametrize("cubes", [2, 4, 8])
def test_the_bounds_for_a_lost_switch(cubes):
    """Those of the formulation; a wiring for the loss is no slower than the one that is best without it."""
    rows = pod_records()
    row, problem = rows[cubes, 4, "survive"], PodWiring(cubes, 4, False, survive=True, demand=1.0 - np.eye(64 * cubes))
    assert row.bound == least_time(problem)[0] < row.time
    assert row.time <= rows[cubes, 4, "free"].lost_switch


def test_a_design_is_solved_and_compared():
    design = oc.pod_design(2)
    assert (design.source, design.proof, design.torus) == ("table", "optimal", 128.0)
    assert design.pod == pod_records()[2, 4, "free"].pod
    assert design.gap == pytest.approx(design.T / design.bound - 1)
    assert not design.best_possible
    assert "1.79 times as long" in design.lines()["torus"]


def test_a_torus_of_one_cube_is_best_possible():
    design = oc.pod_design(1)
    assert design.best_possible
    assert design.lines()["gap"] == "none: best possible"


@pytest.mark.slow
def test_the_loss_of_a_switch_of_one_cube_is_tried_on_the_record_without_it():
    design, lost = oc.pod_design(1), oc.pod_design(1, survive=1)
    assert lost.lost_switch == pytest.approx(design.lost_switch, rel=1e-5)
    assert lost.pod == design.pod


def test_a_search_of_a_small_pod():
    """Six chips of six ports each: every pair has a link, and the best wiring is proven."""
    design = oc.pod_design(6, side=1, seed=1)
    assert design.source == "search"
    assert design.bound * (1 - 1e-9) <= design.T
    assert design.torus > design.T
    assert wiring(design.pod).shape == (3, 1, 6)


def test_the_command(capsys):
    assert main(["design", "pod", "cubes=2", "side=2", "places=same", "--starts", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["places"] == "same"
    assert found["T"] == pytest.approx(13 / 3)
    assert found["bound"] <= found["T"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pod"], "cannot read"),
        (["pod", "cubes=x"], "write cubes=8, and side=4, places=same or survive=1"),
        (["pod", "cubes=2", "survive=2"], "survive must be 0 or 1 lost switches, not 2"),
        (["pod", "cubes=2", "cubes=3"], "cannot read"),
        (["pod", "cubes=2", "degree=3"], "cannot read"),
        (["pod", "cubes=100000000"], "6400000000 chips; use 2 to 4096"),
        (["n=100000000", "degree=4"], "exceeds the limit of 4096 nodes"),
        (["pod", "cubes=2", "places=any"], "places must be same or free"),
        (["pod", "cubes=65"], "has 4160 chips; use 2 to 4096"),
        (["pod", "cubes=1", "side=1"], "has 1 chips; use 2 to 4096"),
        (["pod", "cubes=2", "--delay", "1"], "--delay is not for the wiring of a pod"),
        (["pod", "cubes=2", "--directed"], "--directed is not for the wiring of a pod"),
    ],
)
def test_refused_by_the_command(words, message, capsys):
    assert main(["design", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cubes": 0}, "design: cubes: must be a whole number of at least 1"),
        ({"cubes": 2, "side": 0}, "design: side: must be a whole number of at least 1"),
        ({"cubes": 2, "starts": 0}, "design: starts: must be a whole number of at least 1"),
        ({"cubes": 2, "time_limit": -1}, "design: time_limit: must be a positive number"),
        ({"cubes": 2, "places": "any"}, "places must be same or free"),
    ],
)
def test_refused(arguments, message):
    with pytest.raises(BadInput, match=message):
        oc.pod_design(**arguments)
