#!/usr/bin/env python3
"""Check a combinatorial certificate: ``python3 combinatorial_check.py FILE.proof.json[.gz]``.

The file states a problem, a claim (the least value lies in an interval), a solution, and an argument why no solution
has a value below the lower end. This program verifies both in exact arithmetic. It stands alone: it needs Python 3.9 or
later, and nothing else. Numbers are integers, or fractions and decimals as strings; null is an infinite end.

{"certificate": 1, "kind": KIND, "problem": {...}, "solution": {...}, "argument": {...}, "claim": [LOW, HIGH]}

routes     One path for every pair; the value is the largest load over capacity of an arc. With "colours", every path
           has a colour, paths of a colour share no arc, and the value is the number of colours.
           problem {"arcs": [[u, v, capacity]], "pairs": [[s, t, amount]], "colours": true or false}
           solution {"paths": [[arc, ...]], "colour": [...]}
           argument {"prices": [[arc, price]]}: the paths take at least the distances of their pairs, the arcs give
           capacity times price, so the value is at least the quotient. It is rounded up if capacities are 1 and
           amounts whole.
rounds     Circuits in rounds that copy chunks; the value is the number of rounds. A vertex sends, and receives, at most
           "ports" circuits of a wavelength in a round, an arc holds at most "waveguides"; a circuit carries "load"
           chunks, which its source held before the round. A chunk goes to vertices that require it. null is no limit.
           problem {"vertices", "arcs": [[u, v]], "wavelengths", "waveguides", "ports", "load", "pre": [[chunk, v]],
           "post": [[chunk, v]]}
           solution {"circuits": [[round, s, t, wavelength, [arc, ...]]], "transfers": [[round, s, t, chunk]]}
           argument {"receives": v}, what it lacks over what it can receive in a round; {"sends": v}, the chunks that
           only v holds; or {"enters": [v, ...]}, the chunks required inside a set and held outside, over its arcs.
layers     Every route has a layer; routes of a layer do not go from arc to arc in a cycle. The value is the number of
           layers.
           problem {"routes": [[arc, ...]]}; solution {"layer": [...], "order": [[arc, ...]]}, an order of the arcs for
           every layer, in which its routes ascend; argument {"cycle": [arc, ...]}: one layer is not enough.
placement  Operations on devices, one at a time each, after their predecessors, and later by a delay if those are on
           another device; a device sends to at most "peers" others and receives from as many, or, by "distance", sends
           to those up to "peers" numbers after it, in a circle. The value is the time at which all have ended.
           problem {"devices", "durations": [...], "edges": [[u, v, delay]], "peers", "distance": true or false}
           solution {"device": [...], "start": [...]}
           argument {"operations": [...]}: their least chain before, their work on all devices, their least chain after.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import zlib
from collections import Counter, defaultdict
from fractions import Fraction
from heapq import heappop, heappush
from math import ceil, inf
from typing import Any

NUMBER = re.compile(r"-?[0-9]{1,4000}(/0*[1-9][0-9]{0,3999}|\.[0-9]{1,4000})?")
BYTES = 1 << 31


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


def routes(problem: Any, solution: Any, argument: Any) -> tuple[Fraction | None, Fraction | None]:
    arcs, pairs, coloured = field(problem, "arcs", "pairs", "colours")
    require(isinstance(coloured, bool), "colours is true or false")
    ends = [(index(u), index(v)) for u, v, _ in listed(arcs, width=3)]
    capacity = [number(c) for _, _, c in arcs]
    wanted = [(index(s), index(t), number(amount)) for s, t, amount in listed(pairs, width=3)]
    require(all(c > 0 for c in capacity) and all(d > 0 and s != t for s, t, d in wanted), "a pair or arc is empty")
    require(not coloured or all(one == 1 for one in [*capacity, *(d for _, _, d in wanted)]), "circuits are of size 1")
    low = high = None
    if solution is not None:
        paths, colour = field(solution, "paths", "colour")
        taken = [walk(p, ends, s, t) for p, (s, t, _) in zip(listed(paths, len(wanted)), wanted)]
        if coloured:
            shades = [index(one) for one in listed(colour, len(wanted))]
            used = Counter((c, a) for c, path in zip(shades, taken) for a in path)
            require(max(used.values(), default=0) <= 1, "two paths of a colour share an arc")
            high = Fraction(len(set(shades)))
        else:
            load: dict[int, Fraction] = defaultdict(Fraction)
            for path, (_, _, amount) in zip(taken, wanted):
                for a in path:
                    load[a] += amount / capacity[a]
            high = max(load.values(), default=Fraction(0))
    if argument is not None:
        price = {index(a, len(ends)): number(p) for a, p in listed(field(argument, "prices")[0], width=2)}
        require(
            price and all(p >= 0 for p in price.values()) and any(price.values()), "prices are not negative, and not 0"
        )
        out: dict[int, list[tuple[int, Fraction]]] = defaultdict(list)
        for a, (u, v) in enumerate(ends):
            out[u].append((v, price.get(a, Fraction(0))))
        near = {s: distances(out, s) for s in {s for s, _, _ in wanted}}
        require(all(t in near[s] for s, t, _ in wanted), "a pair has no path")
        cost = sum((amount * near[s][t] for s, t, amount in wanted), Fraction(0))
        low = cost / sum(capacity[a] * p for a, p in price.items())
        if all(c == 1 for c in capacity) and all(amount.denominator == 1 for _, _, amount in wanted):
            low = Fraction(ceil(low))
    return low, high


def distances(out: dict[int, list[tuple[int, Fraction]]], source: int) -> dict[int, Fraction]:
    found: dict[int, Fraction] = {}
    heap = [(Fraction(0), source)]
    while heap:
        distance, u = heappop(heap)
        if u not in found:
            found[u] = distance
            for v, length in out[u]:
                heappush(heap, (distance + length, v))
    return found


def rounds(problem: Any, solution: Any, argument: Any) -> tuple[Fraction | None, Fraction | None]:
    names = ("vertices", "arcs", "wavelengths", "waveguides", "ports", "load", "pre", "post")
    n, arcs, wavelengths, waveguides, ports, load, pre, post = field(problem, *names)
    n, wavelengths, waveguides = index(n), index(wavelengths), index(waveguides)
    ports, load = (inf if end is None else index(end) for end in (ports, load))
    ends = [(index(u, n), index(v, n)) for u, v in listed(arcs, width=2)]
    held = {(index(c), index(v, n)) for c, v in listed(pre, width=2)}
    wanted = {(index(c), index(v, n)) for c, v in listed(post, width=2)}
    low, high, lacking = None, None, wanted - held
    if solution is not None:
        circuits, transfers = field(solution, "circuits", "transfers")
        joined: Counter[tuple[int, int, int]] = Counter()
        sends: Counter[Any] = Counter()
        receives: Counter[Any] = Counter()
        holds: Counter[Any] = Counter()
        for r, s, t, w, path in listed(circuits, width=5):
            r, s, t, w = index(r), index(s, n), index(t, n), index(w, wavelengths)
            require(s != t, "a circuit ends where it begins")
            joined[r, s, t] += 1
            sends[r, w, s] += 1
            receives[r, w, t] += 1
            holds.update((r, w, a) for a in walk(path, ends, s, t))
        require(max([*sends.values(), *receives.values()], default=0) <= ports, "a vertex has too many circuits")
        require(max(holds.values(), default=0) <= waveguides, "an arc has too many circuits")
        moves = sorted((index(r), index(s, n), index(t, n), index(c)) for r, s, t, c in listed(transfers, width=4))
        for key, count in Counter((r, s, t) for r, s, t, _ in moves).items():
            require(joined[key] and count <= joined[key] * load, "a transfer has no room in a circuit")
        goals = [(c, t) for _, _, t, c in moves]
        require(len(set(goals)) == len(goals) and set(goals) <= lacking, "a chunk goes where it is not required")
        since = dict.fromkeys(held, -1)
        for r, s, t, c in moves:
            require(since.get((c, s), r) < r, "a chunk is sent that was not held")
            since[c, t] = r
        require(all(pair in since for pair in wanted), "a required chunk is missing at the end")
        last = [*(r for r, *_ in circuits), *(r for r, *_ in moves)]
        high = Fraction(1 + max(last, default=-1))
    if argument is not None:
        require(isinstance(argument, dict) and len(argument) == 1, "an argument has one name")
        [(kind, where)] = argument.items()
        require(kind in ("receives", "sends", "enters"), "unknown argument")
        if kind == "enters":
            inside = {index(v, n) for v in listed(where)}
            full = {c for c, v in held if v in inside}
            count = len({c for c, v in lacking if v in inside} - full)
            room = wavelengths * waveguides * sum(u not in inside and v in inside for u, v in ends)
        else:
            v = index(where, n)
            others = {c for c, u in held if u != v}
            mine = {c for c, u in held if u == v} - others
            received = {c for c, u in lacking if u == v}
            count = len(received if kind == "receives" else mine & {c for c, _ in lacking})
            degree = sum((head if kind == "receives" else tail) == v for tail, head in ends)
            room = wavelengths * int(min(ports, waveguides * degree))
        require(count == 0 or room > 0, "nothing can be moved there")
        low = Fraction(0 if count == 0 or load == inf else ceil(Fraction(count, int(room * load))))
        low = max(low, Fraction(count > 0))
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
        require(cycle and all(pair in follows for pair in zip(cycle, [*cycle[1:], *cycle[:1]])), "this is no cycle")
        low = Fraction(2)
    return low, high


def placement(problem: Any, solution: Any, argument: Any) -> tuple[Fraction | None, Fraction | None]:
    k, durations, edges, peers, distance = field(problem, "devices", "durations", "edges", "peers", "distance")
    k, peers, lasts = index(k), index(peers), [number(p) for p in listed(durations)]
    n = len(lasts)
    joined = [(index(u, n), index(v, n), number(d)) for u, v, d in listed(edges, width=3)]
    require(k > 0 and isinstance(distance, bool) and all(p > 0 for p in lasts), "a device or a duration is missing")
    require(all(u < v and d >= 0 for u, v, d in joined), "operations are not in order, or a delay is negative")
    low = high = None
    if solution is not None:
        device, start = field(solution, "device", "start")
        on, begin = [index(g, k) for g in listed(device, n)], [number(s) for s in listed(start, n)]
        for u, v, delay in joined:
            wait = delay if on[u] != on[v] else Fraction(0)
            require(begin[v] >= begin[u] + lasts[u] + wait, "an operation starts before its predecessor ends")
        for g in range(k):
            mine = sorted((begin[v], begin[v] + lasts[v]) for v in range(n) if on[v] == g)
            require(all(a[1] <= b[0] for a, b in zip(mine, mine[1:])), "two operations overlap on a device")
        links = {(on[u], on[v]) for u, v, _ in joined if on[u] != on[v]}
        if distance:
            require(all((h - g) % k <= peers for g, h in links), "a device sends too far")
        else:
            counts = [*Counter(g for g, _ in links).values(), *Counter(h for _, h in links).values()]
            require(max(counts, default=0) <= peers, "a device has too many peers")
        require(min(begin, default=0) >= 0, "an operation starts before 0")
        high = max((s + p for s, p in zip(begin, lasts)), default=Fraction(0))
    if argument is not None:
        before, after = [Fraction(0)] * n, [Fraction(0)] * n
        for u, v, _ in sorted(joined, key=lambda edge: edge[1]):
            before[v] = max(before[v], before[u] + lasts[u])
        for u, v, _ in sorted(joined, key=lambda edge: -edge[0]):
            after[u] = max(after[u], after[v] + lasts[v])
        some = sorted({index(v, n) for v in listed(field(argument, "operations")[0])})
        require(some, "the argument names no operation")
        work = max(sum((lasts[v] for v in some), Fraction(0)) / k, -(-len(some) // k) * min(lasts[v] for v in some))
        low = min(before[v] for v in some) + work + min(after[v] for v in some)
    return low, high


KINDS = {"routes": routes, "rounds": rounds, "layers": layers, "placement": placement}


def verify(document: Any) -> tuple[Fraction | None, Fraction | None]:
    """The ends of the claim, if solution and argument prove them."""
    require(isinstance(document, dict) and document.get("certificate") == 1, "this is no certificate of version 1")
    missing = {"kind", "problem", "solution", "argument", "claim"} - set(document)
    require(not missing and document["kind"] in list(KINDS), f"missing: {', '.join(sorted(missing)) or 'a known kind'}")
    low, high = (None if end is None else number(end) for end in listed(document["claim"], 2))
    least, value = KINDS[document["kind"]](document["problem"], document["solution"], document["argument"])
    require(high is None or (value is not None and value <= high), f"the solution has the value {value}, not {high}")
    require(low is None or (least is not None and least >= low), f"the argument proves {least}, not {low}")
    require(low is None or high is None or low <= high, "the interval of the claim is empty")
    return low, high


def read(path: str) -> Any:
    """The JSON in a file; raises Refused or OSError."""
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as stream:
            content = stream.read(BYTES)
        require(len(content) < BYTES, "the file is too large")
        return json.loads(content, parse_float=str, parse_constant=str)
    except (ValueError, EOFError, zlib.error, RecursionError) as error:
        raise Refused(f"this is not JSON: {str(error)[:80]}") from None


if __name__ == "__main__":
    try:
        low, high = verify(read(sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__)))
        print("proven: the least value is", low if low == high else f"between {low} and {high}")
    except (Refused, OSError) as problem:
        print("not proven:", problem, file=sys.stderr)
        sys.exit(1)
