"""An iteration on circuits: times by hand, exhaustive search, priority, overlap and batches, wrong solutions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from reference import partitions

import opticoll as oc
from opticoll.errors import NotApplicable
from opticoll.formulations.lumorph.iteration import StagedCalls
from opticoll.formulations.lumorph.iteration_solution import values_of
from opticoll.instances import parse
from opticoll.instances.training.training_iteration import AllReduceCall, LayerTransfer, Stage, TrainingIteration

NAME = "lumorph.iteration"

#: Two GPUs by LUMORPH-2 as printed take 2 (0.7 + 3.7) + B / 300e3 us: these buffers take 100 and 50 us.
LONG, SHORT = 27_360_000, 12_360_000
#: One GPU to another, by the authors' code: 4.4 us and an eighth of 300 GiB/s: 10 us.
TEN = 225_486
BY_HAND = {"algorithm": "lumorph-2", "variant": "printed"}


def by_hand():
    """Computing 100, 60, 40 us with 10 us of transfers between; A and B after the first stage, C after the second."""
    return TrainingIteration(
        4,
        [AllReduceCall((0, 1), LONG, 0), AllReduceCall((2, 3), SHORT, 0), AllReduceCall((0, 2), SHORT, 1)],
        [LayerTransfer(2, TEN, (0,), (1,)), LayerTransfer(1, TEN, (1,), (0,))],
        [Stage(100.0, 2), Stage(60.0, 1), Stage(40.0)],
    )


def in_six_stages():
    """The same computing and transfers in six stages, calls ready within those of :func:`by_hand`."""
    job = by_hand()
    return TrainingIteration(
        4,
        [AllReduceCall(call.ranks, call.size, (0, 1, 2)[k]) for k, call in enumerate(job.calls)],
        job.transfers,
        [Stage(70.0), Stage(30.0, 2), Stage(20.0), Stage(40.0, 1), Stage(15.0), Stage(25.0)],
    )


@pytest.mark.parametrize(
    ("settings", "time"),
    [
        # A and B from 110 to 210, beside computing until 170; transfers until 220; C until 270, beside computing.
        ({}, 270.0),
        # A beside the second stage until 210, transfers until 220, then B and C one after the other.
        ({"batches": False}, 320.0),
        # Computing and transfers 220, then A with B, and C.
        ({"overlap": False}, 370.0),
        ({"first": "calls"}, 370.0),
        ({"overlap": False, "batches": False}, 420.0),  # the naive approach
    ],
)
def test_times_by_hand(settings, time):
    run = oc.solve(oc.Task(NAME, by_hand(), "highs", settings={**BY_HAND, **settings}))
    assert (run.verified, run.objective, run.termination) == (True, pytest.approx(time), "optimal")
    assert run.metrics["naive_us"] == pytest.approx(420.0)
    greedy = oc.solve(oc.Task(NAME, by_hand(), "boundary-batches", settings={**BY_HAND, **settings}))
    assert greedy.verified
    assert greedy.objective >= time - 1e-6
    if not settings:
        data = StagedCalls.prepare(by_hand(), BY_HAND)
        assert greedy.objective == pytest.approx(time)
        assert {b.name: b.value for b in data.bounds()} == {
            "computing": pytest.approx(220.0),
            "device": pytest.approx(270.0),
        }


def replayed(stages, sent, busy, first):
    """The end of an iteration whose batches at every boundary take ``busy``; computing waits for transfers alone."""
    now = 0.0
    free = 0.0
    for computing, transfers, batches in zip(stages, sent, busy, strict=True):
        now += computing
        boundary = max(now, free)
        if not transfers:
            free = boundary + batches
        elif first == "transfers":
            now = boundary + transfers
            free = now + batches
        else:
            now = free = boundary + batches + transfers
    return max(now, free)


@pytest.mark.parametrize("boundaries", ["transfers", "stages"])
@pytest.mark.parametrize("first", ["transfers", "calls"])
@pytest.mark.parametrize("seed", [1, 3, pytest.param("six stages", marks=pytest.mark.slow)])
def test_the_optimum_is_that_of_exhaustive_search(seed, first, boundaries):
    instance = (
        in_six_stages() if seed == "six stages" else parse(f"training:random,gpus=6,calls=4,seed={seed},stages=3")
    )
    data = StagedCalls.prepare(instance, {"first": first, "boundaries": boundaries})
    best = np.inf
    for blocks in partitions(list(range(data.time.size))):
        if any((data.member[block].sum(axis=0) > 1).any() for block in blocks):
            continue
        for stages in product(range(data.stages), repeat=len(blocks)):
            if any(b < data.ready[block].max() for b, block in zip(stages, blocks, strict=True)):
                continue
            busy = np.zeros(data.stages)
            for b, block in zip(stages, blocks, strict=True):
                busy[b] += data.time[block].max()
            end = replayed(data.computing, data.transfers, busy, first)
            values = values_of(data, list(zip(stages, blocks, strict=True)))
            assert float(values["z"]) == pytest.approx(end)
            assert max(data.residuals(values).values()) < 1e-9
            best = min(best, end)
    run = oc.solve(oc.Task(NAME, instance, settings={"first": first, "boundaries": boundaries}))
    assert run.proof == "optimal"
    assert run.objective == pytest.approx(best)


@pytest.mark.parametrize("seed", range(4))
def test_priority_overlap_and_batches_never_cost_time(seed):
    spec = f"training:random,gpus=8,calls=8,seed={seed},stages=4"
    best, alone, calls, naive = (
        oc.solve(oc.Task(NAME, spec, settings=settings)).objective
        for settings in ({}, {"batches": False}, {"first": "calls"}, {"overlap": False, "batches": False})
    )
    data = StagedCalls.prepare(parse(spec))
    assert best <= min(alone, calls) + 1e-6
    assert max(alone, calls) <= naive + 1e-6
    assert naive == pytest.approx(data.computing.sum() + data.transfers.sum() + data.time.sum())
    at_the_end = oc.solve(oc.Task(NAME, spec, settings={"overlap": False})).objective
    assert at_the_end == pytest.approx(calls, rel=1e-7), "nothing overlaps if transfers wait for calls"
    batches = oc.solve(oc.Task("lumorph.co-scheduling", spec.replace(",stages=4", ""))).objective
    assert at_the_end <= data.computing.sum() + data.transfers.sum() + data.time.sum()
    assert batches > 0


def test_all_calls_at_the_end_are_co_scheduled():
    calls = [AllReduceCall((0, 1), LONG), AllReduceCall((2, 3), SHORT), AllReduceCall((0, 2), SHORT)]
    alone = TrainingIteration(4, calls, [], [Stage(0.0)])
    whole = oc.solve(oc.Task(NAME, alone, settings=BY_HAND)).objective
    assert whole == pytest.approx(oc.solve(oc.Task("lumorph.co-scheduling", alone, settings=BY_HAND)).objective)
    assert whole == pytest.approx(150.0)


def test_stages_without_transfers_are_one_with_the_next():
    job = by_hand()
    split = TrainingIteration(
        4,
        [AllReduceCall(call.ranks, call.size, (1, 3)[call.ready]) for call in job.calls],
        job.transfers,
        [Stage(70.0), Stage(30.0, 2), Stage(20.0), Stage(40.0, 1), Stage(15.0), Stage(25.0)],
    )
    one, other = (StagedCalls.prepare(each, BY_HAND) for each in (job, split))
    assert np.array_equal(one.computing, other.computing)
    assert np.array_equal(one.transfers, other.transfers)
    assert np.array_equal(one.ready, other.ready)


def test_calls_run_beside_computing_that_no_transfer_interrupts():
    """One queue: A from 70 us, B and C behind it, beside computing, which waits for no call."""
    calls = [AllReduceCall((0, 1), LONG, 0), AllReduceCall((0, 2), SHORT, 1), AllReduceCall((0, 3), SHORT, 2)]
    alone = TrainingIteration(4, calls, [], [Stage(70.0), Stage(30.0), Stage(100.0)])
    queue = oc.solve(oc.Task(NAME, alone, settings={**BY_HAND, "boundaries": "stages"}))
    assert (queue.objective, queue.proof) == (pytest.approx(270.0), "optimal")  # 70 + 100 + 50 + 50
    paper = oc.solve(oc.Task(NAME, alone, settings=BY_HAND))
    assert paper.objective == pytest.approx(400.0), "without transfers, all calls run at the end"
    greedy = oc.solve(oc.Task(NAME, alone, "boundary-batches", settings={**BY_HAND, "boundaries": "stages"}))
    assert (greedy.objective, greedy.proof) == (pytest.approx(270.0), "optimal")


def test_times_of_the_instance_replace_formulas():
    job = by_hand()
    known = TrainingIteration(
        4,
        [AllReduceCall(call.ranks, 1, call.ready, time) for call, time in zip(job.calls, (100, 50, 50), strict=True)],
        [],
        [Stage(100.0, transfers_us=10.0), Stage(60.0, transfers_us=10.0), Stage(40.0)],
    )
    assert oc.solve(oc.Task(NAME, known)).objective == pytest.approx(270.0)
    assert known.hash != job.hash
    with pytest.raises(oc.BadInput, match="call 0 runs for -1"):
        TrainingIteration(2, [AllReduceCall((0, 1), 8, 0, -1.0)], [], [Stage(1.0)])


@pytest.mark.parametrize(("algorithm", "rounds"), [("lumorph-4", 2), ("lumorph-2", 4), ("ring", 0)])
def test_gpus_synchronise_before_every_round_that_changes_circuits(algorithm, rounds):
    """One stage, one transfer in one round, one call among four GPUs; the ring's ideal switch changes nothing."""
    stages, sent = [Stage(100.0, 0)], [LayerTransfer(0, 2**20, (0,), (1,))]
    job = TrainingIteration(4, [AllReduceCall((0, 1, 2, 3), 2**20)], sent, stages)
    least, waited = (
        oc.solve(oc.Task(NAME, job, settings={"algorithm": algorithm, "synchronise": wait})).objective
        for wait in (0.0, "0.01ms")
    )
    assert waited - least == pytest.approx(10.0 * (rounds + 1))
    with pytest.raises(oc.BadInput, match=r"synchronise=-1\.0; give a finite time of at least 0"):
        oc.solve(oc.Task(NAME, job, settings={"synchronise": -1}))


def test_refusals():
    with pytest.raises(NotApplicable, match="does not state when"):
        StagedCalls.prepare(parse("training:ncf,gpus=4"))
    with pytest.raises(NotApplicable, match="needs an iteration"):
        StagedCalls.prepare(parse("ring:4"))
    with pytest.raises(oc.BadInput, match="ready after stage 2"):
        TrainingIteration(2, [AllReduceCall((0, 1), 8, 2)], [], [Stage(1.0), Stage(1.0)])
    with pytest.raises(oc.BadInput, match="finite time"):
        TrainingIteration(2, [AllReduceCall((0, 1), 8)], [], [Stage(-1.0)])
