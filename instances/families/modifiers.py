"""Modifiers, written after the family in a spec: failed links, hosts, scaled capacities, units."""

from __future__ import annotations

import numpy as np

from opticoll.arguments import whole_number
from opticoll.errors import BadInput, refuse
from opticoll.instances.families.pods import without
from opticoll.instances.quantities import parse_rate
from opticoll.instances.spec import modifier
from opticoll.instances.topology import Topology, check_size, decimal_products, link_groups


@modifier("fail", example="torus:4x4+fail=3,seed=0")
def fail(topology: Topology, links: int | str, seed: int = 0) -> Topology:
    """Remove links at random, or a part of a pod.

    Parameters
    ----------
    topology
        Topology; its class, vertices, terminals and labels are kept.
    links
        Number of links to remove, 0 or more. If all arcs can be paired as ``u -> v`` and ``v -> u`` of equal
        capacity, a link is such a pair and fails as a whole; otherwise every arc is a link. Of a pod also
        ``switch:DIM.PLACE``, ``cable:DIM.PLACE.CUBE`` or ``cube:CUBE``
        (:func:`opticoll.instances.families.pods.without`).
    seed
        Seed of :func:`numpy.random.default_rng`; links are drawn uniformly without replacement.

    The result may be disconnected; formulations that need connected terminals refuse it. Write ``+fail`` before
    ``+host``: after it, arcs between a host and its NIC may also fail.

    Raises
    ------
    BadInput
        If ``links`` exceeds the number of links, or ``links`` or ``seed`` is negative; for a part that there is not, or
        one with a seed.
    """
    if isinstance(links, str):
        if seed:
            refuse("modifier 'fail'", f"{links!r} is not drawn at random; omit the seed")
        return without(topology, links)
    whole_number(links, "modifier 'fail': links", 0)
    whole_number(seed, "modifier 'fail': seed", 0)
    group, count = link_groups(topology.tail, topology.head, topology.capacity)
    if links > count:
        msg = f"modifier 'fail': cannot remove {links} of the {count} links of {topology.spec}; choose a smaller number"
        raise BadInput(msg)
    failed = np.random.default_rng(seed).choice(count, size=links, replace=False)
    kept = ~np.isin(group, failed)
    return topology.with_arcs(topology.tail[kept], topology.head[kept], topology.capacity[kept])


@modifier("host", example="torus:4x4+host=2.0")
def host(topology: Topology, bandwidth: float, relay: str = "host") -> Topology:
    r"""Connect a host to every NIC at a limited bandwidth; by default, forwarded traffic passes through it.

    Parameters
    ----------
    topology
        Network of :math:`n` nodes, all terminals.
    bandwidth
        :math:`B > 0`, host-to-NIC bandwidth each way [link bandwidths].
    relay
        Where traffic is forwarded: ``host`` (the default, section 3.2.3: data passes through the host even if the
        node is not the destination) or ``nic`` (only traffic from or to a host passes through it, as in figure 13).

    Node :math:`u` becomes a host :math:`h_u` (vertex :math:`u`), a receiving NIC part (vertex
    :math:`n + u`) and a sending NIC part (vertex :math:`2n + u`). The arcs are :math:`v_{out} \to u_{in}`
    of capacity :math:`c_{vu}` for every arc :math:`v \to u`, and :math:`u_{in} \to h_u`,
    :math:`h_u \to u_{out}` of capacity :math:`B`: :math:`3n` vertices, :math:`m + 2n` arcs. Hosts are the
    terminals, so the throughput at every node, forwarded traffic included, is at most :math:`B`.

    With ``relay=nic`` there is one NIC (vertex :math:`n + u`) per node: the network's arcs join NICs, and
    :math:`h_u \to u_{nic}`, :math:`u_{nic} \to h_u` have capacity :math:`B`: :math:`2n` vertices.

    The result is a plain topology. Source: Basu et al. 2024, all-to-all schedules for direct-connect
    topologies, section 3.2.3 (host-to-NIC bottlenecks).

    Raises
    ------
    BadInput
        If the bandwidth is not positive, the topology has relay vertices, the result is too large, or ``relay`` is
        unknown.
    """
    if not (np.isfinite(bandwidth) and bandwidth > 0):
        refuse("modifier 'host'", f"the bandwidth must be positive and finite, not {bandwidth}; write +host=2.0")
    if relay not in {"host", "nic"}:
        refuse("modifier 'host'", f"relay must be host or nic, not {relay!r}")
    n = topology.n
    if topology.num_ranks != n:
        msg = (
            f"modifier 'host': {topology.spec} already has relay vertices; "
            "write +host only once, after a topology in which every vertex is a terminal"
        )
        raise BadInput(msg)
    parts = ("host", "in", "out") if relay == "host" else ("host", "nic")
    check_size(len(parts) * n, topology.arcs + 2 * n, "modifier 'host'")
    hosts, receiving, sending = np.arange(n), n, (len(parts) - 1) * n
    return topology.with_changes(
        n=len(parts) * n,
        tail=np.concatenate([topology.tail + sending, hosts + receiving, hosts]),
        head=np.concatenate([topology.head + receiving, hosts, hosts + sending]),
        capacity=np.concatenate([topology.capacity, np.full(2 * n, float(bandwidth))]),
        spec=topology.spec,
        labels=tuple(f"{part}[{name}]" for part in parts for name in topology.labels),
        parameters=topology.parameters,
    )


