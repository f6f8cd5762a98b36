"""Dragonfly: groups of routers, every pair of groups joined by a global link."""

from __future__ import annotations

import numpy as np

from instances.errors import BadInput
from instances.links import both_ways
from instances.spec import check_positive, family
from instances.topology import Topology, check_size


@family(
    "dragonfly",
    example="dragonfly:a=4,h=2",
    source="Kim, Dally, Scott & Abts, ISCA 2008; palm tree: Camarero, Vallejo & Beivide, TACO 11(4), 2014",
)
def dragonfly(a: int, h: int, g: int | None = None) -> Topology:
    r"""Dragonfly of routers: complete groups, and global links in the palm-tree arrangement.

    Router :math:`r` of group :math:`G` is node :math:`G a + r`. Routers of a group are all linked. Port
    :math:`k` of a group, :math:`0 \le k < a h`, sits on its router :math:`\lfloor k / h \rfloor`. For
    :math:`0 \le i < \lfloor a h / (g-1) \rfloor` and :math:`0 \le j \le g-2`, port :math:`i(g-1) + j` of
    group :math:`G` joins port :math:`i(g-1) + g-2-j` of group :math:`G + j + 1 \bmod g`. So every pair of
    groups has :math:`\lfloor a h/(g-1) \rfloor` links, and left-over ports stay dark; with few groups some
    links may join the same two routers. With the default :math:`g = a h + 1` every pair has one link,
    the degree is :math:`a - 1 + h`, and the diameter is at most 3. The routers themselves are the
    terminals, so the usual third parameter *p* (hosts on a router) does not appear.

    Parameters
    ----------
    a
        Routers in a group, at least 1.
    h
        Global links of a router, at least 1.
    g
        Groups, ``2 <= g <= a h + 1``; ``a h + 1`` if not given.

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    check_positive(a, "a", "dragonfly")
    check_positive(h, "h", "dragonfly")
    groups = a * h + 1 if g is None else g
    if not 2 <= groups <= a * h + 1:
        msg = f"dragonfly: g={groups} groups must lie in 2..{a * h + 1} (at most a*h+1)"
        raise BadInput(msg)
    rounds = a * h // (groups - 1)
    check_size(groups * a, groups * (a * (a - 1) + rounds * (groups - 1)), "dragonfly")
    group = np.arange(groups)[:, None]
    left, right = np.triu_indices(a, k=1)
    i, j = (axis.ravel() for axis in np.meshgrid(np.arange(rounds), np.arange(groups - 1), indexing="ij"))
    here = group * a + (i * (groups - 1) + j) // h
    other = (group + j + 1) % groups
    there = other * a + (i * (groups - 1) + groups - 2 - j) // h
    once = group < other
    u = np.concatenate([(group * a + left).ravel(), here[once]])
    v = np.concatenate([(group * a + right).ravel(), there[once]])
    names = tuple(f"{G}.{r}" for G in range(groups) for r in range(a))
    return Topology(groups * a, *both_ways(u, v), spec="dragonfly", labels=names)
