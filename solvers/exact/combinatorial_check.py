#!/usr/bin/env python3
"""Check a combinatorial certificate: ``python3 combinatorial_check.py FILE.proof.json[.gz]``.

The kind "wiring" has its own checker, wiring_check.py, which imports this one.

The file states a problem, a claim (the smallest value lies in an interval), a solution, and an argument why no solution
has a value below the lower end. This program verifies both in exact arithmetic. It stands alone: it needs only Python
3.9 or later. Numbers are integers, or fractions and decimals as strings; null is an infinite end, but not at both ends.

{"certificate": 1, "kind": KIND, "problem": {...}, "solution": {...}, "argument": {...}, "claim": [LOW, HIGH]}

"formulation", "instance", "instance_hash" and "settings" may say where the problem is from: this is not checked here.

routes     One path for every pair; the value is the largest load over capacity of an arc. With "colours", every path
           has a colour, paths of a colour share no arc, and the value is the number of colours.
           problem {"arcs": [[u, v, capacity]], "pairs": [[s, t, amount]], "colours": true or false}
           solution {"paths": [[arc, ...]], "colour": [...]}
           argument {"prices": [[arc, price]]}: the paths cost at least the distances of their pairs, the arcs are worth
           capacity times price, so the value is at least the quotient. It is rounded up if capacities are 1 and
           amounts whole. With "split": k in the problem, a pair takes k different paths, pair by pair in "paths", which
           carry equal parts: its distance is the mean of the k shortest walks from s to t that do not return to s or
           leave t.
circuits   Circuits in "colours" colours, at least one for every pair; circuits of a colour share no arc. A pair takes
           its time divided by the number of its circuits; the value is the longest of these.
           problem {"arcs": [[u, v]], "colours", "pairs": [[s, t, time]]}
           solution {"circuits": [[pair, colour, [arc, ...]]]}
           argument {"prices": [[arc, price]], "time": T}: to take less than T, a pair needs more circuits than its time
           divided by T. At the distances of their pairs, these cost more than all colours of all arcs together.
steps      Whole chunks of every pair, in steps; the value is the total number of rounds. A step takes as many rounds as
           its largest load over capacity of an arc, rounded up. A chunk crosses at most one arc in a step.
           problem {"arcs": [[u, v, capacity]], "pairs": [[s, t, chunks]], "steps"}
           solution {"ways": [[pair, [arc, ...], [step, ...]]]}, one for every chunk
           argument {"prices": [[arc, price]]}, as of routes; the quotient is rounded up
rounds     Circuits in rounds that copy chunks; the value is the number of rounds. A vertex sends, and receives, at most
           "ports" circuits of a wavelength in a round, an arc holds at most "waveguides" (or a list, one for each arc);
           a circuit carries "load" chunks that its source had before. Chunks go where required. null: no limit.
           problem {"vertices", "arcs": [[u, v]], "wavelengths", "waveguides", "ports", "load", "pre": [[chunk, v]],
           "post": [[chunk, v]]}
           solution {"circuits": [[round, s, t, wavelength, [arc, ...]]], "transfers": [[round, s, t, chunk]]}
           argument {"receives": v}, the chunks it lacks over those it can receive in a round; {"sends": v}, the chunks
           that only v holds; or {"enters": [v, ...]}, the chunks required in a set and held outside, over its arcs.
sums       The same, with contributions to sums: "pre" lists the contributors of a chunk, "post" the vertices that end
           with the sum of all, each counted once. A transfer adds the sum that its source had before the round to that
           of the target, or replaces it; only contributors of a chunk and vertices that require it take part.
           solution {"circuits", "transfers": [[round, s, t, chunk, adds: true or false]]}
           argument {"receives": v}, the chunks that v requires and others contribute to; {"sends": v}, those to which v
           contributes and that others require; {"enters": [v, ...]}, those required inside and contributed to outside;
           or {"transfers": [chunk, ...]}: each takes at least contributors - 1 transfers until one vertex has the sum,
           and then one for every other vertex that requires it.
layers     Every route has a layer; the steps from arc to arc of the routes of a layer form no cycle. The value is the
           number of layers.
           problem {"routes": [[arc, ...]]}; solution {"layer": [...], "order": [[arc, ...]]}, an order of the arcs for
           every layer, in which its routes ascend; argument {"cycle": [arc, ...]}: one layer is not enough.
placement  Operations on devices, one at a time on each, after their predecessors, with a delay if those are on another
           device. A device sends to at most "peers" others and receives from as many, or, with "distance", sends only
           to the "peers" devices that follow it in a circle. The value is the time at which all operations have ended.
           problem {"devices", "durations": [...], "edges": [[u, v, delay]], "peers", "distance": true or false}
           solution {"device": [...], "start": [...]}
           argument {"operations": [...]}: their smallest head, plus the time that their work takes on all devices, plus
           their smallest tail (the longest chains before and after an operation).
design     Links of capacity 1 between nodes, at most "degree" out of and into a node and one from a node to another,
           each with its reverse unless "directed". Every node sends F to every other; the value is the time T = 1/F.
           problem {"nodes", "degree", "directed": true or false}
           solution {"links": [[u, v]], "flows": [[source, link, amount]]}
           argument {"full": [...], "lacking": [...]}: the most nodes at distance 1, 2, ... of a node, and of one with
           degree - 1 links, which exists if links are two-way and nodes x degree is odd (else []). The flows need at
           least the sum of all distances, and the links carry at most their largest number.
orbits     Flows from every rank to every other, F to each; the value is the time T = 1/F. "symmetries" permute the arcs
           so that capacities and ranks are kept; the orbits of arcs and of ranks are theirs.
           problem {"vertices", "ranks": [v, ...], "arcs": [[u, v, capacity]], "symmetries": [[image of each arc]]}
           solution {"flows": [[rank, [arc or -1, ...], [[arc, amount]]]]}, for one rank of every orbit: a tree, by the
           arc into every vertex, and the amounts on other arcs; the tree carries what is left of 1 for every rank.
           The flows of the other ranks are images of these, so an orbit of arcs shares its load equally.
           argument {"lengths": [...]}, equal on orbits: flows are worth at least the distances, arcs capacity x length.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from fractions import Fraction
from heapq import heappop, heappush
from math import ceil, inf, lcm
from typing import Any

NUMBER = re.compile(r"-?[0-9]{1,4000}(/0*[1-9][0-9]{0,3999}|\.[0-9]{1,4000})?")
BYTES = 1 << 28  # largest file
LEAST, RATIO = 1 << 22, 50  # a compressed file may unpack to so many bytes, or so many times its size
PARTS = {"kind", "problem", "solution", "argument", "claim"}
HEADER = {"formulation", "instance", "instance_hash", "settings"}


class Refused(Exception): ...


def require(condition: Any, message: str) -> None:
    if not condition:
        raise Refused(message)


def number(value: Any) -> Fraction:
    good = type(value) is int or (isinstance(value, str) and NUMBER.fullmatch(value))
    require(good, f"a number is expected, not {str(value)[:40]!r}")
    return Fraction(value)


def index(value: Any, end: float = inf) -> int:
    good = type(value) is int and 0 <= value < end
    require(good, f"a whole number from 0 to {end} is expected, not {str(value)[:40]!r}")
    return int(value)


def listed(value: Any, length: int | None = None, width: int | None = None) -> list[Any]:
    require(isinstance(value, list) and length in (None, len(value)), f"a list of {length} is expected")
    for row in value if width else ():
        listed(row, width)
    return list(value)


def field(part: Any, *names: str) -> list[Any]:
    """The values of an object that has these names and no others."""
    require(isinstance(part, dict) and set(part) == set(names), f"an object with {', '.join(names)} is expected")
    return [part[name] for name in names]


def walk(path: Any, ends: list[tuple[int, int]], source: int, target: int) -> list[int]:
    """The arcs of a path without repeated vertices."""
    arcs = [index(a, len(ends)) for a in listed(path)]
    seen, at = {source}, source
    for a in arcs:
        require(ends[a][0] == at and ends[a][1] not in seen, "a path is broken or repeats a vertex")
        at = ends[a][1]
        seen.add(at)
    require(at == target, "a path does not end at its target")
    return arcs


def priced(
    ends: list[tuple[int, int]], pairs: list[tuple[int, int]], prices: Any, k: int = 1
) -> tuple[dict[int, Fraction], list[Fraction]]:
    """Prices of the arcs, and for every pair the smallest total price of k walks."""
    price = {index(a, len(ends)): number(p) for a, p in listed(prices, width=2)}
    require(price and all(p >= 0 for p in price.values()) and any(price.values()), "prices must be >= 0, not all 0")
    out: dict[int, list[tuple[int, Fraction]]] = defaultdict(list)
    for a, (u, v) in enumerate(ends):
        out[u].append((v, price.get(a, Fraction(0))))
    wanted = [(s, t if k > 1 else None) for s, t in pairs]
    near = {(s, t): distances(out, s, t, k) for s, t in set(wanted)}
    some = [near[key].get(t, []) for key, (_, t) in zip(wanted, pairs)]
    require(all(len(one) == k for one in some), "a pair has too few paths")
    return price, [sum(one, Fraction(0)) for one in some]


def distances(
    out: dict[int, list[tuple[int, Fraction]]], source: int, target: int | None, k: int
) -> dict[int, list[Fraction]]:
    """The lengths of k shortest walks from the source to every vertex, that do not return to it or leave the target."""
    result: dict[int, list[Fraction]] = defaultdict(list)
    heap: list[tuple[Any, int]] = [(0, source)]
    while heap:
        distance, u = heappop(heap)
        if len(result[u]) < k:
            result[u].append(distance)
            for v, length in out[u] if u != target else ():
                if v != source:
                    heappush(heap, (distance + length, v))
    return result


def network(
    arcs: Any, pairs: Any, amount: Callable[[Any], Any] = number
) -> tuple[list[tuple[int, int]], list[Fraction], list[tuple[int, int, Any]]]:
    """Ends and capacities of arcs, and pairs with their amounts."""
    ends = [(index(u), index(v)) for u, v, _ in listed(arcs, width=3)]
    capacity = [number(c) for _, _, c in arcs]
    return ends, capacity, [(index(s), index(t), amount(size)) for s, t, size in listed(pairs, width=3)]


def quotient(
    ends: list[tuple[int, int]], capacity: list[Fraction], wanted: list[tuple[int, int, Any]], prices: Any, k: int = 1
) -> Fraction:
    """The smallest total price of k walks for every pair, times its amount, over the price of all capacities."""
    price, near = priced(ends, [(s, t) for s, t, _ in wanted], prices, k)
    cost = sum((amount * length for (_, _, amount), length in zip(wanted, near)), Fraction(0))
    return cost / sum(capacity[a] * p for a, p in price.items())


def most_ends(links: Iterable[tuple[int, int]]) -> int:
    """The most links out of, or into, one of their ends."""
    return max([*Counter(u for u, _ in links).values(), *Counter(v for _, v in links).values()], default=0)


def routes(problem: Any, solution: Any, argument: Any) -> tuple[Fraction | None, Fraction | None]:
    if isinstance(problem, dict):
        problem = {"split": 1, **problem}
    arcs, pairs, coloured, split = field(problem, "arcs", "pairs", "colours", "split")
    require(index(split) > 0 and (split == 1 or coloured is False), "a pair needs at least one path, one if coloured")
    require(isinstance(coloured, bool), "colours must be true or false")
    ends, capacity, wanted = network(arcs, pairs)
    sizes = {*capacity, *(amount for _, _, amount in wanted)}
    require(min(sizes, default=1) > 0 and all(s != t for s, t, _ in wanted), "a pair or arc is empty")
    require(not coloured or sizes <= {1}, "circuits need size 1")
    low = high = None
    if solution is not None:
        paths, colour = field(solution, "paths", "colour")
        each = listed(paths, len(wanted) * split)
        taken = [walk(p, ends, *wanted[k // split][:2]) for k, p in enumerate(each)]
        require(len({(k // split, *path) for k, path in enumerate(taken)}) == len(each), "a pair has a path twice")
        colour_of = list(map(index, listed(colour, len(wanted)))) if coloured else [0] * len(each)
        load: dict[Any, Fraction] = defaultdict(Fraction)
        for k, path in enumerate(taken):
            for a in path:
                load[colour_of[k], a] += wanted[k // split][2] / capacity[a] / split
        high = max(load.values(), default=Fraction(0))
        if coloured:
            require(high <= 1, "two paths of a colour share an arc")
            high = Fraction(len(set(colour_of)))
    if argument is not None:
        low = quotient(ends, capacity, wanted, field(argument, "prices")[0], split)
        if set(capacity) <= {1} and all(size.denominator == 1 for size in sizes):
            low = Fraction(ceil(low))
        low /= split
    return low, high


def circuits(problem: Any, solution: Any, argument: Any) -> tuple[Fraction | None, Fraction | None]:
    arcs, colours, pairs = field(problem, "arcs", "colours", "pairs")
    ends, colours = [(index(u), index(v)) for u, v in listed(arcs, width=2)], index(colours)
    wanted = [(index(s), index(t), number(time)) for s, t, time in listed(pairs, width=3)]
    require(all(time > 0 and s != t for s, t, time in wanted), "a pair is empty")
    low = high = None
    if solution is not None:
        used, count = set(), [0] * len(wanted)
        for p, c, path in listed(field(solution, "circuits")[0], width=3):
            count[index(p, len(wanted))] += 1
            for a in walk(path, ends, *wanted[p][:2]):
                require((index(c, colours), a) not in used, "two circuits of a colour share an arc")
                used.add((c, a))
        require(all(count), "a pair has no circuit")
        high = max((time / c for (_, _, time), c in zip(wanted, count)), default=Fraction(0))
    if argument is not None:
        prices, least = field(argument, "prices", "time")
        price, near = priced(ends, [(s, t) for s, t, _ in wanted], prices)
        low = number(least)
        require(low > 0, "a time is not positive")
        cost = sum((length * (time // low + 1) for (_, _, time), length in zip(wanted, near)), Fraction(0))
        require(cost > colours * sum(price.values()), "the circuits needed to take less time are not too many")
    return low, high


def steps(problem: Any, solution: Any, argument: Any) -> tuple[Fraction | None, Fraction | None]:
    arcs, pairs, most = field(problem, "arcs", "pairs", "steps")
    ends, capacity, wanted = network(arcs, pairs, index)
    require(index(most) >= 0 and all(c > 0 for c in capacity) and all(s != t for s, t, _ in wanted), "an arc is empty")
    low = high = None
    if solution is not None:
        load, count = Counter[Any](), [0] * len(wanted)
        for p, path, times in listed(field(solution, "ways")[0], width=3):
            count[index(p, len(wanted))] += 1
            taken = walk(path, ends, *wanted[p][:2])
            at = [index(t, most) for t in listed(times, len(taken))]
            require(all(a < b for a, b in zip(at, at[1:])), "a chunk crosses two arcs in a step, or goes back in time")
            load.update(zip(at, taken))
        require(count == [chunks for _, _, chunks in wanted], "a pair has the wrong number of chunks")
        long = {t: max(Fraction(c) / capacity[a] for (s, a), c in load.items() if s == t) for t, _ in load}
        high = Fraction(sum(ceil(value) for value in long.values()))
    if argument is not None:
        low = Fraction(ceil(quotient(ends, capacity, wanted, field(argument, "prices")[0])))
    return low, high


class Rounds:
    """The problem of rounds and sums, and the circuits of a solution."""

    def __init__(self, problem: Any) -> None:
        names = ("vertices", "arcs", "wavelengths", "waveguides", "ports", "load", "pre", "post")
        n, arcs, wavelengths, waveguides, ports, load, pre, post = field(problem, *names)
        self.n, self.wavelengths = index(n), index(wavelengths)
        self.ports, self.load = (inf if end is None else index(end) for end in (ports, load))
        self.ends = [(index(u, n), index(v, n)) for u, v in listed(arcs, width=2)]
        each = waveguides if isinstance(waveguides, list) else [waveguides] * len(self.ends)
        self.holds = [index(most) for most in listed(each, len(self.ends))]
        self.held = {(index(c), index(v, n)) for c, v in listed(pre, width=2)}
        self.wanted = {(index(c), index(v, n)) for c, v in listed(post, width=2)}
        self.sources: dict[int, set[int]] = defaultdict(set)
        self.targets: dict[int, set[int]] = defaultdict(set)
        for side, pairs in ((self.sources, self.held), (self.targets, self.wanted)):
            for c, v in pairs:
                side[c].add(v)

    def moves(self, circuits: Any, transfers: list[list[Any]]) -> tuple[list[tuple[Any, ...]], int]:
        """The transfers round by round, each with room in a circuit, and the number of rounds."""
        joined, sends, receives, holds = Counter[Any](), Counter[Any](), Counter[Any](), Counter[Any]()
        for r, s, t, w, path in listed(circuits, width=5):
            r, s, t, w = index(r), index(s, self.n), index(t, self.n), index(w, self.wavelengths)
            require(s != t, "a circuit ends where it begins")
            joined[r, s, t] += 1
            sends[r, w, s] += 1
            receives[r, w, t] += 1
            holds.update((r, w, a) for a in walk(path, self.ends, s, t))
        require(max([*sends.values(), *receives.values()], default=0) <= self.ports, "a vertex has too many circuits")
        require(all(used <= self.holds[a] for (_, _, a), used in holds.items()), "an arc has too many circuits")
        moves = [(index(r), index(s, self.n), index(t, self.n), index(c), *adds) for r, s, t, c, *adds in transfers]
        moves.sort(key=lambda move: move[:4])
        for key, count in Counter(move[:3] for move in moves).items():
            require(joined[key] and count <= joined[key] * self.load, "a transfer has no room in a circuit")
        return moves, 1 + max([*(r for r, *_ in circuits), *(r for r, *_ in moves)], default=-1)

    def least(self, count: int, room: int) -> Fraction:
        """Rounds that ``count`` transfers need over ``room`` circuits per round."""
        require(count == 0 or room > 0, "nothing can be moved there")
        low = Fraction(0 if count == 0 or self.load == inf else ceil(Fraction(count, int(room * self.load))))
        return max(low, Fraction(count > 0))

    def room(self, v: int, into: bool) -> Any:
        """The most circuits into, or out of, a vertex in a round."""
        on_arcs = sum(most for most, (tail, head) in zip(self.holds, self.ends) if (head if into else tail) == v)
        return self.wavelengths * min(self.ports, on_arcs)

    def crossing(self, argument: Any, must: Callable[[int, set[int]], bool]) -> Fraction:
        """Rounds for the chunks that must enter a vertex, all other vertices, or a set."""
        [(kind, where)] = argument.items() if isinstance(argument, dict) and len(argument) == 1 else [("", None)]
        require(kind in ("receives", "sends", "enters"), "unknown argument")
        if kind == "enters":
            inside = {index(v, self.n) for v in listed(where)}
            entering = zip(self.holds, self.ends)
            room = self.wavelengths * sum(most for most, (u, v) in entering if u not in inside and v in inside)
        else:
            v, into = index(where, self.n), kind == "receives"
            inside, room = {v} if into else {u for u in range(self.n) if u != v}, self.room(v, into)
        return self.least(sum(must(c, inside) for c in list(self.targets)), room)


def rounds(problem: Any, solution: Any, argument: Any) -> tuple[Fraction | None, Fraction | None]:
    given, low, high = Rounds(problem), None, None
    held, lacking = given.held, given.wanted - given.held
    if solution is not None:
        circuits, transfers = field(solution, "circuits", "transfers")
        moves, last = given.moves(circuits, listed(transfers, width=4))
        goals = [(c, t) for _, _, t, c in moves]
        require(len(set(goals)) == len(goals) and set(goals) <= lacking, "a chunk goes where it is not required")
        since = dict.fromkeys(held, -1)
        for r, s, t, c in moves:
            require(since.get((c, s), r) < r, "a chunk is sent that was not held")
            since[c, t] = r
        require(all(pair in since for pair in given.wanted), "a required chunk is missing at the end")
        high = Fraction(last)
    if argument is not None:
        lacks = lambda c, inside: bool(given.targets[c] & inside and not given.sources[c] & inside)  # noqa: E731
        low = given.crossing(argument, lacks)
    return low, high


def summed(given: Rounds, moves: list[tuple[Any, ...]]) -> dict[tuple[int, int], frozenset[int]]:
    """The contributions in the sum that every vertex has of a chunk at the end."""
    has = {(c, v): frozenset([v]) for c, v in given.held}
    for r in sorted({r for r, *_ in moves}):
        before, now, replaced = dict(has), [move for move in moves if move[0] == r], set()
        for _, s, t, c, adds in sorted(now, key=lambda move: bool(move[4])):  # replacements come first
            require(isinstance(adds, bool) and (c, s) in before, "a sum is sent that its sender does not have")
            require(t in given.sources[c] | given.targets[c], "a chunk goes where it is not required")
            if adds:
                require(not has.get((c, t), frozenset()) & before[c, s], "a contribution is counted twice")
                has[c, t] = has.get((c, t), frozenset()) | before[c, s]
            else:
                require((c, t) not in replaced, "a sum is replaced twice in a round")
                replaced.add((c, t))
                has[c, t] = before[c, s]
    return has


def sums(problem: Any, solution: Any, argument: Any) -> tuple[Fraction | None, Fraction | None]:
    given, low, high = Rounds(problem), None, None
    sources, targets = given.sources, given.targets
    require(all(sources[c] for c in targets), "no vertex contributes to a required chunk")
    if solution is not None:
        circuits, transfers = field(solution, "circuits", "transfers")
        moves, last = given.moves(circuits, listed(transfers, width=5))
        has = summed(given, moves)
        require(all(has.get((c, v)) == sources[c] for c, v in given.wanted), "a sum is not complete at the end")
        high = Fraction(last)
    if argument is not None:
        if isinstance(argument, dict) and list(argument) == ["transfers"]:
            some = {index(c) for c in listed(argument["transfers"])}
            count = sum(max(len(sources[c]) - 1, 0) + max(len(targets[c]) - 1, 0) for c in some if targets.get(c))
            part = set().union(*(sources[c] | targets[c] for c in some))
            low = given.least(count, min(sum(given.room(v, into) for v in part) for into in (True, False)))
        else:
            low = given.crossing(argument, lambda c, inside: bool(targets[c] & inside and sources[c] - inside))
    return low, high


def layers(problem: Any, solution: Any, argument: Any) -> tuple[Fraction | None, Fraction | None]:
    given = [[index(a) for a in listed(route)] for route in listed(field(problem, "routes")[0])]
    low, high = Fraction(bool(given)), None
    if solution is not None:
        layer, order = field(solution, "layer", "order")
        place = [{index(a): k for k, a in enumerate(listed(arcs))} for arcs in listed(order)]
        for number_of, route in zip(listed(layer, len(given)), given):
            at = place[index(number_of, len(place))]
            require(all(a in at for a in route), "an order lacks an arc of its routes")
            require(all(at[a] < at[b] for a, b in zip(route, route[1:])), "a route descends in the order of its layer")
        high = Fraction(len(set(layer)))
    if argument is not None:
        cycle = [index(a) for a in listed(field(argument, "cycle")[0])]
        follows = {pair for route in given for pair in zip(route, route[1:])}
        require(cycle and all(pair in follows for pair in zip(cycle, [*cycle[1:], *cycle[:1]])), "this is not a cycle")
        low = Fraction(2)
    return low, high


def placement(problem: Any, solution: Any, argument: Any) -> tuple[Fraction | None, Fraction | None]:
    k, durations, edges, peers, distance = field(problem, "devices", "durations", "edges", "peers", "distance")
    k, peers, lasts = index(k), index(peers), [number(p) for p in listed(durations)]
    n = len(lasts)
    joined = [(index(u, n), index(v, n), number(d)) for u, v, d in listed(edges, width=3)]
    require(k > 0 and isinstance(distance, bool) and min(lasts, default=1) > 0, "a device or a duration is missing")
    require(all(u < v and d >= 0 for u, v, d in joined), "operations are not in order, or a delay is negative")
    low = high = None
    if solution is not None:
        device, start = field(solution, "device", "start")
        on, begin = [index(g, k) for g in listed(device, n)], [number(s) for s in listed(start, n)]
        for u, v, delay in joined:
            wait = delay * (on[u] != on[v])
            require(begin[v] >= begin[u] + lasts[u] + wait, "an operation starts before its predecessor ends")
        runs = sorted((g, s, s + p) for g, s, p in zip(on, begin, lasts))
        require(all(a[0] < b[0] or a[2] <= b[1] for a, b in zip(runs, runs[1:])), "two operations overlap on a device")
        links = {(on[u], on[v]) for u, v, _ in joined if on[u] != on[v]}
        if distance:
            require(all((h - g) % k <= peers for g, h in links), "a device sends too far")
        else:
            require(most_ends(links) <= peers, "a device has too many peers")
        require(min(begin, default=0) >= 0, "an operation starts before 0")
        high = max((end for _, _, end in runs), default=Fraction(0))
    if argument is not None:
        low = least_end(field(argument, "operations")[0], k, lasts, joined)
    return low, high


def least_end(operations: Any, k: int, lasts: list[Fraction], joined: list[tuple[int, int, Fraction]]) -> Fraction:
    """The smallest head and tail of some operations, and the time of their work on k devices."""
    before, after = [Fraction(0)] * len(lasts), [Fraction(0)] * len(lasts)
    for u, v, _ in sorted(joined, key=lambda edge: edge[1]):
        before[v] = max(before[v], before[u] + lasts[u])
    for u, v, _ in sorted(joined, key=lambda edge: -edge[0]):
        after[u] = max(after[u], after[v] + lasts[v])
    some = sorted({index(v, len(lasts)) for v in listed(operations)})
    require(some, "the argument names no operation")
    work = max(sum((lasts[v] for v in some), Fraction(0)) / k, -(-len(some) // k) * min(lasts[v] for v in some))
    return min(before[v] for v in some) + work + min(after[v] for v in some)


def carried(
    flows: Any, n: int, ends: list[tuple[int, int]]
) -> tuple[dict[tuple[int, int], Fraction], dict[int, Fraction]]:
    """The flow of every source that each vertex keeps, and the loads of arcs."""
    got: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    load: dict[int, Fraction] = defaultdict(Fraction)
    for s, a, flow in listed(flows, width=3):
        (u, v), amount = ends[index(a, len(ends))], number(flow)
        require(amount >= 0, "a flow is negative")
        load[a] += amount
        got[index(s, n), v] += amount
        got[s, u] -= amount
    return got, load


def design(problem: Any, solution: Any, argument: Any) -> tuple[Fraction | None, Fraction | None]:
    n, degree, directed = field(problem, "nodes", "degree", "directed")
    require(index(n) > 1 and index(degree) > 0 and isinstance(directed, bool), "there are no nodes or no links")
    low = high = None
    if solution is not None:
        links, flows = field(solution, "links", "flows")
        ends = [(index(u, n), index(v, n)) for u, v in listed(links, width=2)]
        require(len(set(ends)) == len(ends) and all(u != v for u, v in ends), "a link occurs twice or is a loop")
        require(directed or all((v, u) in set(ends) for u, v in ends), "a link has no reverse")
        require(most_ends(ends) <= degree, "a node has too many links")
        got, load = carried(flows, n, ends)
        require(all(total <= 1 for total in load.values()), "a link has too much flow")
        least = min(got[s, v] for s in range(n) for v in range(n) if s != v)
        require(least > 0, "a node receives nothing from another")
        high = 1 / least
    if argument is not None:
        full, lacking = field(argument, "full", "lacking")
        odd = not directed and n * degree % 2
        total = (n - odd) * depths(full, n, degree, degree - (not directed))
        if odd:
            total += depths(lacking, n, degree - 1, degree - 1)
        low = Fraction(total, n * degree - odd)
    return low, high


def depths(layers: Any, n: int, first: int, onward: int) -> int:
    """The sum of distances to n - 1 nodes in layers, which must be as large as any node can have them."""
    total, reached, most, layer = 0, 0, 0, first
    for k, count in enumerate(listed(layers), start=1):
        most, layer = min(n - 1, most + layer), min(n, layer * onward)
        reached += index(count, n)
        require(reached >= most, "a node may have more nodes at that distance")
        total += k * count
    require(reached == n - 1, "the layers do not contain all other nodes")
    return total


def joined(size: int, images: list[list[int]]) -> list[int]:
    """The smallest member of the orbit of every element under permutations."""
    least, towards = [-1] * size, list(map(list, zip(*images)))
    for first in range(size):
        stack = [first] if least[first] < 0 else []
        while stack:
            k = stack.pop()
            if least[k] < 0:
                least[k] = first
                stack += towards[k] if towards else ()
    return least


def left_over(parent: list[int], ends: list[tuple[int, int]], needed: list[int], source: int) -> dict[int, int]:
    """The flow on the arcs of a tree, given what every vertex needs."""
    order: list[int] = []
    reached = {source}
    for v in range(len(parent)):
        path: list[int] = []
        while v not in reached and parent[v] >= 0:
            require(len(path) < len(parent), "a tree has a cycle")
            path.append(v)
            v = ends[parent[v]][0]
        reached.update(path)
        order += reversed(path)
    for v in reversed(order):
        needed[ends[parent[v]][0]] += needed[v]
    require(all(v == source or parent[v] >= 0 or not needed[v] for v in range(len(parent))), "a vertex needs more")
    return {parent[v]: needed[v] for v in order}


def orbits_of(
    n: int, ends: list[tuple[int, int]], capacity: list[Fraction], ranks: set[int], images: list[Any]
) -> tuple[list[int], list[int]]:
    """The orbits of arcs and of vertices under permutations of the arcs that keep ends, capacities and ranks."""
    m, moves = len(ends), []
    for image in images:
        goes = [(u, w) for a, b in enumerate(listed(image, m)) for u, w in zip(ends[a], ends[index(b, m)])]
        moved = dict(goes)
        permutes = (
            len(set(image)) == m and len(set(moved.values())) == len(moved) == n and set(goes) == set(moved.items())
        )
        kept = all(capacity[a] == capacity[b] for a, b in enumerate(image)) and {moved.get(v) for v in ranks} == ranks
        require(permutes and kept, "a symmetry does not keep the arcs, their capacities or the ranks")
        moves.append([moved[v] for v in range(n)])
    return joined(m, images), joined(n, moves)


def rank_flow(
    flow: list[Any], ranks: set[int], n: int, ends: list[tuple[int, int]]
) -> tuple[list[tuple[int, int]], int]:
    """The amounts of a rank's flow on arcs, and their denominator."""
    (s, parent, ties), m = flow, len(ends)
    require(s in ranks, "a flow starts at no rank")
    into = [index(a, m) if a != -1 else -1 for a in listed(parent, n)]
    require(all(a < 0 or ends[a][1] == v for v, a in enumerate(into)), "an arc of a tree ends elsewhere")
    amounts = [(index(a, m), number(x)) for a, x in listed(ties, width=2)]
    below = lcm(*(x.denominator for _, x in amounts))
    needed = [below * (v in ranks and v != s) for v in range(n)]
    taken = [(a, int(x * below)) for a, x in amounts]
    for a, x in taken:
        needed[ends[a][0]] += x
        needed[ends[a][1]] -= x
    taken += left_over(into, ends, needed, s).items()
    require(all(x >= 0 for _, x in taken), "a flow is negative")
    return taken, below


