"""Bounds on the rounds of a collective that is done in phases."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.lumorph import published_programs
from opticoll.formulations.lumorph.collective_bounds import PAPER, round_bounds, sum_bounds
from opticoll.formulations.lumorph.scheduled_rounds import beyond
from opticoll.formulations.model import Bound

if TYPE_CHECKING:
    from opticoll.formulations.lumorph.rounds import RoundModel


def bounds_of_phases(data: RoundModel) -> list[list[Bound]]:
    """Analytic bounds of every phase."""
    return [round_bounds(data.arena(phase), phase.copying, data.limits) for phase in data.phases]


def bounds_for_any_routes(data: RoundModel) -> list[Bound]:
    """Analytic bounds on the number of rounds for any routes."""
    if len(data.phases) == 1:
        return data.phase_bounds[0]
    whole = sum_bounds(data.topology, data.collective, data.limits)
    best = [max(bounds, key=lambda bound: bound.value) for bounds in data.phase_bounds]
    reason = ", then ".join(f"{bound.value:g} by {bound.name}" for bound in best)
    return [Bound("phases", sum(bound.value for bound in best), f"rounds of the phases: {reason}", PAPER), *whole]


def least_rounds_of_phases(data: RoundModel) -> list[int]:
    """Best analytic bound of every phase [rounds]."""
    return [max((int(bound.value) for bound in result), default=0) for result in data.phase_bounds]


def first_rounds(data: RoundModel) -> list[int]:
    """R_min of every phase (8): ``rmin``, or the best bound if larger and bounds are used."""
    return [max(data.rmin, least if data.use_bounds else 0) for least in data.least]


def bounds(data: RoundModel) -> list[Bound]:
    """Analytic bounds for any routes; none with ``bounds=false``."""
    if not data.use_bounds or data.version == "corrected":
        return data.analytic_bounds if data.use_bounds else []
    return published_programs.bounds(data.version, data.rmin, data.analytic_bounds)


def refute(data: RoundModel) -> Bound | None:
    """A bound that excludes every schedule within ``rmax`` rounds per phase, if there is one.

    As printed, no instance has a schedule; ``bounds=false`` leaves that proof to the solver.
    """
    if data.version != "corrected":
        reason = published_programs.contradiction(data.version, data.collective)
        if reason is not None and (data.use_bounds or data.version == "coded"):
            return Bound(f"program={data.version}", np.inf, reason, "lumorph")
        if not data.use_bounds:
            return None
    found = next((one for bounds in data.phase_bounds if (one := beyond(data.rmax, bounds))), None)
    return replace(found, value=found.value - 1) if found and data.version == "coded" else found
