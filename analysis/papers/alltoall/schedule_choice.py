"""The choice of a schedule for a fabric, as the paper proposes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput
from opticoll.instances import parse
from opticoll.solvers.task import Fields

if TYPE_CHECKING:
    from opticoll.instances import Topology


#: Fabrics by name: who forwards, and how the traffic of a pair may be divided.
FABRICS = {
    "host": "hosts forward (store-and-forward)",
    "nic-weighted": "NICs forward (cut-through), routes with weights",
    "nic-equal": "NICs forward (cut-through), routes with equal shares",
}
#: Maximum number of ranks for which routes are found by integer programming.
MOST_RANKS = 100


class ScheduleChoice(Fields, frozen=True, kw_only=True):
    """A schedule for a fabric: the paper's name for it, the command that computes it, its section, and the reason."""

    fabric: str
    schedule: str
    command: str
    where: str
    reason: str


def schedule_for(topology: Topology | str, fabric: str, host: float | None = None) -> ScheduleChoice:
    """Choose the paper's schedule for a topology on a fabric.

    Parameters
    ----------
    topology
        The network between the nodes, or its spec.
    fabric
        ``host``, ``nic-weighted`` or ``nic-equal``, see :data:`FABRICS`.
    host
        Host-to-NIC bandwidth each way [link bandwidths]; None for no limit.

    Raises
    ------
    BadInput
        For an unknown fabric, a host bandwidth that is not positive, or a topology that is not strongly connected or
        has vertices that are not ranks.
    """
    network = parse(topology) if isinstance(topology, str) else topology
    if fabric not in FABRICS:
        msg = f"chooser: unknown fabric {fabric!r}; use one of {', '.join(FABRICS)}"
        raise BadInput(msg)
    if host is not None and not host > 0:
        msg = f"chooser: the host bandwidth must be positive, not {host}; omit it for no limit"
        raise BadInput(msg)
    if network.num_ranks < network.n or not network.connected:
        msg = f"chooser: {network.spec} must be strongly connected and consist of ranks; give hosts by host=B"
        raise BadInput(msg)
    out = np.bincount(network.tail, network.capacity, network.n).max()
    limited = host is not None and host < out
    spec = network.spec
    if fabric == "host":
        augmented = f"{spec}+host={host:g}" if limited else spec
        why = "hosts forward, so data are sent in steps over links"
        why += (
            f", and the host's {host:g} is less than the {out:g} of its links: all traffic passes the hosts"
            if limited
            else ", and no host is a bottleneck"
        )
        command = f"opticoll solve alltoall.timestep-mcf '{augmented}' --set aggregate=source --schedule a2a.xml"
        return ScheduleChoice(
            fabric=fabric,
            schedule="tsMCF",
            command=command,
            reason=why,
            where="section 3.2.3" if limited else "sections 3.1.3, 3.2.2",
        )
    why = "NICs forward along source routes" + (
        f"; the host's {host:g}, less than the {out:g} of its links, limits only its own traffic" if limited else ""
    )
    augmented = f"{spec}+host={host:g},relay=nic" if limited else spec
    if fabric == "nic-equal":
        small = network.num_ranks <= MOST_RANKS
        method = "" if small else " --method sssp"
        why += f"; shares are equal, and {network.num_ranks} ranks are " + ("few" if small else "too many for an ILP")
        return ScheduleChoice(
            fabric=fabric,
            schedule="ILP" if small else "SSSP",
            reason=why,
            where="section 3, appendix D",
            command=f"opticoll solve alltoall.min-congestion '{spec}' --set paths=disjoint{method}"
            " --schedule a2a.routes.json",
        )
    ways, degree = shortest_paths(network), int(network.out_degree.max())
    few = ways <= degree
    why += f"; a pair has {ways:.3g} shortest paths on average, " + (
        f"no more than the degree {degree}" if few else f"more than the degree {degree}"
    )
    method = f" --set paths=all --set lmax={int(network.diameter)}" if few else " --set paths=all --method mcf-extp"
    if limited and few:
        method = f" --set paths=all --set lmax={int(network.diameter) + 2}"
    return ScheduleChoice(
        fabric=fabric,
        schedule="pMCF" if few else "MCF-extP",
        reason=why,
        where="sections 3.1.4, 3.2.1" if few else "section 3.2.1",
        command=f"opticoll solve alltoall.path-mcf '{augmented}'{method} --schedule a2a.routes.json",
    )


def schedules(topology: Topology | str, host: float | None = None) -> list[ScheduleChoice]:
    """The choice for every fabric, see :func:`schedule_for`."""
    return [schedule_for(topology, fabric, host) for fabric in FABRICS]


def shortest_paths(topology: Topology) -> float:
    """Mean number of shortest paths of an ordered pair of ranks; parallel arcs count as separate paths."""
    count = (topology.hops == 0).astype(float)  # (N, n), by source
    onward = topology.hops[:, topology.tail] + 1 == topology.hops[:, topology.head]
    for hop in range(1, int(topology.diameter) + 1):
        source, arc = np.nonzero(onward & (topology.hops[:, topology.head] == hop))
        np.add.at(count, (source, topology.head[arc]), count[source, topology.tail[arc]])
    pairs = topology.num_ranks * (topology.num_ranks - 1)
    return float(count[:, topology.terminals].sum() - topology.num_ranks) / pairs
