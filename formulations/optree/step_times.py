"""Times of the steps of an all-gather: packets, conversions and reconfiguration.

Source  OpTree, section IV-A and (3)

A step with d bytes on every wavelength takes d/B + a: B the bandwidth of a wavelength [bytes/s], a the delay of a step
[s] (reconfiguration r and conversion); S steps take S times as long (:mod:`opticoll.formulations.optree.step_counts`).

In packets of 128 bytes and flits of 32 bytes (section IV-A), with q = ceil(d/128) packets and a clock of f cycles/s for
the O/E/O conversion of one cycle per flit, which the paper does not state (:class:`StepCost`):

    T / S = 128 q / B + r + h / f,    h = 4 (pipelined: the last packet is converted alone), or 4 q (serial)

T / S depends only on d, so ratios of times are ratios of steps for any clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Bandwidth of a wavelength [bytes/s] and reconfiguration delay [s] of the paper's simulations. The delay of O/E/O
#: conversion is missing in (3): it is one cycle per flit, of a clock that the paper does not state.
BANDWIDTH, RECONFIGURATION = 40e9 / 8, 25e-6
#: Packet and flit [bytes].
PACKET, FLIT = 128, 32
#: Whether the conversion of flits overlaps with the transmission of the following packets.
CONVERSIONS = ("pipelined", "serial")


def step_time(data: float, *, bandwidth: float = BANDWIDTH, delay: float = RECONFIGURATION) -> float:
    """Time of one step [s]: ``d/B + a``, d bytes on every wavelength."""
    return data / bandwidth + delay


@dataclass(frozen=True)
class StepCost:
    """Time of a step in packets and flits (see the module docstring).

    Parameters
    ----------
    clock
        Cycles per second of the O/E/O conversion [Hz]; infinite for none.
    conversion
        ``pipelined`` or ``serial``.
    """

    clock: float = math.inf
    conversion: str = "pipelined"

    @staticmethod
    def packets(data: float) -> int:
        """Number of packets for ``data`` bytes; the last one is padded."""
        return max(math.ceil(data / PACKET), 0)

    def step(self, data: float) -> float:
        """Time of a step that sends ``data`` bytes on every wavelength [s]."""
        packets = self.packets(data)
        converted = packets if self.conversion == "serial" else min(packets, 1)
        return step_time(PACKET * packets) + converted * (PACKET // FLIT) / self.clock

    def gather(self, steps: float, data: float) -> float:
        """Time of ``steps`` steps [s]."""
        return steps * self.step(data)
