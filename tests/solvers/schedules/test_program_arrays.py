"""Programs in arrays: the same as those of objects and in files."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from case_families import each

from opticoll.analysis import output_files
from opticoll.instances import parse
from opticoll.solvers import solve
from opticoll.solvers.schedules import lowering
from opticoll.solvers.schedules.collective_steps import schedule_collective
from opticoll.solvers.schedules.lowering import XmlOptions, lower
from opticoll.solvers.schedules.msccl_xml import read_xml, write_xml
from opticoll.solvers.schedules.program_arrays import ProgramArrays
from opticoll.solvers.schedules.shard_routes import cut, routes_in_steps
from opticoll.solvers.schedules.verification import verify_file
from opticoll.solvers.task import Task

OPTIONS = [XmlOptions(), XmlOptions("rccl", channels=2), XmlOptions(instances=3)]


def lowered(name, spec, options=None):
    topology = parse(spec)
    steps = schedule_collective(name, topology, most=8).steps
    return topology, lowering._lowered(steps, topology, "trees", options or XmlOptions())


@each("name", ["alltoall.all-gather", "alltoall.reduce-scatter", "alltoall.all-reduce"])
@each("options", OPTIONS)
def test_arrays_objects_and_files_are_one_program(name, options, tmp_path):
    for spec in ("genkautz:n=5,d=2", "ring:4"):
        _, (program, arrays) = lowered(name, spec, options)
        whole = replace(program, ranks=arrays.ranks())
        again = ProgramArrays.of(whole)
        for one in fields(arrays):
            assert np.array_equal(getattr(arrays, one.name), getattr(again, one.name)), one.name
        path = tmp_path / "x.xml"
        path.write_text(write_xml(whole))
        assert read_xml(path).ranks == whole.ranks


def test_many_moves_are_executed_as_they_are_written(tmp_path, monkeypatch):
    run = solve.solve(Task("alltoall.timestep-mcf", "torus:3x3", settings={"aggregate": "source"}))
    gathered = solve.solve(Task("alltoall.all-gather", "torus:3x3"))
    for name, one in (("y.json", run), ("w.json", gathered)):
        request = output_files.schedule_request(tmp_path / name)
        read = output_files.write_schedule(request, one)
        text = (tmp_path / name).read_text()
        with monkeypatch.context() as patch:
            patch.setattr(lowering, "MOST_READ", 0)
            patch.setattr("opticoll.solvers.schedules.verification.verify_file", None)
            assert output_files.write_schedule(request, one) == read
        assert (tmp_path / name).read_text() == text
        assert read["delivers"]


@pytest.mark.parametrize(("entries", "why"), [(10, "is too large"), (10**9, "`opticoll check` executes")])
def test_the_moves_of_a_large_program_are_executed(tmp_path, monkeypatch, entries, why):
    run = solve.solve(Task("alltoall.all-gather", "torus:3x3"))
    request = output_files.schedule_request(tmp_path / "x.xml")
    whole = output_files.write_schedule(request, run)
    monkeypatch.setattr(lowering, "MOST_EXECUTED", 10)
    monkeypatch.setattr(lowering, "MOST_CLOCK_ENTRIES", entries)
    monkeypatch.setattr("opticoll.solvers.schedules.verification.verify_file", None)
    moved = output_files.write_schedule(request, run)
    assert why in moved.pop("keeps")
    assert moved["delivers"]
    assert moved.pop("simulated_time") == pytest.approx(moved["time"])
    assert whole.items() >= moved.items()


def test_the_routes_of_translated_sources_are_translated():
    settings = {"aggregate": "source"}
    run = solve.solve(Task("alltoall.timestep-mcf", "torus:4x4", method="step-orbits", settings=settings))
    topology, data = run.plan.instance, run.plan.problem
    routes = routes_in_steps(data.name, data, topology, run.values)
    assert np.unique(np.bincount(routes.source)).size == 1
    f = np.zeros(data.shape)
    owner = np.repeat(np.arange(len(routes)), np.diff(routes.first))
    np.add.at(f, (routes.arcs, routes.source[owner], routes.steps), routes.weight[owner])
    utilisation = (f.sum(axis=1) / topology.capacity[:, None]).max(axis=0)
    assert utilisation.sum() == pytest.approx(run.objective)
    assert cut(topology, routes).time <= 1.01 * run.objective


def test_routes_of_a_flow_that_translations_change_are_its_own():
    run = solve.solve(Task("alltoall.timestep-mcf", "torus:3x3", settings={"aggregate": "source"}))
    data, f = run.plan.problem, np.zeros_like(run.values["f"])
    topology = data.topology
    to = {(u, v): a for a, (u, v) in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))}
    for s in range(9):  # row first for even sources, column first for odd ones
        for t in range(9):
            corner = 3 * (s // 3) + t % 3 if s % 2 == 0 else 3 * (t // 3) + s % 3
            for step, (u, v) in enumerate(((s, corner), (corner, t))):
                if u != v:
                    f[to[u, v], s, step] += 1.0
    routes = routes_in_steps(data.name, data, topology, {**run.values, "f": f})
    for route in routes.rows():
        corner = 3 * (route.source // 3) + route.target % 3
        if route.source % 2:
            corner = 3 * (route.target // 3) + route.source % 3
        path = [route.source, *topology.head[list(route.arcs)].tolist()]
        assert len(path) == 2 or path[1] == corner


def test_a_file_of_objects_is_that_of_arrays(tmp_path):
    topology, (program, arrays) = lowered("alltoall.all-gather", "torus:3x3")
    steps = schedule_collective("alltoall.all-gather", topology, most=8).steps
    assert write_xml(lower(steps, topology, "trees")) == write_xml(replace(program, ranks=arrays.ranks()))
    path = tmp_path / "x.xml"
    path.write_text(write_xml(lower(steps, topology)))
    assert verify_file(path, topology, "allgather").valid
