"""Every public function and method refuses arguments of another kind in one line."""

import matplotlib as mpl
import pytest
from case_families import each

import opticoll as oc
from opticoll.errors import OpticollError

mpl.use("Agg")

WRONG = [[], {}, None, object(), "x", -1, float("nan"), ["x"], {"a": 1}]
#: Arguments with which a public function is called, of which each is replaced by a wrong one in turn.
CALLS = {
    "best_sequence": {"n": 4, "degree": 1, "configurations": 1, "directed": False, "seconds": 0.01, "seed": 0},
    "bounds": {"instance": "ring:3", "formulation": "alltoall.master", "settings": {}},
    "check": {"formulation": "alltoall.master", "instance": "ring:3", "path": "none.json", "settings": {}},
    "export": {"formulation_name": "alltoall.master", "instance": "ring:3", "path": "m.txt", "settings": {}},
    "figure": {"name": "none"},
    "hybrids": {"graph": "op-graph:model=vgg16", "gpus": 0, "batch": 1, "degree": 4, "link": None},
    "iteration": {"model": "dlrm", "network": "complete:4", "batch": 0, "paths": 1, "latency": 0.0, "delay": None},
    "load": {"path": "none.json"},
    "model": {"formulation": "alltoall.master", "instance": "ring:3", "form": "cvxpy", "demand": "uniform"},
    "parse": {"spec": "ring:3"},
    "plot_topology": {"instance": "ring:3", "layout": "circular", "title": "a"},
    "save_topology": {"topology": "ring:3", "path": "m.none"},
    "sweep": {"formulation": "alltoall.master", "bound": "none", "over": ["ring:3"]},
    "topology": {"obj": "ring:3", "loops": "drop", "ranks": None, "unit": None},
    "Task": {
        "formulation": "alltoall.master",
        "instance": "ring:3",
        "settings": {},
        "tol": 1e-6,
        "seed": 0,
        "threads": 1,
        "time_limit_s": 1.0,
        "memory_limit_gib": 4.0,
    },
    "Topology": {"n": 2, "tail": [0, 1], "head": [1, 0], "capacity": [1, 1]},
}
#: Keywords of a solve, each of which gets every wrong value.
SOLVE = ("demand", "form", "method", "on_progress", "plugins", "seed", "shard", "start", "stop", "threads", "tol")
#: Methods with an argument, and whether a result or a topology has them.
RESULT = {"frame": ["name"], "sensitivity": ["most"], "what_if": ["factors"], "plot": ["layout", "title"]}
TOPOLOGY = {
    "inflow": ["flow"],
    "outflow": ["flow"],
    "length_matrix": ["lengths"],
    "relabelled": ["order"],
    "scaled": ["factor"],
}
UPDATE = ("capacity", "demand")


def answers(call, *values, **named):
    """Check that a call returns, or raises an error of opticoll in one line."""
    message = "returned"
    try:
        call(*values, **named)
    except OpticollError as error:
        message = str(error)
    assert message
    assert "\n" not in message


@pytest.fixture(scope="module")
def result():
    """A solution with prices."""
    return oc.solve("alltoall.master", "ring:3", method="highs")


@pytest.mark.parametrize("name", CALLS)
def test_functions(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function, given = getattr(oc, name), CALLS[name]
    for one in given:
        for wrong in WRONG:
            answers(function, **{**given, one: wrong})


@each("argument", SOLVE)
def test_solve(argument):
    for wrong in WRONG:
        answers(oc.solve, "alltoall.master", "ring:3", **{argument: wrong})


@pytest.mark.parametrize("name", RESULT)
def test_results(name, result):
    for argument in RESULT[name]:
        for wrong in WRONG:
            answers(getattr(result, name), **{argument: wrong})


@pytest.mark.parametrize("name", TOPOLOGY)
def test_topologies(name):
    for argument in TOPOLOGY[name]:
        for wrong in WRONG:
            answers(getattr(oc.parse("ring:3"), name), **{argument: wrong})


@pytest.mark.parametrize("argument", UPDATE)
def test_updates(argument):
    model = oc.model("alltoall.master", "ring:3", form="cvxpy")
    for wrong in WRONG:
        answers(model.update, **{argument: wrong})
        answers(model.update, capacity={"0->1": wrong})


def test_messages_say_what_and_how(result):
    for call, message in (
        (lambda: result.sensitivity("x"), "sensitivity: most: must be a whole number of at least 0, not 'x'"),
        (lambda: oc.best_sequence(8, 2, None), "best_sequence: configurations: must be a whole number of at least 1"),
        (lambda: oc.parse("ring:3").scaled([]), "scaled: the factor: must be a positive number, not []"),
        (lambda: oc.Task("alltoall.master", "ring:3", settings=[]), "settings: must be a mapping of names to values"),
        (lambda: oc.parse("ring:3").outflow([1]), "the flow: its first axis must be the 6 arcs of ring:3"),
    ):
        with pytest.raises(oc.BadInput) as refused:
            call()
        assert str(refused.value).startswith(message)
