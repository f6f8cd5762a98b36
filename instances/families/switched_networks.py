"""Networks of servers behind switches: fat-trees, the ideal switch, and optical circuit switches (TopoOpt, SiP-ML)."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadInput, BadSpec
from opticoll.instances.digraph import Instance, Topology, both_ways, check_size
from opticoll.instances.servers import check_servers
from opticoll.instances.spec import check_positive, family, nearest

if TYPE_CHECKING:
    pass

_FAT_TREE = "Al-Fares, Loukissas & Vahdat, SIGCOMM 2008; oversubscribed: TopoOpt (Wang et al., NSDI 2023), section 5.1"


def _check_capacity(capacity: float, what: str) -> None:
    if not 0 < capacity < np.inf:
        msg = f"{what}: capacity={capacity} link bandwidths; give a positive finite number"
        raise BadInput(msg)


@family("fat-tree", example="fat-tree:k=4", source=_FAT_TREE)
def fat_tree(k: int, oversubscription: int = 1, capacity: float = 1.0) -> Topology:
    r"""Fat-tree of switches with k ports: k³/4 servers, three layers of switches.

    Pod :math:`p` has edge switches :math:`e` and aggregation switches :math:`a`, :math:`0 \le e, a < k/2`; each edge
    switch has :math:`k/2` servers and a link to every aggregation switch of its pod. Core switch :math:`(a, c)`,
    :math:`0 \le c < k/2`, joins the aggregation switches :math:`a` of all pods. Servers come first, numbered by pod,
    edge switch and place; switches hold no shards.

    Parameters
    ----------
    k
        Ports of a switch, even and at least 2.
    oversubscription
        Servers of an edge switch per uplink, a divisor of :math:`k/2`: only aggregation switches
        :math:`a < k / (2 \cdot oversubscription)` and their core switches are kept. 1 is full bisection bandwidth.
    capacity
        Capacity of every link [link bandwidths].

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    check_positive(k, "k", "fat-tree", least=2)
    check_positive(oversubscription, "oversubscription", "fat-tree")
    half = k // 2
    if k % 2 or half % oversubscription:
        msg = f"fat-tree: k={k}, oversubscription={oversubscription}; k must be even, and k/2 divisible by the other"
        raise BadInput(msg)
    _check_capacity(capacity, "fat-tree")
    kept = half // oversubscription
    servers, pods = k * half * half, np.arange(k)
    check_size(servers + k * (half + kept) + kept * half, 2 * (servers + 2 * k * half * kept), "fat-tree")
    edges = servers + np.arange(k * half).reshape(k, half)
    above = edges.max() + 1 + np.arange(k * kept).reshape(k, kept)
    cores = above.max() + 1 + np.arange(kept * half).reshape(kept, half)
    u = [np.arange(servers)]
    v = [np.repeat(edges.ravel(), half)]
    for pod in pods:
        u += [np.repeat(edges[pod], kept), np.repeat(above[pod], half)]
        v += [np.tile(above[pod], half), cores.ravel()]
    n = int(cores.max()) + 1
    names = [f"server[{s}]" for s in range(servers)]
    names += [f"edge[{p},{e}]" for p in range(k) for e in range(half)]
    names += [f"aggregation[{p},{a}]" for p in range(k) for a in range(kept)]
    names += [f"core[{a},{c}]" for a in range(kept) for c in range(half)]
    first, second = np.concatenate(u), np.concatenate(v)
    return Topology(
        n, *both_ways(first, second, np.full(first.size, float(capacity))), spec="fat-tree",
        terminals=np.arange(servers), labels=tuple(names),
    )  # fmt: skip


