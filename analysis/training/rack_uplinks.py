"""Rings of several jobs behind racks with narrow uplinks: max-min fair rates.

A ring over servers of different racks leaves every rack that it visits. A hop between racks takes the uplink of one and
the downlink of the other; both have the bandwidth of rack / oversubscription servers. A ring has one rate on all of its
hops, at most that of a server, 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.solvers.schedules.schedule_kernels import fair_rates as water_filling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.instances.topology import F64, I64


def crossings(held: I64, rack: int, racks: int) -> F64:
    """Hops of a ring over these servers that leave, and that enter, every rack; ``(2 racks,)``."""
    here = held // rack
    there = np.append(here[1:], here[:1])
    across = here != there
    leaving, entering = (np.bincount(side[across], minlength=racks) for side in (here, there))
    return np.concatenate([leaving, entering]).astype(np.float64)


def fair_rates(rings: Sequence[I64], servers: int, rack: int, oversubscription: float) -> F64:
    """Max-min fair rate of every ring, in units of a server's bandwidth, ``(R,)``.

    Parameters
    ----------
    rings
        Servers of every ring in its order.
    servers, rack
        Number of servers, and of servers of a rack: servers 0 .. rack-1 share the first one, and so on.
    oversubscription
        Bandwidth of the servers of a rack over that of its uplinks.
    """
    racks = -(-servers // rack)
    shared = np.array([crossings(held, rack, racks) for held in rings]).reshape(len(rings), 2 * racks)
    use = np.hstack([shared, np.eye(len(rings))])  # the last arcs are those of a server of each ring
    ring, arc = np.nonzero(use)
    capacity = np.append(np.full(2 * racks, rack / oversubscription), np.ones(len(rings)))
    rate = np.zeros(len(rings))
    start = np.searchsorted(ring, np.arange(len(rings) + 1))
    water_filling(np.arange(len(rings)), start, arc, use[ring, arc], capacity, rate)
    return rate
