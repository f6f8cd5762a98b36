"""Iterations of training: the authors' logs with their totals, random calls, bad input in one line."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest

from opticoll.errors import BadInput, BadSpec
from opticoll.instances import parse
from opticoll.instances.published.lumorph_numbers import GPUS, MODELS, all_reduces, iteration
from opticoll.instances.training.training_iteration import AllReduceCall, LayerTransfer, TrainingIteration

#: From a separate pass over the raw logs, per model: calls of more than one GPU, and the sum of their buffers.
TOTALS = {"bert": (134, 805_507_076), "ncf": (17, 537_010_184), "inception": (190, 87_155_368)}
#: Bytes between GPUs from layer to layer in ncf, by number of GPUs.
LAYERS = {4: 75_497_472, 256: 6_417_285_120, 128: 3_179_413_504}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("gpus", GPUS)
def test_every_log_has_its_totals(model, gpus):
    job = parse(f"training:{model},gpus={gpus}")
    shared = [call for call in job.calls if len(call.ranks) > 1]
    # One embedding table of ncf is data parallel on 128 GPUs.
    odd = (18, 793_010_184) if (model, gpus) == ("ncf", 128) else TOTALS[model]
    assert (len(shared), job.all_reduce_bytes) == odd
    assert {len(call.ranks) for call in shared} == {gpus}, "no call of more than one GPU leaves one out"
    assert sum(kind.calls for kind in all_reduces(model, gpus)) == len(job.calls)
    assert parse(job.spec) == job == pickle.loads(pickle.dumps(job))  # noqa: S301
    if model != "ncf":
        assert not job.transfers
        assert len(shared) == len(job.calls)
    elif gpus in LAYERS:
        assert job.transfer_matrix.sum() == LAYERS[gpus]


def test_calls_are_in_the_order_of_the_log():
    sizes = [call.size for call in parse("training:bert,gpus=4").calls]
    assert sizes[:7] == [16777216, 4194304, 4096, 4194304, 4096, 16777216, 16777216]
    tables = [call for call in parse("training:ncf,gpus=256").calls if len(call.ranks) == 1]
    assert len(tables) == 128
    assert [call.ranks for call in tables[:13]] == [(i,) for i in (*range(12), 129)]
    assert Counter(call.size for call in tables) == {256_000_000: 64, 512_000_000: 64}


def test_transfers_go_both_ways_and_never_to_oneself():
    job = TrainingIteration(3, [], [LayerTransfer(0, 10, (0, 0, 1), (0, 2))])
    assert job.transfer_matrix.tolist() == [[0, 10, 20], [10, 0, 10], [20, 10, 0]]


def test_random_calls_depend_on_the_seed_alone():
    first, again, other = (parse(f"training:random,gpus=16,calls=5,seed={seed}") for seed in (1, 1, 2))
    assert first == again != other
    assert len(first.calls) == 5
    for call in first.calls:
        assert 2 <= len(call.ranks) <= 8
        assert 4096 <= call.size <= 64 * 2**20
        assert np.log2(call.size).is_integer()


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("training:bort,gpus=4", "unknown model 'bort'.*bert"),
        ("training:bert,gpus=5", "no log on 5 GPUs"),
        ("training:bert,gpus=4,seed=1", "does not use calls, seed or stages"),
        ("training:random,gpus=3", "gpus"),
        ("training:random,gpus=8,calls=20000", "exceeds the limit"),
        ("training:random,gpus=8,calls=-1", "calls"),
    ],
)
def test_bad_specs_are_one_line(spec, words):
    with pytest.raises((BadSpec, BadInput), match=words):
        parse(spec)


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ([AllReduceCall((), 4)], "call 0 needs"),
        ([AllReduceCall((0, 3), 4)], "GPUs from 0 to 2"),
        ([AllReduceCall((0, 1), 0)], "at least 1 byte"),
        ([AllReduceCall((1, 0), 4)], "ascending"),
    ],
)
def test_bad_calls_are_refused(calls, words):
    with pytest.raises(BadInput, match=words):
        TrainingIteration(3, calls)


def test_a_log_that_does_not_exist_is_an_error():
    with pytest.raises(KeyError, match="no log of bert on 5 GPUs"):
        iteration("bert", 5)
