r"""All-to-all optima that are known in closed form (unit shards, unit links, all vertices ranks).

Each is proven by a primal and a dual at once: on an arc-transitive graph an even split over shortest paths loads
every arc alike, so that the distance bound is met; rings and tori split into dimensions.

hypercube:d              T = 2^(d-1)
bipartite:nxn            T = 3 - 2/n
ring:n (two-way)         T = floor(n^2/4) / 2
ring:n,directed          T = n (n-1) / 2
torus, even k in every   T = N k_max / 8     (the longest dimension binds)
complete:n               T = 1
path:n                   T = floor(n/2) ceil(n/2) (the middle link)
"""

from __future__ import annotations

from fractions import Fraction

from formulations import outward
from formulations.base import Bound
from instances.spec import parse
from instances.topology import Topology


def closed_form(topology: Topology) -> Bound | None:
    """The known optimum of the family, or None; only for unmodified families with unit capacities.

    A spec is only a name that anybody may give: the arcs must be those that it stands for.
    """
    spec = topology.spec
    name, _, _ = spec.partition(":")
    if "+" in spec or topology.ranks != topology.n or not (topology.capacity == 1.0).all():
        return None
    time = _time(name, dict(topology.parameters), topology.n)
    if time is None or parse(spec) != topology:
        return None
    value = outward.fraction_up(1 / time)
    return Bound("closed-form", value, f"T = {float(time):g} for this family", "alltoall", exact=True)


def _time(name: str, parameters: dict[str, object], n: int) -> Fraction | None:
    if n < 2:
        return None
    if name == "hypercube":
        return Fraction(n, 2)
    if name == "complete":
        return Fraction(1)
    if name == "path":
        return Fraction((n // 2) * ((n + 1) // 2))
    if name == "ring" and parameters.get("directed"):
        return Fraction(n * (n - 1), 2)
    if name == "ring":
        return Fraction(n * n // 4, 2) if n > 2 else Fraction(1)
    sizes = next((v for v in parameters.values() if isinstance(v, tuple)), ())
    if name == "bipartite" and len(sizes) == 2 and sizes[0] == sizes[1]:
        return 3 - Fraction(2, sizes[0])
    if name == "torus" and sizes and all(k % 2 == 0 and k > 2 for k in sizes):
        return Fraction(n * max(sizes), 8)
    return None
