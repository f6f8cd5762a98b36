"""The time of schedules of rounds on machines with lasers or electrical switches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Literal

import numpy as np

from opticoll.errors import BadInput
from opticoll.solvers.methods.lumorph.patterns import least_steps

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.solvers.methods.lumorph.patterns import Pattern

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]


Charged = Literal["every-round", "changes"]


@dataclass(frozen=True)
class Machine:
    """Times and rates of a machine.

    Parameters
    ----------
    alpha_us
        Fixed cost of a round [us].
    reconfigure_us
        Time to set the optical switches, r [us].
    lasers
        Lasers of a GPU, L.
    laser_gbps
        Rate of one circuit [Gb/s].
    charged
        Whether r is paid in every round (as in the paper), or only in rounds whose circuits differ
        from those of the round before.

    Raises
    ------
    BadInput
        For a time below 0, or a rate or number of lasers that is not above 0.
    """

    alpha_us: float = 0.7
    reconfigure_us: float = 3.7
    lasers: int = 16
    laser_gbps: float = 150.0
    charged: Charged = "every-round"

    def __post_init__(self) -> None:
        for name, least in (("alpha_us", 0.0), ("reconfigure_us", 0.0), ("lasers", 1), ("laser_gbps", 1e-12)):
            value = getattr(self, name)
            if not (isfinite(value) and value >= least):
                msg = f"machine: {name}={value!r} must be a number of at least {least:g}"
                raise BadInput(msg)
        if self.charged not in ("every-round", "changes"):
            msg = f"machine: charged={self.charged!r}; use every-round or changes"
            raise BadInput(msg)

    @property
    def circuit_rate(self) -> float:
        """Bytes that a circuit carries per microsecond, b."""
        return self.laser_gbps * 1e3 / 8

    @property
    def beta(self) -> float:
        """Microseconds a byte takes over all lasers of a GPU."""
        return 1.0 / (self.lasers * self.circuit_rate)

    @property
    def electrical(self) -> Machine:
        """The ideal electrical switch of the same bandwidth: nothing to reconfigure."""
        return replace(self, reconfigure_us=0.0)


#: Parameters of section 5 and Appendix C: 0.7 us, 3.7 us, 16 lasers of 150 Gb/s, 300 GB/s in all.
LIGHTPATH = Machine()


@dataclass(frozen=True, eq=False)
class Timeline:
    """The time of every round [us], ``(R,)`` each: alpha, reconfiguration, data."""

    alpha: F64
    reconfiguration: F64
    data: F64

    @property
    def total_us(self) -> float:
        """Total time [us]."""
        return float(self.alpha.sum() + self.reconfiguration.sum() + self.data.sum())

    @property
    def reconfigurations(self) -> int:
        """Rounds in which switches are set."""
        return int(np.count_nonzero(self.reconfiguration))


def chunk_sizes(sizes: ArrayLike, chunks: int) -> F64:
    """Bytes of every chunk, ``(chunks,)``, from one number or one per chunk.

    Raises
    ------
    BadInput
        For sizes below 0, not finite, or of the wrong shape.
    """
    given = np.asarray(sizes, dtype=np.float64)
    if given.shape not in ((), (chunks,)) or not (np.isfinite(given) & (given >= 0)).all():
        msg = f"chunk sizes: give one number or {chunks} of them, finite and at least 0 [bytes]"
        raise BadInput(msg)
    return np.broadcast_to(given, (chunks,))


def _sizes(sizes: ArrayLike, chunk: I64) -> F64:
    used = int(chunk.max(initial=-1)) + 1
    return chunk_sizes(sizes, used if np.ndim(sizes) == 0 else max(np.size(sizes), used))


def timeline(schedule: RoundSchedule, sizes: ArrayLike, machine: Machine) -> Timeline:
    """Time every round of a schedule whose chunks are of these ``sizes`` [bytes] (one for all, or one per chunk).

    The schedule is not checked: check it first (:func:`opticoll.formulations.rounds.round_schedule.violations`).

    Raises
    ------
    BadInput
        For bad sizes, and for a transfer without a circuit.
    """
    rounds = schedule.rounds
    size = _sizes(sizes, schedule.transfer_chunk)
    n = (
        int(
            max(
                a.max(initial=0)
                for a in (
                    schedule.circuit_source,
                    schedule.circuit_target,
                    schedule.transfer_source,
                    schedule.transfer_target,
                )
            )
        )
        + 1
    )
    connected = (schedule.circuit_round * n + schedule.circuit_source) * n + schedule.circuit_target
    pairs, circuits = np.unique(connected, return_counts=True)
    sent = (schedule.transfer_round * n + schedule.transfer_source) * n + schedule.transfer_target
    at = np.searchsorted(pairs, sent)
    if (pairs[np.minimum(at, pairs.size - 1)] != sent).any() if pairs.size else sent.size:
        msg = "a transfer has no circuit in its round; check the schedule before timing it"
        raise BadInput(msg)
    carried = np.bincount(at, weights=size[schedule.transfer_chunk], minlength=pairs.size)
    data = np.zeros(rounds)
    np.maximum.at(data, pairs // (n * n), carried / (circuits * machine.circuit_rate))
    paid = changes(schedule) if machine.charged == "changes" else np.ones(rounds, dtype=bool)
    return Timeline(np.full(rounds, machine.alpha_us), np.where(paid, machine.reconfigure_us, 0.0), data)


def changes(schedule: RoundSchedule) -> NDArray[np.bool_]:
    """Rounds whose circuits differ from those of the round before, ``(R,)``; the first counts as different."""
    order = np.lexsort(
        (schedule.circuit_wavelength, schedule.circuit_target, schedule.circuit_source, schedule.circuit_round)
    )
    table = schedule.taken(order, np.zeros(0, dtype=np.int64))
    cut = np.searchsorted(table.circuit_round, np.arange(schedule.rounds + 1))
    columns = (table.circuit_source, table.circuit_target, table.circuit_wavelength)

    def circuits_of(when: int) -> list[I64]:
        a, b = int(cut[when]), int(cut[when + 1])
        first, last = int(table.circuit_start[a]), int(table.circuit_start[b])
        return [
            *(column[a:b] for column in columns),
            np.diff(table.circuit_start[a : b + 1]),
            table.circuit_arcs[first:last],
        ]

    changed = np.ones(schedule.rounds, dtype=bool)
    before: list[I64] | None = None
    for when in range(schedule.rounds):
        now = circuits_of(when)
        changed[when] = before is None or any(not np.array_equal(a, b) for a, b in zip(before, now, strict=True))
        before = now
    return changed


def switch_time(pattern: Pattern, n: int, sizes: ArrayLike, machine: Machine) -> float:
    """Time of a pattern on an ideal packet switch [us]: alpha per step, and the most bytes a GPU sends or receives.

    ``machine`` gives alpha and the bandwidth of a GPU; its reconfiguration time is not used.

    Raises
    ------
    BadInput
        For bad sizes.
    """
    size = _sizes(sizes, pattern.chunk)
    weight = size[pattern.chunk]
    total = 0.0
    for end in (pattern.source, pattern.target):
        loads = np.bincount(pattern.step * n + end, weights=weight, minlength=pattern.steps * n)
        worst = loads.reshape(pattern.steps, n).max(axis=1)
        total = worst if end is pattern.source else np.maximum(total, worst)
    return float(pattern.steps * machine.alpha_us + np.sum(total) * machine.beta)


# closed forms -------------------------------------------------------------------------------------------------


def usable(lasers: int, peers: int) -> float:
    """Share of a GPU's bandwidth that equal bundles to ``peers`` peers can use: ``peers floor(L/peers) / L``.

    Raises
    ------
    BadInput
        For more peers than lasers.
    """
    if not 1 <= peers <= lasers:
        msg = f"{peers} simultaneous peers need {peers} lasers, but there are {lasers}; use a smaller radix"
        raise BadInput(msg)
    return peers * (lasers // peers) / lasers


def ring_time(n: int, size: float, machine: Machine) -> float:
    """Ring all-reduce of a buffer of ``size`` bytes [us]; if only changes are charged, the circuits are set once."""
    rounds = 2 * (n - 1)
    paid = 1 if machine.charged == "changes" and n > 1 else rounds
    return rounds * machine.alpha_us + paid * machine.reconfigure_us + rounds / n * size * machine.beta


def recursive_time(radices: Sequence[int], size: float, machine: Machine) -> float:
    """Recursive exchange all-reduce with these digits, nearest first [us].

    The last step of the reduction and the first of the spreading use the same circuits: charged for changes, it pays r
    once less.
    """
    n = int(np.prod(radices))
    total, reached = (-machine.reconfigure_us if machine.charged == "changes" else 0.0), 1
    for m in radices:
        total += 2 * (machine.alpha_us + machine.reconfigure_us)
        total += 2 * (m - 1) * reached / n * size * machine.beta / usable(machine.lasers, m - 1)
        reached *= m
    return total


def least_rounds(n: int, peers: int = 1) -> int:
    """ceil(log_(peers + 1) n): rounds before a contribution can have reached n GPUs.

    The paper's bound log2 N alpha is the case of one peer a round, which several lasers beat.
    """
    return least_steps(n, peers + 1)


def least_time(n: int, size: float, machine: Machine) -> float:
    """Lower bound on the time of an all-reduce [us], with as many peers at one time as there are lasers.

    Every GPU must send (and receive) 2 (N - 1)/N B if all contribute and all need the sum (rate bound), in at least
    ceil(log_(lasers + 1) N) rounds; the rounds' fixed costs and the data do not overlap in this model.
    """
    rounds = least_rounds(n, machine.lasers)
    first = machine.reconfigure_us * (1 if machine.charged == "changes" else rounds)
    return rounds * machine.alpha_us + first + 2 * (n - 1) / n * size * machine.beta
