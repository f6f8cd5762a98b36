"""Task graphs of training iterations, and networks of switches."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from opticoll.errors import BadInput, BadSpec
from opticoll.instances import parse
from opticoll.instances.training.task_graph import (
    ALL_REDUCE,
    MODELS,
    TaskGraphDraft,
    operator_sequence,
    training_iteration,
)
from opticoll.instances.training.training_jobs import compute_time, operators, traffic_of, training_job

#: Model, section, name, batch and servers of its operator times, gradient bytes of a server in the published graphs.
PUBLISHED = [
    ("bert", "5.3", "bert", 16, 128, 805_507_076),
    ("vgg", "5.3", "vgg", 64, 128, 1_157_409_952),
    ("dlrm", "5.4", "dlrm-128-tables", 128, 128, 1_359_273_988),
    ("bert", "5.6", "bert", 16, 16, 226_569_220),
    ("vgg", "5.6", "vgg", 64, 16, 1_157_409_952),
    ("candle", "5.6", "candle", 256, 16, 4_752_687_116),
    ("dlrm", "5.6", "dlrm", 256, 16, 306_343_940),
]


@pytest.mark.parametrize(("model", "section", "timed", "batch", "servers", "size"), PUBLISHED)
def test_operators_and_bytes_are_those_of_the_published_graphs(model, section, timed, batch, servers, size):
    layers, _ = operator_sequence(model, section)
    count = Counter(name for name, _ in layers)
    assert count == {one.name: one.occurrences for one in operators(timed, batch, servers) if not one.looked_up}
    assert 4 * sum(weights for _, weights in layers) == size


@pytest.mark.parametrize(("model", "milliseconds"), [("vgg", 100.476891), ("bert", 62.201796), ("dlrm", 14.543131)])
def test_computing_is_that_of_the_busiest_server_of_the_published_graphs(model, milliseconds):
    graph = training_iteration(model, 16, section="5.6")
    assert 1e3 * graph.computing.max() == pytest.approx(milliseconds, abs=1e-5)
    assert 1e3 * compute_time(model, training_job(model, "5.6").batch, 16) == pytest.approx(milliseconds)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("overlap", ["backward", "none"])
def test_a_graph_has_the_traffic_of_the_model(model, overlap):
    graph = training_iteration(model, 8, overlap=overlap)
    layers, _ = operator_sequence(model)
    assert graph.reduced == {tuple(range(8)): 4.0 * sum(weights for _, weights in layers)}
    assert graph.transferred == pytest.approx(traffic_of(training_job(model), 8)[0])
    assert (graph.kind == ALL_REDUCE).sum() == sum(weights > 0 for _, weights in layers)
    assert (graph.waits[:, 0] < graph.waits[:, 1]).all()


def test_invalid_graphs_are_refused():
    with pytest.raises(BadInput, match="no operator times of resnet50 in section"):
        training_iteration("resnet50", 8, section="5.6")
    with pytest.raises(BadInput, match="at 7 samples"):
        training_iteration("vgg", 8, batch=7)
    with pytest.raises(BadInput, match="at least 2 servers"):
        training_iteration("vgg", 1)
    for task in (lambda d: d.transfer(0, 0, 1.0), lambda d: d.compute(5, 1.0), lambda d: d.compute(0, -1.0)):
        draft = TaskGraphDraft(3)
        task(draft)
        with pytest.raises(BadInput, match="task 0"):
            draft.finished()
    draft = TaskGraphDraft(3)
    draft.compute(0, 1.0, [0])
    with pytest.raises(BadInput, match="waits for itself"):
        draft.finished()
    draft = TaskGraphDraft(3)
    draft.all_reduce([1], 1.0)
    with pytest.raises(BadInput, match="two distinct servers"):
        draft.finished()


@pytest.mark.parametrize("k", [2, 4, 8])
def test_fat_trees_have_their_switches_and_full_bisection(k):
    tree = parse(f"fat-tree:k={k}")
    assert (tree.num_ranks, tree.n) == (k**3 // 4, k**3 // 4 + 5 * k * k // 4)
    assert tree.arcs == 2 * 3 * k**3 // 4
    switches = np.setdiff1d(np.arange(tree.n), tree.terminals)
    assert (tree.out_degree[switches] == k).all()
    assert tree.connected
    if k >= 4:
        half = parse(f"fat-tree:k={k},oversubscription=2,capacity=3")
        edges = [v for v, name in enumerate(half.labels) if name.startswith("edge")]
        assert (half.out_degree[edges] == k // 2 + k // 4).all()
        assert half.connected
        assert (half.capacity == 3).all()


def test_the_ideal_switch_and_circuits():
    star = parse("ideal-switch:n=5,capacity=2")
    assert (star.num_ranks, star.n, star.arcs, star.diameter) == (5, 6, 10, 2.0)
    ring = parse("circuits:n=8,degree=2,rule=sip-ring")
    assert (ring.periodic, ring.forwarding, ring.interval, ring.pause, ring.discount) == (True, False, 0.05, 25e-6, 1)
    still = parse("circuits:n=8,degree=2")
    assert (still.periodic, still.forwarding) == (False, True)
    assert still != ring
    assert still == parse("circuits:n=8,degree=2,rule=topoopt")


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("fat-tree:k=3", BadInput, "k must be even"),
        ("fat-tree:k=4,oversubscription=3", BadInput, "divide k/2"),
        ("fat-tree:k=4,capacity=0", BadInput, "capacity"),
        ("ideal-switch:n=1", BadInput, "n"),
        ("circuits:n=8,degree=0", BadInput, "degree"),
        ("circuits:n=8,degree=2,rule=sipring", BadSpec, "sip-ring"),
        ("circuits:n=8,degree=2,rule=ocs-reconfig,pause_us=60000", BadInput, "pause"),
        ("circuits:n=8,degree=2,forwarding=false", BadInput, "wait forever"),
    ],
)
def test_invalid_networks_are_refused(spec, error, message):
    with pytest.raises(error, match=message):
        parse(spec)
