"""Method ``design-search``: exchanges and enumeration of circuits."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.parameters import Parameter
from opticoll.formulations.standard_form import StandardForm
from opticoll.formulations.topology.pattern_times import distances
from opticoll.formulations.topology.sequence import TopologySequence
from opticoll.formulations.topoopt.circuit_design import default_rings, ring_demand, sorted_circuits
from opticoll.formulations.topoopt.forwarding import routed_design
from opticoll.formulations.topoopt.wiring_demand import MOST_MEMBERS
from opticoll.formulations.topoopt.wiring_solution import design_from_flow, rings_of
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.methods.topology.load_annealing import anneal_loads
from opticoll.solvers.methods.topology.sequence_exchanges import anneal_circuits
from opticoll.solvers.methods.topoopt.ocs_reconfig import starting_design
from opticoll.solvers.methods.topoopt.wiring_kernels import DONE, Options, enumerate_wirings, renamings
from opticoll.solvers.process.isolation import solve_here
from opticoll.solvers.task import SolveRequest, Termination

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.formulations.topoopt.circuit_design import CircuitDesign, Ring
    from opticoll.formulations.topoopt.topology import Wiring
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.method import Context


@dataclass(frozen=True, eq=False)
class Routed:
    """A lower bound on the objective over given circuits, a design (None: not routed), and its value."""

    bound: float
    design: CircuitDesign | None
    value: float


class Oracle:
    """Optimal routings over given circuits for one problem."""

    def __init__(self, data: Wiring) -> None:
        self.data = data
        self.fixed = np.ascontiguousarray(data.fixed)
        self.sources = np.flatnonzero(data.most.sum(axis=1) > 0)
        rings = data.candidates
        self.group = np.array([ring.group for ring in rings], dtype=np.int64)
        self.transfer = np.array([data.pool.groups[g].transfer for g in self.group.tolist()])
        listed = [group.size <= MOST_MEMBERS for group in data.pool.groups]
        #: Groups all of whose rings are listed; the others have only a bound per member.
        self.listed = [g for g in range(len(listed)) if listed[g]] if data.free_rings else []
        self.unlisted = [g for g in range(len(listed)) if not listed[g]] if data.free_rings else []
        self.solved = 0

    def ring_cost(self, dist: F64) -> F64:
        """Length of every listed ring, times its group's bytes, ``(R,)``."""
        return np.array(
            [
                size * float(dist[list(ring.order), np.roll(ring.order, -1)].sum())
                for ring, size in zip(self.data.candidates, self.transfer.tolist(), strict=True)
            ]
        )

    def paid(self, dist: F64) -> float:
        """Lower bound on the total length of the demand's routes under these distances."""
        demanded = self.fixed > 0
        total = float((self.fixed[demanded] * dist[demanded]).sum())
        if self.listed:
            cost = self.ring_cost(dist)
            total += sum(float(cost[self.group == g].min()) for g in self.listed)
        for g in self.unlisted:
            group = self.data.pool.groups[g]
            between = dist[np.ix_(group.members, group.members)].copy()
            np.fill_diagonal(between, np.inf)
            total += group.transfer * max(float(between.min(axis=1).sum()), float(between.min(axis=0).sum()))
        return total

    def proven(self, count: I64, lengths: F64) -> float:
        """The bound of :func:`run` for these lengths, ``(n, n)``."""
        wired = count > 0
        price = float((count[wired] * lengths[wired]).sum())
        if not price > 0:
            return 0.0
        return self.paid(distances(np.where(wired, np.maximum(lengths, 0.0), np.inf))) / price

    def route(self, count: I64, target: float = np.inf) -> Routed:
        """The minimum objective over these circuits [bytes, or tax].

        A design is returned only if it is better than ``target``.
        """
        self.solved += 1
        if self.data.goal == "bandwidth-tax":
            return self._shortest(count, target)
        return self._least_load(count, target)

    def _shortest(self, count: I64, target: float) -> Routed:
        dist = distances(np.where(count > 0, 1.0, np.inf))
        value = self.paid(dist) / self.data.total
        if not value < target:
            return Routed(value, None, value)
        rings: tuple[Ring, ...] = default_rings(self.data.pool)
        if self.group.size:
            cost, share = self.ring_cost(dist), np.zeros(self.group.size)
            for g in np.unique(self.group).tolist():
                members = np.flatnonzero(self.group == g)
                share[members[int(np.argmin(cost[members]))]] = 1.0
            rings = rings_of(self.data, share)
        tail, head = np.nonzero(count)
        circuits = np.repeat(np.stack([tail, head], axis=1), count[tail, head], axis=0)
        design = routed_design(self.data.pool, sorted_circuits(circuits), rings)
        return Routed(value, design, design.bandwidth_tax)

    def _least_load(self, count: I64, target: float) -> Routed:
        """The LP: min t, sum_s f_sa <= count_a t, flows balanced, rings shared; in the model's unit."""
        import scipy.sparse as sp

        data, n, sources = self.data, self.data.n, self.sources
        tail, head = np.nonzero(count)
        m, groups, rings = tail.size, sources.size, self.group.size
        unit = data.unit
        commodity, arc = np.nonzero(head[None, :] != sources[:, None])
        flows = commodity.size
        row_in, row_out = head[arc] * groups + commodity, tail[arc] * groups + commodity
        balance_rows = np.flatnonzero((np.arange(n)[:, None] != sources[None, :]).ravel())
        place = np.full(n * groups, -1)
        place[balance_rows] = np.arange(balance_rows.size)
        sent = place[row_out] >= 0
        flow_index = np.arange(flows)
        rows = [place[row_in], place[row_out][sent], balance_rows.size + arc, balance_rows.size + np.arange(m)]
        columns = [flow_index, flow_index[sent], flow_index, np.full(m, flows)]
        entries = [np.ones(flows), -np.ones(int(sent.sum())), np.ones(flows), -count[tail, head].astype(float)]
        if rings:
            number = np.full(n, -1)
            number[sources] = np.arange(groups)
            for r, ring in enumerate(data.candidates):
                order = np.array(ring.order)
                rows.append(place[np.roll(order, -1) * groups + number[order]])
                columns.append(np.full(order.size, flows + 1 + r))
                entries.append(np.full(order.size, -self.transfer[r] / unit))
            _, of = np.unique(self.group, return_inverse=True)
            rows.append(balance_rows.size + m + of)
            columns.append(flows + 1 + np.arange(rings))
            entries.append(np.ones(rings))
            splits = int(of.max()) + 1
        else:
            splits = 0
        total = balance_rows.size + m + splits
        matrix = sp.csc_array(
            (np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))), shape=(total, flows + 1 + rings)
        )
        right = np.concatenate([self.fixed[sources].T.ravel()[balance_rows] / unit, np.zeros(m), np.ones(splits)])
        low = right.copy()
        low[balance_rows.size : balance_rows.size + m] = -np.inf
        cost = np.bincount([flows], minlength=flows + 1 + rings).astype(float)
        form = StandardForm(matrix, low, right, np.zeros(cost.size), np.full(cost.size, np.inf), cost, "min")
        outcome = solve_here(form, "highs-simplex", SolveRequest(threads=1))
        if outcome.x is None or outcome.row_duals is None:
            return Routed(self.proven(count, np.ones((n, n))), None, np.inf)  # infinite if some demand has no path
        x, dual = np.asarray(outcome.x), np.asarray(outcome.row_duals)
        lengths = np.zeros((n, n))
        lengths[tail, head] = np.maximum(-dual[balance_rows.size : balance_rows.size + m], 0.0)
        bound, value = self.proven(count, lengths), float(x[flows]) * unit
        if not value < target:
            return Routed(bound, None, value)
        flow = np.zeros((n, n, n))
        flow[sources[commodity], tail[arc], head[arc]] = np.maximum(x[:flows], 0.0)
        chosen = rings_of(data, x[flows + 1 :]) if rings else default_rings(data.pool)
        design = design_from_flow(data, count, chosen, flow)
        return Routed(bound, design, np.inf if design is None else design.max_load)


