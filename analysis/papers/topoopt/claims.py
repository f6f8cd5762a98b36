"""Claims of the TopoOpt paper about its theorems and algorithms."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.ledger.claim import Measurement, Measures
from opticoll.analysis.ledger.readings import Readings, Sweep, spread, swept
from opticoll.formulations.topoopt import binary_trees
from opticoll.formulations.topoopt.circuit_design_bounds import lower_bounds
from opticoll.instances import parse
from opticoll.solvers.methods.topoopt import ring_permutations
from opticoll.solvers.methods.topoopt.topology_finder import group_ports, ring_ports, topology_finder

if TYPE_CHECKING:
    from opticoll.analysis.ledger.claim import Laboratory


#: The number of primes up to n is at most this times n / ln n, for every n > 1 (Rosser and Schoenfeld 1962).
PRIMES = 1.25506
MEASURES = Measures("topoopt")


@MEASURES.of("theorem-2")
def _theorem_2(laboratory: Laboratory) -> Measurement:
    wrong, count = [], 0
    most, example = laboratory.scope.values("servers", "rings of 12 servers")
    for n in range(2, most + 1):
        coprime = set(ring_permutations.totient_perms(n))
        for p in range(1, n):
            count += 1
            if ring_permutations.is_single_ring(n, p) != (p in coprime):
                wrong.append(f"n={n}, p={p}")
    walked = [p for p in range(1, 12) if ring_permutations.is_single_ring(12, p)]
    if walked != example:
        wrong.append(f"12 servers: {walked}, not {example}")
    return swept(wrong, count, {"steps of single rings among 12 servers": walked}, (f"n = 2 .. {most}, every p < n",))


@MEASURES.of("theorem-1")
def _theorem_1(laboratory: Laboratory) -> Measurement:
    sweep = Sweep()
    most, degrees = laboratory.scope.values("servers", "degree")
    for n, d in product(range(2, most + 1), range(1, degrees + 1)):
        longest = ring_permutations.diameter(n, ring_permutations.selected(n, d))
        bound = ring_permutations.theorem_1(n, d)
        case = f"n={n}, d={d}: diameter {longest}, d n^(1/d) = {bound:.3f}"
        sweep.add(bound / longest, holds=longest <= bound, size=n, case=case)
    return sweep.measurement(
        {"largest diameter / (d n^(1/d))": max(1 / r for r in sweep.ratios)}, (f"n = 2 .. {most}, d = 1 .. {degrees}",)
    )


@MEASURES.of("binary-rings")
def _binary(laboratory: Laboratory) -> Measurement:
    most, ratios = laboratory.scope["servers"], {}
    for n in range(3, most + 1):
        steps = ring_permutations.select_permutations(
            n, math.ceil(math.log2(n)), ring_permutations.totient_perms(n), ratio=2.0
        )
        ratios[n] = ring_permutations.diameter(n, steps) / math.log2(n)
    largest = max(ratios, key=lambda n: ratios[n])
    limit = laboratory.scope["largest diameter / log2(n)"]
    wrong = [f"n={n}: diameter {ratio:.3f} log2(n)" for n, ratio in ratios.items() if ratio > limit]
    return swept(
        wrong,
        len(ratios),
        {"largest diameter / log2(n)": ratios[largest]},
        (f"n = 3 .. {most}, ratio 2",),
        f"The largest ratio is that of n = {largest} (3 hops, log2 of 6 is 2.58); for all other n the diameter is at "
        "most log2(n).",
        tightness=spread(list(ratios.values())),
    )


@MEASURES.of("kappa")
def _kappa(laboratory: Laboratory) -> Measurement:
    larger, degrees = laboratory.scope.values("x", "degree")
    most = {
        (x, d): ring_permutations.geometric_coins(x, d) for x in range(2, larger + 1) for d in range(1, degrees + 1)
    }
    exact = [pair for pair, coins in most.items() if coins != pair[0] * pair[1]]
    above = [pair for pair, coins in most.items() if coins > pair[0] * pair[1]]
    choices = Readings("statement")
    choices.add("kappa(n-1) = d x exactly", not exact, most[larger, degrees])
    choices.add("an upper bound of the order d n^(1/d)", not above, f"{len(above)} cases above d x")
    return choices.measurement(
        (f"x = 2 .. {larger}, d = 1 .. {degrees}",),
        measured=choices.agreement,
        saved_by="d (x - 1) in place of d x",
        count=len(most),
        tightness=spread([x * d / coins for (x, d), coins in most.items()]),
    )


@MEASURES.of("primes")
def _primes(laboratory: Laboratory) -> Measurement:
    most = laboratory.scope["servers"]
    ratios = {
        n: (len(ring_permutations.totient_perms(n, primes=True)) - 1) / (n / math.log(n)) for n in range(17, most + 1)
    }
    wrong = [f"n={n}: {ratio:.4f} n / ln n" for n, ratio in ratios.items() if ratio > PRIMES]
    values = list(ratios.values())
    return swept(
        wrong,
        len(values),
        {"largest number of prime steps / (n / ln n)": max(values)},
        (f"n = 17 .. {most}",),
        f"At most {PRIMES}, the constant that holds for the number of primes up to any n.",
        tightness=spread(values),
    )


@MEASURES.of("coin-change")
def _coin_change(laboratory: Laboratory) -> Measurement:
    import scipy.sparse as sp
    from scipy.sparse.csgraph import dijkstra

    sweep = Sweep()
    most, degrees = laboratory.scope.values("servers", "degrees")
    for n, d in product(range(2, most + 1), degrees):
        coins = sorted(set(ring_permutations.selected(n, d)))
        distance, last = ring_permutations.coin_table(n, coins)
        tail = np.repeat(np.arange(n), len(coins))
        graph = sp.csr_array((np.ones(tail.size), (tail, (tail + np.tile(coins, n)) % n)), shape=(n, n))
        true = dijkstra(graph, indices=0, unweighted=True)
        routed = [len(ring_permutations.coin_sequence(n, last, m)) for m in range(n)]
        longest = max(a / b for a, b in zip(routed[1:], true[1:], strict=True))
        holds = np.array_equal(true, distance) and np.array_equal(true, routed)
        sweep.add(longest, holds=holds, size=n, case=f"n={n}, coins {coins}")
    return sweep.measurement(
        {"longest route / shortest path": max(sweep.ratios)}, (f"n = 2 .. {most}, d in {degrees}",)
    )


@MEASURES.of("algorithm-4")
def _coin_print(laboratory: Laboratory) -> Measurement:
    most, degrees = laboratory.scope.values("servers", "degrees")
    cases, coins_wrong, relays_wrong = 0, [], []
    for n in range(3, most + 1):
        for d in degrees:
            coins = sorted(set(ring_permutations.selected(n, d)))
            printed, hops = ring_permutations.as_printed(n, coins), ring_permutations.hops(n, coins)
            cases += 1
            if printed is None or not np.array_equal(printed[1:], hops[1:]):
                coins_wrong.append(f"n={n}, coins {coins}")
            if printed is None or not np.array_equal(printed[1:], hops[1:] - 1):
                relays_wrong.append(f"n={n}, coins {coins}")
    choices = Readings("distance")
    choices.add("number of coins, as its comment says", not coins_wrong, f"wrong in {len(coins_wrong)}")
    choices.add("number of servers that forward", not relays_wrong, f"wrong in {len(relays_wrong)}")
    return choices.measurement(
        (f"n = 3 .. {most}, d in {degrees}",),
        measured=choices.agreement,
        saved_by="1 in place of 0 in line 8",
        count=cases,
    )


@MEASURES.of("algorithm-1")
def _line_10(laboratory: Laboratory) -> Measurement:
    pool = parse(laboratory.scope["job"])
    rings, most = group_ports(pool), ring_ports(pool)
    choices = Readings("the line")
    for words, given in (("as printed", [max(1, count) for count in rings]), ("d_A == 0", rings)):
        choices.add(words, sum(given) <= most, sum(given))
    return choices.measurement(
        (pool.spec,),
        f"Rings of all groups, of d_A = {most}; by line 6 the groups have {', '.join(map(str, rings))}.",
        saved_by="d_A in place of d_AllReduce",
    )


@MEASURES.of("algorithm-2")
def _line_6(laboratory: Laboratory) -> Measurement:
    most, choices = laboratory.scope["servers"], Readings("the line")
    steps = [(n, p) for n in range(3, most + 1) for p in ring_permutations.totient_perms(n)]
    for words, modulus in (("as printed", most * most), ("(i + j p) mod k", 0)):
        wrong = [(n, p) for n, p in steps if {j * p % (modulus or n) for j in range(n)} != set(range(n))]
        choices.add(words, not wrong, f"wrong for {len(wrong)} of {len(steps)} rings")
    return choices.measurement(
        (f"n = k = 3 .. {most}",),
        f"With 12 servers and p = 5 the ring is {', '.join(str(5 * j) for j in range(12))}. The text has the modulus.",
        saved_by="(i + j p) mod k in place of i + j p",
        count=len(steps),
    )


def printed_reconfig(demand: np.ndarray, degree: int, visits: int) -> list[tuple[int, int]]:
    """Circuits of Algorithm 5, lines 2-20, where a circuit takes ``visits`` interfaces at each of its ends."""
    demand, out, into = demand.copy(), np.full(len(demand), degree), np.full(len(demand), degree)
    circuits: list[tuple[int, int]] = []
    while demand.any() and (np.outer(out > 0, into > 0) & ~np.eye(len(demand), dtype=bool)).any():
        u, v = divmod(int(demand.argmax()), len(demand))
        circuits.append((u, v))
        demand[u, v] /= 2
        out[u] -= visits
        into[v] -= visits
        demand[out == 0, :] = 0.0
        demand[:, into == 0] = 0.0
    return circuits


@MEASURES.of("algorithm-5")
def _line_12(laboratory: Laboratory) -> Measurement:
    n, (even, odd), seed = laboratory.scope.values("servers", "degrees", "seed")
    specs = [f"servers:n={n},degree={degree},traffic=random,seed={seed}" for degree in (even, odd)]
    choices = Readings("the line")
    for words, visits in (("as printed", 2), ("once", 1)):
        two, three = (printed_reconfig(parse(s).traffic, d, visits) for s, d in zip(specs, (even, odd), strict=True))
        busiest = max(Counter(end for pair in three for end in enumerate(pair)).values())
        found = {f"circuits, d = {even}": len(two), f"circuits of a server, d = {odd}": busiest}
        choices.add(words, busiest <= odd and len(two) >= n * even - 1, found)
    return choices.measurement(tuple(specs), saved_by="once")


@MEASURES.of("one-failure")
def _failure(laboratory: Laboratory) -> Measurement:
    import networkx as nx

    wrong, count = [], 0
    most, degrees = laboratory.scope.values("servers", "degrees")
    for n in range(3, most + 1):
        for d in degrees:
            coins = sorted(set(ring_permutations.selected(n, d)))
            graph: nx.MultiDiGraph[int] = nx.MultiDiGraph(
                [(i, (i + p) % n) for i in range(n) for p in ring_permutations.selected(n, d)]
            )
            for p in coins:  # by symmetry one circuit of each ring represents all
                graph.remove_edge(0, p)
                count += 1
                if not nx.is_strongly_connected(graph):
                    wrong.append(f"n={n}, d={d}: circuit +{p}")
                graph.add_edge(0, p)
    return swept(
        wrong,
        count,
        f"{count - len(wrong)} of {count} failures leave the servers connected",
        (f"n = 3 .. {most}, d in {degrees}, every circuit",),
    )


@MEASURES.of("double-trees")
def _trees(laboratory: Laboratory) -> Measurement:
    sweep, most = Sweep(), laboratory.scope["servers"]
    for n in range(2, most + 1, 2):
        trees = binary_trees.double_binary_tree(n)
        sent = binary_trees.tree_traffic(trees, 1.0).sum(axis=1)
        roots = [int(np.flatnonzero(parent < 0)[0]) for parent in trees]
        inner = np.delete(sent, roots)
        even = bool(np.allclose(inner, 2.0)) and sent.max() <= 2.0 + 1e-9
        sweep.add(float(inner.min() / inner.max()) if inner.size else 1.0, holds=even, size=n, case=f"n={n}")
    return sweep.measurement("2 S bytes per server", (f"even n = 2 .. {most}",))


@MEASURES.of("direct-rings")
def _direct(laboratory: Laboratory) -> Measurement:
    sweep = Sweep()
    models, degrees, n = laboratory.scope.values("models", "degrees", "servers")
    for name, degree in product(models, degrees):
        pool = parse(f"servers:n={n},degree={degree},traffic={name},section=5.3,parallel=data")
        design = topology_finder(pool)
        ratio = design.max_load / lower_bounds(pool)["max-load"].value
        holds = all(math.isclose(value, 1.0, rel_tol=1e-9) for value in (ratio, design.bandwidth_tax))
        sweep.add(ratio, holds=holds, size=degree, case=f"{name}, d={degree}")
    return sweep.measurement(
        {"largest communication time / ideal switch": max(sweep.ratios)},
        (f"{', '.join(models)}, data parallel, n = {n}, d = {', '.join(map(str, degrees))}",),
        value=round(max(sweep.ratios), 9),
    )
