"""Parameters and data of ``lumorph.rounds``, and what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.lumorph import published_programs
from opticoll.formulations.lumorph.scheduled_rounds import PIECES, ROUTES, farthest
from opticoll.formulations.model import of_kind
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.rounds.collectives import collective, phases
from opticoll.formulations.rounds.round_schedule import Limits
from opticoll.instances import Topology
from opticoll.instances.photonics import LightpathMesh, WdmFibres
from opticoll.instances.readers.reading import FileSetting

if TYPE_CHECKING:
    from opticoll.formulations.lumorph.rounds import RoundModel
    from opticoll.formulations.lumorph.transfer_sets import Version
    from opticoll.formulations.rounds.collectives import Collective, Phase
    from opticoll.types import Settings

M = TypeVar("M", bound="RoundModel")
PARAMETERS = (
    Parameter(
        "collective",
        FileSetting,
        FileSetting("all-gather"),
        "broadcast, scatter, gather, all-gather, all-to-all, reduce, reduce-scatter, all-reduce, or file:PATH",
    ),
    Parameter("root", int, 0, "root of broadcast, scatter, gather and reduce", least=0),
    PIECES,
    Parameter(
        "program",
        str,
        "corrected",
        "Algorithm 1 corrected, as in the authors' code, or as printed",
        ("corrected", "coded", "printed"),
    ),
    Parameter("paths", int, 0, "routes per pair, K; 0 for any routes, 2 in the program (coded, algorithm-2: 1)"),
    ROUTES,
    Parameter("wavelengths", str, "free", "wavelength of a route: any, or a fixed one", ("free", "fixed")),
    Parameter("lasers", int, 0, "lasers per tile; 0 for the instance's (coded: 4)", least=0),
    Parameter("waveguides", int, 0, "waveguides per arc (coded: per edge); 0 for the instance's (coded: 20)", least=0),
    Parameter("rmin", int, 0, "minimum number of rounds; 0 for the best bound (coded, printed: 1)", least=0),
    Parameter("rmax", int, 0, "maximum number of rounds per phase; 0 for a sufficient number (coded: 5)", least=0),
    Parameter("bounds", bool, True, "use analytic bounds; false leaves the proof to the program"),
    Parameter(
        "symmetry",
        bool,
        True,
        "break the symmetries of wavelengths and of the mesh (corrected)",
        only_with={"program": ("corrected",)},
    ),
)


def read(kind: type[M], instance: object, given: Settings) -> M:
    """The data of the model on an instance.

    Raises
    ------
    NotApplicable
        For anything but a topology of tiles or WDM nodes, and for settings that contradict each other or the instance.
    """
    where = kind.name
    instance = of_kind(Topology, instance, where, "a topology of tiles, such as lightpath:2x4,lasers=4")
    names = ("rmin", "rmax", "paths", "root", "pieces", "lasers", "waveguides")
    rmin, rmax, paths, root, pieces, lasers, waveguides = (int(given[name]) for name in names)
    version, routes = cast("Version", given["program"]), str(given["routes"])
    if not 0 <= paths <= 64:
        refuse(where, f"paths={paths} is not between 1 and 64, nor 0 for the default", NotApplicable)
    if routes == "algorithm-2" and paths > 1:
        refuse(where, f"routes=algorithm-2 has one route per pair; omit paths={paths}", NotApplicable)
    coded, fixed = version == "coded", given["wavelengths"] == "fixed"
    wanted = collective(str(given["collective"]), instance.n, instance.terminals, root=root, pieces=pieces)
    limits = limits_of(where, instance, lasers, waveguides, version)
    if instance.num_ranks < instance.n:  # circuits and chunks may pass through every vertex
        ends = (instance.tail, instance.head, instance.capacity)
        instance = Topology(instance.n, *ends, spec=instance.spec, labels=instance.labels)
    parts = phases(wanted)
    if not any(len(phase.copying.deliveries) for phase in parts):
        refuse(where, f"{wanted.name!r} has no deliveries; give a collective with at least one", NotApplicable)
    refuse_unreachable(where, instance, parts)
    if version != "corrected":
        refuse_published(where, version, wanted, fixed=fixed)
        rmin = rmin or published_programs.CODED_RMIN
        rmax = rmax or (published_programs.CODED_RMAX if coded else 0)
    if rmin > rmax > 0:
        refuse(where, f"rmin={rmin} is above rmax={rmax}; remove one of them, or set a larger rmax", NotApplicable)
    default = published_programs.CODED_PATHS if coded or routes == "algorithm-2" else 2
    data = kind(
        instance,
        wanted,
        parts,
        limits,
        paths or default,
        routes,
        fixed,
        rmin,
        rmax,
        bool(given["bounds"]),
        bool(given["symmetry"]),
        version,
        paths > 0 or routes != "straight",
    )
    if version == "corrected" and rmin and rmin > min(data.least):
        refuse(where, f"rmin={rmin} is above {min(data.least)} rounds, the best proven bound; remove it", NotApplicable)
    return data


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
        refuse(where, f"{instance.spec} has no lasers; use lightpath:..., or lasers= and waveguides=", NotApplicable)
    return Limits(lasers, waveguides, fibres=fibres)


def refuse_published(where: str, version: str, wanted: Collective, *, fixed: bool) -> None:
    """Refuse cases that Algorithm 1 as printed or coded does not cover."""
    if wanted.summing:
        msg = f"{where}: program={version} supports only copies, but {wanted.name!r} sums; use program=corrected"
        raise NotApplicable(msg)
    if fixed:
        msg = f"{where}: program={version} offers every route on every wavelength; remove wavelengths=fixed"
        raise NotApplicable(msg)


def refuse_unreachable(where: str, topology: Topology, parts: tuple[Phase, ...]) -> None:
    """Refuse a receiver that no holder can reach; for sums, a contributor that cannot reach the target."""
    hops = topology.hops
    for phase in parts:
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


def estimate(data: RoundModel) -> dict[str, int]:
    """About the size with ``rmax`` rounds, or as few as the bounds allow, without listing columns."""
    most = [data.rmax or max(least, 1) for least in data.least]
    columns = sum(data.program(phase, rounds).size for phase, rounds in zip(data.phases, most, strict=True))
    each = 4 + farthest(data.topology)
    if data.version != "corrected":  # (2) is a row of every column, and meets those of earlier rounds
        each += (data.topology.n - 1) * data.paths * data.limits.wavelengths * (most[0] - 1) / 2
    return {"variables": columns, "constraints": columns, "nonzeros": int(columns * each)}