# Search --------------------------------------------------------------------------------------------------------

#: Seconds between two saved states.
SAVE_S = 1.0
#: Servers above which wirings are not enumerated.
MOST_SERVERS = 24
#: Nodes between two checks of the clock; survivors routed at a time.
NODES, ROOM = 20_000, 64
#: Targets tau, as fractions of the way from the analytic bound to the incumbent's value.
STAGES = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)
#: Relative round-off of the bounds that rule out a wiring: sums of at most a few thousand positive terms.
ROUND_OFF = 1e-12
#: For at most this many servers and ports, enumeration is expected to end if the options of all servers are at most
#: this many times the renamings. It then gets half of the time, and nine tenths once this many chains of searches have
#: ended at the incumbent's load; otherwise a tenth.
MOST_SMALL, MOST_PORTS, MOST_TRIED, SETTLED = 12, 2, 10**13, 4
#: Most descents in total, half of them while wirings are enumerated; without a proof, the search ends after this many
#: consecutive descents without improvement.
MOST_DESCENTS, IDLE = 2000, 200
#: Steps per pair of circuits of an annealing run over split paths, used in turn; the first alone before optimal loads
#: are annealed.
LENGTHS = (16, 32, 64, 128, 256)
#: Share of the norm over split paths by which an exchange may be worse at first.
WARM_SPLITS = 0.005
#: Most circuits and servers together for which optimal loads are annealed; the first temperature from random circuits
#: and from annealed ones, and the last, relative to the load, times the circuits and the ports.
MOST_LOADED, WARM_LOADS, REHEATED, COOL_LOADS = 80, 0.32, 0.18, 0.08
#: Runs from the same random circuits; steps per pair of circuits of the first chain of runs, and of the shortest other
#: one; fewest pieces between checks of the clock.
CHAIN, FIRST_MOVES, LOAD_MOVES, LOAD_PIECES = 6, 5, 60, 32


