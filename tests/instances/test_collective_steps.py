"""Steps of known algorithms: against the transfers of other code, and what they must move."""

from __future__ import annotations

import numpy as np
import pytest

from opticoll.errors import BadInput
from opticoll.formulations.rounds.collectives import collective
from opticoll.instances.collective_steps import balanced_digits, collective_steps
from opticoll.solvers.methods.lumorph import patterns
from opticoll.solvers.methods.lumorph.index_algorithm import index_pattern


def demands(pattern, n):
    """Chunks from every rank to every other, by step, of a list of transfers."""
    result = np.zeros((pattern.steps, n, n))
    step, source, target, chunks = pattern.pairs(n)
    result[step, source, target] = chunks
    return result


@pytest.mark.parametrize(
    ("algorithm", "n", "pattern"),
    [
        ("ring", 6, patterns.ring(6)),
        ("recursive:2", 8, patterns.exchange([2, 2, 2])),
        ("recursive:4", 32, patterns.exchange([4, 4, 2])),
        ("recursive:3", 6, patterns.exchange([3, 2])),
        ("optree:3x2x2", 12, patterns.exchange([2, 2, 3], near=False)),
    ],
)
def test_all_gathers_are_those_of_the_transfers(algorithm, n, pattern):
    steps = [step.demand for step in collective_steps(algorithm, n, "all-gather")]
    assert np.array_equal(steps, demands(pattern, n))
    backwards = [step.demand for step in collective_steps(algorithm, n, "reduce-scatter")]
    if algorithm == "ring":  # the same way round
        assert np.array_equal(backwards, demands(pattern.backwards(), n).transpose(0, 2, 1))
    else:
        assert np.array_equal(backwards, demands(pattern.backwards(), n))
    both = [step.demand for step in collective_steps(algorithm, n)]
    assert np.array_equal(both, [*backwards, *steps])


@pytest.mark.parametrize(("n", "radix"), [(8, 2), (7, 2), (9, 3), (12, 4), (2, 3)])
def test_bruck_is_the_index_algorithm(n, radix):
    steps = [step.demand for step in collective_steps(f"bruck:{radix}", n)]
    assert np.array_equal(steps, demands(index_pattern(collective("all-to-all", n), radix), n))


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 9, 10, 27, 28, 64])
def test_retri_brings_every_shard_to_its_target(n):
    steps = collective_steps("retri", n)
    assert 3 ** (len(steps) - 1) < n <= 3 ** len(steps)
    sent = np.zeros(len(steps))
    for r in range(1, n):
        digits = balanced_digits(r if 2 * r <= n else r - n, len(steps))
        assert (sum(digit * 3**k for k, digit in enumerate(digits)) - r) % n == 0
        sent += np.abs(digits)
    assert np.array_equal([step.demand.sum() for step in steps], n * sent)


def test_balanced_digits_end():
    assert balanced_digits(-5, 3) == [1, 1, -1]


@pytest.mark.parametrize("n", [2, 5, 8])
def test_shifts_are_an_all_to_all(n):
    steps = collective_steps("shifts", n)
    assert np.array_equal(sum(step.demand for step in steps), np.ones((n, n)) - np.eye(n))
    assert all((step.demand.sum(axis=1) == 1).all() for step in steps)


@pytest.mark.parametrize("ports", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("algorithm", ["ring", "recursive:4", "retri", "bruck:3", "optree:4x4"])
def test_circuits_keep_to_the_ports(algorithm, ports):
    for step in collective_steps(algorithm, 16):
        circuits = step.circuits(ports)
        assert (circuits.sum(axis=0) == ports).all()
        assert (circuits.sum(axis=1) == ports).all()
        direct = step.demand > 0
        assert not circuits[~direct].any()
        if ports >= len(step.amounts):
            assert (circuits[direct] > 0).all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("rings", 4), "is unknown; write ring"),
        (("recursive", 4), "is incomplete"),
        (("retri:3", 4), "an argument too many"),
        (("recursive:2", 6), "not a power of 2"),
        (("recursive:x", 6), "whole number of at least 2"),
        (("optree:2x2", 6), "product of the radices"),
        (("shifts", 6, "all-gather"), "performs no all-gather; use collective=all-to-all"),
        (("ring", 6, "all-to-all"), "performs no all-to-all"),
        (("ring", 1), "give 2 to"),
    ],
)
def test_refusals(given, words):
    with pytest.raises(BadInput, match=words):
        collective_steps(*given)
