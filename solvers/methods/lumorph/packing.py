"""Compiled packing of items into bins with many resources: first fit, and tabu search with ejections.

Source  Bloechliger & Zufferey, Computers & Operations Research 35, 2008 (PartialCol)

An item (a transfer) uses one of its candidates (a route), which needs one unit of each of its resources (arcs, the
sender's laser, the receiver's photodiode); every bin (a colour: a wavelength of a round) has ``room[a]`` units of
resource a. A candidate may be restricted to the bins that are ``tie`` modulo ``period`` (a fixed wavelength). In the
search an unplaced item enters the bin and candidate where it ejects the fewest others, and an ejected item may not
return there for a while.

With precedence (:func:`eject_ordered`) a candidate may be a copy from another receiver of the chunk, whose own item
must then be in an earlier round. Ejecting an item ejects its copies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    I64 = NDArray[np.int64]
    I32 = NDArray[np.int32]


@njit(cache=True, nogil=True)
def first_fit(first: I64, start: I64, needs: I64, tie: I64, period: int, room: I64, order: I64, most: int,
              bin_of: I64, choice: I64) -> int:  # fmt: skip
    """Put items, in order, into the first bin where one of their candidates fits.

    Parameters
    ----------
    first, start, needs
        Candidates of item k are ``first[k] .. first[k + 1] - 1``; candidate p needs ``needs[start[p]:start[p + 1]]``.
    tie, period
        Residue modulo ``period`` of the bins allowed for each candidate, -1 for all bins.
    room
        Units of each resource per bin.
    order
        Items to place, each once.
    most
        Number of bins.
    bin_of, choice
        Output: bin (-1 where none fits) and candidate of every item in ``order``.

    Returns
    -------
    The last used bin + 1.
    """
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
    last = 0
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
        last = max(last, best + 1)
        for i in range(start[chosen], start[chosen + 1]):
            a = needs[i]
            used[a, best] += 1
            if used[a, best] >= room[a]:
                full[a, best // 64] |= np.uint64(1) << np.uint64(best % 64)
    return last


@njit(cache=True, nogil=True)
def _put(k: int, p: int, b: int, start: I64, needs: I64, slot: I64, users: I32, used: I32) -> None:
    for i in range(start[p], start[p + 1]):
        a = needs[i]
        users[b, slot[a] + used[b, a]] = k
        used[b, a] += 1


@njit(cache=True, nogil=True)
def _take(k: int, p: int, b: int, start: I64, needs: I64, slot: I64, users: I32, used: I32) -> None:
    for i in range(start[p], start[p + 1]):
        a = needs[i]
        end = slot[a] + used[b, a] - 1
        for j in range(slot[a], end + 1):
            if users[b, j] == k:
                users[b, j] = users[b, end]
                break
        used[b, a] -= 1


@njit(cache=True, nogil=True)
def eject(first: I64, start: I64, needs: I64, tie: I64, period: int, room: I64, bins: int, bin_of: I64, choice: I64,
          until: I64, seed: int, steps: int) -> tuple[int, int]:  # fmt: skip
    """Place the items whose ``bin_of`` is -1, ejecting others, in place.

    Arguments as in :func:`first_fit`; ``until``, ``(items, bins)``, is the step until which an item may not return to a
    bin; on return it is relative to the next call. Stops when all items are placed or after ``steps``.

    Returns
    -------
    The number of unplaced items, and of steps.
    """
    np.random.seed(seed)  # noqa: NPY002 - the compiled generator is a process-wide one
    items = bin_of.size
    slot = np.zeros(room.size + 1, dtype=np.int64)
    for a in range(room.size):
        slot[a + 1] = slot[a] + room[a]
    users = np.full((bins, slot[-1]), -1, dtype=np.int32)
    used = np.zeros((bins, room.size), dtype=np.int32)
    unplaced = np.empty(items, dtype=np.int64)
    count = 0
    for k in range(items):
        if bin_of[k] < 0:
            unplaced[count] = k
            count += 1
        else:
            _put(k, choice[k], bin_of[k], start, needs, slot, users, used)
    best = count
    best_bin, best_choice = bin_of.copy(), choice.copy()
    step = 0
    while count > 0 and step < steps:
        step += 1
        at = np.random.randint(count)  # noqa: NPY002
        k = unplaced[at]
        least, into, by, ties = 1 << 30, -1, -1, 0
        shift = np.random.randint(bins)  # noqa: NPY002
        for index in range(bins):
            b = index + shift
            if b >= bins:
                b -= bins
            banned = until[k, b] > step
            for p in range(first[k], first[k + 1]):
                if tie[p] >= 0 and b % period != tie[p]:
                    continue
                cost = 0
                for i in range(start[p], start[p + 1]):
                    if used[b, needs[i]] >= room[needs[i]]:
                        cost += 1
                        if cost > least:
                            break
                # A banned bin is allowed only without ejections.
                if cost > least or (banned and cost > 0):
                    continue
                if cost < least:
                    least, into, by, ties = cost, b, p, 1
                else:
                    ties += 1
                    if np.random.randint(ties) == 0:  # noqa: NPY002
                        into, by = b, p
            if least == 0:
                break
        if into < 0:
            continue
        count -= 1
        unplaced[at] = unplaced[count]
        for i in range(start[by], start[by + 1]):
            a = needs[i]
            if used[into, a] < room[a]:
                continue
            out = users[into, slot[a] + np.random.randint(used[into, a])]  # noqa: NPY002
            _take(out, choice[out], into, start, needs, slot, users, used)
            bin_of[out] = -1
            unplaced[count] = out
            count += 1
            until[out, into] = step + 8 + count // 2 + np.random.randint(10)  # noqa: NPY002
        bin_of[k], choice[k] = into, by
        _put(k, by, into, start, needs, slot, users, used)
        if count < best:
            best = count
            best_bin[:], best_choice[:] = bin_of, choice
    bin_of[:], choice[:] = best_bin, best_choice
    for k in range(items):
        for b in range(bins):
            until[k, b] = max(until[k, b] - step, 0)
    return best, step


@njit(cache=True, nogil=True)
def eject_ordered(first: I64, start: I64, needs: I64, after: I64, tie: I64, room: I64, waves: int, rounds: int,
                  bin_of: I64, choice: I64, seed: int, steps: int, care: float) -> tuple[int, int]:  # fmt: skip
    """Place all items in ``rounds`` rounds of ``waves`` wavelengths, starting empty.

    Parameters
    ----------
    first, start, needs
        Candidates of item k are ``first[k] .. first[k + 1] - 1``; candidate p needs ``needs[start[p]:start[p + 1]]``,
        of which every bin (round r, wavelength w: bin ``r waves + w``) has ``room`` units.
    after
        The item that must be in an earlier round than candidate p; -1 for none.
    tie
        The wavelength of candidate p; -1 for any.
    bin_of, choice
        Output: bin and candidate of every item; complete if the first result is 0.
    care
        Additional cost of ejecting an item, per copy made from it.

    Returns
    -------
    The number of unplaced items, and of steps.
    """
    np.random.seed(seed)  # noqa: NPY002 - the compiled generator is a process-wide one
    items, bins = bin_of.size, rounds * waves
    slot = np.zeros(room.size + 1, dtype=np.int64)
    for a in range(room.size):
        slot[a + 1] = slot[a] + room[a]
    users = np.full((bins, slot[-1]), -1, dtype=np.int32)
    used = np.zeros((bins, room.size), dtype=np.int32)
    until = np.zeros((items, bins), dtype=np.int64)
    copied = np.zeros(items, dtype=np.int64)
    unplaced, stack = np.arange(items), np.empty(2 * items + 64, dtype=np.int64)
    bin_of[:] = -1
    count, step = items, 0
    while count > 0 and step < steps:
        step += 1
        at = np.random.randint(count)  # noqa: NPY002
        k = unplaced[at]
        least, into, by, ties = 1e18, -1, -1, 0
        for p in range(first[k], first[k + 1]):
            earliest = 0
            if after[p] >= 0:
                if bin_of[after[p]] < 0:
                    continue
                earliest = (bin_of[after[p]] // waves + 1) * waves
            for b in range(earliest, bins):
                if tie[p] >= 0 and b % waves != tie[p]:
                    continue
                cost = 0.0
                for i in range(start[p], start[p + 1]):
                    a = needs[i]
                    if used[b, a] >= room[a]:
                        cost += 1.0 + care * copied[users[b, slot[a]]]
                        if cost > least:
                            break
                if cost > least or (cost > 0.0 and until[k, b] > step):
                    continue
                if cost < least - 1e-9:
                    least, into, by, ties = cost, b, p, 1
                else:
                    ties += 1
                    if np.random.randint(ties) == 0:  # noqa: NPY002
                        into, by = b, p
        if into < 0:
            continue
        count -= 1
        unplaced[at] = unplaced[count]
        top = 0
        for i in range(start[by], start[by + 1]):
            a = needs[i]
            if used[into, a] >= room[a]:
                stack[top] = users[into, slot[a] + np.random.randint(room[a])]  # noqa: NPY002
                top += 1
        while top > 0:
            top -= 1
            out = stack[top]
            b = bin_of[out]
            if b < 0:
                continue
            p = choice[out]
            for i in range(start[p], start[p + 1]):
                a = needs[i]
                used[b, a] -= 1
                for j in range(slot[a], slot[a] + used[b, a]):
                    if users[b, j] == out:
                        users[b, j] = users[b, slot[a] + used[b, a]]
                        break
            bin_of[out] = -1
            if after[p] >= 0:
                copied[after[p]] -= 1
            until[out, b] = step + 5 + np.random.randint(10) + count // 2  # noqa: NPY002
            unplaced[count] = out
            count += 1
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
        for i in range(start[by], start[by + 1]):
            a = needs[i]
            users[into, slot[a] + used[into, a]] = k
            used[into, a] += 1
    return count, step
