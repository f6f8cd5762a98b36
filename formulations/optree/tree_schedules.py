r"""All-gather schedules of trees on optical lines and rings, circuit by circuit.

Source  OpTree, sections III-C and III-D.1

Groups of consecutive nodes are cut into m_j subgroups each, sizes as equal as possible, larger ones first.
Before stage j every group has every chunk at exactly one *label*; labels 0 .. s-1 (s = ceil(n/P_{j-1})) are its nodes
in order, and if a group has only s - 1 nodes its last node has two labels. A chunk at the node in position q of a
subgroup goes to label q of each of the other subgroups of its group (an extra label comes after the last subgroup's
positions). So a label's receivers have the order of the subgroups, and with s_j subsets of m_j labels, P_{j-1} chunks
each, no stage takes more wavelengths than the count ``exact`` of :mod:`opticoll.formulations.optree.radix_trees`:

    stage 1 on a ring    every subset by the full circles of :mod:`opticoll.formulations.rounds.wavelengths`,
                         alternately mirrored
    any other stage      circuits run towards their target inside the segment; intervals on a line are coloured with
                         as many wavelengths as the busiest arc has circuits. Segments of groups are disjoint, so all
                         groups are coloured at once

Wavelength number c of a stage is wavelength c mod w in the stage's round floor(c/w). Schedules are checked by
:mod:`opticoll.formulations.rounds.round_schedule` (:func:`violations`), independently of trees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.optree.radix_trees import Fabric, check_radices
from opticoll.formulations.rounds.collectives import collective
from opticoll.formulations.rounds.round_schedule import Limits, chained, direct
from opticoll.formulations.rounds.round_schedule import violations as round_violations
from opticoll.formulations.rounds.wavelengths import MOST_NODES, arcs_taken, assign, whole_fibres

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.instances.photonics import WdmFibres
    from opticoll.instances.topology import I64, Mask

#: Maximum total number of arcs of light paths that are listed.
MOST_PATH_ARCS = 60_000_000


@dataclass(frozen=True)
class _Sends:
    """Chunks sent in one stage: ``(K,)`` each; ``onward`` is clockwise, towards higher numbers on a line."""

    source: I64
    target: I64
    chunk: I64
    onward: Mask


def violations(fibres: WdmFibres, schedule: RoundSchedule | None) -> dict[str, float]:
    """Violations found by the check of rounds in an all-gather on these fibres."""
    # One circuit per wavelength of a fibre, one chunk per circuit, no limit on a node's wavelengths.
    limits = Limits(fibres.wavelengths, waveguides=fibres.fibres, ports=None, load=1)
    return round_violations(fibres, collective("all-gather", fibres.n), limits, schedule)


def interval_colours(first: I64, last: I64) -> I64:
    """Colours of intervals ``[first, last)`` on a line, as few as the largest number overlapping at a point.

    Ordered by first points, interval k follows the one with the (k - L)-th last point in the chain of its
    colour, L being the largest overlap: of the k - 1 that began before, at most L - 1 overlap it.
    """
    count = first.size
    begins, ends = np.argsort(first, kind="stable"), np.argsort(last, kind="stable")
    running = np.arange(1, count + 1) - np.searchsorted(last[ends], first[begins], side="right")
    most = int(running.max(initial=0))
    place = np.empty(count, dtype=np.int64)
    place[begins] = np.arange(count)
    before = np.arange(count)
    before[most:] = place[ends[: count - most]]
    while True:  # the head of every chain, by doubling
        further = before[before]
        if np.array_equal(further, before):
            break
        before = further
    colour = np.empty(count, dtype=np.int64)
    colour[begins] = before
    return colour


def _listed(fibres: WdmFibres, sends: _Sends, colour: I64) -> RoundSchedule:
    """Turn one stage into rounds: channels by colour, paths by direction."""
    n, w = fibres.n, fibres.channels
    hops = np.where(sends.onward, sends.target - sends.source, sends.source - sends.target) % n
    if int(hops.sum()) > MOST_PATH_ARCS:
        msg = f"{fibres.spec}: the schedule has {hops.sum():,} arcs of light paths, too many to list; use fewer nodes"
        raise NotApplicable(msg)
    span, start, owner = arcs_taken(n, sends.source, sends.target, sends.onward)
    up, down = fibres.arcs_onward()
    arcs = np.where(sends.onward[owner], up[span], down[span])
    return direct(colour // w, sends.source, sends.target, sends.chunk, colour % w % fibres.wavelengths, start, arcs)


def _on_segments(fibres: WdmFibres, sends: _Sends) -> RoundSchedule:
    """Schedule a stage whose circuits do not wrap around: both directions coloured as intervals."""
    colour = np.zeros(sends.source.size, dtype=np.int64)
    for way in (True, False):
        indices = np.flatnonzero(sends.onward == way)
        low = np.minimum(sends.source[indices], sends.target[indices])
        high = np.maximum(sends.source[indices], sends.target[indices])
        colour[indices] = interval_colours(low, high)
    return _listed(fibres, sends, colour)


@dataclass(frozen=True)
class _Groups:
    """Groups of consecutive nodes: first node and size of each; ``(G,)``."""

    start: I64
    size: I64

    def cut(self, radix: int) -> tuple[_Groups, I64]:
        """Cut every group into subgroups, larger ones first, and return them with the group of each."""
        parts = np.minimum(self.size, radix)
        owner = np.repeat(np.arange(self.start.size), parts)
        number = np.arange(owner.size) - np.repeat(np.cumsum(parts) - parts, parts)
        base, larger = self.size // parts, self.size % parts
        begin = self.start[owner] + number * base[owner] + np.minimum(number, larger[owner])
        return _Groups(begin, base[owner] + (number < larger[owner])), owner


def tree_schedule(fibres: WdmFibres, radices: Sequence[int]) -> RoundSchedule:
    """All-gather by a tree (see the module docstring).

    Raises
    ------
    BadInput
        For radices that do not define a tree on these nodes.
    NotApplicable
        For fibres that are not intact, or too many nodes or arcs of light paths to list.
    """
    n = whole_fibres(fibres, "schedule").n
    check_radices(n, radices)
    if n > MOST_NODES:
        refuse(fibres.spec, f"schedules are listed for up to {MOST_NODES} nodes; use fewer", NotApplicable)
    groups = _Groups(np.zeros(1, dtype=np.int64), np.array([n]))
    label = np.arange(n)[:, None]  # of chunk c in group g
    results: list[RoundSchedule] = []
    for stage, radix in enumerate(radices):
        parts, owner = groups.cut(int(radix))
        # The group's last node has the extra label.
        place = np.minimum(label, groups.size - 1)
        at = groups.start + place
        mine = np.searchsorted(parts.start, at, side="right") - 1  # subgroup that holds it
        inner = label - (parts.start[mine] - groups.start)
        label = inner[:, owner]  # the same label in every subgroup of the group
        source = at[:, owner]
        target = parts.start + np.minimum(label, parts.size - 1)
        other = mine[:, owner] != np.arange(owner.size)
        chunk, which = np.nonzero(other)
        sends = (source[other], target[other], chunk)
        if stage == 0 and fibres.circular:
            results.append(_around(fibres, sends, mine[chunk, 0], which, label[other]))
        else:
            results.append(_on_segments(fibres, _Sends(*sends, sends[0] < sends[1])))
        groups = parts
    return chained(results)


def wrht_schedule(fibres: WdmFibres, group: int) -> RoundSchedule:
    """All-gather by groups of at most ``group`` neighbours, as WRHT reduces: up to their middle nodes, and down again.

    On every level the nodes of a group send all that they have gathered to its middle node; the middle nodes are the
    nodes of the next level. Then every middle node sends each of its group what that lacks. With n = m^k, m odd, level
    j takes m^j (m - 1) / 2w rounds up and (n - m^j) (m - 1) / 2w down, rounded up, so all take k n (m - 1) / 2w or a
    few more: k n for WRHT's groups of 2w + 1.

    Raises
    ------
    NotApplicable
        As :func:`tree_schedule`; for groups of one node.
    """
    n = whole_fibres(fibres, "schedule").n
    if group < 2 or n > MOST_NODES:
        msg = f"{fibres.spec}: groups of {group} of {n} nodes; use at least 2, and at most {MOST_NODES} nodes"
        raise NotApplicable(msg)
    node, begin, end = np.arange(n), np.arange(n), np.arange(1, n + 1)  # and the chunks gathered there
    up: list[RoundSchedule] = []
    down: list[RoundSchedule] = []
    while node.size > 1:
        groups, _ = _Groups(np.zeros(1, dtype=np.int64), np.array([node.size])).cut(-(-node.size // group))
        middle = np.repeat(node[groups.start + groups.size // 2], groups.size)
        gathered = (begin[:, None] <= np.arange(n)) & (np.arange(n) < end[:, None])
        at, chunk = np.nonzero(gathered & (node != middle)[:, None])
        up.append(_on_segments(fibres, _Sends(node[at], middle[at], chunk, node[at] < middle[at])))
        at, chunk = np.nonzero(~gathered & (node != middle)[:, None])
        down.append(_on_segments(fibres, _Sends(middle[at], node[at], chunk, middle[at] < node[at])))
        node, begin, end = middle[groups.start], begin[groups.start], end[groups.start + groups.size - 1]
    return chained(up + down[::-1])


def _around(fibres: WdmFibres, sends: tuple[I64, I64, I64], senders: I64, receivers: I64, subset: I64) -> RoundSchedule:
    """Stage 1 on a ring: connect every subset's ``senders`` and ``receivers`` by full circles."""
    members = int(max(senders.max(), receivers.max())) + 1
    subsets = int(subset.max()) + 1
    plain, mirrored = (assign(members, ring=True, mirrored=odd) for odd in (False, True))
    onward, colour = np.zeros(senders.size, dtype=bool), np.zeros(senders.size, dtype=np.int64)
    for odd, pairs in enumerate((plain, mirrored)):
        ways, numbers = pairs.by_pair()
        which = np.flatnonzero(subset % 2 == odd)
        onward[which] = ways[senders[which], receivers[which]]
        colour[which] = numbers[senders[which], receivers[which]]
    widths = np.array([plain.colours, mirrored.colours])[np.arange(subsets) % 2]
    before = np.cumsum(widths, axis=0) - widths  # (subsets, 2): wavelengths of earlier subsets, onward and backward
    colour += before[subset, np.where(onward, 0, 1)]
    return _listed(fibres, _Sends(*sends, onward), colour)


def fabric_of(fibres: WdmFibres, count: str = "lemma") -> Fabric:
    """Return the fabric of an instance."""
    return Fabric(fibres.n, fibres.channels, fibres.circular, count)