@modifier("line", example="cayley:m=5,k=1,r=1,generators=1x2,directed+line=2")
def line(topology: Topology, times: int) -> Topology:
    r"""Take the line digraph: a vertex for every arc, and an arc from a to b where b begins at the end of a.

    Parameters
    ----------
    topology
        Topology whose vertices are all terminals and whose capacities are equal.
    times
        Number of repetitions, at least 1.

    The line digraph of a d-regular digraph is d-regular and has d times as many vertices. Distances grow by one,
    :math:`\mathrm{dist}((u,v), (x,y)) = 1 + \mathrm{dist}(v, x)` for different arcs, so near-optimal digraphs stay
    near-optimal; Kautz digraphs are the line digraphs of complete ones. Loops are dropped.
    Source: Fiol, Yebra & Alegre, IEEE Trans. Computers 33(5), 1984.

    Raises
    ------
    BadInput
        If ``times`` is not positive, capacities differ, the topology has relay vertices, or the result is too large.
    """
    whole_number(times, "modifier 'line': times", 1)
    if topology.num_ranks != topology.n or np.unique(topology.capacity).size > 1:
        refuse("modifier 'line'", f"{topology.spec} has relay vertices or unequal capacities; write +line before them")
    n, tail, head = topology.n, topology.tail, topology.head
    for _ in range(times):
        out = np.bincount(tail, minlength=n)
        check_size(tail.size, int(out[head].sum()), "modifier 'line'")
        first = np.concatenate([[0], np.cumsum(out)[:-1]])
        count = out[head]
        onward = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first[head], count)
        n, tail, head = tail.size, np.repeat(np.arange(tail.size), count), onward
        tail, head = tail[tail != head], head[tail != head]
    return Topology(
        n,
        tail,
        head,
        np.full(tail.size, topology.capacity[0] if topology.arcs else 1.0),
        spec=topology.spec,
        parameters=topology.parameters,
        capacity_unit=topology.capacity_unit,
    )


@modifier("scale", example="ring:8+scale=2.0")
def scale(topology: Topology, factor: float) -> Topology:
    """Multiply every capacity by a factor.

    Parameters
    ----------
    topology
        Topology; its class, vertices, terminals and labels are kept.
    factor
        Positive number [-].

    Raises
    ------
    BadInput
        If the factor is not positive, or makes a capacity infinite or zero.
    """
    if not (np.isfinite(factor) and factor > 0):
        refuse("modifier 'scale'", f"the factor must be positive and finite, not {factor}; write +scale=2.0")
    return topology.with_arcs(topology.tail, topology.head, decimal_products(topology.capacity, factor))


@modifier("unit", example="ring:8+unit=100Gb/s")
def unit(topology: Topology, rate: str) -> Topology:
    """Set the unit of capacity, so times are also given in seconds.

    Parameters
    ----------
    topology
        Topology; its numbers do not change.
    rate
        A rate such as ``Gb/s`` or ``100Gb/s`` (:mod:`opticoll.instances.quantities`).

    Raises
    ------
    BadInput
        If ``rate`` is not a positive rate.
    """
    parse_rate(rate, "modifier 'unit'")
    changed = topology.with_arcs(topology.tail, topology.head, topology.capacity)
    changed._put(capacity_unit=rate)
    return changed
