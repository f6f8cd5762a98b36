"""Solutions of ``topology.pod``: the wiring, and flows over its links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.declared_axes import axes_arrays
from opticoll.formulations.variables import BANDWIDTHS, Array, Links
from opticoll.instances.families.pods import pod_of, spec_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from opticoll.formulations.topology.pod import PodWiring
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json

#: Longest spec that is shown.
MOST_TEXT = 4096


def arrays(data: PodWiring, names: Collection[str]) -> dict[str, Array]:
    """Shapes of the variables; cubes of one chip have no fixed links."""
    return {name: one for name, one in axes_arrays(data).items() if name != "f" or data.side > 1}


def wiring(data: PodWiring, values: Mapping[str, F64]) -> I64:
    """The permutation of every switch, ``(3, side^2, k)``."""
    x = np.nan_to_num(np.asarray(values["x"], dtype=float))[data.matching]
    return np.argmax(x, axis=2).reshape(3, -1, data.cubes)


def describe(data: PodWiring, values: Mapping[str, F64]) -> dict[str, Json]:
    """The pod of a verified solution as a spec."""
    spec = spec_of(wiring(data, values), data.side)
    return {"pod": spec} if len(spec) <= MOST_TEXT else {}


def links(data: PodWiring, values: Mapping[str, F64]) -> Links:
    """Flow over every link, all sources together; the most over the lost switches."""
    chosen = wiring(data, values)
    topology = pod_of(chosen, data.side)
    f, u, d = (
        np.asarray(values[name], dtype=float).sum(axis=1).max(axis=0) if name in values else np.zeros(0)
        for name in ("f", "u", "d")
    )
    order, at = arcs_of(data, chosen)
    load = np.concatenate([f, u[at], d[at]])[order]
    return Links(topology, load, topology.capacity, 1.0, BANDWIDTHS, BANDWIDTHS)


def arcs_of(data: PodWiring, chosen: I64) -> tuple[I64, tuple[I64, I64, I64]]:
    """The places of the arcs of a pod among its fixed links, those up and those down, ``(m,)``.

    Also the switches and cubes (w, i, j) of the optical links, those from a chip to itself left out.
    """
    plus, minus = data.light_ends
    w, i = (axis.ravel() for axis in np.indices((data.switches, data.cubes)))
    j = chosen.reshape(data.switches, data.cubes)[w, i]
    apart = plus[w, i, j] != minus[w, i, j]
    at = w[apart], i[apart], j[apart]
    tail, head = data.link_ends
    tails = np.concatenate([tail, plus[at], minus[at]])
    heads = np.concatenate([head, minus[at], plus[at]])
    return np.lexsort((heads, tails)), at


def values_on(data: PodWiring, chosen: I64, flows: Sequence[F64], F: float) -> dict[str, F64]:
    """The solution with a wiring, and F.

    Parameters
    ----------
    chosen
        The permutation of every switch, ``(3, side^2, k)``.
    flows
        For every case, flows by source over the arcs that it leaves, ``(m', n)``.
    """
    order, at = arcs_of(data, chosen)
    n, k, fixed, up = data.n, data.cubes, len(data.link_ends[0]), len(at[0])
    switch = np.concatenate([np.full(fixed, -2), at[0], at[0]])[order]
    x = np.zeros((int(data.matching[-1]) + 1, k, k))
    x[data.matching[:, None], np.arange(k), chosen.reshape(data.switches, k)] = 1.0
    f, (u, d) = np.empty((len(flows), n, fixed)), np.zeros((2, len(flows), n, data.switches, k, k))
    for case, (lost, flow) in enumerate(zip(data.lost.tolist(), flows, strict=True)):
        placed = np.zeros((n, order.size))
        placed[:, order[switch != lost]] = flow.T
        f[case] = placed[:, :fixed]
        u[case][:, *at], d[case][:, *at] = placed[:, fixed : fixed + up], placed[:, fixed + up :]
    return {"x": x, **({"f": f} if fixed else {}), "u": u, "d": d, "F": np.asarray(F)}
