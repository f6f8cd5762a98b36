"""Traffic of TopoOpt's training jobs: published sizes, bytes by hand, groups in the hash, bad input in one line."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opticoll.errors import BadInput, BadSpec
from opticoll.instances import ServerPool, parse
from opticoll.instances.servers import AllReduceGroup
from opticoll.instances.training.training_jobs import (
    JOBS,
    bert_layers,
    operators,
    traffic_of,
    training_job,
)

EVERY = [(name, section) for name, (_, sections) in JOBS.items() for section in sections]


def test_published_numbers_of_weights():
    assert training_job("resnet50").dense_weights == 25_557_032  # He et al., as torchvision counts it
    assert training_job("vgg").dense_weights == 138_357_544  # Simonyan & Zisserman: 138 million
    assert sum(layer.weights for layer in bert_layers(12, 768, 512, 768)) == 109_482_240  # BERT base
    assert sum(layer.weights for layer in bert_layers(24, 1024, 512, 1024)) == 335_141_888  # BERT large
    tables = training_job("dlrm", "5.4").tables
    assert [(t.count, t.rows, t.columns) for t in tables] == [(128, 10**7, 128)]
    assert training_job("ncf").table_weights == 64 * 10**6 * (64 + 128)


def test_the_circuits_of_racks_carry_what_leaves_them():
    """Racks of 2, 2 and 1 of five servers; of a ring over 0, 1, 2, 4 three hops leave a rack, of one over 2, 3 none."""
    sent = np.arange(25.0).reshape(5, 5) * (1 - np.eye(5))
    groups = [AllReduceGroup((0, 4, 2, 1), 6.0), AllReduceGroup((2, 3), 7.0)]
    pool = ServerPool(5, 3, sent, groups=groups).at_racks(2)
    assert (pool.n, pool.degree, pool.groups) == (3, 3, (AllReduceGroup((0, 1, 2), 6.0),))
    assert pool.point_to_point.tolist() == [[0, 2 + 3 + 7 + 8, 4 + 9], [10 + 11 + 15 + 16, 0, 14 + 19], [41, 45, 0]]
    assert parse("servers:n=8,degree=2,rack=2").traffic.tolist() == (4e6 * (1 - np.eye(4))).tolist()
    with pytest.raises(BadInput, match="rack=4 holds all 4 servers"):
        parse("servers:n=4,degree=2,rack=4")


@pytest.mark.parametrize(("name", "section"), EVERY)
@pytest.mark.parametrize("placement", ["data", "hybrid"])
def test_every_job_on_twelve_servers(name, section, placement):
    pool = parse(f"servers:n=12,degree=4,traffic={name},section={section},parallel={placement}")
    job = training_job(name, section)
    assert parse(pool.spec) == pool
    assert dict(pool.parameters)["section"] == section
    if placement == "data":
        assert not pool.point_to_point.any()
        (group,) = pool.groups
        assert group.transfer == pytest.approx(2 * 11 / 12 * 4 * (job.dense_weights + job.table_weights), rel=1e-12)
    else:
        assert pool.point_to_point.any()
        assert (pool.point_to_point == pool.point_to_point.T).all()
    # What all members send together is what rings add to the matrix.
    assert pool.traffic.sum() == pytest.approx(pool.point_to_point.sum() + pool.all_reduce_bytes, rel=1e-12)


def test_lookups_are_rows_out_and_gradients_back():
    """One table on each server: b samples of 4 GPUs, 128 columns of 4 bytes, both ways between any two servers."""
    pool = parse("servers:n=128,degree=4,traffic=dlrm,section=5.4,batch=64")
    off = ~np.eye(128, dtype=bool)
    assert set(pool.point_to_point[off]) == {2 * 64 * 4 * 128 * 4}
    # Three tables on three of six servers; only their servers send rows and get gradients.
    job = training_job("dlrm", "5.6")
    assert job.tables[0].count == 16
    matrix, groups = traffic_of(job, 32)
    assert np.count_nonzero(matrix[1]) == 16
    assert matrix[0, 1] == 256 * 4 * 256 * 4
    assert matrix[0, 2] == 2 * matrix[0, 1]
    assert [g.size for g in groups] == [32]


def test_all_to_all_share_of_the_papers_figure_12():
    """3, 5, 10, 20, 40, 80 % of the gradients' bytes, each at most one rounding up from here."""
    for batch, share in ((64, 0.03), (128, 0.05), (256, 0.1), (512, 0.2), (1024, 0.4), (2048, 0.8)):
        job = training_job("dlrm", "5.4", batch)
        direct = traffic_of(job, 128)[0].sum()
        assert direct / (128 * 4 * job.dense_weights) == pytest.approx(share, rel=0.025, abs=0.006)


