r"""Copies of copies packed into a given number of rounds, compiled: :mod:`solvers.rounds.packing` with an order.

An item (chunk c for vertex v) takes one of its candidates: a route from a holder, or from another vertex that is to
get c too, whose own item must then stand in an earlier round. Ejecting an item ejects what was copied from it.
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
def eject_ordered(first: I64, start: I64, needs: I64, after: I64, tie: I64, room: I64, waves: int, rounds: int,
                  bin_of: I64, choice: I64, seed: int, steps: int, care: float) -> tuple[int, int]:  # fmt: skip
    """Place all items in ``rounds`` rounds of ``waves`` wavelengths, from nothing.

    Parameters
    ----------
    first, start, needs
        Candidates of item k are ``first[k] .. first[k + 1] - 1``; candidate p needs ``needs[start[p]:start[p + 1]]``,
        of which every bin (round r, wavelength w: bin ``r waves + w``) has ``room`` units.
    after
        The item that must stand in an earlier round than candidate p; -1 for none.
    tie
        The wavelength that candidate p has; -1 for any.
    bin_of, choice
        Out: bin and candidate of every item; all placed where the first result is 0.
    care
        What ejecting an item costs more for each that was copied from it.

    Returns
    -------
    How many items are not placed, and the steps made.
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
    homeless, stack = np.arange(items), np.empty(2 * items + 64, dtype=np.int64)
    bin_of[:] = -1
    count, step = items, 0
    while count > 0 and step < steps:
        step += 1
        at = np.random.randint(count)  # noqa: NPY002
        k = homeless[at]
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
        homeless[at] = homeless[count]
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
            homeless[count] = out
            count += 1
            if copied[out] > 0:
                for x in range(items):
                    if bin_of[x] >= 0 and after[choice[x]] == out:
                        stack[top] = x
                        top += 1
        if after[by] >= 0 and bin_of[after[by]] < 0:
            # What it was to be copied from had to leave.
            homeless[count] = k
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
