"""Stages of a task graph: turns of transfers, computing that delays none of them, times at which calls are ready."""

from __future__ import annotations

import numpy as np
import pytest

from opticoll.errors import BadInput
from opticoll.instances.training.iteration_stages import iteration_stages
from opticoll.instances.training.task_graph import COMPUTING, TaskGraphDraft, training_iteration


def test_stages_by_hand():
    """Server 0 looks up 2 s, sends; both compute; what no transfer waits for comes late, and calls are ready inside."""
    draft = TaskGraphDraft(2)
    lookup = draft.compute(0, 2.0)
    sent = draft.transfer(0, 1, 8.0, [lookup])
    free = draft.compute(1, 1.0)  # no transfer waits for it: computed after the last turn
    joint = draft.compute(1, 3.0, [sent])
    back = draft.transfer(1, 0, 4.0, [joint])
    call = draft.all_reduce((0, 1), 16.0, [joint])
    last = draft.compute(0, 5.0, [back])
    after = draft.compute(0, 1.0, [last])
    late = draft.all_reduce((0, 1), 16.0, [last, free])
    stages = iteration_stages(draft.finished())
    assert stages.computing.tolist() == [2.0, 3.0, 6.0]
    assert stages.stage[[lookup, sent, free, joint, back, call, last, after, late]].tolist() == [
        0,
        0,
        2,
        1,
        1,
        1,
        2,
        2,
        2,
    ]
    assert stages.begin[[joint, call, last, after, late]].tolist() == [0.0, 3.0, 0.0, 5.0, 5.0]
    assert [stages.turn(b).tolist() for b in range(3)] == [[sent], [back], []]


def test_a_call_after_the_last_transfers_gets_a_stage_without_computing():
    draft = TaskGraphDraft(2)
    sent = draft.transfer(0, 1, 8.0, [draft.compute(0, 2.0)])
    draft.all_reduce((0, 1), 8.0, [sent])
    stages = iteration_stages(draft.finished())
    assert stages.computing.tolist() == [2.0, 0.0]
    assert stages.stage.tolist() == [0, 0, 1]


def test_nothing_may_wait_for_an_all_reduce():
    draft = TaskGraphDraft(2)
    draft.compute(0, 1.0, [draft.all_reduce((0, 1), 8.0)])
    with pytest.raises(BadInput, match="task 1 waits for all-reduce 0"):
        iteration_stages(draft.finished())


@pytest.mark.parametrize("overlap", ["backward", "none"])
@pytest.mark.parametrize("model", ["dlrm", "vgg"])
def test_models_keep_their_computing_and_their_order(model, overlap):
    graph = training_iteration(model, 8, overlap=overlap)
    stages = iteration_stages(graph)
    assert stages.computing.sum() == pytest.approx(graph.computing.max())
    first, then = graph.waits.T
    assert (stages.stage[first] <= stages.stage[then]).all()
    own = graph.kind == COMPUTING
    same = own[first] & own[then] & (stages.stage[first] == stages.stage[then])
    ends = stages.begin + np.where(own, graph.amount, 0.0)
    assert (ends[first[same]] <= stages.begin[then[same]] + 1e-12).all()
    assert (ends[own] <= stages.computing[stages.stage[own]] + 1e-12).all()
