"""Routes with layers of virtual channels: written, read back, and checked for deadlock."""

from __future__ import annotations

import copy
import itertools
import json
import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opticoll as oc
from opticoll.errors import BadFile, BadInput
from opticoll.formulations.alltoall.channels import RoutedChannels
from opticoll.instances import parse
from opticoll.solvers.methods.alltoall.arc_orders import moved_solution
from opticoll.solvers.methods.alltoall.torus_routes import torus_routes
from opticoll.solvers.schedules.link_schedule import dependency_cycle
from opticoll.solvers.schedules.lowering import schedule_file
from opticoll.solvers.schedules.verification import verify_file


def written(tmp_path, name, spec, **parameters):
    run = oc.solve(name, spec, **parameters)
    path = tmp_path / "a2a.routes.json"
    run.schedule().save(path)
    return run, path, json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "spec", "parameters", "value"),
    [
        ("alltoall.channels", "ring:5", {"layers": 2}, 3),
        ("alltoall.channels", "ring:5", {"layers": 1}, 4),
        ("alltoall.channels", "ring:4+scale=2", {"layers": 1, "demand": "permutation:1"}, 1.5),
        ("alltoall.virtual-channels", "ring:3,directed", {"layers": 2}, 2),
    ],
)
def test_files_state_layers_and_are_checked(tmp_path, name, spec, parameters, value):
    run, path, document = written(tmp_path, name, spec, **parameters)
    layers = [route["layer"] for route in document["routes"]]
    assert min(layers) == 1
    assert len(set(layers)) == run.metrics["layers"]
    checked = oc.check(name, spec, path, demand=parameters.get("demand"))
    assert checked["verified"], checked
    assert checked["metrics"]["layers"] == run.metrics["layers"]
    assert checked["objective"] == run.value == value


def test_routes_of_one_layer_that_wait_in_a_circle_are_refused(tmp_path):
    _, path, document = written(tmp_path, "alltoall.channels", "ring:5", layers=2)
    for route in document["routes"]:
        route["layer"] = 1
    path.write_text(json.dumps(document), encoding="utf-8")
    verdict = verify_file(path, parse("ring:5"))
    assert (verdict.valid, verdict.reason) == (False, "cycle")
    assert "0->1, 1->2, 2->3, 3->4, 4->0 wait for each other" in verdict.message
    for route in document["routes"]:
        del route["layer"]
    path.write_text(json.dumps(document), encoding="utf-8")
    without = verify_file(path, parse("ring:5"))
    assert without.valid  # nothing is said of channels
    assert "layers" not in without.metrics
    assert oc.check("alltoall.min-congestion", "ring:5", path)["verified"]
    for name in ("alltoall.channels", "alltoall.virtual-channels"):
        with pytest.raises(BadFile, match=f"may deadlock; {name} needs one for every route"):
            oc.check(name, "ring:5", path)


@pytest.mark.parametrize(
    ("settings", "violation", "objective"),
    [
        ({"layers": 2}, None, 3),
        ({"layers": 1}, "layers", None),
        ({"objective": "channels"}, None, 2),
        ({"objective": "channels", "load": 3.0}, None, 2),
        ({"objective": "channels", "load": 2.5}, "load", None),
        ({"objective": "channels", "layers": 1}, "layers", None),
    ],
)
def test_routes_are_within_the_stated_layers_and_load(tmp_path, settings, violation, objective):
    _, path, document = written(tmp_path, "alltoall.channels", "ring:5", layers=2)
    checked = oc.check("alltoall.channels", "ring:5", path, **settings)
    assert checked["verified"] == (violation is None)
    assert (checked["schedule"]["violation"], checked["objective"]) == (violation, objective)
    with pytest.raises(BadInput, match="paths= has no effect"):
        oc.check("alltoall.channels", "ring:5", path, paths="shortest")
    document["routes"].append(document["routes"][0])
    for route in (document["routes"][0], document["routes"][-1]):
        route["weight"] = 0.5
    document.pop("chunks")
    path.write_text(json.dumps(document), encoding="utf-8")
    assert oc.check("alltoall.channels", "ring:5", path)["schedule"]["violation"] == "split"
    assert oc.check("alltoall.master", "ring:5", path)["verified"]


@pytest.mark.parametrize("layer", [0, -1, 1.0, "1", True, 1 << 21])
def test_a_layer_is_a_whole_number_from_1(tmp_path, layer):
    _, path, document = written(tmp_path, "alltoall.channels", "ring:4", layers=1)
    document["routes"][3]["layer"] = layer
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(BadFile, match=r"routes\[3\].layer"):
        verify_file(path, parse("ring:4"))
    del document["routes"][3]["layer"]
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(BadFile, match="give all routes a layer, or none"):
        verify_file(path, parse("ring:4"))