@family("ideal-switch", example="ideal-switch:n=8", source="TopoOpt (Wang et al., NSDI 2023), section 5.1")
def ideal_switch(n: int, capacity: float = 1.0) -> Topology:
    """Servers with one link each to a switch that is never a bottleneck.

    Parameters
    ----------
    n
        Number of servers, at least 2; vertex n is the switch, which holds no shards.
    capacity
        Capacity of every link, each way [link bandwidths].

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    check_positive(n, "n", "ideal-switch", least=2)
    _check_capacity(capacity, "ideal-switch")
    check_size(n + 1, 2 * n, "ideal-switch")
    servers = np.arange(n)
    names = (*(f"server[{s}]" for s in range(n)), "switch")
    ends = both_ways(servers, np.full(n, n), np.full(n, float(capacity)))
    return Topology(n + 1, *ends, spec="ideal-switch", terminals=servers, labels=names)


#: Rule -> interval [s], pause [s], forwarding, discount on the demand of a pair after each of its circuits.
RULES: dict[str, tuple[float, float, bool, float]] = {
    "topoopt": (math.inf, 0.0, True, 0.5),
    "sip-ocs": (math.inf, 0.0, True, 1.0),
    "ocs-reconfig": (0.05, 0.01, True, 0.5),
    "sip-ring": (0.05, 25e-6, False, 1.0),
    "sip-ring-wavelengths": (250e-6, 25e-6, False, 1.0),
}


@dataclass(frozen=True, eq=False, repr=False)
class CircuitNetwork(Instance):
    """Servers with optical interfaces, and the rule by which circuits between them are chosen.

    Parameters
    ----------
    n, degree
        Number of servers, and interfaces of each: circuits out of it, and into it, at one time. With rule
        ``sip-ring-wavelengths``, wavelengths of each of the two fibres.
    rule
        Key of :data:`RULES`.
    interval
        Time from one choice of circuits to the next [s]; infinite if they are chosen once for a job.
    pause
        Time without traffic after each later choice [s].
    forwarding
        Whether servers forward traffic for pairs without a circuit.
    discount
        Factor on the demand of a pair after each of its circuits.
    """

    n: int
    degree: int
    rule: str
    interval: float
    pause: float
    forwarding: bool
    discount: float
    spec: str = "circuits"
    parameters: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        check_servers(self.n)
        check_positive(self.degree, "degree", "circuits")
        if self.rule not in RULES:
            msg = f"circuits: unknown rule {self.rule!r}; {nearest(self.rule, list(RULES))}"
            raise BadSpec(msg)
        if not (self.interval > self.pause >= 0 and math.isfinite(self.pause)):
            msg = (
                f"circuits: interval {self.interval} s, pause {self.pause} s; the pause must be shorter, and at least 0"
            )
            raise BadInput(msg)
        if not 0 < self.discount <= 1:
            msg = f"circuits: discount={self.discount}; take a factor above 0 and at most 1"
            raise BadInput(msg)
        if math.isinf(self.interval) and not self.forwarding:
            msg = "circuits: pairs without a circuit would wait for ever; set an interval, or forwarding=true"
            raise BadInput(msg)

    @property
    def most_circuits(self) -> int:
        """Most circuits out of a server, and into it, at one time."""
        return self.degree * (2 if self.rule == "sip-ring-wavelengths" else 1)

    @property
    def periodic(self) -> bool:
        """Whether circuits change during an iteration."""
        return math.isfinite(self.interval)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of all parameters."""
        values = (self.n, self.degree, self.rule, self.interval, self.pause, self.forwarding, self.discount)
        return hashlib.sha256(f"opticoll-circuits-1{values!r}".encode()).hexdigest()


@family(
    "circuits",
    example="circuits:n=8,degree=2,rule=ocs-reconfig",
    source="TopoOpt (Wang et al., NSDI 2023), sections 4.3, 5.1, E.4 and F; SiP-ML (Khani et al., SIGCOMM 2021)",
)
def circuits(
    n: int,
    degree: int,
    rule: str = "topoopt",
    interval_ms: float | None = None,
    pause_us: float | None = None,
    forwarding: bool | None = None,
) -> CircuitNetwork:
    """Optical circuit switches between servers, with circuits for the traffic of a job.

    Parameters
    ----------
    n, degree
        Number of servers, and optical interfaces of each (``sip-ring-wavelengths``: wavelengths of each fibre).
    rule
        ``topoopt``: chosen once by TopologyFinder (Algorithm 1). ``ocs-reconfig``: by the demand that is left
        (Algorithm 5), every 50 ms with a pause of 10 ms. ``sip-ring``: appendix F's substitute for SiP-Ring, the
        same without discount, with a pause of 25 us and without forwarding. ``sip-ocs``: chosen once by demand,
        without discount. ``sip-ring-wavelengths``: a ring of two fibres, one each way, on which a
        wavelength is used once in a segment (SiP-ML, section 3.3); circuits by the demand that is left, every 250 us
        with a pause of 25 us (a duty cycle of 90 %), without forwarding.
    interval_ms, pause_us
        Time from one choice to the next [ms] and the pause after it [us], instead of those of the rule.
    forwarding
        Whether servers forward traffic, instead of what the rule says.

    Raises
    ------
    BadSpec
        For an unknown rule.
    BadInput
        For sizes out of range, a pause as long as its interval, or circuits that neither change nor forward.
    """
    interval, pause, forwards, discount = RULES.get(rule, RULES["topoopt"])
    return CircuitNetwork(
        n, degree, rule,
        interval if interval_ms is None else interval_ms / 1e3,
        pause if pause_us is None else pause_us / 1e6,
        forwards if forwarding is None else forwarding,
        discount,
    )  # fmt: skip
