r"""Collectives step by step: what every node sends to whom in each step of a known algorithm.

A step is a list of exchanges: in the r-th one node i sends ``amounts[r]`` shards to ``peers[r, i]``. A shard is what a
node contributes to an all-gather, its part of a reduce-scatter or all-reduce, or what it sends to one other in an
all-to-all. Nodes are 0 .. n-1.

All-gather, from which a reduce-scatter is made by reversal in time and an all-reduce by both:

ring                    n - 1 steps: one shard to i + 1; the reduce-scatter goes the same way round
recursive:RADIX         a step per digit of the node in base RADIX, nearest first: all shards that it holds to the
                        RADIX - 1 nodes that differ in that digit (recursive doubling for 2; LuMorph, section 4). n must
                        be RADIX^m q with 1 <= q < RADIX; the last step has groups of q
optree:R1xR2x...        the stages of OpTree's tree with these radices, n = R1 R2 ...: the same, farthest first, so that
                        the first stage is between R1 groups of consecutive nodes (OpTree, section III-C)

All-to-all:

shifts                  n - 1 steps: one shard to i + r
bruck:RADIX             index algorithm: by the k-th digit z of the distance j - i in base RADIX, to i + z RADIX^k
                        (Bruck et al., IEEE TPDS 8(11), 1997)
retri                   by the k-th digit of the distance in balanced ternary, to i + 3^k or i - 3^k, ceil(log3 n) steps
                        (ReTri, arXiv 2605.26930; of both distances modulo n the one nearer to 0)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput, refuse

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64

ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL = "all-reduce", "all-gather", "reduce-scatter", "all-to-all"
#: Collectives, and the forms of algorithms.
COLLECTIVES = (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL)
FORMS = "ring, recursive:RADIX, optree:R1xR2x..., shifts, bruck:RADIX or retri"
#: Maximum number of nodes.
MOST_NODES = 4_096


@dataclass(frozen=True, eq=False)
class CollectiveStep:
    """One step: ``peers`` (p, n) and ``amounts`` (p,) [shards] of its exchanges, the largest amounts first."""

    name: str
    peers: I64
    amounts: F64

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self.peers.shape[1])

    @property
    def demand(self) -> F64:
        """What every node sends to every other [shards], ``(n, n)``."""
        n = self.nodes
        result = np.zeros((n, n))
        tails = np.broadcast_to(np.arange(n), self.peers.shape)
        np.add.at(result, (tails, self.peers), np.broadcast_to(self.amounts[:, None], self.peers.shape))
        np.fill_diagonal(result, 0.0)
        return result

    def circuits(self, ports: int) -> I64:
        """Circuits for the step's own exchanges, ``ports`` of every node, ``(n, n)``.

        One for each exchange, for the largest amounts if there are more exchanges than ports; each further port
        goes to the exchange that would take longest.
        """
        n = self.nodes
        result = np.zeros((n, n), dtype=np.int64)
        for peers, copies in zip(self.peers, shared_ports(self.amounts, ports).tolist(), strict=True):
            result[np.arange(n), peers] += copies
        np.fill_diagonal(result, 0)
        return result

    def reversed(self) -> CollectiveStep:
        """The same exchanges in the other direction."""
        back = np.argsort(self.peers, axis=1, kind="stable")
        return CollectiveStep(self.name, back, self.amounts)


def shared_ports(amounts: F64, ports: int) -> I64:
    """Ports of a node for each of the amounts in descending order, ``(p,)``: one each, further ones for the slowest."""
    share = np.zeros(len(amounts), dtype=np.int64)
    share[:ports] = 1
    for _ in range(ports - int(share.sum())):
        share[int(np.argmax(amounts / np.maximum(share, 1)))] += 1
    return share


def collective_steps(algorithm: str, nodes: int, collective: str = "") -> list[CollectiveStep]:
    """The steps of an algorithm on ``nodes`` nodes; the collective defaults to all-to-all or all-reduce.

    Raises
    ------
    BadInput
        For an unknown algorithm, one that does not fit the nodes, or a collective that it does not perform.
    """
    if not 2 <= nodes <= MOST_NODES:
        refuse(f"{nodes} nodes", f"give 2 to {MOST_NODES}")
    word, _, rest = algorithm.partition(":")
    exchanging = {"shifts": _shifts, "retri": _retri, "bruck": _bruck}
    gathering = {"ring": _ring, "recursive": _recursive, "optree": _optree}
    if word not in exchanging and word not in gathering:
        msg = f"algorithm={algorithm!r} is unknown; write {FORMS}"
        raise BadInput(msg)
    if bool(rest) != (word in {"recursive", "optree", "bruck"}):
        msg = f"algorithm={algorithm!r} is incomplete or has an argument too many; write {FORMS}"
        raise BadInput(msg)
    wanted = collective or (ALL_TO_ALL if word in exchanging else ALL_REDUCE)
    if (wanted == ALL_TO_ALL) != (word in exchanging):
        does = ALL_TO_ALL if word in exchanging else f"{ALL_GATHER}, {REDUCE_SCATTER} or {ALL_REDUCE}"
        msg = f"algorithm={algorithm} performs no {wanted}; use collective={does}"
        raise BadInput(msg)
    if word in exchanging:
        return exchanging[word](nodes, rest)
    gathered = gathering[word](nodes, rest)
    scattered = gathered if word == "ring" else [step.reversed() for step in reversed(gathered)]
    return {ALL_GATHER: gathered, REDUCE_SCATTER: scattered, ALL_REDUCE: [*scattered, *gathered]}[wanted]


def _step(name: str, peers: list[I64], amounts: list[float]) -> CollectiveStep:
    size = np.array(amounts, dtype=float)
    order = np.argsort(-size, kind="stable")
    return CollectiveStep(name, np.array(peers, dtype=np.int64)[order], size[order])


def _ring(nodes: int, _argument: str) -> list[CollectiveStep]:
    ahead = (np.arange(nodes) + 1) % nodes
    return [_step("to the next node", [ahead], [1.0]) for _ in range(nodes - 1)]


def _whole(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 6 and int(text) >= 2):
        msg = f"{what} must be a whole number of at least 2, not {text!r}"
        raise BadInput(msg)
    return int(text)


def _recursive(nodes: int, argument: str) -> list[CollectiveStep]:
    radix, radices, left = _whole(argument, "the radix of recursive"), [], nodes
    while left > 1:
        group = min(radix, left)
        if left % group:
            refuse(f"recursive:{radix}", f"{nodes} nodes are not a power of {radix} times a factor below it")
        radices.append(group)
        left //= group
    return _exchanges(nodes, radices[::-1], near=True)


def _optree(nodes: int, argument: str) -> list[CollectiveStep]:
    radices = [_whole(text, "a radix of optree") for text in argument.split("x")]
    if prod(radices) != nodes:
        refuse(f"optree:{argument}", f"the product of the radices must be the number of nodes, {nodes}")
    return _exchanges(nodes, radices, near=False)


def _exchanges(nodes: int, radices: list[int], *, near: bool) -> list[CollectiveStep]:
    """Exchanges between nodes that differ in one digit; ``radices`` from the most significant digit on."""
    node, result, held = np.arange(nodes), [], 1.0
    strides = [prod(radices[place + 1 :]) for place in range(len(radices))]
    for radix, stride in sorted(zip(radices, strides, strict=True), key=lambda pair: pair[1] if near else -pair[1]):
        digit = node // stride % radix
        peers = [node + ((digit + z) % radix - digit) * stride for z in range(1, radix)]
        result.append(_step(f"{radix} nodes at stride {stride}", peers, [held] * (radix - 1)))
        held *= radix
    return result


def _shifts(nodes: int, _argument: str) -> list[CollectiveStep]:
    node = np.arange(nodes)
    return [_step(f"to i + {r}", [(node + r) % nodes], [1.0]) for r in range(1, nodes)]


def _bruck(nodes: int, argument: str) -> list[CollectiveStep]:
    radix = _whole(argument, "the radix of bruck")
    node, ahead, result, stride = np.arange(nodes), np.arange(1, nodes), [], 1
    while stride < nodes:
        digit = ahead // stride % radix
        digits = [z for z in range(1, radix) if (digit == z).any()]
        peers = [(node + z * stride) % nodes for z in digits]
        result.append(_step(f"digit at {stride}", peers, [float((digit == z).sum()) for z in digits]))
        stride *= radix
    return result


def balanced_digits(distance: int, steps: int) -> list[int]:
    """Digits -1, 0 and 1 of a whole number in balanced ternary, the least significant first."""
    digits, left = [], distance
    for _ in range(steps):
        digit = (left + 1) % 3 - 1
        digits.append(digit)
        left = (left - digit) // 3
    return digits


def _retri(nodes: int, _argument: str) -> list[CollectiveStep]:
    steps = 0
    while 3**steps < nodes:
        steps += 1
    distances = [r if 2 * r <= nodes else r - nodes for r in range(1, nodes)]
    digits = np.array([balanced_digits(one, steps) for one in distances])
    node, result = np.arange(nodes), []
    for k in range(steps):
        counts = {sign: float((digits[:, k] == sign).sum()) for sign in (1, -1)}
        signs = [sign for sign, count in counts.items() if count]
        peers = [(node + sign * 3**k) % nodes for sign in signs]
        result.append(_step(f"to i + {3**k} and i - {3**k}", peers, [counts[sign] for sign in signs]))
    return result
