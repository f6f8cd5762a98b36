"""Every public function and method refuses arguments of another kind in one line."""

import matplotlib as mpl
import numpy as np
import pytest
from case_families import each

import opticoll as oc
from opticoll.errors import OpticollError

mpl.use("Agg")

WRONG = [[], None, object(), "x", -1, float("nan"), {"a": 1}]
#: Arguments with which a public function is called, of which each is replaced by a wrong one in turn.
CALLS = {
    "best_sequence": {"n": 4, "degree": 1, "configurations": 1, "directed": False, "seconds": 0.01, "seed": 0},
    "bounds": {"instance": "ring:3", "formulation": "alltoall.master", "settings": {}},
    "check": {"formulation": "alltoall.master", "instance": "ring:3", "path": "none.json", "settings": {}},
    "cluster": {
        "network": "ideal-switch",
        "servers": 16,
        "degree": 1,
        "jobs": 1,
        "load": None,
        "active": None,
        "work": 1.0,
        "mix": None,
        "setup": 0.0,
        "seed": 0,
    },
    "conjecture": {"formulation": "alltoall.master", "over": [], "settings": {}, "period": None, "variable": None},
    "envelope": {"n": 4, "degree": 1},
    "export": {"formulation_name": "alltoall.master", "instance": "ring:3", "path": "m.txt", "settings": {}},
    "figure": {"name": "lumorph-5", "store": "none"},
    "iteration": {"model": "dlrm", "network": "complete:4", "batch": 1, "latency": 0.0, "servers": None},
    "load": {"path": "none.json"},
    "model": {"formulation": "alltoall.master", "instance": "ring:3", "form": "cvxpy", "demand": "uniform"},
    "parse": {"spec": "ring:3"},
    "plot_topology": {"instance": "ring:3", "layout": "circular", "title": "a"},
    "reconfigure": {"n": 4, "degree": 3, "delay": 1.0, "time_limit": 0.1, "seed": 0, "on_progress": None},
    "save_topology": {"topology": "ring:3", "path": "m.none"},
    "study": {"formulations": "alltoall.master", "instances": "path:2", "columns": "T", "jobs": None, "dask": None},
    "sweep": {"formulation": "alltoall.master", "bound": "none", "over": ["ring:3"], "settings": {}, "tol": 1e-6},
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
RESULT = {"frame": ["name"], "plot": ["layout", "title"]}
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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: oc.best_sequence(8, 2, None), "best_sequence: configurations: must be a whole number of at least 1"),
        (lambda: oc.parse("ring:3").scaled([]), "scaled: the factor: must be a positive number, not []"),
        (lambda: oc.Task("alltoall.master", "ring:3", settings=[]), "settings: must be a mapping of names to values"),
        (lambda: oc.parse("ring:3").outflow([1]), "the flow: its first axis must be the 6 arcs of ring:3"),
        (lambda: oc.design(6, 2, directed="no"), "design: directed: must be True or False, not 'no'"),
        (lambda: oc.design(6, 2, starts=1.5), "design: starts: must be a whole number of at least 1, not 1.5"),
        (lambda: oc.design(6, 2, time_limit=-1), "design: time_limit: must be a positive number, not -1"),
        (lambda: oc.best_sequence(6, 2, 2, directed="no"), "best_sequence: directed: must be True or False"),
        (
            lambda: oc.bounds("ring:3", formulation="alltoall.broadcast", root=1),
            "bounds: has no argument 'root'; give parameters of the formulation as settings={'root': ...}",
        ),
        (lambda: oc.solve("alltoall.master", "ring:3", log="no"), "solve: log: must be True or False, not 'no'"),
        (lambda: oc.reconfigure(4, 3, 1.0, on_progress=1), "design: on_progress: must be a function of a dict, not 1"),
        (lambda: oc.study("alltoall.master", "ring:3", columns=1), "study: columns: must be names of columns"),
        (lambda: oc.study("smoke", "ring:4"), "study: 'smoke' is a study, which states its instances and methods"),
        (lambda: oc.iteration("bert", "ring:4", servers=0), "iteration: servers: must be a whole number of at least 1"),
        (lambda: oc.iteration("bert", "ring:4", ring_factor=-1), "iteration: ring_factor: must be a positive number"),
        (
            lambda: oc.sweep("alltoall.master", lambda _: 1.0, "ring:3", sense="low"),
            "sense='low': write lower or upper",
        ),
        (
            lambda: oc.study("alltoall.master", "ring:3", jobs="2"),
            "jobs: must be a whole number of at least 1, not '2'",
        ),
        (lambda: oc.export("alltoall.master", "ring:3", "m.mps", settings={"foo": 1}), "alltoall.master: no parameter"),
        (lambda: oc.solve("alltoall.master", "ring:3", demand={(0, 1): 10**400}), "demand: amounts must be numbers"),
        (
            lambda: oc.parse("ring:3+host=1_0"),
            "instance 'ring:3+host=1_0', modifier 'host': argument 'bandwidth' must be",
        ),
        (lambda: oc.model("alltoall.master", "ring:3").update(capacity=True), "capacity: 'True' is no number"),
        (lambda: oc.model("alltoall.master", "ring:3").update(capacity=10**400), "capacity: '1000"),
    ],
)
def test_messages_say_what_is_wrong_and_how_to_put_it_right(call, message):
    with pytest.raises(oc.BadInput) as refused:
        call()
    assert str(refused.value).startswith(message)


def test_masked_arrays_are_refused():
    masked = np.ma.array(np.ones((3, 3)) - np.eye(3), mask=np.eye(3, k=1))
    for call in (
        lambda: oc.solve("alltoall.master", "ring:3", demand=masked),
        lambda: oc.model("alltoall.master", "ring:3").update(capacity=np.ma.array(np.ones(6), mask=[1, 0, 0, 0, 0, 0])),
    ):
        with pytest.raises(oc.BadInput, match="masked entries"):
            call()
    assert oc.solve("alltoall.master", "ring:3", demand=np.ma.array(masked.data)).value == 1


def test_whole_numbers_of_numpy_and_generators_of_instances():
    assert oc.solve("alltoall.master", "ring:3", seed=np.int64(3), threads=np.int32(1)).value == 1
    assert len(oc.study("alltoall.master", (f"ring:{n}" for n in (3, 4)))) == 2
    with pytest.raises(oc.BadInput, match="did you mean 'highs'"):
        oc.solve("alltoall.master", "ring:3", method="HiGHS")
