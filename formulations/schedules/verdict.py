"""What a simulation finds: valid, or the first violation with its reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: Reasons for which a schedule is refused.
REASONS = {
    "collective": "it does another collective",
    "ranks": "it has another number of ranks",
    "no-arc": "a transfer runs where the topology has no arc",
    "two-owners": "two thread blocks of a rank use one end of a connection",
    "unmatched-send": "a send that nobody receives",
    "unmatched-receive": "a receive for which nothing is sent",
    "count-mismatch": "the k-th send and the k-th receive of a connection move different numbers of chunks",
    "numbering": "steps of a thread block do not count up from 0",
    "bounds": "a step touches chunks outside of its buffer",
    "no-peer": "a thread block without a peer sends or receives",
    "dependency": "an instruction waits for one that does not exist",
    "deadlock": "nothing can proceed",
    "race": "two thread blocks use a chunk, one writing it, in no order",
    "missing-chunk": "a chunk never arrives",
    "wrong-chunk": "another chunk stands in its place",
    "wrong-sum": "a contribution is missing from a sum or in it more than once",
    "uninitialised": "something was read before anything was written there",
    "not-held": "a rank sends what it does not hold yet",
    "no-chunk": "a transfer names a chunk that the collective does not have",
    "duplicate": "a rank gets a chunk that it already holds",
    "no-route": "a route is no path from its source to its target",
    "weights": "the routes of a pair do not carry exactly its shard",
}


@dataclass(frozen=True)
class Verdict:
    """The outcome: ``reason`` (a key of REASONS) and the first violated rank, chunk and step where it is refused."""

    valid: bool
    reason: str = ""
    message: str = ""
    rank: int | None = None
    chunk: int | None = None
    step: str | None = None
    metrics: dict[str, Any] = field(default_factory=dict)


def refused(
    reason: str, message: str, *, rank: int | None = None, chunk: int | None = None, step: str | int | None = None
) -> Verdict:
    """A verdict with a violation; the message starts with its reason."""
    where = None if step is None else str(step)
    return Verdict(False, reason, f"{reason}: {message}", rank, chunk, where)
