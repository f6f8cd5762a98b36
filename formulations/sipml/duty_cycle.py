"""How long circuits must be held for reconfiguring them to cost little.

Source  SiP-ML, section 3.1: "for a topology with reconfiguration latency r, the circuit hold time should be longer
        than, for instance, 10 x r to achieve a 90% duty cycle"
"""

from __future__ import annotations

from instances.errors import BadInput

#: Reconfiguration latency [s]: MEMS optical circuit switches (section 3.1), micro-ring resonators (section 3.1, 4.4).
OCS_LATENCY_S, RING_LATENCY_S = 10e-3, 25e-6


def _check(latency_s: float) -> None:
    if not 0 <= latency_s < float("inf"):
        msg = f"duty cycle: the reconfiguration latency must be a number of seconds of at least 0, not {latency_s}"
        raise BadInput(msg)


def duty_cycle(hold_s: float, latency_s: float) -> float:
    """Share of the time in which circuits carry data: h / (h + r), dark for r after every h of light.

    Raises
    ------
    BadInput
        Unless the hold time is positive and the latency not negative, both finite [s].
    """
    _check(latency_s)
    if not 0 < hold_s < float("inf"):
        msg = f"duty cycle: the hold time must be a positive number of seconds, not {hold_s}"
        raise BadInput(msg)
    return hold_s / (hold_s + latency_s)


def least_hold(latency_s: float, duty: float) -> float:
    """Shortest hold time [s] of a duty cycle: r d / (1 - d), 9 r for 90%; the paper's 10 r gives 10/11.

    Raises
    ------
    BadInput
        Unless the latency is finite and not negative and 0 < duty < 1.
    """
    _check(latency_s)
    if not 0 < duty < 1:
        msg = f"duty cycle: a share of the time must lie between 0 and 1, not {duty}"
        raise BadInput(msg)
    return latency_s * duty / (1.0 - duty)
