r"""Circuit assignment over D optical switches that minimizes the slowest transfer.

Source  SiP-ML, sections 3.1 (SiP-OCS: D switches of n ports, every server on each) and 3.3; appendix A.2, with the
        paper's own program, is not available: this model follows the text
Sets    p = (i,j) in P pairs of servers with traffic; q in 0 .. D-1 switches
Data    V_p > 0 bytes, (|P|,); D ports of a server, out and in; B = ``bandwidth`` of a circuit [bytes/s]
Vars    c_p in 1 .. high_p circuits of the pair, integer, (|P|,); t in 0 .. 1 the time T in units of max V / B;
        with ``model=switches`` also x_pq in {0,1} circuit of p on switch q, (|P|, D)

min (max V / B) t  s.t.
    chord[p,h]     t + v_p / (h (h+1)) c_p >= v_p (2h+1) / (h (h+1))    1 <= h < max(high_p, 2)
    ports_out[i]   sum_{p from i} c_p <= D
    ports_in[j]    sum_{p to j} c_p <= D
    count[p]       sum_q x_pq = c_p                                (model=switches, instead of the ports)
    light_out[i,q] sum_{p from i} x_pq <= 1
    light_in[j,q]  sum_{p to j} x_pq <= 1

with v_p = V_p / max V: the chords of t >= v_p / c_p (:mod:`opticoll.formulations.sipml`).
high_p = D + 1 - (pairs at that end of p with more pairs): every other pair there takes a port.

Both models have the same optimum: by Koenig's theorem circuits within the ports split into D matchings, one per switch.

Optimum in polynomial time. T is attained iff c_p = n_p(T) fits the ports, and n_p decreases with T, hence bisection.
Any smaller T is infeasible because the needs of one server exceed its ports, so the optimum is the largest of the
servers' own minimum times (bound ``ports``, exact).

Every pair needs its own circuit, because transfers are not relayed: with more peers than ports the problem is
infeasible (``refute``). An assignment may also be given as ``match``, (D, n): the server to which i sends on switch q,
-1 for none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import Bound, CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.sipml import ocs_solution
from opticoll.formulations.sipml.chords import chord_index
from opticoll.formulations.sipml.transfers import Transfers, exact_chord_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.instances.servers import ServerPool
    from opticoll.instances.topology import F64, I64

MODELS = ("counts", "switches")


@dataclass(frozen=True, eq=False)
class OcsCircuits(Formulation):
    """Data of the model."""

    name = "sipml.ocs-circuits"
    where = "section 3.3 (A.2)"
    example = "servers:n=9,degree=16,traffic=random,seed=1"
    problem = "MILP"
    parameters = (
        Parameter("model", str, default="counts", help="circuits by pair, or by pair and switch", choices=MODELS),
        Parameter("bandwidth", float, default=1.0, help="bytes/s of a circuit; 1: times in bytes per circuit"),
    )
    meaning = "time of the slowest transfer [bytes / circuit bandwidth]"
    variables: ClassVar = {"c": ("pair",), "t": (), "x": ("pair", "switch")}
    constraints: ClassVar = {
        "chord": ("pair", "count"),
        "ports_out": ("server",),
        "ports_in": ("server",),
        "count": ("pair",),
        "light_out": ("server", "switch"),
        "light_in": ("server", "switch"),
    }
    _beside = (ocs_solution,)

    pool: ServerPool
    transfers: Transfers
    model: str

    by_server = cached_property(ocs_solution.pairs_by_port)
    server_times = cached_property(ocs_solution.least_server_times)

    @property
    def degree(self) -> int:
        """Number D of ports of a server, and of switches."""
        return self.pool.degree

    @property
    def n(self) -> int:
        """Servers."""
        return self.pool.n

    @cached_property
    def peers(self) -> tuple[I64, I64]:
        """Numbers of pairs out of and into every server, ``(n,)`` each."""
        moves = self.transfers
        return np.bincount(moves.source, minlength=self.n), np.bincount(moves.target, minlength=self.n)

    @cached_property
    def high(self) -> I64:
        """Maximum number of circuits of a pair, ``(|P|,)``; at least 1, even if the problem is infeasible."""
        out, into = self.peers
        fuller = np.maximum(out[self.transfers.source], into[self.transfers.target])
        return np.maximum(self.degree + 1 - fuller, 1)

    def sets(self) -> dict[str, Sequence[Any]]:
        """Pairs (i,j), numbers of circuits, servers and switches."""
        P = list(zip(self.transfers.source.tolist(), self.transfers.target.tolist(), strict=True))
        return {"pair": P, "count": range(1, self.degree + 1), "server": range(self.n), "switch": range(self.degree)}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY."""
        b, moves, D = Cvx(self), self.transfers, self.degree
        pairs = Index.table("pair", {"pair": np.arange(moves.pairs), "i": moves.source, "j": moves.target})
        senders, receivers = (pairs.given(server=pairs[end]).keyed("pair").by("server") for end in ("i", "j"))
        c, t = b.var("c", lower=1, upper=self.high, integer=True), b.var("t", upper=1)
        at = chord_index(self.high, self.name)
        v, h = moves.shares[at["pair"]], at["count"] + 1.0
        slope = v / (h * (h + 1))
        b.row("chord", t + at.of(pairs).multiply(slope[:, None]) @ c >= slope * (2 * h + 1), over=at)
        if self.model == "counts":
            b.row("ports_out", senders.of(pairs, i="server") @ c <= D, over=senders)
            b.row("ports_in", receivers.of(pairs, j="server") @ c <= D, over=receivers)
        else:
            switches = Index.grid(switch=D)
            circuits = pairs.join(switches).keyed("pair switch")
            x = b.var("x", upper=1, integer=True, over=circuits)
            b.row("count", pairs.of(circuits) @ x == c)
            out, into = (ends.join(switches).keyed("server switch") for ends in (senders, receivers))
            b.row("light_out", out.of(circuits, i="server") @ x <= 1, over=out)
            b.row("light_in", into.of(circuits, j="server") @ x <= 1, over=into)
        return b.minimize(moves.unit_time * t)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``c[i,j]``, ``t``, ``x[i,j,q]``."""
        b, moves, n, D = Pyo(self), self.transfers, self.n, self.degree
        P = list(zip(moves.source.tolist(), moves.target.tolist(), strict=True))
        v = dict(zip(P, moves.shares.tolist(), strict=True))
        sends: dict[int, list[tuple[int, int]]] = {i: [p for p in P if p[0] == i] for i in range(n)}
        receives: dict[int, list[tuple[int, int]]] = {j: [p for p in P if p[1] == j] for j in range(n)}
        high = {(i, j): max(D + 1 - max(len(sends[i]), len(receives[j])), 1) for i, j in P}
        c = b.var("c", lower=1, upper=np.array(list(high.values())), integer=True)
        t = b.var("t", upper=1)
        b.row(
            "chord",
            lambda i, j, h: t + v[i, j] / (h * (h + 1)) * c[i, j] >= v[i, j] * (2 * h + 1) / (h * (h + 1)),
            over=[(i, j, h) for i, j in P for h in range(1, max(high[i, j], 2))],
        )
        if self.model == "counts":
            b.row("ports_out", lambda i: b.sum(c[p] for p in sends[i]) <= D, where=lambda i: sends[i])
            b.row("ports_in", lambda j: b.sum(c[p] for p in receives[j]) <= D, where=lambda j: receives[j])
        else:
            x = b.var("x", upper=1, integer=True)
            b.row("count", lambda i, j: b.sum(x[i, j, q] for q in range(D)) == c[i, j])
            b.row("light_out", lambda i, q: b.sum(x[(*p, q)] for p in sends[i]) <= 1, where=lambda i, q: sends[i])
            b.row("light_in", lambda j, q: b.sum(x[(*p, q)] for p in receives[j]) <= 1, where=lambda j, q: receives[j])
        return b.minimize(moves.unit_time * t)

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, from numpy alone.

        ``integer`` is the distance from integers, ``served`` the pairs without a circuit, ``ports_out`` and
        ``ports_in`` the excess circuits of a server, ``light_out`` and ``light_in`` those at a port of one switch
        (``match``, ``x``), ``chord`` the relative amount by which t, if given, understates T, ``count`` the
        disagreement if several of match, x, c are given.
        """
        blocks = ("integer", "served", "ports_out", "ports_in", "light_out", "light_in", "count", "chord")
        moves, n, d = self.transfers, self.n, self.degree
        c, worst = ocs_solution.circuits_of(self, values), dict.fromkeys(blocks, 0.0)
        if "match" in values:  # one circuit out of every port by its form
            _, worst["light_in"] = ocs_solution.from_match(self, np.asarray(values["match"], dtype=float))
        if "x" in values:
            x = np.asarray(values["x"], dtype=float)
            worst["integer"] = float(np.minimum(np.abs(x), np.abs(x - 1.0)).max(initial=0.0))
            for block, ends in (("light_out", moves.source), ("light_in", moves.target)):
                used = np.zeros((n, d))
                np.add.at(used, ends, np.rint(x))
                worst[block] = max(worst[block], float(used.max() - 1.0))
            worst["count"] = max(worst["count"], float(np.abs(np.rint(x).sum(axis=1) - c).max()))
        if "c" in values:
            given = np.asarray(values["c"], dtype=float)
            worst["integer"] = max(worst["integer"], float(np.abs(given - np.rint(given)).max()))
            worst["count"] = max(worst["count"], float(np.abs(np.rint(given) - c).max()))
        worst["served"] = float((c < 1).sum())
        for block, ends in (("ports_out", moves.source), ("ports_in", moves.target)):
            worst[block] = max(0.0, float(np.bincount(ends, c, minlength=n).max() - d))
        if "t" in values:
            stated, true = float(np.asarray(values["t"])), moves.slowest(c) / moves.unit_time
            worst["chord"] = max(0.0, true - stated) / true if np.isfinite(true) else np.inf
        return worst

    def objective(self, values: Mapping[str, F64]) -> float:
        """T [s] recomputed from the circuits; infinite if a pair has no circuit."""
        return self.transfers.slowest(ocs_solution.circuits_of(self, values))

    def _closed_forms(self) -> list[Bound]:
        """The exact ones among the bounds."""
        return self.bounds()

    _derived = exact_chord_numbers


FORMULATION = OcsCircuits
