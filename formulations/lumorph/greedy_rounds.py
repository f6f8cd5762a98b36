r"""How many rounds surely suffice: a greedy schedule over a program's own routes, for the default of R_max.

Round by round, wavelength by wavelength, receivers in a random order (those that miss most first) take the chunk held
by the fewest from the sender with the shortest free route. Seeded; the best of several runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations.lumorph.round_rows import RoundProgram

#: Runs, as far as they look at fewer than so many routes a round.
RUNS, LOOKS = 40, 40_000


def greedy_rounds(program: RoundProgram) -> int:
    """Rounds of the best greedy schedule found; valid for the program, so its optimum is not above."""
    deliveries = len(program.collective.deliveries)
    if not deliveries:
        return 1
    runs = max(min(RUNS, LOOKS // (program.limits.wavelengths * program.routes.paths)), 1)
    routes = _routes_by_end(program)
    return min(_run(program, routes, seed) for seed in range(runs))


def _routes_by_end(program: RoundProgram) -> list[list[tuple[int, int, NDArray[np.int64]]]]:
    """For every receiver its routes, shortest first: sender, wavelength (-1 for any), arcs."""
    found: list[list[tuple[int, int, NDArray[np.int64]]]] = [[] for _ in range(program.topology.n)]
    routes = program.routes
    source, target = routes.source[routes.pair], routes.target[routes.pair]
    index = np.arange(routes.paths) - routes.first[routes.pair]
    wave = program.wave(source, target, index) if program.fixed else np.full(routes.paths, -1)
    for p in np.argsort(np.diff(routes.start), kind="stable").tolist():
        arcs = routes.arcs[routes.start[p] : routes.start[p + 1]]
        found[int(target[p])].append((int(source[p]), int(wave[p]), arcs))
    return found


def _run(program: RoundProgram, routes: list[list[tuple[int, int, NDArray[np.int64]]]], seed: int) -> int:
    collective, limits, t = program.collective, program.limits, program.topology
    random = np.random.default_rng(seed)
    has = np.zeros((t.n, collective.chunks), dtype=bool)
    has[collective.pre[:, 1], collective.pre[:, 0]] = True
    misses = np.zeros_like(has)
    misses[collective.deliveries[:, 1], collective.deliveries[:, 0]] = True
    rounds = 0
    while misses.any():
        rounds += 1
        gains = np.zeros_like(has)
        for w in range(limits.wavelengths):
            room = np.full(t.arcs, limits.waveguides)
            idle = np.ones(t.n, dtype=bool)
            rare = has.sum(axis=0) + gains.sum(axis=0) + 0.5 * random.random(collective.chunks)
            for v in np.argsort(-(misses.sum(axis=1) + random.random(t.n))).tolist():
                for s, wave, arcs in routes[v]:
                    if not idle[s] or wave not in (-1, w) or (room[arcs] == 0).any():
                        continue
                    useful = np.flatnonzero(has[s] & misses[v])
                    if useful.size:
                        chunk = useful[np.argmin(rare[useful])]
                        gains[v, chunk], misses[v, chunk], idle[s] = True, False, False
                        room[arcs] -= 1
                        break
        has |= gains
    return rounds