def total_distance(ranks: set[int], class_of: list[int], ends: list[tuple[int, int]], length: list[int]) -> Fraction:
    """The sum of distances from every rank to every other, of which those of a class have the same."""
    out: dict[int, list[tuple[int, Any]]] = defaultdict(list)
    for (u, v), far in zip(ends, length):
        out[u].append((v, far))
    cost = Fraction(0)
    for k, count in Counter(class_of[v] for v in ranks).items():
        near = distances(out, next(v for v in ranks if class_of[v] == k), None, 1)
        require(all(v in near for v in ranks), "a rank cannot reach another")
        cost += count * sum((near[v][0] for v in ranks), Fraction(0))
    return cost


def orbits(problem: Any, solution: Any, argument: Any) -> tuple[Fraction | None, Fraction | None]:
    n, ranks, arcs, symmetries = field(problem, "vertices", "ranks", "arcs", "symmetries")
    require(index(n) <= 2 * len(listed(arcs)), "a vertex has no arc")
    ends = [(index(u, n), index(v, n)) for u, v, _ in listed(arcs, width=3)]
    capacity = [number(c) for _, _, c in arcs]
    ranked = {index(v, n) for v in listed(ranks)}
    require(len(ranked) == len(ranks) > 1 and min(capacity) > 0, "there are no ranks, or an arc is empty")
    orbit, class_of = orbits_of(n, ends, capacity, ranked, listed(symmetries))
    low = high = None
    if solution is not None:
        load, room = defaultdict[int, Fraction](Fraction), defaultdict[int, Fraction](Fraction)
        flows, size = listed(field(solution, "flows")[0], width=3), Counter(class_of[v] for v in ranked)
        starts = Counter(class_of[index(s, n)] for s, _, _ in flows)
        require(starts == Counter(list(size)), "not one rank of each orbit")
        for flow in flows:
            taken, below = rank_flow(flow, ranked, n, ends)
            for a, x in taken:
                load[orbit[a]] += Fraction(x * size[class_of[flow[0]]], below)
        for a, c in enumerate(capacity):
            room[orbit[a]] += c
        high = max(load[k] / room[k] for k in room)
    if argument is not None:
        length = [number(x) for x in listed(field(argument, "lengths")[0], len(ends))]
        require(min(length) >= 0 and any(length), "lengths must be >= 0, not all 0")
        require(all(length[a] == length[b] for a, b in enumerate(orbit)), "lengths differ on an orbit")
        whole = lcm(*(x.denominator for x in length))
        low = total_distance(ranked, class_of, ends, [int(x * whole) for x in length])
        low /= sum((c * x * whole for c, x in zip(capacity, length)), Fraction(0))
    return low, high


