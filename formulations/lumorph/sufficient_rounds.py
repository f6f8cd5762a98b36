r"""Upper bound on the rounds of a phase: the default of R_max.

List scheduling over the phase's own candidate routes: round by round and wavelength by wavelength, receivers in random
order (most missing chunks first) take the chunk with the fewest holders from the sender with the shortest free route.
The bound is the best of several seeded runs, hence a fixed number for given data. The sum of all deliveries is a
sufficient R_max too, and so is one more than the largest number of slots that conflicts can block, but both are several
times larger than the optimum, and the variables of the program grow in proportion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations.lumorph.round_rows import RoundProgram

    Route = tuple[int, int, NDArray[np.int64]]

#: Most runs, and the route checks per round that all runs together may make.
MOST_RUNS, MOST_CHECKS = 40, 40_000


def sufficient_rounds(program: RoundProgram) -> int:
    """Rounds of the best list schedule: the optimum of the program is at most this."""
    if not len(program.collective.deliveries):
        return 1
    runs = max(min(MOST_RUNS, MOST_CHECKS // (program.limits.wavelengths * program.routes.paths)), 1)
    routes = _routes_by_receiver(program)
    return min(_list_schedule(program, routes, seed) for seed in range(runs))


def _routes_by_receiver(program: RoundProgram) -> list[list[Route]]:
    """For every receiver its routes, shortest first: sender, wavelength (-1 for any), arcs."""
    by_receiver: list[list[Route]] = [[] for _ in range(program.topology.n)]
    routes = program.routes
    source, target = routes.source[routes.pair], routes.target[routes.pair]
    index = np.arange(routes.paths) - routes.first[routes.pair]
    wavelength = program.wave(source, target, index) if program.fixed else np.full(routes.paths, -1)
    for p in np.argsort(np.diff(routes.start), kind="stable").tolist():
        arcs = routes.arcs[routes.start[p] : routes.start[p + 1]]
        by_receiver[int(target[p])].append((int(source[p]), int(wavelength[p]), arcs))
    return by_receiver


def _list_schedule(program: RoundProgram, routes: list[list[Route]], seed: int) -> int:
    collective, limits, t = program.collective, program.limits, program.topology
    random = np.random.default_rng(seed)
    held = np.zeros((t.n, collective.chunks), dtype=bool)
    held[collective.pre[:, 1], collective.pre[:, 0]] = True
    missing = np.zeros_like(held)
    missing[collective.deliveries[:, 1], collective.deliveries[:, 0]] = True
    rounds = 0
    while missing.any():
        rounds += 1
        received = np.zeros_like(held)
        for w in range(limits.wavelengths):
            room = np.full(t.arcs, limits.waveguides)
            idle = np.ones(t.n, dtype=bool)
            holders = held.sum(axis=0) + received.sum(axis=0) + 0.5 * random.random(collective.chunks)
            for v in np.argsort(-(missing.sum(axis=1) + random.random(t.n))).tolist():
                for s, wavelength, arcs in routes[v]:
                    if not idle[s] or wavelength not in (-1, w) or (room[arcs] == 0).any():
                        continue
                    useful = np.flatnonzero(held[s] & missing[v])
                    if useful.size:
                        chunk = useful[np.argmin(holders[useful])]
                        received[v, chunk], missing[v, chunk], idle[s] = True, False, False
                        room[arcs] -= 1
                        break
        held |= received
    return rounds
