"""The transfers between the nodes of a ring: the traffic of a pool of servers, or of a ring's parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.model import of_kind
from opticoll.formulations.parameters import Parameter, changed_from_defaults
from opticoll.formulations.rounds.wavelengths import whole_fibres
from opticoll.formulations.sipml.ring_solution import MOST_NODES, MOST_WAVELENGTHS
from opticoll.formulations.sipml.transfers import transfers_of
from opticoll.instances.families.machines import servers
from opticoll.instances.photonics import WdmRing
from opticoll.instances.servers import ServerPool

if TYPE_CHECKING:
    from opticoll.formulations.sipml.ring_wavelengths import RingTraffic
    from opticoll.types import Setting

PARAMETERS = (
    Parameter("traffic", str, default="alltoall", help="on a wdm-ring: as traffic= of servers:..."),
    Parameter("seed", int, default=0, help="on a wdm-ring: seed of traffic=random", only_with={"traffic": ("random",)}),
    Parameter("volume", float, default=1e6, help="on a wdm-ring: bytes per pair, alltoall and random"),
)


def prepared(
    cls: type[RingTraffic], instance: object, *, wavelengths: int, bandwidth: float, model: str, **traffic: Setting
) -> RingTraffic:
    """The problem with the ``traffic`` of servers, or that of :data:`PARAMETERS` on an optical ring.

    Raises
    ------
    NotApplicable
        For anything but an intact optical ring or a pool of at least 3 servers; for more than ``MOST_NODES`` nodes or
        ``MOST_WAVELENGTHS`` wavelengths.
    BadInput
        For unknown or empty traffic, or a bandwidth that is not positive.
    """
    name, count = cls.name, wavelengths
    if isinstance(instance, ServerPool):
        if instance.n < 3:
            refuse(name, f"a ring needs at least 3 servers, but {instance.spec} has {instance.n}", NotApplicable)
        for other in changed_from_defaults(PARAMETERS, traffic):
            msg = f"{name}: {other}={traffic[other]} has no effect on {instance.spec}, which has its own traffic"
            raise NotApplicable(msg)
        n, pool, count = instance.n, instance, count or instance.degree
    else:
        needed = "wdm-ring:n=...,wavelengths=... or servers:n=...,degree=...,traffic=..."
        instance = of_kind(WdmRing, instance, name, needed)
        ring = whole_fibres(instance, name)
        n, count = ring.n, count or ring.channels
        pool = servers(n, 1, str(traffic["traffic"]), seed=int(traffic["seed"]), volume=float(traffic["volume"]))
    if n > MOST_NODES or count > MOST_WAVELENGTHS:
        msg = f"{name}: {n} nodes with {count} wavelengths; use at most {MOST_NODES} and {MOST_WAVELENGTHS}"
        raise NotApplicable(msg)
    return cls(n, count, transfers_of(pool.traffic, bandwidth, f"{name}: {instance.spec}"), model)
