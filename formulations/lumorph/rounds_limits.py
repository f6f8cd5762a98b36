"""What ``lumorph.rounds`` refuses, and the limits of a round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.lumorph import published_programs
from opticoll.formulations.model import NotApplicable
from opticoll.formulations.rounds.collectives import phases
from opticoll.formulations.rounds.round_schedule import Limits
from opticoll.instances.photonics import LightpathMesh, WdmFibres

if TYPE_CHECKING:
    from opticoll.formulations.lumorph.transfer_sets import Version
    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.instances import Topology
    from opticoll.types import Settings


def refuse_numbers(where: str, given: Settings) -> None:
    """Refuse numbers out of range, and those that exclude each other."""
    rmin, rmax, paths = (int(given[name]) for name in ("rmin", "rmax", "paths"))
    if 0 < rmax < rmin:
        msg = f"{where}: rmin={rmin} is above rmax={rmax}; remove one of them"
        raise NotApplicable(msg)
    if not 0 <= paths <= 64:
        msg = f"{where}: paths={paths} is not between 1 and 64, nor 0 for the default"
        raise NotApplicable(msg)
    if given["routes"] == "algorithm-2" and paths > 1:
        msg = f"{where}: routes=algorithm-2 has one route per pair; omit paths={paths}"
        raise NotApplicable(msg)


def limits_of(where: str, instance: Topology, lasers: int, waveguides: int, version: Version) -> Limits:
    """Limits of a round: the given numbers, or else those of the instance or of the authors' code."""
    if isinstance(instance, WdmFibres):
        if lasers or waveguides or version != "corrected":
            msg = (
                f"{where}: {instance.spec} has the wavelengths and fibres of its spec, and no tiles; remove lasers, "
                "waveguides and program"
            )
            raise NotApplicable(msg)
        return Limits(instance.wavelengths, instance.fibres, ports=None)
    fibres = instance.scarce_fibres if isinstance(instance, LightpathMesh) else None
    if fibres is not None and (waveguides or version != "corrected"):
        msg = (
            f"{where}: {instance.spec} has {fibres.number} fibres between wafers, so the waveguides of its arcs "
            "differ; set waveguides and fibres in the instance, and remove waveguides and program"
        )
        raise NotApplicable(msg)
    own = (instance.lasers, instance.waveguides) if isinstance(instance, LightpathMesh) else (0, 0)
    own = (published_programs.CODED_LASERS, published_programs.CODED_WAVEGUIDES) if version == "coded" else own
    lasers, waveguides = lasers or own[0], waveguides or own[1]
    if not lasers or not waveguides:
        msg = f"{where}: {instance.spec} has no lasers; use lightpath:..., or lasers= and waveguides="
        raise NotApplicable(msg)
    return Limits(lasers, waveguides, fibres=fibres)


def refuse_published(where: str, version: str, wanted: Collective, *, fixed: bool) -> None:
    """Refuse cases that Algorithm 1 as printed or coded does not cover."""
    if wanted.summing:
        msg = f"{where}: program={version} supports only copies, but {wanted.name!r} sums; use program=corrected"
        raise NotApplicable(msg)
    if fixed:
        msg = f"{where}: program={version} offers every route on every wavelength; remove wavelengths=fixed"
        raise NotApplicable(msg)


def refuse_without_effect(where: str, given: Settings, wanted: Collective) -> None:
    """Refuse parameters that say nothing about the collective."""
    if given["composition"] != "phases" and len(phases(wanted)) == 1:
        msg = f"{where}: composition={given['composition']} has no effect on {wanted.name!r}, only on an all-reduce"
        raise NotApplicable(msg)


def refuse_unreachable(where: str, topology: Topology, wanted: Collective) -> None:
    """Refuse a receiver that no holder can reach; for sums, a contributor that cannot reach the target."""
    hops = topology.hops
    for phase in phases(wanted):
        reach = np.isfinite(hops.T if phase.backwards else hops)
        chunk, vertex = phase.copying.pre.T
        reachable = np.zeros((phase.copying.chunks, topology.n), dtype=bool)
        np.logical_or.at(reachable, chunk, reach[vertex])
        lost = ~reachable[phase.copying.deliveries[:, 0], phase.copying.deliveries[:, 1]]
        if lost.any():
            c, v = phase.copying.deliveries[lost][0].tolist()
            msg = (
                f"{where}: {topology.spec} has no path from a holder of chunk {c} to vertex {v}; use fewer failed links"
            )
            raise NotApplicable(msg)
