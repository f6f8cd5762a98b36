#!/usr/bin/env python3
"""Check a certificate of a best wiring of servers: ``python3 wiring_check.py FILE.proof.json[.gz]``.

The records of ``topoopt.topology`` among the best known values rest on such files, because no linear derivation of
their optimum is short enough to keep. This program verifies them in exact arithmetic. It stands alone: it needs only
Python 3.9 or later. Numbers are integers, or fractions and decimals as strings; null is an infinite end of the claim.

{"certificate": 1, "kind": "wiring", "problem": {...}, "solution": {...}, "argument": {...}, "claim": [LOW, HIGH]}

"formulation", "instance", "instance_hash" and "settings" may say where the problem is from: this is not checked here.

At most "ports" circuits go out of and into every server, parallel ones included, and traffic is divided over
them freely. The value is the largest load of a circuit.
problem {"servers", "ports", "traffic": [[s, t, bytes]]}
solution {"circuits": [[u, v]], "flows": [[source, circuit, bytes]]}
argument {"load": T, "order": [server, ...], "lengths": [[[...]]]}: all wirings that use all ports are enumerated,
server by server in this order. Some best wiring uses all ports, as a server with a free port out and in can
divide any other circuit a -> b into a -> server -> b. A partial wiring is pruned if traffic times hops is at
least T times circuits however it is completed, and a complete one if traffic times distance is at least T times
the length of its circuits, for one of the matrices of lengths from server to server.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from heapq import heappop, heappush
from itertools import combinations_with_replacement
from math import inf, lcm
from typing import Any

NUMBER = re.compile(r"-?[0-9]{1,4000}(/0*[1-9][0-9]{0,3999}|\.[0-9]{1,4000})?")
BYTES = 1 << 22  # largest file, unpacked
PARTS = {"kind", "problem", "solution", "argument", "claim"}
HEADER = {"certificate", "formulation", "instance", "instance_hash", "settings"}
#: Most servers, and most partial and complete wirings that are tried.
SERVERS, WIRINGS = 32, 3_000_000


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


def wiring(problem: Any, solution: Any, argument: Any) -> tuple[Fraction | None, Fraction | None]:
    low = high = None
    n, ports, demand, whole = stated(problem, Fraction(0))
    if solution is not None:
        circuits, flows = field(solution, "circuits", "flows")
        ends = [(index(u, n), index(v, n)) for u, v in listed(circuits, width=2)]
        most = max([*Counter(u for u, _ in ends).values(), *Counter(v for _, v in ends).values()], default=0)
        require(most <= ports, "a server has too few ports")
        got, load = carried(flows, n, ends)
        short = any(got[s, t] * whole < demand[s][t] for s in range(n) for t in range(n) if s != t)
        require(not short, "a server does not get its traffic")
        high = max(load.values(), default=Fraction(0))
    if argument is not None:
        least, order, lengths = field(argument, "load", "order", "lengths")
        low = number(least)
        require(sorted(index(u, n) for u in listed(order)) == list(range(n)), "this is not an order of all servers")
        some = [[[index(one) for one in listed(row, n)] for row in listed(rows, n)] for rows in listed(lengths)]
        _, _, demand, whole = stated(problem, low)
        for rows in wirings(demand, ports, order, int(low * whole) * n * ports):
            for k, length in enumerate(some):
                traffic, total = paid(demand, rows, length)
                if traffic >= low * whole * total > 0:
                    some.insert(0, some.pop(k))  # the next wiring is often similar
                    break
            else:
                raise Refused(f"no lengths prove the load of the circuits {rows}")
    return low, high


def carried(
    flows: Any, n: int, ends: list[tuple[int, int]]
) -> tuple[dict[tuple[int, int], Fraction], dict[int, Fraction]]:
    """The flow of every source that each server keeps, and the loads of circuits."""
    got: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    load: dict[int, Fraction] = defaultdict(Fraction)
    for s, a, flow in listed(flows, width=3):
        (u, v), amount = ends[index(a, len(ends))], number(flow)
        require(amount >= 0, "a flow is negative")
        load[a] += amount
        got[index(s, n), v] += amount
        got[s, u] -= amount
    return got, load


def distances(out: dict[int, list[tuple[int, int]]], source: int) -> dict[int, int]:
    """The shortest distances from a server to those that it reaches."""
    result: dict[int, int] = {}
    heap = [(0, source)]
    while heap:
        distance, u = heappop(heap)
        if u not in result:
            result[u] = distance
            for v, length in out[u]:
                heappush(heap, (distance + length, v))
    return result


def stated(problem: Any, load: Fraction) -> tuple[int, int, list[list[int]], int]:
    """Servers, ports, and traffic in units of which traffic and load are integer multiples; units per byte."""
    n, ports, traffic = field(problem, "servers", "ports", "traffic")
    require(index(n, SERVERS + 1) > 1 and index(ports) > 0, "there are no servers or no ports")
    sent = {(index(s, n), index(t, n)): number(size) for s, t, size in listed(traffic, width=3)}
    require(len(sent) == len(traffic) and all(s != t and size > 0 for (s, t), size in sent.items()), "traffic is empty")
    whole = lcm(load.denominator, *(size.denominator for size in sent.values()))
    return n, ports, [[int(sent.get((s, t), 0) * whole) for t in range(n)] for s in range(n)], whole


def paid(demand: list[list[int]], rows: list[tuple[int, ...]], length: list[list[int]]) -> tuple[int, int]:
    """Traffic times distance over circuits to the servers of ``rows``, and the length of all circuits."""
    out: dict[int, list[Any]] = {u: [(v, length[u][v]) for v in set(row)] for u, row in enumerate(rows)}
    traffic = 0
    for s, wanted in enumerate(demand):
        near = distances(out, s)
        traffic += sum(near[t] * size for t, size in enumerate(wanted) if size)
    return traffic, sum(length[u][v] for u, row in enumerate(rows) for v in row)


def wirings(demand: list[list[int]], ports: int, order: list[int], most: int) -> Iterator[list[tuple[int, ...]]]:
    """The circuits by server of every wiring without free ports that may have fewer than ``most`` byte-hops."""
    n, hops, tried = len(demand), least_hops(demand, ports), iter(range(WIRINGS))
    rows: list[tuple[int, ...]] = [()] * n

    def decided(k: int) -> Iterator[list[tuple[int, ...]]]:
        require(next(tried, None) is not None, "there are too many wirings")
        entering = Counter(v for row in rows for v in row)
        left = [ports - entering[v] for v in range(n)]
        if hops(rows, [v for v in range(n) if left[v]]) >= most:
            return
        if k == n:
            yield rows
            return
        for row in combinations_with_replacement([v for v in range(n) if v != order[k] and left[v]], ports):
            if all(row.count(v) <= left[v] for v in row):
                rows[order[k]] = row
                yield from decided(k + 1)
        rows[order[k]] = ()

    return decided(0)


def least_hops(demand: list[list[int]], ports: int) -> Callable[[list[tuple[int, ...]], list[int]], float]:
    """Return a function that bounds the byte-hops of a partial wiring from below. A server with an empty row is
    undecided: its circuits may go to any open server and are taken to reach one more server each."""
    n = len(demand)

    @lru_cache(1 << 18)
    def left(s: int, named: int, near: int, free: int) -> int:
        """Bytes that go beyond the servers in ``named`` and the ``free`` largest targets in ``near``."""
        some = sorted((demand[s][t] for t in members(near & ~named)), reverse=True)[free:]
        return sum(some) + sum(demand[s][t] for t in range(n) if not (near | named) >> t & 1)

    @lru_cache(1 << 18)
    def members(mask: int) -> list[int]:
        return [v for v in range(n) if mask >> v & 1]

    def hops(rows: list[tuple[int, ...]], unfilled: list[int]) -> float:
        to = [sum(1 << v for v in set(row)) for row in rows]
        may = [mask or sum(1 << v for v in unfilled) for mask in to]
        total = 0
        for s in range(n):
            named, layer, wild, free, near = 1 << s, [s], 0, 0, 1 << s  # near: as near in some completion
            for _ in range(n):
                rest = left(s, named, near, free)
                if not rest:
                    break
                total += rest
                wild = wild * ports + sum([ports for v in layer if not rows[v]])
                free += wild
                following = 0
                for v in layer:
                    following |= to[v]
                layer = members(following & ~named)
                named |= following
                for v in members(near):
                    near |= may[v]
            else:
                return inf  # no wiring has a path
        return total

    return hops


def verify(document: Any) -> tuple[Fraction | None, Fraction | None]:
    """Return the ends of the claim if solution and argument prove them; raises Refused if not."""
    require(isinstance(document, dict) and document.get("certificate") == 1, "this is not a certificate of version 1")
    missing, further = PARTS - set(document), set(document) - PARTS - HEADER
    require(not missing and document["kind"] == "wiring", f"missing: {', '.join(sorted(missing)) or 'kind wiring'}")
    require(not further, f"no certificate has {', '.join(sorted(map(str, further)))[:80]}")
    low, high = (None if end is None else number(end) for end in listed(document["claim"], 2))
    require(low is not None or high is not None, "the claim says nothing about the optimal value")
    least, value = wiring(document["problem"], document["solution"], document["argument"])
    require(high is None or (value is not None and value <= high), f"the solution has the value {value}, not {high}")
    require(low is None or (least is not None and least >= low), f"the argument proves {least}, not {low}")
    require(low is None or high is None or low <= high, "the interval of the claim is empty")
    return low, high


def read(path: str) -> Any:
    """The JSON in a file; raises Refused or OSError."""
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as stream:
            content = stream.read(BYTES + 1)
        require(len(content) <= BYTES, f"the file has more than {BYTES} bytes, unpacked")
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
