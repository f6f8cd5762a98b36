"""Compiled kernels: packing of items into bins with many resources.

Source  Bloechliger & Zufferey, Computers & Operations Research 35, 2008 (PartialCol)

Packing, by first fit and by tabu search with ejections. An item (a transfer) uses one of its candidates (a route),
which needs one unit of each of its resources (arcs, the sender's laser, the receiver's photodiode); every bin (a
colour: a wavelength of a round) has ``room[a]`` units of resource a. A candidate may be restricted to the bins that are
``tie`` modulo ``period`` (a fixed wavelength). In the search an unplaced item enters the bin and candidate where it
ejects the fewest others, and an ejected item may not return there for a while.

A candidate may be a copy from another receiver of the chunk, whose own item must then be in an earlier round. Ejecting
an item ejects its copies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import copy_into

if TYPE_CHECKING:
    from opticoll.instances.topology import I32, I64

    #: :class:`~opticoll.solvers.methods.lumorph.assignment.Items`.
    Items = tuple[I64, I64, I64, I64, I64, int, I64]


@compiled(nogil=True)
def first_fit(items: Items, order: I64, most: int, bin_of: I64, choice: I64) -> None:
    """Put items that need not be in order into the first bin where one of their candidates fits.

    Parameters
    ----------
    order
        Items to place, each once.
    most
        Number of bins.
    bin_of, choice
        Output: bin (-1 where none fits) and candidate of every item in ``order``.
    """
    first, start, needs, _, tie, period, room = items
    words = (most + 63) // 64
    full = np.zeros((room.size, words), dtype=np.uint64)
    used = np.zeros((room.size, most), dtype=np.int16)
    ties = np.zeros((period, words), dtype=np.uint64)
    for b in range(most):
        for t in range(period):
            if b % period != t:
                ties[t, b // 64] |= np.uint64(1) << np.uint64(b % 64)
    beyond = np.zeros(words, dtype=np.uint64)
    for b in range(most, 64 * words):
        beyond[b // 64] |= np.uint64(1) << np.uint64(b % 64)
    for a in range(room.size):
        if room[a] <= 0:
            full[a, :] = ~np.uint64(0)
    ones = ~np.uint64(0)
    for k in order:
        best, chosen = most, -1
        for p in range(first[k], first[k + 1]):
            for w in range(best // 64 + 1):
                if w >= words:
                    break
                occupied = beyond[w]
                if tie[p] >= 0:
                    occupied |= ties[tie[p], w]
                for i in range(start[p], start[p + 1]):
                    occupied |= full[needs[i], w]
                    if occupied == ones:
                        break
                if occupied != ones:
                    b = 64 * w
                    while (occupied >> np.uint64(b - 64 * w)) & np.uint64(1):
                        b += 1
                    if b < best:
                        best, chosen = b, p
                    break
        if chosen < 0:
            bin_of[k] = -1
            continue
        bin_of[k], choice[k] = best, chosen
        for i in range(start[chosen], start[chosen + 1]):
            a = needs[i]
            used[a, best] += 1
            if used[a, best] >= room[a]:
                full[a, best // 64] |= np.uint64(1) << np.uint64(best % 64)


#: Additional cost of ejecting an item, per copy made from it.
CARE = 0.1


@compiled(nogil=True)
def _put(k: int, p: int, b: int, start: I64, needs: I64, slot: I64, users: I32, used: I32) -> None:
    for i in range(start[p], start[p + 1]):
        a = needs[i]
        users[b, slot[a] + used[b, a]] = k
        used[b, a] += 1


@compiled(nogil=True)
def _take(k: int, p: int, b: int, start: I64, needs: I64, slot: I64, users: I32, used: I32) -> None:
    for i in range(start[p], start[p + 1]):
        a = needs[i]
        end = slot[a] + used[b, a] - 1
        for j in range(slot[a], end + 1):
            if users[b, j] == k:
                users[b, j] = users[b, end]
                break
        used[b, a] -= 1


@compiled(nogil=True)
def eject(  # noqa: C901 - compiled
    listed: Items, bins: int, bin_of: I64, choice: I64, until: I64, seed: int, steps: int
) -> int:
    """Place the items whose ``bin_of`` is -1, ejecting others, in place; return the number of unplaced items.

    Stops when all items are placed or after ``steps``; ``until`` is the step until which an item may not return to a
    bin, ``(items, bins)``, on return relative to the next call.
    """
    np.random.seed(seed)  # noqa: NPY002 - the compiled generator is a process-wide one
    first, start, needs, after, tie, period, room = listed
    items = bin_of.size
    slot = np.zeros(room.size + 1, dtype=np.int64)
    for a in range(room.size):
        slot[a + 1] = slot[a] + room[a]
    users = np.full((bins, slot[-1]), -1, dtype=np.int32)
    used = np.zeros((bins, room.size), dtype=np.int32)
    copied = np.zeros(items, dtype=np.int64)
    unplaced, stack = np.empty(items + 1, dtype=np.int64), np.empty(items + 1, dtype=np.int64)
    count = 0
    for k in range(items):
        if bin_of[k] < 0:
            unplaced[count] = k
            count += 1
        else:
            _put(k, choice[k], bin_of[k], start, needs, slot, users, used)
            if after[choice[k]] >= 0:
                copied[after[choice[k]]] += 1
    best = count
    best_bin, best_choice = bin_of.copy(), choice.copy()
    step = 0
    while count > 0 and step < steps:
        step += 1
        at = np.random.randint(count)  # noqa: NPY002
        k = unplaced[at]
        least, into, by, ties = 1e18, -1, -1, 0
        shift = np.random.randint(bins)  # noqa: NPY002
        for index in range(bins):
            b = index + shift
            if b >= bins:
                b -= bins
            banned, opening = until[k, b] > step, b - b % period
            for p in range(first[k], first[k + 1]):
                if tie[p] >= 0 and b - opening != tie[p]:
                    continue
                if after[p] >= 0 and not 0 <= bin_of[after[p]] < opening:
                    continue
                cost = 0.0
                for i in range(start[p], start[p + 1]):
                    a = needs[i]
                    if used[b, a] >= room[a]:
                        cost += 1.0 + CARE * copied[users[b, slot[a]]]
                        if cost > least:
                            break
                # A banned bin is allowed only without ejections.
                if cost > least or (banned and cost > 0.0):
                    continue
                if cost < least - 1e-9:
                    least, into, by, ties = cost, b, p, 1
                else:
                    ties += 1
                    if np.random.randint(ties) == 0:  # noqa: NPY002
                        into, by = b, p
            if least == 0.0:
                break
        if into < 0:
            continue
        count -= 1
        unplaced[at] = unplaced[count]
        for i in range(start[by], start[by + 1]):
            a = needs[i]
            if used[into, a] < room[a]:
                continue
            stack[0], top = users[into, slot[a] + np.random.randint(used[into, a])], 1  # noqa: NPY002
            while top > 0:  # an ejected item ejects its copies
                top -= 1
                out = stack[top]
                b, p = bin_of[out], choice[out]
                _take(out, p, b, start, needs, slot, users, used)
                bin_of[out] = -1
                unplaced[count] = out
                count += 1
                until[out, b] = step + 8 + count // 2 + np.random.randint(10)  # noqa: NPY002
                if after[p] >= 0:
                    copied[after[p]] -= 1
                if copied[out] > 0:
                    for x in range(items):
                        if bin_of[x] >= 0 and after[choice[x]] == out:
                            stack[top] = x
                            top += 1
        if after[by] >= 0 and bin_of[after[by]] < 0:
            # The source of the copy was ejected.
            unplaced[count] = k
            count += 1
            continue
        bin_of[k], choice[k] = into, by
        if after[by] >= 0:
            copied[after[by]] += 1
        _put(k, by, into, start, needs, slot, users, used)
        if count < best:
            best, best_bin, best_choice = count, bin_of.copy(), choice.copy()
    copy_into(bin_of, best_bin)
    copy_into(choice, best_choice)
    for k in range(items):
        for b in range(bins):
            until[k, b] = max(until[k, b] - step, 0)
    return best