def restart_length(k: int) -> int:
    """Length of chain k = 1, 2, ... in the sequence 1 1 2 1 1 2 4 ... of Luby, Sinclair and Zuckerman (1993)."""
    bits = k.bit_length()
    return 1 << bits - 1 if k == (1 << bits) - 1 else restart_length(k - (1 << bits - 1) + 1)


class WiringSearch:
    """Search for the best wiring of one problem.

    Parameters
    ----------
    data, tol, seed
        Problem; relative gap that counts as closed; seed of the exchanges.
    tick
        Called often; raises TimeoutError to end the search, and returns the seconds left.
    on_improvement
        Called with every better design.
    """

    def __init__(
        self,
        data: Wiring,
        *,
        tol: float,
        seed: int,
        tick: Callable[[], float | None],
        on_improvement: Callable[[CircuitDesign], None],
    ) -> None:
        self.data, self.tol, self.seed, self.tick, self.on_improvement = data, tol, seed, tick, on_improvement
        self.tax = data.goal == "bandwidth-tax"
        self.oracle = Oracle(data)
        self.best = starting_design(data)
        self.value = data.value_of(self.best)
        self.bound = max(bound.value for bound in data.bounds())
        self.tally = np.zeros(4, dtype=np.int64)
        self.stages = self.descents = 0
        self.settled = 0  # chains of searches that ended at the incumbent's load
        self.random = np.random.default_rng(self.seed)
        self.proving = self.descending = 0.0  # seconds
        # Servers by decreasing traffic: early decisions then tighten the bounds most.
        fixed = data.fixed
        self.order = np.argsort(-(fixed.sum(axis=0) + fixed.sum(axis=1)), kind="stable")
        self.demand = np.ascontiguousarray(fixed[np.ix_(self.order, self.order)])
        groups = data.pool.groups if data.free_rings else ()
        self.member = np.zeros((len(groups), data.n), dtype=np.int64)
        for g, group in enumerate(groups):
            self.member[g] = np.isin(self.order, group.members)
        #: Circuits for the demand with the default rings of all groups, as if they were not free.
        split = ring_demand(data.pool, default_rings(data.pool)) if groups else fixed
        self.circuits = TopologySequence.of_nodes(
            data.n,
            data.degree,
            1,
            directed=True,
            parallel=data.parallel,
            demand=np.ascontiguousarray(split[np.ix_(self.order, self.order)]),
        )
        self.constant = float(sum(group.total for group in groups)) + (0.0 if self.tax else data.idle)
        whole = self.tax or len(groups) > 0
        #: Whether descents anneal optimal loads; whether they do for few servers.
        self.loaded = not whole and data.n * (data.degree + 1) <= MOST_LOADED
        self.small = self.loaded and data.n <= MOST_SMALL and data.degree <= MOST_PORTS
        self.alike = 1  # renamings that keep the traffic
        self.splits = self.loads = 0  # annealing runs over split paths and of optimal loads
        self.pace = self.load_pace = np.inf  # and their steps per second
        self.chain = np.zeros((2, 0), dtype=np.int64)  # the best circuits from the last random ones
        self.chain_load = np.inf

    @property
    def closed(self) -> bool:
        """Whether the gap is closed."""
        return self.value - self.bound <= self.tol * abs(self.value)

    def _cut(self) -> float:
        """The largest value that counts as an improvement."""
        return self.value * (1 - 0.5 * self.tol)

    def take(self, design: CircuitDesign | None) -> None:
        """Keep a design if it improves the incumbent."""
        if design is not None and self.data.value_of(design) < self.value:
            self.best, self.value = design, self.data.value_of(design)
            self.on_improvement(design)

    def exchanges(self, descents: int, moves: int | None = None) -> None:
        """Run descents by 2-exchanges, the first from the incumbent's circuits, the others from random ones."""
        for _ in range(descents):
            if self.closed:
                return
            self._descend(moves)

    def search_on(self) -> None:
        """Run more descents until many in a row do not improve the incumbent or time runs out."""
        idle, value = 0, self.value
        while idle < IDLE and not self.closed:
            self._descend()
            idle, value = (idle + 1 if self.value == value else 0), self.value

    def _descend(self, moves: int | None = None) -> None:
        if self.loads % CHAIN and moves is None:
            self.descents += 1
            self._anneal_loads(self.chain, None)
            return
        circuits = np.argsort(self.order)[self.best.circuits] if self.descents == 0 else self._random(self.random)
        self.descents += 1
        if circuits is None or not self._allowed(circuits):
            return
        tail, head = (np.ascontiguousarray(end) for end in circuits.T)
        if not self.loaded or (moves is None and self.descents > 1):
            tail, head = self._over_splits(tail, head, moves)
        if self.loaded:
            self._anneal_loads(np.stack([tail, head]), moves)
        else:
            self._take_circuits(tail, head)

    def _over_splits(self, tail: I64, head: I64, moves: int | None = None) -> tuple[I64, I64]:
        """Anneal over split paths in ``moves`` steps (None: in at most half of the time left).

        p is 4 and 2 in turn; for the tax it is 1, so that the norm is that of the byte-hops.
        """
        left = self.tick()
        if moves is None:
            least = LENGTHS[0] * tail.size**2
            moves = least if self.loaded else LENGTHS[self.splits // 2 % len(LENGTHS)] * tail.size**2
            if left is not None and np.isfinite(self.pace):
                moves = max(min(moves, int(self.pace * left / 2)), least)
        begun = time.monotonic()
        counts = np.zeros((1, self.data.n, self.data.n), dtype=np.int64)
        np.add.at(counts[0], (tail, head), 1)
        squarings = 0 if self.tax else 2 - self.splits % 2
        best = anneal_circuits(
            self.circuits, self.random, counts, moves, self.tick, squarings=squarings, worse=WARM_SPLITS
        )[0]
        self.pace = moves / max(time.monotonic() - begun, 1e-9)
        self.splits += 1
        tail, head = np.nonzero(best)
        return np.repeat(tail, best[tail, head]), np.repeat(head, best[tail, head])

    def _anneal_loads(self, links: I64, moves: int | None) -> None:
        """Anneal optimal loads in ``moves`` steps (None: as many as the chain has, for at most half of the time left).

        A chain of runs begins at random circuits, with annealing at a high temperature. The others begin at the best
        circuits of the chain, and a lower temperature.
        """
        left, heat = self.tick(), WARM_LOADS
        if moves is None:
            chain, least = self.loads // CHAIN, FIRST_MOVES * links.shape[1] ** 2
            moves = LOAD_MOVES * restart_length(chain) * links.shape[1] ** 2 if chain else least
            if left is not None and np.isfinite(self.load_pace):
                moves = max(min(moves, int(self.load_pace * left / 2)), least)
            if self.loads % CHAIN:
                heat = REHEATED
            else:
                self.chain_load = np.inf
        state, best, loads = links.copy(), links.copy(), np.full(2, np.inf)
        begun = time.monotonic()
        pieces = LOAD_PIECES * max(moves // (FIRST_MOVES * links.shape[1] ** 2), 1)
        heats = np.geomspace(heat, COOL_LOADS, pieces + 1) / (links.shape[1] * self.data.degree)
        for hot, cool in zip(heats[:-1].tolist(), heats[1:].tolist(), strict=True):
            self.tick()
            load = loads[1]
            anneal_loads(
                state,
                best,
                loads,
                self.data.parallel,
                self.demand,
                -(-moves // pieces),
                hot,
                cool,
                int(self.random.integers(2**31)),
            )
            if loads[1] < min(load, self._cut()):
                self._take_circuits(best[0], best[1])
                self.settled = 0
        self.load_pace = moves / max(time.monotonic() - begun, 1e-9)
        if loads[1] <= self.chain_load:
            self.chain, self.chain_load = best, loads[1]
        if np.isfinite(loads[1]):
            self.loads += 1
        if self.small and self.loads % CHAIN == 0 and self.chain_load <= self.value * (1 + self.tol):
            self.settled += 1

    def _take_circuits(self, tail: I64, head: I64) -> float:
        """Route circuits between the ordered servers, keep the design if it is better, and return its value."""
        count = np.zeros((self.data.n, self.data.n), dtype=np.int64)
        np.add.at(count, (self.order[tail], self.order[head]), 1)
        routing = self.oracle.route(count, self.value)
        self.take(routing.design)
        return routing.value

    def _allowed(self, circuits: I64) -> bool:
        _, number = np.unique(circuits, axis=0, return_counts=True)
        return bool(number.max() <= self.data.parallel)

    def _random(self, random: np.random.Generator) -> I64 | None:
        """Circuits of random permutations without fixed points, within the limit on pairs; None if none is found."""
        n, most = self.data.n, self.data.parallel
        count = np.zeros((n, n), dtype=np.int64)
        for _ in range(min(self.data.degree, most * (n - 1))):
            for _ in range(200):
                image = random.permutation(n)
                if (image != np.arange(n)).all() and (count[np.arange(n), image] < most).all():
                    count[np.arange(n), image] += 1
                    break
        tail, head = np.nonzero(count)
        return np.repeat(np.stack([tail, head], axis=1), count[tail, head], axis=0) if tail.size else None

    def prove(self) -> bool:
        """Enumerate until the gap is closed; False if there are too many options to start."""
        data = self.data
        if self.closed:
            return True
        most = 1 if self.tax else data.parallel
        # Without a limit on pairs some optimal wiring uses all ports: free ports of v can split any circuit a -> b into
        # a -> v -> b. That may add hops, and a limit on pairs may forbid it.
        deficits = self.tax or most < data.degree
        options = Options.of(data.n, data.degree, most, deficits=deficits) if data.n <= MOST_SERVERS else None
        if options is None:
            return False
        same = [self.demand, *(np.multiply.outer(m, m).astype(float) for m in self.member)]
        alike = renamings(same, first=options.depth)
        self.alike = len(alike)
        groups_kept = all((m[image] == m).all() for m in self.member for image in alike)
        prefixes = options.prefixes(alike, self.tick) if groups_kept else np.zeros((1, 0), dtype=np.int64)
        low = self.bound
        for stage in STAGES:
            target = low + stage * (self.value - low) if stage < 1 else None
            if target is not None and not self.bound < target < self._cut():
                continue
            proven = self._exclude(options, prefixes, target, deficits=deficits, most=most)
            self.bound = max(self.bound, min(proven, self.value) * (1 - ROUND_OFF))
            self.stages += 1
            if self.closed:
                break
        return True

    def _exclude(self, options: Options, prefixes: I64, stage: float | None, *, deficits: bool, most: int) -> float:
        """Exclude every wiring below the target (None: the incumbent's value as it falls) and return the bound."""
        n = self.data.n
        ranked = np.argsort(-self.demand, axis=1, kind="stable")
        turned = np.ascontiguousarray(self.demand.T)
        ranked_back = np.argsort(-turned, axis=1, kind="stable")
        wirings, values = np.zeros((ROOM, n), dtype=np.int64), np.zeros(ROOM)
        scale = self.data.total if self.tax else 1.0
        few = not self.small or options.size.size**n <= MOST_TRIED * self.alike
        least = np.inf
        for prefix in prefixes:
            index = np.full(n, -1, dtype=np.int64)
            index[: prefix.size] = prefix
            while True:
                self.tick()
                target = self._cut() if stage is None else min(stage, self._cut())
                least = min(least, target)
                counted = self.tally[0]
                self.tally[0] = 0
                begun = time.monotonic()
                state = enumerate_wirings(
                    options.counts,
                    options.masks,
                    options.size,
                    prefix.size,
                    index,
                    self.demand,
                    ranked,
                    turned,
                    ranked_back,
                    self.constant,
                    self.data.degree,
                    most,
                    deficits,
                    target * scale,
                    self.tax,
                    NODES,
                    wirings,
                    values,
                    self.tally,
                )
                survivors = int(self.tally[0])
                self.tally[0] += counted
                for k in np.argsort(values[:survivors], kind="stable").tolist():
                    if values[k] / scale < min(target, self._cut()):
                        least = min(least, self._route(options.counts[wirings[k]], min(target, self._cut())))
                proven = time.monotonic()
                self.proving += proven - begun
                share = 1 / 9 if few and self.settled >= SETTLED else 1 if few and (self.small or self.stages) else 9
                if self.descending < share * self.proving and self.descents < MOST_DESCENTS:
                    self._descend()
                    self.descending += time.monotonic() - proven
                if state == DONE:
                    break
        return least

    def _route(self, ordered: I64, target: float) -> float:
        """Route a survivor and return its bound, infinite if that reaches the target."""
        self.tick()
        count = np.zeros_like(ordered)
        count[np.ix_(self.order, self.order)] = ordered
        routing = self.oracle.route(count, self.value)
        self.take(routing.design)
        return routing.bound if routing.bound < min(target, self._cut()) else np.inf


def run(context: Context) -> Answer:
    """Exact topology design: exchanges for a good wiring, enumeration with bounds for the proof.

    1. Simulated annealing by 2-exchanges from the heuristics' circuits and from random ones; the best are routed by LP.
       It first compares a norm of the loads over equally split shortest paths, which is fast, and then, for at most
       :data:`MOST_LOADED` circuits and servers, optimal loads, with a few changes of lengths that rule out most
       exchanges (all in :mod:`opticoll.solvers.methods.topology`). Other sizes, free rings, whose default orders count
       there, and the tax, the norm with p = 1, have the first only. These descents continue during the enumeration for
       half of the time, or nine tenths of it while no target is excluded or if there are too many wirings.
    2. Enumeration of all wirings, server by server. At a target tau, a partial wiring is pruned by layers of servers
       (:func:`opticoll.solvers.methods.topoopt.wiring_kernels.beyond`) and by the minimum load with all free ports
       joined (:func:`opticoll.solvers.methods.topoopt.wiring_kernels.with_free_ports`), a complete wiring by the
       lengths that excluded the previous one, else by its minimum load, and a survivor by the LP's duals. If none is
       left, no wiring is below tau: tau is a bound. tau rises in steps to the value of the incumbent, so an interrupted
       search keeps the last bound.

    If the traffic is invariant under renamings of servers (all-to-all), only those wirings are enumerated whose first
    servers have the smallest options among their images. This keeps an optimum for any set of renamings.

    Routing over given circuits ``count (n,n)``: for the problem's demand, any lengths l >= 0 of circuits prove

        Lambda >= (sum_st D_st dist_l(s,t) + sum_g S_g min over cyclic orders of g (length of its ring)) / sum count l.

    For groups too large to list their rings, the sum of every member's smallest distance to another one bounds the last
    minimum, and routings share their bytes over the +p rings: the bound may then be below the design's value.
    """
    proof = bool(context.parameters["prove"])
    saved = time.monotonic()

    def save() -> None:
        context.save(answer(search, Termination.TOLERANCE), search.value)

    def tick() -> float | None:
        nonlocal saved
        left = context.remaining()
        if time.monotonic() - saved > SAVE_S:
            saved = time.monotonic()
            save()
        return left

    def on_improvement(_: CircuitDesign) -> None:
        save()

    tol, seed = context.task.tol, context.task.seed
    search = WiringSearch(context.data, tol=tol, seed=seed, tick=tick, on_improvement=on_improvement)
    save()
    ending, message = Termination.TOLERANCE, "exchanges alone prove nothing beyond the analytic bounds"
    try:
        search.exchanges(int(context.parameters["descents"]))
        if proof:
            complete = search.prove()
            ending = Termination.OPTIMAL if complete else Termination.TOLERANCE
            message = "" if complete else "too many options per server to enumerate wirings: the bound is analytic"
            if not complete and context.task.time_limit_s is not None:
                search.search_on()
    except TimeoutError:
        ending, message = Termination.TIME_LIMIT, ""
    return answer(search, ending, message)


def answer(search: WiringSearch, ending: Termination, message: str = "") -> Answer:
    """The incumbent and the bound."""
    counted: dict[str, Any] = dict(
        zip(("survivors", "nodes", "whole_wirings", "closed_by_lengths"), search.tally.tolist(), strict=True)
    )
    source = f"enumeration of circuits, {counted['nodes']} nodes, by hops, lengths and recomputed duals"
    return Answer(
        ending,
        values=search.best.values(),
        bound=search.bound if search.stages else None,
        bound_source=source if search.stages else None,
        solver={"algorithm": "exchanges and enumeration"},
        metrics={**counted, "routed": search.oracle.solved, "stages": search.stages, "descents": search.descents},
        message=message,
    )


def refuse(data: Wiring) -> str | None:
    """Why trees are not searched: the bounds of the enumeration are those of rings."""
    return "searches rings, not all_reduce=trees" if data.trees else None


METHOD = Method(
    name="design-search",
    title="Exchanges and enumeration of circuits",
    summary="simulated annealing over circuits, then enumeration with bounds by hops, lengths and routing duals",
    serves=("topoopt.topology",),
    # n=5, D=2 161 variables in 2.0 s; n=6, D=2 271 in 8.6 s, n=7, D=2 421 not solved.
    takes_over=(Beyond("topoopt.topology", 170),),
    parameters=(
        Parameter(
            "descents",
            int,
            default=12,
            help="descents by 2-exchanges before the enumeration, each from different circuits",
        ),
        Parameter("prove", bool, default=True, help="enumerate afterwards; if false, a heuristic without proof"),
    ),
    run=run,
    refuse=refuse,
)
