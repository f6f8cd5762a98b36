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
    out = float(np.bincount(network.tail, network.capacity, network.n).max())
    limit = host if host is not None and host < out else None
    if fabric == "host":
        return _in_steps(network, limit, out)
    why = "NICs forward along source routes"
    if limit is not None:
        why += f"; the host's {limit:g}, less than the {out:g} of its links, limits only its own traffic"
    return _on_one_path(network, why) if fabric == "nic-equal" else _on_weighted_paths(network, limit, why)


def _in_steps(network: Topology, limit: float | None, out: float) -> ScheduleChoice:
    """The choice where hosts forward; ``limit`` is the bandwidth of a host below that of its links, ``out``."""
    spec, why = network.spec, ", and no host is a bottleneck"
    if limit is not None:
        spec += f"+host={limit:g}"
        why = f", and the host's {limit:g} is less than the {out:g} of its links: all traffic passes the hosts"
    return ScheduleChoice(
        fabric="host",
        schedule="tsMCF",
        command=f"opticoll solve alltoall.timestep-mcf '{spec}' --set aggregate=source --schedule a2a.xml",
        reason=f"hosts forward, so data are sent in steps over links{why}",
        where="sections 3.1.3, 3.2.2" if limit is None else "section 3.2.3",
    )


def _on_one_path(network: Topology, why: str) -> ScheduleChoice:
    """The choice where NICs forward and share links equally."""
    small = network.num_ranks <= MOST_RANKS
    size, method = ("few", "") if small else ("too many for an ILP", " --method sssp")
    return ScheduleChoice(
        fabric="nic-equal",
        schedule="ILP" if small else "SSSP",
        reason=f"{why}; shares are equal, and {network.num_ranks} ranks are {size}",
        where="section 3, appendix D",
        command=f"opticoll solve alltoall.min-congestion '{network.spec}' --set paths=disjoint{method}"
        " --schedule a2a.routes.json",
    )


def _on_weighted_paths(network: Topology, limit: float | None, why: str) -> ScheduleChoice:
    """The choice where NICs forward at given rates."""
    ways, degree = shortest_paths(network), int(network.out_degree.max())
    few = ways <= degree
    longest = int(network.diameter) + (0 if limit is None else 2)
    method = f"--set lmax={longest}" if few else "--method mcf-extp"
    spec = network.spec if limit is None else f"{network.spec}+host={limit:g},relay=nic"
    compared = "no more" if few else "more"
    return ScheduleChoice(
        fabric="nic-weighted",
        schedule="pMCF" if few else "MCF-extP",
        reason=f"{why}; a pair has {ways:.3g} shortest paths on average, {compared} than the degree {degree}",
        where="sections 3.1.4, 3.2.1" if few else "section 3.2.1",
        command=f"opticoll solve alltoall.path-mcf '{spec}' --set paths=all {method} --schedule a2a.routes.json",
    )


def schedules(topology: Topology | str, host: float | None = None) -> list[ScheduleChoice]:
    """The choice for every fabric, see :func:`schedule_for`."""
    return [schedule_for(topology, fabric, host) for fabric in FABRICS]


def shortest_path_counts(topology: Topology) -> np.ndarray:
    """Number of shortest paths from every rank to every vertex, ``(N, n)``; parallel arcs count as separate paths."""
    count = (topology.hops == 0).astype(float)  # (N, n), by source
    onward = topology.hops[:, topology.tail] + 1 == topology.hops[:, topology.head]
    for hop in range(1, int(topology.diameter) + 1):
        source, arc = np.nonzero(onward & (topology.hops[:, topology.head] == hop))
        np.add.at(count, (source, topology.head[arc]), count[source, topology.tail[arc]])
    return count


def shortest_paths(topology: Topology) -> float:
    """Mean number of shortest paths of an ordered pair of ranks."""
    count = shortest_path_counts(topology)
    pairs = topology.num_ranks * (topology.num_ranks - 1)
    return float(count[:, topology.terminals].sum() - topology.num_ranks) / pairs
