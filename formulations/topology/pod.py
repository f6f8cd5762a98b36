r"""Wiring of a pod with minimum all-to-all time: the permutation of the cubes at every optical switch.

Source  ours; the machine is that of Jouppi et al., TPU v4, ISCA 2023, the loss of a switch that of Zu et al., NSDI 2024
Sets    i, j in K cubes (k) of b x b x b chips; u, s in V chips (n = k b^3), s as the source of a flow; a in A fixed
        links, one way each, between neighbouring chips of a cube; w in W switches (3 b^2), one for every dimension and
        place of its two faces; m in M matchings, one for every dimension (``places=same``) or switch (``free``), m(w)
        that of switch w; e in E the switch that is lost, none (``survive=0``) or any one of W (``survive=1``)
Data    D_su >= 0 demand [shards], (n,n); w+(i), w-(i) the chips of cube i at the ports of w on the + and the - face
Vars    x_mij in {0,1} matching m joins the + ports of cube i with the - ports of cube j, (M,k,k); when e is lost,
        f_esa >= 0 flow over a fixed link, (E,n,A), u_eswij >= 0 upwards, from w+(i) to w-(j), (E,n,W,k,k), and
        d_eswij >= 0 downwards, from w-(j) to w+(i), (E,n,W,k,k), each from source s, none into s, none over w = e, and
        none from a chip to itself; F >= 0 concurrent flow [link bandwidths / shard]

max F  s.t.
    plus[m,i]        sum_j x_mij = 1
    minus[m,j]       sum_i x_mij = 1
    balance[e,s,v]   inflow_v(f,u,d) - outflow_v(f,u,d) >= F D_sv          v != s
    fixed[e,a]       sum_s f_esa <= 1
    up[e,w,i,j]      sum_s u_eswij <= x_m(w)ij                             w != e
    down[e,w,i,j]    sum_s d_eswij <= x_m(w)ij                             w != e

T = 1/F is the time of the demand, the worst over the lost switches [shards / link bandwidth]. A chip that a switch
would join with itself (b = 1) has no such link.

Bounds, for every wiring. *Cut*: the ports of q cubes carry 6 b^2 q units, 2 q less without the lost switch, so T is at
least what any q cubes send to the others, or get from them, over 6 b^2 min(q, k - q). *Reach*: give all links of a kind
one length l >= 0. From a chip, walk along fixed links, and along every optical link into a cube that has not been
entered before; with ``places=same`` the links of one face enter the same cube. This walk covers every wiring: the
shortest paths of a wiring from a chip to the k chips of one position in their cubes are walks that end in k different
cubes of it, so their lengths are, in order, at least the k least ones. The largest demands at the least lengths, summed
over all chips, over the sum of the lengths of all links, bound T. Of an all-to-all, lengths are varied for the best
bound. That of the linear relaxation is no better: by averages over all orders of the cubes, its prices are one length
for all pairs of cubes at a switch, and the walks that it prices may enter any cube at every optical link.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.declared_axes import metrics
from opticoll.formulations.flows.concurrent_flow import demand_parameter
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topology import pod_bounds, pod_solution
from opticoll.formulations.topology.node_demand import amount_unit, stated_demand
from opticoll.instances.families.pods import fixed_links, places
from opticoll.instances.spec import family_of
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.instances.topology import F64, I64


@dataclass(frozen=True, eq=False)
class PodWiring(Formulation):
    """The problem for ``cubes`` cubes of ``side`` chips in each dimension, and a demand between all chips.

    ``same`` asks for one permutation for all places of a dimension, ``survive`` for the worst time after the loss of
    any one switch.
    """

    name = "topology.pod"
    where = "ours"
    example = "pod:cubes=2,side=2"
    sense = "max"
    problem = "MILP"
    parameters = (
        Parameter("places", str, default="same", choices=("same", "free"), help="permutations of the places of a face"),
        Parameter("survive", int, default=0, help="1: the worst time after the loss of any one switch", least=0),
        demand_parameter(),
    )
    meaning = "concurrent flow F [link bandwidths / shard]; T = 1/F"
    variables: ClassVar = {
        "x": ("matching", "plus_cube", "minus_cube"),
        "f": ("lost", "source", "link"),
        "u": ("lost", "source", "switch", "plus_cube", "minus_cube"),
        "d": ("lost", "source", "switch", "plus_cube", "minus_cube"),
        "F": (),
    }
    constraints: ClassVar = {
        "plus": ("matching", "plus_cube"),
        "minus": ("matching", "minus_cube"),
        "balance": ("lost", "source", "chip"),
        "fixed": ("lost", "link"),
        "up": ("lost", "switch", "plus_cube", "minus_cube"),
        "down": ("lost", "switch", "plus_cube", "minus_cube"),
    }
    _beside = (pod_bounds, pod_solution)

    cubes: int
    side: int
    same: bool
    survive: bool
    demand: F64

    @property
    def n(self) -> int:
        """Number of chips."""
        return self.cubes * self.side**3

    @cached_property
    def demand_varies(self) -> bool:
        """Whether some demand differs from that of an all-to-all, 1 from every chip to every other."""
        return not bool((self.demand == 1 - np.eye(self.n)).all())

    @property
    def switches(self) -> int:
        """Number of switches."""
        return 3 * self.side**2

    @property
    def lost(self) -> I64:
        """The switch that is lost in every case, ``(E,)``; -1 for none."""
        return np.arange(self.switches) if self.survive else np.array([-1])

    @property
    def matching(self) -> I64:
        """m(w), ``(W,)``."""
        return np.arange(self.switches) // (self.side**2 if self.same else 1)

    @cached_property
    def link_ends(self) -> tuple[I64, I64]:
        """Tail and head of every fixed link, one way each, ``(A,)``."""
        low, high = fixed_links(self.side)
        first = self.side**3 * np.arange(self.cubes)[:, None]
        tail, head = first + np.concatenate([low, high]), first + np.concatenate([high, low])
        return tail.ravel(), head.ravel()

    @cached_property
    def light_ends(self) -> tuple[I64, I64]:
        """The chips w+(i) and w-(j) of every switch and pair of cubes, ``(W,k,k)``."""
        plus, minus = (one.reshape(-1, 1, 1) for one in places(self.side))
        first = self.side**3 * np.arange(self.cubes)
        ends = np.broadcast_arrays(plus + first[:, None], minus + first)
        return ends[0], ends[1]

    @classmethod
    def _prepare(cls, instance: Any, given: dict[str, Any]) -> PodWiring:
        """The data of a pod whose wiring is open.

        Raises
        ------
        NotApplicable
            For anything but a whole pod of so many cubes, for one chip, and for ``survive`` beyond 1.
        """
        known = family_of(instance) if isinstance(instance, Topology) and "+" not in instance.spec else None
        if known is None or known[0].name != "pod":
            refuse(cls.name, "needs a whole pod; write pod:cubes=8", NotApplicable)
        arguments: dict[str, Any] = known[1]
        if not arguments["cubes"] or arguments["wiring"] != "torus":
            refuse(cls.name, "the wiring is chosen; write pod:cubes=K without shape and wiring", NotApplicable)
        cubes, side = int(arguments["cubes"]), int(arguments["side"])
        if cubes * side == 1:
            refuse(cls.name, "a single chip has nothing to send; use more cubes or a larger side", NotApplicable)
        if given["survive"] > 1:
            refuse(cls.name, f"survive must be 0 or 1 lost switches, not {given['survive']}", NotApplicable)
        demand = stated_demand(instance, given, cls.name)
        return cls(cubes, side, given["places"] == "same", bool(given["survive"]), demand)

    def sets(self) -> dict[str, Sequence[Any]]:
        """Cubes on either side of a switch, chips, fixed links by their ends, switches, matchings and losses."""
        K, V, W = range(self.cubes), range(self.n), range(self.switches)
        return {
            "plus_cube": K,
            "minus_cube": K,
            "chip": V,
            "source": V,
            "link": list(zip(*(ends.tolist() for ends in self.link_ends), strict=True)),
            "switch": W,
            "matching": range(3 if self.same else self.switches),
            "lost": range(len(self.lost)),
        }

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, over the flows of every source and case."""
        b, k, n = Cvx(self), self.cubes, self.n
        matchings = Index.grid(matching=3 if self.same else self.switches, plus_cube=k, minus_cube=k)
        x, F = b.var("x", upper=1, integer=True, over=matchings), b.var("F")
        cases = Index.grid(lost=len(self.lost)).given(e=self.lost)
        sources = Index.grid(lost=len(self.lost), source=n).given(e=np.repeat(self.lost, n))
        tail, head = self.link_ends
        links = Index.grid(link=len(tail)).given(tail=tail, head=head)
        plus, minus = (ends.ravel() for ends in self.light_ends)
        light = Index.grid(switch=self.switches, plus_cube=k, minus_cube=k)
        light = light.given(tail=plus, head=minus, matching=self.matching[light["switch"]])
        light = light.where(plus != minus)

        def flows(arcs: Index, key: str) -> Index:
            every = sources.join(arcs)
            used = every["head"] != every["source"]
            return every.where(used & (every["e"] != every["switch"]) if "switch" in key else used).keyed(key)

        fixed, optical = flows(links, "lost source link"), "lost source switch plus_cube minus_cube"
        up, down = flows(light, optical), flows(light.given(tail=light["head"], head=light["tail"]), optical)
        f, u, d = b.var("f", over=fixed), b.var("u", over=up), b.var("d", over=down)
        plus_faces, minus_faces = (matchings.by(f"matching {side}") for side in ("plus_cube", "minus_cube"))
        rows = Index.of_mask("lost source chip", np.ones((len(self.lost), 1, 1)) * ~np.eye(n, dtype=bool))
        wires = cases.join(light)
        wires = wires.where(wires["e"] != wires["switch"]).keyed("lost switch plus_cube minus_cube")
        joined = wires.of(matchings, matching="matching")
        arriving = sum(
            (rows.of(one, head="chip") - rows.of(one, tail="chip")) @ flow
            for one, flow in ((fixed, f), (up, u), (down, d))
        )
        b.row("plus", plus_faces.of(matchings) @ x == 1, over=plus_faces)
        b.row("minus", minus_faces.of(matchings) @ x == 1, over=minus_faces)
        b.row("balance", arriving >= F * self.demand[rows["source"], rows["chip"]], over=rows)
        every = Index.grid(lost=len(self.lost), link=len(tail))
        if len(every):
            b.row("fixed", every.of(fixed) @ f <= 1, over=every)
        b.row("up", wires.of(up) @ u <= joined @ x, over=wires)
        b.row("down", wires.of(down) @ d <= joined @ x, over=wires)
        return b.maximize(F)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo, by chips and their coordinates."""
        b, side, D = Pyo(self), self.side, self.demand.tolist()
        K, V, W, A = b.sets("plus_cube", "chip", "switch", "link")

        def chip(w: int, i: int, at: int) -> int:
            dimension, place = divmod(w, side * side)
            where = list(divmod(place, side))
            where.insert(dimension, at)
            return int(((i * side + where[0]) * side + where[1]) * side + where[2])

        def above(w: int, i: int) -> int:
            return chip(w, i, side - 1)

        def below(w: int, j: int) -> int:
            return chip(w, j, 0)

        def joins(e: int, w: int, i: int, j: int) -> bool:
            return above(w, i) != below(w, j) and not (self.survive and e == w)

        def matching(w: int) -> int:
            return w // (side * side) if self.same else w

        near = {v: [t for s, t in A if s == v] for v in V}
        lit = [(w, i) for w in W for i in K]
        over, under = (
            {v: [at for at in lit if above(*at) == v] for v in V},
            {v: [at for at in lit if below(*at) == v] for v in V},
        )
        x, F = b.var("x", upper=1, integer=True), b.var("F")
        f = b.var("f", where=lambda e, s, t, h: h != s)
        u = b.var("u", where=lambda e, s, w, i, j: joins(e, w, i, j) and below(w, j) != s)
        d = b.var("d", where=lambda e, s, w, i, j: joins(e, w, i, j) and above(w, i) != s)

        def balance(e: int, s: int, v: int) -> Any:  # absent flows read as 0
            fixed = b.sum(f[e, s, t, v] - f[e, s, v, t] for t in near[v])
            sent = b.sum(d[e, s, w, i, j] - u[e, s, w, i, j] for w, i in over[v] for j in K)
            got = b.sum(u[e, s, w, i, j] - d[e, s, w, i, j] for w, j in under[v] for i in K)
            return fixed + sent + got >= F * D[s][v]

        b.row("plus", lambda m, i: b.sum(x[m, i, j] for j in K) == 1)
        b.row("minus", lambda m, j: b.sum(x[m, i, j] for i in K) == 1)
        b.row("balance", balance, where=lambda e, s, v: v != s)
        b.row("fixed", lambda e, t, h: b.sum(f[e, s, t, h] for s in V) <= 1)
        b.row("up", lambda e, w, i, j: b.sum(u[e, s, w, i, j] for s in V) <= x[matching(w), i, j], where=joins)
        b.row("down", lambda e, w, i, j: b.sum(d[e, s, w, i, j] for s in V) <= x[matching(w), i, j], where=joins)
        return b.maximize(F)

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block; those of links that there are not left out.

        Flows are relative to F times :func:`.node_demand.amount_unit`, over links at most to their capacity of 1.
        """
        (tail, head), (plus, minus) = self.link_ends, self.light_ends
        values = {"f": np.zeros((len(self.lost), self.n, len(tail))), **values}  # chips alone have no fixed links
        x, f, u, d, F = (np.asarray(values[name], dtype=float) for name in ("x", "f", "u", "d", "F"))
        chips = np.arange(self.n)
        there = (plus != minus) & (np.arange(self.switches) != self.lost[:, None])[:, :, None, None]
        f = np.where(head == chips[:, None], 0.0, f)
        u, d = (
            np.where(there[:, None] & (end != chips[:, None, None, None]), flow, 0.0)
            for flow, end in ((u, minus), (d, plus))
        )
        short = F * self.demand - np.zeros(f.shape[:2])[..., None]
        at_chip = np.moveaxis(short, -1, 0)
        for flow, start, end in ((f, tail, head), (u, plus, minus), (d, minus, plus)):
            amounts = np.moveaxis(flow.reshape(*f.shape[:2], -1), -1, 0)
            np.add.at(at_chip, start.ravel(), amounts)
            np.subtract.at(at_chip, end.ravel(), amounts)
        short[:, chips, chips] = 0.0
        chosen = np.rint(np.clip(x, 0.0, 1.0))
        room, due = chosen[self.matching], abs(float(F)) * amount_unit(self.demand)
        size = min(1.0, due) or 1.0
        return {
            "integrality": float(np.abs(x - chosen).max()),
            "plus": float(np.abs(chosen.sum(axis=2) - 1).max()),
            "minus": float(np.abs(chosen.sum(axis=1) - 1).max()),
            "balance": float(max(short.max(), 0.0)) / max(due, 1e-300),
            "fixed": float(max((f.sum(axis=1) - 1).max(initial=0.0), 0.0)) / size,
            "up": float(max((u.sum(axis=1) - room).max(), 0.0)) / size,
            "down": float(max((d.sum(axis=1) - room).max(), 0.0)) / size,
            "sign": float(max(-f.min(initial=0.0), -u.min(), -d.min(), -float(F), 0.0)) / size,
        }

    def objective(self, values: Mapping[str, F64]) -> float:
        """F."""
        return float(values["F"])

    metrics = metrics


FORMULATION = PodWiring