def test_the_stacks_of_dlrm_are_those_of_the_authors_measurements():
    """Every dense operator that was measured for DLRM, as often as the task graphs have it, and no other layer."""
    for section, servers in (("5.3", 128), ("5.4", 128), ("5.6", 16)):
        job = training_job("dlrm", section)
        model = "dlrm-128-tables" if section == "5.4" else "dlrm"
        sizes = [
            tuple(map(int, one.name.split("_")[1:]))
            for one in operators(model, job.batch, servers)
            for _ in range(one.occurrences)
            if one.name.startswith("Dense")
        ]
        assert sorted(layer.weights for layer in job.layers) == sorted((a + 1) * b for a, b in sizes)


def test_shards_by_hand():
    """VGG in halves on 4 servers: dense layers summed by two pairs, the convolutions by all, outputs in each block."""
    matrix, groups = traffic_of(training_job("vgg"), 4, "hybrid", 2)
    dense = 25088 * 4096 + 4096 + 4096 * 4096 + 4096 + 4096 * 1000 + 1000
    assert [g.members for g in groups] == [(0, 1, 2, 3), (0, 2), (1, 3)]
    assert [g.transfer for g in groups] == pytest.approx(
        [2 * 3 / 4 * 4 * (138_357_544 - dense), 4 * dense / 2, 4 * dense / 2]
    )
    between = 2 * 64 * 4 * (4096 + 4096 + 1000) * 4
    assert matrix.tolist() == [[0, between, 0, 0], [between, 0, 0, 0], [0, 0, 0, between], [0, 0, between, 0]]
    # One block of all servers: every part has one owner, nothing of it is summed.
    _, groups = traffic_of(training_job("vgg"), 4, "hybrid", 4)
    assert [g.members for g in groups] == [(0, 1, 2, 3)]


def test_groups_are_part_of_the_instance():
    pool = parse("servers:n=6,degree=2,traffic=resnet50")
    assert pool != ServerPool(6, 2, pool.traffic)  # the same bytes, but not mutable
    copy = pickle.loads(pickle.dumps(pool))  # noqa: S301 - our own bytes
    assert copy == pool
    assert copy.groups == pool.groups
    assert not copy.point_to_point.flags.writeable
    assert not copy.traffic.flags.writeable
    assert parse("servers:n=6,degree=2,traffic=dlrm,parallel=data") == parse(
        "servers:n=6,degree=2,traffic=dlrm-replicated"
    )
    one = ServerPool(3, 1, np.zeros((3, 3)), groups=[AllReduceGroup((0, 1, 2), 5.0)])
    other = ServerPool(3, 1, np.zeros((3, 3)), groups=[AllReduceGroup((0, 1, 2), 6.0)])
    assert one.hash != other.hash
    assert one.traffic.tolist() == [[0, 5, 0], [0, 0, 5], [5, 0, 0]]


@settings(max_examples=8, deadline=None)
@given(st.permutations(range(6)))
def test_relabelling_moves_traffic_along(order):
    pool = parse("servers:n=6,degree=2,traffic=vgg,parallel=hybrid")
    renamed = pool.relabelled(order)
    assert (renamed.traffic[np.ix_(order, order)] == pool.traffic).all()
    assert renamed.relabelled(np.argsort(order)) == pool
    assert renamed.all_reduce_bytes == pool.all_reduce_bytes


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("traffic=vgg,parallel=hybrid,shards=5", "divisor"),
        ("traffic=vgg,parallel=hybrid,shards=1", "divisor"),
        ("traffic=vgg,parallel=both", "parallel must be one of"),
        ("traffic=ncf,section=6", "known: 5.3"),
        ("traffic=vgg,section=x", "known"),
        ("traffic=bertt", "did you mean 'bert'"),
        ("traffic=vgg,batch=-1", "batch"),
        ("traffic=alltoall,batch=4", "does not use batch"),
        ("traffic=dlrm,batch=4", "name a section"),
        ("traffic=dlrm-replicated,section=6", "does not use section"),
        ("traffic=random,parallel=data", "parallel"),
        ("traffic=vgg,shards=3", "does not use shards"),
        ("traffic=ncf,parallel=hybrid,shards=3", "does not use shards"),
    ],
)
def test_bad_jobs_are_refused(spec, expected):
    with pytest.raises(BadInput, match=expected):
        parse(f"servers:n=12,degree=4,{spec}")


def test_unknown_models_and_bad_groups_are_refused():
    with pytest.raises(BadSpec, match="unknown model"):
        training_job("alexnet")
    for members, transfer in (((0,), 1.0), ((0, 0), 1.0), ((0, 1), 0.0), ((0, 1), float("nan")), ((0, 1), -1.0)):
        with pytest.raises(BadInput, match="all-reduce group"):
            AllReduceGroup(members, transfer)
    with pytest.raises(BadInput, match="names server 3"):
        ServerPool(3, 1, np.zeros((3, 3)), groups=[AllReduceGroup(tuple(range(4)), 1.0)])
    with pytest.raises(BadInput, match="co-prime"):
        AllReduceGroup((0, 1, 2, 3), 1.0).ring(2)
    with pytest.raises(BadInput, match="permutation"):
        parse("servers:n=3,degree=1").relabelled([0, 0, 1])
