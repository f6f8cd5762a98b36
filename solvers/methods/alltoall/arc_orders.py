"""Method ``arc-orders``: routes along orders of arcs, one order for each layer of virtual channels."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations.alltoall.channels_routes import equal_demands, moved_load, solution
from opticoll.formulations.alltoall.dependencies import positions
from opticoll.formulations.alltoall.moved_routes import MovedRoutes
from opticoll.formulations.flows.path_sets import PathSet, subset, to_arrays
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.rounds.segments import offsets, select
from opticoll.formulations.rounds.segments import positions as entries_of
from opticoll.instances.translations import first_of_orbits, moved_arcs, translations
from opticoll.solvers.methods.alltoall.layer_orders import LayerOrders
from opticoll.solvers.methods.alltoall.torus_routes import torus_routes
from opticoll.solvers.methods.flows.dimension_order import arc_groups, dimension_ordered
from opticoll.solvers.methods.flows.exact_routing import next_load, sizes, units_within
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.formulations.alltoall.channels import RoutedChannels
    from opticoll.instances.topology import F64, I64, Topology
    from opticoll.solvers.methods.method import Context

#: Relative tolerance of loads.
TOLERANCE = 1e-9
#: Exponents of the potential in successive rounds of rerouting, of which every third varies the rises by this fraction.
POWERS, NOISE = (2.0, 4.0, 8.0, 16.0, 24.0), 0.5
#: Most and fewest rounds of rerouting; visits of arcs in all of them, roughly; rounds without improvement that end it.
ROUNDS, FEWEST, VISITS, IDLE = 100, 4, 3e9, 30
#: Share of the time limit for the search, and of what is left of it in which orders are annealed for given routes.
SEARCHED, SHARE = 0.75, 0.6
#: Anneals of orders for given routes, and from how many pairs on only one.
ANNEALS, MANY_PAIRS = 2, 20_000
#: Most pairs that are routed, after one of each orbit; most of them whose loads tabu search balances at first.
MOST_PAIRS, MOST_BALANCED = 4_000_000, 100_000
#: Most translations: more of them leave too few kinds of arcs to order.
MOST_TRANSLATIONS = 64
#: Loads that tabu search tries: the bound, and then by bisection.
TARGETS = 4
#: Most times that the orders are annealed again while some pair has no ascending path; of many pairs, with fewer moves.
AGAIN, SHORTER = 8, 4
#: Pairs without an ascending path beyond which orders are shortened at once, where they can be, and their share.
FEW_LOST, LOST = 10, 0.01
#: Part of a descent by which costs of other paths vary: less than 1, so that pairs keep a path that ascends.
VARIED = 0.9
#: Steps of rerouting over shortest paths in a part, and parts.
STEPS, PARTS = 20_000, 16
#: Orders are shortened where sources, arcs and layers multiply to at most this; so many times, with new lengths.
MOST_SHORTENED, LENGTHS = 400_000, 3
#: First and last temperature of that, in mean lengths; rise of the length of the busiest arc.
HOT, COOL, STEEP = 3.0, 0.2, 0.5


def up_and_down(topology: Topology) -> I64:
    """All arcs in an order in which every pair of a network with two-way links has an ascending path.

    Arcs towards the vertex of least eccentricity, far ones first, then arcs away from it, near ones first (up*/down*
    routing: Schroeder et al., IEEE J. Selected Areas in Communications 9(8), 1991).
    """
    reach = topology.hops.max(axis=1, where=np.isfinite(topology.hops), initial=0.0)
    depth = topology.hops[int(np.argmin(reach))]
    rank = np.empty(topology.n)
    rank[np.lexsort((np.arange(topology.n), depth))] = np.arange(topology.n)
    up = rank[topology.head] < rank[topology.tail]
    return np.lexsort((np.where(up, -rank[topology.tail], rank[topology.head]), ~up))


@dataclass
class Routing:
    """A route, ``(K, longest)`` with -1 after its end, and a layer of every pair, -1 where it has none."""

    route: I64
    layer: I64
    load: F64

    def copy(self) -> Routing:
        """A copy that may be changed."""
        return Routing(self.route.copy(), self.layer.copy(), self.load.copy())

    def paths(self, topology: Topology, pairs: I64) -> PathSet:
        """The routes, by pair; ``pairs`` are sources and targets, ``(2, K)``."""
        length = (self.route >= 0).sum(axis=1)
        arcs, start = self.route[self.route >= 0], offsets(length)
        return PathSet(topology, pairs[0], pairs[1], arcs, start, np.arange(length.size))


class OrderSearch:
    """Orders of arcs and routes along them, for one problem, until the load is ``enough``.

    Of many pairs, one of each orbit under the translations ``images`` ``(g, n)`` has a route, the others the moved one.
    All arcs of an orbit, which ``kind`` ``(m,)`` numbers, have the same place in an order and the same load. So they
    must not follow each other: there are translations only if no arc joins two vertices of an orbit.

    ``best`` is the least load found with the number of layers tried last, and its routes; None before.
    """

    def __init__(
        self,
        problem: RoutedChannels,
        enough: float,
        moves: int,
        seed: int,
        deadline: float | None = None,
        improved: Callable[[float, Routing], object] = lambda *_: None,
    ) -> None:
        self.problem, self.topology, self.enough, self.moves = problem, problem.topology, enough, moves
        self.deadline, self.improved = deadline, improved
        self.random = np.random.default_rng(seed)
        self.seed = seed
        self.amount = problem.routing.amount
        self.ends = np.array(problem.routing.commodities, dtype=np.int64)
        self.group = arc_groups(self.topology)
        self.images = self._translations()
        self.kind = np.arange(self.topology.arcs)
        if len(self.images) > 1:
            own = np.isin(self.ends[0], first_of_orbits(self.topology.terminals, self.images))
            self.amount, self.ends = self.amount[own], np.ascontiguousarray(self.ends[:, own])
            moved = moved_arcs(self.topology, self.images).min(axis=0)
            self.kind = np.unique(moved, return_inverse=True)[1]
        if self.amount.size > MOST_PAIRS:
            msg = f"arc-orders: {self.amount.size:,} pairs are too many to route; use up to {MOST_PAIRS:,} pairs"
            raise NotApplicable(msg)
        self.kinds = int(self.kind.max()) + 1
        self.capacity = np.zeros(self.kinds)
        self.capacity[self.kind] = self.topology.capacity
        self.together = -(-self.amount.size // MANY_PAIRS)
        self.best: tuple[float, Routing] | None = None

    def _translations(self) -> I64:
        """The translations that keep the demands, where there are many pairs; or the identity alone."""
        topology, none = self.topology, np.arange(self.topology.n)[None]
        if self.amount.size <= MANY_PAIRS or self.group.any() or self.listed or not equal_demands(self.problem):
            return none
        images = translations(topology, MOST_TRANSLATIONS)
        orbit = images.min(axis=0)
        return none if (orbit[topology.tail] == orbit[topology.head]).any() else images

    def solution(self, routing: Routing) -> dict[str, F64]:
        """The arrays of a solution: of all routes, or of those of one pair of each orbit and the translations."""
        routes = routing.paths(self.topology, self.ends)
        if len(self.images) == 1:
            return solution(self.problem, routes, routing.layer)
        used, layer = np.unique(routing.layer, return_inverse=True)
        follows = np.diff(np.repeat(np.arange(routes.paths), routes.length)) == 0
        kinds, layer = self.kind[routes.arcs], np.repeat(layer, routes.length)[:-1]
        place = np.zeros((self.kinds, used.size))
        for level in range(used.size):
            chosen = np.flatnonzero(follows & (layer == level))
            pairs = np.unique(np.stack([kinds[chosen], kinds[chosen + 1]], axis=1), axis=0)
            place[:, level] = positions(self.kinds, pairs)
        return moved_solution(self.problem, routes, self.images, place[self.kind])

    def _empty(self, longest: int = 0) -> Routing:
        """No pair has a route; there is room for ``longest`` arcs, by default for some more than on shortest paths."""
        longest = longest or int(min(self.topology.n - 1, 3 * self.topology.diameter + 3))
        pairs = self.amount.size
        return Routing(np.full((pairs, longest), -1), np.full(pairs, -1), np.zeros(self.kinds))

    @property
    def done(self) -> bool:
        """Whether the load is small enough."""
        return self.best is not None and self.best[0] <= self.enough * (1 + TOLERANCE)

    @property
    def expired(self) -> bool:
        """Whether no time is left."""
        return self.deadline is not None and time.monotonic() > self.deadline

    def tick(self, share: float = 1.0, since: float = 0.0) -> None:
        """End what is being done when this share of the time after ``since`` is over.

        Raises
        ------
        TimeoutError
            When it is.
        """
        if self.deadline is not None and time.monotonic() > since + share * (self.deadline - since):
            raise TimeoutError

    def _number(self) -> int:
        return int(self.random.integers(2**31))

    def _improved(self, routing: Routing, place: Callable[[Routing, float, float], int]) -> Routing:
        """The routing of least load after rounds of ``place``, or the last one if some pairs have no route in any."""
        best, idle = routing.copy(), 0
        complete = bool((best.route[:, 0] >= 0).all())
        worst = (best.load / self.capacity).max() if complete else np.inf
        rounds = int(np.clip(VISITS * self.together / (self.amount.size * self.topology.arcs), FEWEST, ROUNDS))
        if self.deadline is not None and len(self.images) > 1:
            rounds = ROUNDS  # another seed begins with worse routes
        for number in range(rounds):
            if worst <= self.enough * (1 + TOLERANCE) or idle >= IDLE:
                break
            if number > 0 and self.expired:
                break
            lost = place(routing, POWERS[min(number, len(POWERS) - 1)], NOISE if number % 3 == 0 else 0.0)
            now = (routing.load / self.capacity).max()
            idle += 1
            if lost == 0 and now < worst * (1 - TOLERANCE):
                best, worst, idle = routing.copy(), now, 0
        return best if np.isfinite(worst) else routing

    @cached_property
    def listed(self) -> bool:
        """Whether pairs may take the listed paths alone."""
        return not self.problem.routing.rule.unrestricted

    @cached_property
    def shortest(self) -> Routing:
        """Paths of balanced loads, shortest or listed ones, in the order of the groups where every pair has one."""
        candidates = self._candidates()
        unit, size = sizes(self.amount)
        enough = self.enough if np.isfinite(self.enough) else float(self.amount.sum() / self.capacity.min())
        limit = units_within(enough, self.capacity, unit)
        choice, over = candidates.first[:-1].copy(), np.inf
        for part in range(PARTS if self.amount.size <= MOST_BALANCED else 0):
            self.tick()
            before, over = over, self._reroute(candidates, size, limit, choice, self.seed + part)
            if over == 0 or (over == before and self.amount.size > MANY_PAIRS):
                break
        return self._routing(candidates, choice)

    def _candidates(self) -> PathSet:
        if self.listed:
            paths = self.problem.paths
            descends = self.group[paths.arcs[:-1]] > self.group[paths.arcs[1:]]
            descends[paths.start[1:-1] - 1] = False
            grouped = subset(paths, np.add.reduceat(np.append(descends, False), paths.start[:-1]) == 0)
            if (np.diff(grouped.first) > 0).all():
                return grouped
            self.group[:] = 0
            return paths
        return dimension_ordered(self.topology, (self.ends[0], self.ends[1]), self.group, self.seed)

    def _reroute(self, paths: PathSet, size: I64, limit: I64, choice: I64, seed: int) -> int:
        """Change the choice of paths by tabu search; the load beyond the limits, of all arcs."""
        from opticoll.solvers.methods.flows.local_search import reroute

        return int(reroute(paths.first, paths.start, self.kind[paths.arcs], size, limit, choice, seed, STEPS)[0])

    def _routing(self, paths: PathSet, choice: I64, layer: I64 | None = None) -> Routing:
        """The chosen paths, ``(K,)``, on a layer each."""
        longest = int(paths.length[choice].max())
        found = self._empty(longest if self.listed else 0)
        pair, entry = entries_of(paths.start, choice)
        found.route[pair, entry - paths.start[choice][pair]] = paths.arcs[entry]
        found.load[:] = np.bincount(self.kind[paths.arcs[entry]], self.amount[pair], self.kinds)
        found.layer[:] = -1 if layer is None else layer
        return found

    def run(self, layers: int) -> bool:
        """Search with so many layers; whether the load is small enough."""
        self.best = None
        moves = self.moves if self.amount.size <= MANY_PAIRS else self.moves // SHORTER
        small = not self.listed and np.unique(self.ends[0]).size * self.topology.arcs * layers <= MOST_SHORTENED
        orders = self._orders(layers, moves)
        for number in range(AGAIN + 1):
            order = np.argsort(orders.place, axis=1)
            routing = self.shortest.copy()
            routing.layer = orders.layer
            for k in np.flatnonzero(routing.layer < 0).tolist():
                np.subtract.at(routing.load, self.kind[routing.route[k][routing.route[k] >= 0]], self.amount[k])
                routing.route[k] = -1
            found = self._along(order, routing)
            lost = int((found.route[:, 0] < 0).sum())
            if self.best is not None or number == AGAIN or (self.listed and self.expired):
                break
            if small and lost > max(FEW_LOST, LOST * self.amount.size):
                break
            if self.listed:
                orders = self._other_routes(orders, layers, number)
            elif self.amount.size > MANY_PAIRS:  # the routes that ascend are kept
                routes = self._joined(found, self.shortest).paths(self.topology, self.ends)
                orders = LayerOrders(routes, layers, self._number(), place=orders.place, kind=self.kind)
            begun = time.monotonic()
            with suppress(TimeoutError):  # some pair has no ascending path
                orders.anneal(moves, partial(self.tick, SHARE, begun))
        if self.best is None and len(self.images) == 1:
            order[0] = up_and_down(self.topology)
            self._along(order, self._empty(), once=small)
        lengths = np.ones(self.kinds)
        for number in range(AGAIN if small else 0):
            if self.done or (number >= LENGTHS and self.best is not None):
                break
            self._shorten(order, lengths, hot=HOT if number == 0 else HOT / LENGTHS)
            found = self._along(order, self._empty())
            share = found.load / self.capacity
            lengths *= np.exp(STEEP * (share / max(share.max(), TOLERANCE) - 1.0))
            lengths /= lengths.mean()
        return self.done

    def _joined(self, found: Routing, other: Routing) -> Routing:
        """A routing with the other one's routes where it has none."""
        has = found.layer >= 0
        return Routing(np.where(has[:, None], found.route, other.route), found.layer, found.load)

    def _orders(self, layers: int, moves: int) -> LayerOrders:
        """The orders in which most shortest paths ascend, of several anneals (of one for many pairs)."""
        best: tuple[int, LayerOrders] | None = None
        for number in range(ANNEALS if self.amount.size <= MANY_PAIRS else 1):
            routes = self.shortest.paths(self.topology, self.ends)
            orders = LayerOrders(routes, layers, self.seed + number, self.group, kind=self.kind)
            begun = time.monotonic()
            with suppress(TimeoutError):
                orders.anneal(moves, partial(self.tick, SHARE, begun))
            left = int((orders.forward == 0).sum())
            if best is None or left < best[0]:
                best = left, orders
            if left == 0:
                break
        assert best is not None
        return best[1]

    def _along(self, order: I64, routing: Routing, *, once: bool = False) -> Routing:
        """Ascending routes of least load, from a routing in which some pairs may have none; kept if they are best.

        ``order`` ``(L, kinds)`` are the kinds of arcs in every order.

        With ``once``, every pair is placed once only.
        """
        if self.listed:
            return self._along_listed(np.argsort(order, axis=1))
        from opticoll.solvers.methods.alltoall.order_kernels import reroute_ascending

        topology = self.topology
        arcs = np.argsort(np.argsort(order, axis=1)[:, self.kind], axis=1, kind="stable")

        def place(routing: Routing, power: float, noise: float) -> int:
            pairs = np.flatnonzero(routing.layer < 0)
            if not pairs.size:
                pairs = self.random.permutation(self.amount.size)
                if pairs.size > MANY_PAIRS:  # those over links that carry too much
                    high = np.append(routing.load > self.enough * self.capacity * (1 + TOLERANCE), False)
                    kind = np.append(self.kind, self.kinds)
                    pairs = pairs[high[kind[routing.route[pairs]]].any(axis=1)]
            if self.together > 1:  # those of a source follow each other, in blocks
                block = np.arange(pairs.size) // (self.together * np.unique(self.ends[0]).size)
                pairs = pairs[np.lexsort((self.ends[0, pairs], block))]
            graph = arcs, topology.tail, topology.head, self.kind, self.capacity, self.ends, self.amount
            state = routing.load, routing.route, routing.layer
            return int(reroute_ascending(*graph, pairs, self.together, power, noise, self._number(), *state))

        seen: list[Routing] = []

        def remembered(routing: Routing, power: float, noise: float) -> int:
            lost = place(routing, power, noise)
            if lost == 0:
                self._keep(routing)
            if self.amount.size <= MANY_PAIRS:
                seen.append(routing.copy())
            return lost

        if once:
            remembered(routing, POWERS[0], 0.0)
            return routing
        found = self._improved(routing, remembered)
        if (found.route[:, 0] >= 0).all():
            found = self._among(seen, found)
            self._keep(found)
        return found

    def _along_listed(self, place: I64) -> Routing:
        """Routes of least load among the listed paths that ascend; of pairs that have none, some have no route."""
        paths, descents = self.problem.paths, self._descents(place)
        ascends = (descents == 0).any(axis=0)
        kept = subset(paths, ascends)
        if (np.diff(kept.first) == 0).any():
            return self._empty()
        found = self._least(kept, descents.argmin(axis=0)[ascends], None)
        self._keep(found)
        return found

    def _descents(self, place: F64 | I64) -> I64:
        """How often every listed path descends in every order, given places of the arcs ``(L, m)``."""
        paths = self.problem.paths
        inside = np.append(np.diff(np.repeat(np.arange(paths.paths), paths.length)) == 0, False)
        descends = inside & (place[:, paths.arcs] >= place[:, np.roll(paths.arcs, -1)])
        return np.add.reduceat(descends.astype(np.int64), paths.start[:-1], axis=1)

    def _other_routes(self, orders: LayerOrders, layers: int, number: int) -> LayerOrders:
        """The orders for other listed paths of the pairs that have no ascending one: those that descend least often.

        Halfway, anew for the first path of every pair: these are often in the order of dimensions.
        """
        paths = self.problem.paths
        if number == AGAIN // 2:
            routes = self._routing(paths, paths.first[:-1]).paths(self.topology, self.ends)
            return LayerOrders(routes, layers, self._number())
        cost = self._descents(orders.place).min(axis=0) + VARIED * self.random.random(paths.paths)
        cheapest = self._routing(paths, np.lexsort((cost, paths.pair))[paths.first[:-1]])
        routes = cheapest.paths(self.topology, self.ends)
        return LayerOrders(routes, layers, self._number(), place=orders.place)

    def _keep(self, routing: Routing) -> None:
        """Remember a routing of all pairs if it is the best one."""
        load = float((routing.load / self.capacity).max())
        if (routing.route[:, 0] >= 0).all() and (self.best is None or load < self.best[0]):
            self.best = load, routing.copy()
            self.improved(*self.best)

    def _among(self, seen: list[Routing], found: Routing) -> Routing:
        """A routing of less load that gives every pair one of the routes it had before, by tabu search."""
        pairs = self.amount.size
        routes = np.concatenate([found.route, *(one.route for one in seen)])
        layer = np.concatenate([found.layer, *(one.layer for one in seen)])
        pair = np.tile(np.arange(pairs), len(seen) + 1)
        kept = np.unique(np.column_stack([pair, routes])[layer >= 0], axis=0, return_index=True)[1]
        routes, layer, pair = (one[layer >= 0][kept] for one in (routes, layer, pair))
        start = offsets((routes >= 0).sum(axis=1))
        paths = PathSet(self.topology, self.ends[0], self.ends[1], routes[routes >= 0], start, pair)
        return self._least(paths, layer, found)

    def _least(self, paths: PathSet, layer: I64, best: Routing | None) -> Routing:
        """A routing of least load over the paths, each with its layer, by tabu search for loads below the best one."""
        unit, size = sizes(self.amount)
        low = target = min(self.enough, float(self.amount.sum() / self.capacity.min()))
        for _ in range(TARGETS):
            worst = np.inf if best is None else float((best.load / self.capacity).max())
            if worst <= self.enough * (1 + TOLERANCE) or target >= worst * (1 - TOLERANCE):
                break
            if best is not None and self.expired:
                break
            choice = paths.first[:-1].copy()
            if self._reroute(paths, size, units_within(target, self.capacity, unit), choice, self._number()):
                low = target
            found = self._routing(paths, choice, layer[choice])
            load = float((found.load / self.capacity).max())
            if load < worst * (1 - TOLERANCE):
                best, worst = found, load
            target = max(next_load(low, self.capacity, unit), (low + worst) / 2)
        assert best is not None
        return best

    def _shorten(self, order: I64, lengths: F64, hot: float) -> None:
        """Anneal the orders so that pairs have short ascending paths, of these lengths of arcs."""
        from opticoll.solvers.methods.alltoall.order_kernels import shorten

        topology, by_kind = self.topology, np.argsort(self.kind, kind="stable")
        tail, head = topology.tail[by_kind], topology.head[by_kind]
        over = np.searchsorted(self.kind[by_kind], np.arange(self.kinds + 1))
        orbit = self.images.min(axis=0)
        follows = orbit[head[over[:-1]]][:, None] == orbit[tail[over[:-1]]]
        sources, place = np.unique(self.ends[0], return_inverse=True)
        demand = np.zeros((sources.size, topology.n))
        demand[place, self.ends[1]] = self.amount
        scale, parts = self.amount.mean(), 8
        far = 2.0 * (topology.diameter + 1.0) * float(lengths.max())
        moves = -(-self.moves // (PER_LENGTH * parts * sources.size))
        for heat in np.geomspace(hot * scale, COOL * scale, parts).tolist():
            self.tick()
            graph = order, over, tail, head, follows
            heats = heat, heat * (COOL / HOT) ** (1 / parts)
            shorten(*graph, lengths, sources, demand, far, 0.0, moves, *heats, self._number())


#: Moves of orders for given routes that take the time of one move for the lengths of all pairs of one source.
PER_LENGTH = 2


def run(context: Context) -> Answer:
    """Orders of arcs, one for each layer, and for every pair a route along which the arcs ascend in one of them.

    Pairs take shortest paths of balanced load at first; on products of networks (tori, meshes, hypercubes) they go
    through one dimension after the other. The orders are annealed until all routes ascend
    (:mod:`opticoll.solvers.methods.alltoall.layer_orders`). Pairs whose routes do not, and all pairs while the load is
    above its bound, take the ascending path, of any length, that raises a potential of the loads least. On small
    networks the orders are annealed further, to shorten the ascending paths of all pairs under lengths that follow the
    loads. Where the paths are listed (any ``paths`` but ``all``), pairs take those of them that ascend, by tabu search,
    and the orders are annealed again, for other paths, while some pair has none. With ``objective=channels`` this is
    done for one layer more until the load is small enough. Of many pairs, one of each orbit under translations
    (:mod:`opticoll.instances.translations`) has a route and the others the moved one, where no translation takes a
    vertex to a neighbour: in pods the orders are those of the links of one cube. Large tori take dimension order on the
    layers that it needs (:mod:`opticoll.solvers.methods.alltoall.torus_routes`) if they may have so many and its load
    is small enough; fewer are searched if ``layers`` is lower. Under a time limit all of it is repeated with the next
    seeds until the bound is attained or three quarters of the time are over.
    """
    problem: RoutedChannels = context.data
    by_load, limit = problem.chosen == "load", problem.limit or np.inf
    enough = max(bound.value for bound in problem.bounds()) if by_load else limit
    fewest = 1 if by_load else int(max(bound.value for bound in problem.bounds()))
    now = time.monotonic()
    many = problem.routing.amount.size > MANY_PAIRS and problem.routing.rule.unrestricted and equal_demands(problem)
    torus = torus_routes(problem.topology) if many else None
    if torus is not None and torus[2].shape[1] <= problem.layers:
        load = float(moved_load(problem, MovedRoutes(*torus)).max())
        if load <= enough * (1 + TOLERANCE):
            return Answer.heuristic(moved_solution(problem, *torus), "dimension order on a torus", {})
    # A round of many pairs takes long, and ends after the deadline of the search.
    deadline = None if context.deadline is None else now + SEARCHED * (context.deadline - now)

    def answer(routing: Routing) -> Answer:
        return Answer.heuristic(
            search.solution(routing), "routes along orders of arcs", {"dimensions": int(search.group.max()) + 1}
        )

    best: tuple[float, Routing] | None = None

    def improved(load: float, routing: Routing) -> None:
        if by_load and (best is None or load < best[0]):
            context.save(answer(routing), load)

    for seed in count(context.task.seed):
        search = OrderSearch(problem, enough, int(context.parameters["moves"]), seed, deadline, improved)
        layers = most = problem.layers
        with suppress(TimeoutError):
            for layers in [most] if by_load else range(fewest, int(best[0]) if best else most + 1):
                if search.run(layers):
                    break
        if search.best is not None and (by_load or search.done):
            value = search.best[0] if by_load else float(layers)
            if best is None or value < best[0]:
                best = value, search.best[1]
        least = best is not None and best[0] <= (enough * (1 + TOLERANCE) if by_load else fewest)
        if least or deadline is None or search.expired:
            break
    if best is None:
        context.remaining()
        more = "raise layers=" + ("" if by_load else " or load=") + (" or set paths=all" if search.listed else "")
        return Answer(Termination.TOLERANCE, message=f"no routes were found within the layers and load; {more}")
    return answer(best[1])


def moved_solution(problem: RoutedChannels, routes: PathSet, images: I64, place: F64) -> dict[str, F64]:
    """A solution by routes of some pairs, with these sources and targets, images, and at most L orders ``(m, L)``."""
    ranks, u = problem.topology.terminals, np.zeros((problem.topology.arcs, problem.layers))
    first, last = (np.searchsorted(ranks, ends) for ends in (routes.sources, routes.targets))
    numbered = replace(routes, pair=first * (ranks.size - 1) + last - (last > first))
    order = np.argsort(numbered.pair)
    start, arcs = select(routes.start, routes.arcs, order)
    numbered = replace(numbered, pair=numbered.pair[order], start=start, arcs=arcs)
    u[:, : place.shape[1]] = place
    if problem.chosen == "load":
        moved = MovedRoutes(replace(routes, pair=np.arange(routes.paths)), images, u)
        value = {"Lambda": np.array(moved_load(problem, moved).max())}
    else:
        value = {"z": (np.arange(problem.layers) < place.shape[1]).astype(float)}
    return {**to_arrays(numbered), "images": images.astype(float), "u": u, **value}


METHOD = Method(
    name="arc-orders",
    title="Routes along orders of arcs",
    summary="shortest paths of balanced load, dimension by dimension on products; orders of arcs in which they ascend, "
    "by annealing; load-aware rerouting along the orders, or over the listed paths; seeded",
    serves=("alltoall.channels",),
    parameters=(Parameter("moves", int, default=1_000_000, help="steps of annealing for a number of layers"),),
    takes_over=(Beyond("alltoall.channels", 600, 4_000, proves=False),),
    run=run,
)