def test_chunks_keep_the_routes(tmp_path):
    run = oc.solve("alltoall.channels", "ring:5", layers=2)
    path = tmp_path / "four.routes.json"
    run.schedule(chunks=4).save(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["chunks"] == 4
    assert {route["chunks"] for route in document["routes"]} == {4}
    assert verify_file(path, parse("ring:5")).time == 3


@settings(max_examples=32, deadline=None)
@given(st.integers(0, 10**6))
def test_cycles_are_those_of_the_dependency_graph(seed):
    draw = np.random.default_rng(seed)
    paths = [tuple(draw.permutation(5)[: int(draw.integers(2, 6))].tolist()) for _ in range(int(draw.integers(1, 9)))]
    graph = nx.DiGraph()
    for path in paths:
        graph.add_edges_from(itertools.pairwise(itertools.pairwise(path)))
    circle = dependency_cycle(paths)
    assert bool(circle) != nx.is_directed_acyclic_graph(graph)
    for link, following in zip(circle, [*circle[1:], *circle[:1]], strict=True):
        assert graph.has_edge(link, following)


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """A file in which routes of some pairs stand for those of all, and its topology."""
    topology, path = parse("torus:4x4"), tmp_path_factory.mktemp("moved") / "a2a.routes.json"
    data = RoutedChannels.prepare(topology, {"layers": 2})
    values = moved_solution(data, *torus_routes(topology))
    file = schedule_file(path, data.name, data, topology, values, chunks=(2, 4))
    path.write_text("".join(file.parts), encoding="utf-8")
    return topology, path, json.loads(path.read_text(encoding="utf-8"))


def test_routes_that_symmetries_move_are_checked(moved):
    _, path, document = moved
    assert len(document["routes"]) * len(document["images"]) == 16 * 15
    assert document["chunks"] == 2
    checked = oc.check("alltoall.channels", "torus:4x4", path, layers=2)
    assert (checked["verified"], checked["objective"]) == (True, 8)
    assert (checked["metrics"]["layers"], checked["metrics"]["paths"], checked["metrics"]["longest_path"]) == (
        2,
        240,
        4,
    )


def without_an_order(document):
    del document["orders"][1]


def with_a_reversed_order(document):
    document["orders"] = [document["orders"][0][::-1]]


def without_a_route(document):
    del document["routes"][3]


def without_an_image(document):
    del document["images"][1]


def with_an_image_twice(document):
    document["images"].append(document["images"][0])


def with_an_image_that_keeps_no_links(document):
    document["images"][0][:2] = document["images"][0][1::-1]


def with_half_a_route(document):
    document["routes"][0] |= {"weight": 0.5, "chunks": 1}


def with_a_link_twice(document):
    document["orders"][0].append(document["orders"][0][0])


@pytest.mark.parametrize(
    ("change", "reason", "words"),
    [
        (without_an_order, "cycle", "ascends in no order, so that it may wait in a circle"),
        (with_a_reversed_order, "cycle", "ascends in no order"),
        (without_a_route, "weights", "carry 0 of the shard"),
        (without_an_image, "weights", "carry 0 of the shard"),
        (with_an_image_twice, "weights", "300 routes for 240 pairs, which need one each"),
        (with_an_image_that_keeps_no_links, "symmetry", "image 0 takes some link to none"),
        (with_half_a_route, "weights", "every route carries a whole shard"),
        (with_a_link_twice, "no-arc", r"orders\[0\] lists a link twice, or one that does not exist"),
    ],
)
def test_wrong_symmetries_and_orders_are_refused(moved, tmp_path, change, reason, words):
    topology, _, document = moved
    wrong = copy.deepcopy(document)
    change(wrong)
    path = tmp_path / "wrong.routes.json"
    path.write_text(json.dumps(wrong), encoding="utf-8")
    verdict = verify_file(path, topology)
    assert (verdict.valid, verdict.reason) == (False, reason)
    assert re.search(words, verdict.message)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"orders": None}, "'images' and 'orders' belong together"),
        ({"images": [[0, 1]]}, "'images' are lists of 16 vertices each"),
        ({"demand": [[0, 1, 1.0]]}, "omit 'demand'"),
        ({"images": [[16] * 16]}, "vertex 16 is not one of torus:4x4"),
    ],
)
def test_malformed_symmetries_are_refused(moved, tmp_path, changed, words):
    topology, _, document = moved
    path = tmp_path / "wrong.routes.json"
    path.write_text(json.dumps({**document, **changed}), encoding="utf-8")
    with pytest.raises(BadFile, match=words):
        verify_file(path, topology)