KINDS = {
    "routes": routes,
    "circuits": circuits,
    "steps": steps,
    "rounds": rounds,
    "sums": sums,
    "layers": layers,
    "placement": placement,
    "design": design,
    "orbits": orbits,
}


def verify(document: Any) -> tuple[Fraction | None, Fraction | None]:
    """Return the ends of the claim if solution and argument prove them; raises Refused if not."""
    require(isinstance(document, dict) and document.get("certificate") == 1, "this is not a certificate of version 1")
    missing, further = PARTS - set(document), set(document) - PARTS - HEADER - {"certificate"}
    require(not missing and document["kind"] in list(KINDS), f"missing: {', '.join(sorted(missing)) or 'a known kind'}")
    require(not further, f"no certificate has {', '.join(sorted(map(str, further)))[:80]}")
    low, high = (None if end is None else number(end) for end in listed(document["claim"], 2))
    require(low is not None or high is not None, "the claim says nothing about the optimal value")
    least, value = KINDS[document["kind"]](document["problem"], document["solution"], document["argument"])
    require(high is None or (value is not None and value <= high), f"the solution has the value {value}, not {high}")
    require(low is None or (least is not None and least >= low), f"the argument proves {least}, not {low}")
    require(low is None or high is None or low <= high, "the interval of the claim is empty")
    return low, high


def read(path: str) -> Any:
    """The JSON in a file; raises Refused or OSError."""
    try:
        packed = path.endswith(".gz")
        most = min(BYTES, max(LEAST, RATIO * os.path.getsize(path)) if packed else BYTES)
        with (gzip.open if packed else open)(path, "rb") as stream:
            content = stream.read(most + 1)
        require(len(content) <= most, f"the file has more than {most} bytes{' unpacked' if packed else ''}")
        return json.loads(content, parse_float=str, parse_constant=str)
    except (ValueError, EOFError, zlib.error, RecursionError) as error:
        raise Refused(f"this is not JSON: {str(error)[:80]}") from None


def main() -> None:
    try:
        low, high = verify(read(sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__)))
        print("proven: the optimal value is", low if low == high else f"between {low} and {high}")
    except (Refused, OSError) as problem:
        print("not proven:", problem, file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
