"""Claims of the TopoOpt paper about its theorems, algorithms, examples and traffic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.ledger.claim import Claims, Measurement, verdict_if
from opticoll.analysis.ledger.printed_number import PrintedNumber
from opticoll.analysis.ledger.readings import Readings, spread, swept
from opticoll.formulations.topoopt.circuit_design import lower_bounds
from opticoll.instances import parse
from opticoll.instances.training_jobs import NUMBER_BYTES, traffic_of, training_job
from opticoll.solvers.methods.topoopt import binary_trees, coin_routing, ring_permutations
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.analysis.ledger.claim import Laboratory


#: The number of primes up to n is at most this times n / ln n, for every n > 1 (Rosser and Schoenfeld 1962).
PRIMES = 1.25506
CLAIMS = Claims("topoopt")


# rings ----------------------------------------------------------------------------------------------------------


@CLAIMS.stated(
    "theorem-2",
    "Theorem 2, section 4.3",
    "For p < n the rule +p gives one ring through all n servers, a different one for every p, if gcd(p, n) = 1; "
    "12 servers have four: +1, +5, +7, +11",
    "always",
    scope={"servers": 256, "rings of 12 servers": [1, 5, 7, 11]},
    weight=2,
    procedure="We walk every +p ring for every n and compare with gcd(p, n) = 1.",
)
def _theorem_2(laboratory: Laboratory) -> Measurement:
    wrong, count = [], 0
    most, example = laboratory.scope["servers"], laboratory.scope["rings of 12 servers"]
    for n in range(2, most + 1):
        coprime = set(ring_permutations.totient_perms(n))
        for p in range(1, n):
            count += 1
            if ring_permutations.is_single_ring(n, p) != (p in coprime):
                wrong.append(f"n={n}, p={p}")
    walked = [p for p in range(1, 12) if ring_permutations.is_single_ring(12, p)]
    if walked != example:
        wrong.append(f"12 servers: {walked}, not {example}")
    return swept(
        wrong,
        count,
        {"steps of single rings among 12 servers": walked},
        (f"n = 2 .. {most}, every p < n",),
        "Every +p ring is walked. Different p give different rings, since server 0 is followed by p.",
    )


@CLAIMS.stated(
    "theorem-1",
    "Theorem 1, appendix E.2",
    "Under certain assumptions the diameter of the d selected rings of n servers is O(d n^(1/d))",
    "diameter / (d n^(1/d)) <= 1",
    scope={"servers": 512, "degree": 8},
    weight=2,
    procedure="We select the rings by Algorithm 3 and compute the diameter by breadth-first search, without the "
    "assumptions of the proof.",
)
def _theorem_1(laboratory: Laboratory) -> Measurement:
    wrong, ratios = [], []
    most, degrees = laboratory.scope["servers"], laboratory.scope["degree"]
    for n in range(2, most + 1):
        for d in range(1, degrees + 1):
            longest, bound = (
                ring_permutations.diameter(n, ring_permutations.selected(n, d)),
                ring_permutations.theorem_1(n, d),
            )
            ratios.append(bound / longest)
            if longest > bound:
                wrong.append(f"n={n}, d={d}: diameter {longest}, d n^(1/d) = {bound:.3f}")
    return swept(
        wrong,
        len(ratios),
        {"largest diameter / (d n^(1/d))": max(1 / r for r in ratios)},
        (f"n = 2 .. {most}, d = 1 .. {degrees}",),
        "The diameter never exceeds d n^(1/d), even with constant 1, although the steps are projected to coprime "
        "numbers. The sweep supports the order but cannot prove it for all n.",
        tightness=spread(ratios),
    )


@CLAIMS.stated(
    "binary-rings",
    "appendix E.2",
    "If n^(1/d) < 2, rings whose steps are near the powers of 2 keep the diameter at O(log2 n)",
    "diameter / log2(n) <= 1.2",
    "bounded by a constant",
    scope={"servers": 512, "largest diameter / log2(n)": 1.2},
    procedure="We choose log2 n rings, rounded up, whose steps are the coprime numbers nearest to twice the step "
    "before, and compute the diameter for every n.",
)
def _binary(laboratory: Laboratory) -> Measurement:
    """Measure the diameter of ceil(log2 n) rings with steps near 1, 2, 4, ...."""
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


@CLAIMS.stated(
    "kappa",
    "appendix E.2",
    "With coins 1, x, ..., x^(d-1) and n = x^d, the amount n - 1 needs the most coins, namely d x",
    "d x",
    scope={"x": 8, "degree": 4},
    procedure="We compute the fewest coins of every amount by dynamic programming.",
)
def _kappa(laboratory: Laboratory) -> Measurement:
    larger, degrees = laboratory.scope["x"], laboratory.scope["degree"]
    most = {(x, d): coin_routing.geometric_coins(x, d) for x in range(2, larger + 1) for d in range(1, degrees + 1)}
    exact = [pair for pair, coins in most.items() if coins != pair[0] * pair[1]]
    above = [pair for pair, coins in most.items() if coins > pair[0] * pair[1]]
    choices = Readings("statement")
    choices.add("kappa(n-1) = d x exactly", not exact, f"d (x - 1) in all {len(exact)} cases")
    choices.add("an upper bound of the order d n^(1/d)", not above, f"{len(above)} cases above d x")
    return choices.measurement(
        (f"x = 2 .. {larger}, d = 1 .. {degrees}",),
        "The greedy digits of n - 1 = x^d - 1 are all x - 1, so d (x - 1) coins are needed. The appendix argues for an "
        "order of magnitude, which this does not change.",
        choices.agreement,
        count=len(most),
        tightness=spread([x * d / coins for (x, d), coins in most.items()]),
    )


@CLAIMS.stated(
    "primes",
    "section 4.3",
    "Restricting the steps of rings to primes reduces the search space to O(n / ln n)",
    "bounded by a constant",
    scope={"servers": 2048},
    procedure="We count the prime steps for every n.",
)
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


@CLAIMS.stated(
    "coin-change",
    "appendix E.3",
    "CoinChangeMod routes over the selected rings with the fewest hops",
    "always",
    scope={"servers": 128, "degrees": [1, 2, 3, 4, 8]},
    weight=2,
    procedure="We compare its routes with Dijkstra's algorithm for every distance.",
)
def _coin_change(laboratory: Laboratory) -> Measurement:
    import scipy.sparse as sp
    from scipy.sparse.csgraph import dijkstra

    wrong, ratios = [], []
    most, degrees = laboratory.scope["servers"], laboratory.scope["degrees"]
    for n in range(2, most + 1):
        for d in degrees:
            coins = sorted(set(ring_permutations.selected(n, d)))
            distance, last = coin_routing.coin_table(n, coins)
            tail = np.repeat(np.arange(n), len(coins))
            graph = sp.csr_array((np.ones(tail.size), (tail, (tail + np.tile(coins, n)) % n)), shape=(n, n))
            true = dijkstra(graph, indices=0, unweighted=True)
            routed = [len(coin_routing.coin_sequence(n, last, m)) for m in range(n)]
            ratios.append(max(a / b for a, b in zip(routed[1:], true[1:], strict=True)))
            if not np.array_equal(true, distance) or not np.array_equal(true, routed):
                wrong.append(f"n={n}, coins {coins}")
    return swept(
        wrong,
        len(ratios),
        {"longest route / shortest path": max(ratios)},
        (f"n = 2 .. {most}, d in {degrees}",),
        "The number of coins equals the distance in the circulant graph for every pair.",
        tightness=spread(ratios),
    )


@CLAIMS.stated(
    "algorithm-4",
    "Algorithm 4, lines 5-8",
    "In Algorithm 4 (CoinChangeMod), curr_dist is the number of coins needed for every distance",
    "number of coins",
    scope={"servers": 64, "degrees": [2, 3, 4]},
    procedure="We run the algorithm as printed, and compare its distances with breadth-first search.",
)
def _coin_print(laboratory: Laboratory) -> Measurement:
    most, degrees = laboratory.scope["servers"], laboratory.scope["degrees"]
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
        "Line 8 starts a coin at distance 0, so every distance is one less than the number of coins. Line 20 uses the "
        "back trace alone, and the routes are shortest.",
        choices.agreement,
        count=cases,
    )


@CLAIMS.stated(
    "one-failure",
    "section 7",
    "A single link failure does not disconnect the servers of a TopoOpt network",
    "never",
    scope={"servers": 48, "degrees": [2, 3, 4, 5]},
    procedure="We remove every circuit in turn and test strong connectivity.",
)
def _failure(laboratory: Laboratory) -> Measurement:
    import networkx as nx

    wrong, count = [], 0
    most, degrees = laboratory.scope["servers"], laboratory.scope["degrees"]
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
        "Rings of data-parallel jobs with one circuit removed, one for each ring (the others are symmetric).",
    )


@CLAIMS.stated(
    "double-trees",
    "appendix A",
    "In a double binary tree every server except the roots of the two trees sends the same amount",
    "always",
    scope={"servers": 256},
    procedure="We build both trees and add up what every server sends.",
)
def _trees(laboratory: Laboratory) -> Measurement:
    wrong, ratios, most = [], [], laboratory.scope["servers"]
    for n in range(2, most + 1, 2):
        trees = binary_trees.double_binary_tree(n)
        sent = binary_trees.tree_traffic(trees, 1.0).sum(axis=1)
        roots = [int(np.flatnonzero(parent < 0)[0]) for parent in trees]
        inner = np.delete(sent, roots)
        ratios.append(float(inner.min() / inner.max()) if inner.size else 1.0)
        if not np.allclose(inner, 2.0) or sent.max() > 2.0 + 1e-9:
            wrong.append(f"n={n}")
    return swept(
        wrong,
        len(ratios),
        "2 S bytes per server",
        (f"even n = 2 .. {most}",),
        "All servers except the roots of the two trees send 2 S bytes, with half of S in each tree.",
        tightness=spread(ratios),
    )


@CLAIMS.stated(
    "direct-rings",
    "section 5.3, figure 11a-c",
    "On 128 servers TopoOpt performs like an ideal switch for CANDLE, and similarly for VGG and BERT, whose best "
    "strategies are mostly data parallel",
    1.0,
    scope={"models": ["candle", "vgg", "bert"], "degrees": [4, 8], "servers": 128},
    weight=2,
    procedure="We run TopologyFinder on the data-parallel traffic and compare the load of the busiest circuit "
    "with what an ideal switch of the same bandwidth needs.",
)
def _direct(laboratory: Laboratory) -> Measurement:
    wrong, ratios = [], []
    models, degrees, n = (laboratory.scope[name] for name in ("models", "degrees", "servers"))
    for name in models:
        for degree in degrees:
            pool = parse(f"servers:n={n},degree={degree},traffic={name},section=5.3,parallel=data")
            design = topology_finder(pool)
            ratios.append(design.max_load / lower_bounds(pool)["max-load"].value)
            if not math.isclose(ratios[-1], 1.0, rel_tol=1e-9) or not math.isclose(
                design.bandwidth_tax, 1.0, rel_tol=1e-9
            ):
                wrong.append(f"{name}, d={degree}")
    return swept(
        wrong,
        len(ratios),
        {"largest communication time / ideal switch": max(ratios)},
        (f"{', '.join(models)}, data parallel, n = {n}, d = {', '.join(map(str, degrees))}",),
        "The busiest circuit carries what a server sends over d: no byte is forwarded. Equal communication times give "
        "equal iteration times, whatever the computation takes.",
        tightness=spread(ratios),
    )


# traffic --------------------------------------------------------------------------------------------------------


@CLAIMS.stated(
    "dlrm-size",
    "section 2.1; appendix D",
    "A DLRM with 4 tables of 512 columns and 10^7 rows has 22 GB in total; the tables of the example have 20 GB",
    22,
    "20 to 22 GB of tables",
    scope={"tables": 4, "columns": 512, "rows": 10**7, "printed [GB]": "22"},
    procedure="We count the entries of the tables and try 1, 2, 4 and 8 bytes for each.",
)
def _dlrm_size(laboratory: Laboratory) -> Measurement:
    tables, columns, rows = (laboratory.scope[name] for name in ("tables", "columns", "rows"))
    printed, numbers = PrintedNumber(laboratory.scope["printed [GB]"]), tables * columns * rows
    size = {f"{width} bytes": width * numbers / 1e9 for width in (1, 2, 4, 8)}
    choices = Readings("bytes of an entry")
    for name, value in size.items():
        choices.add(
            f"{name}{', as in appendix D' if name == '8 bytes' else ''}",
            printed.value - 2 <= value <= printed.value,
            value,
        )
    return choices.measurement(
        ("section 2.1's DLRM",),
        f"The tables have {numbers / 1e9:.2f} billion entries. Section 2.1 does not say how many bytes an entry has; "
        "with one byte they fit the 20 GB of tables in appendix D and leave less than 2 GB for the rest of the model. "
        "Appendix D counts 8 bytes; its example does not repeat the dimensions.",
        choices.agreement,
    )


def ring_bytes(size: float, servers: int) -> dict[str, float]:
    """Bytes per server of an all-reduce of this size, under the two conventions of the paper."""
    return {
        "2 (k-1)/k of the data, what a server of a ring sends": 2 * (servers - 1) / servers * size,
        "twice the data, one reduction and one broadcast": 2 * size,
    }


@CLAIMS.stated(
    "all-reduce-44",
    "section 2.1, figure 1a; appendix D",
    "Data parallelism on 16 servers results in 44 GB of all-reduce transfers for a model of 22 GB",
    44,
    PrintedNumber("44").tolerance,
    scope={"servers": 16, "data [GB]": 22, "printed [GB]": "44"},
    procedure="We apply the rule of appendix D, and twice the data.",
)
def _reduce(laboratory: Laboratory) -> Measurement:
    servers, sizes, printed = (laboratory.scope[name] for name in ("servers", "data [GB]", "printed [GB]"))
    number = PrintedNumber(printed)
    choices = Readings("all-reduce of the data")
    for name, value in ring_bytes(sizes, servers).items():
        choices.add(name, number.holds(value), value)
    return choices.measurement(
        (f"{servers} servers, {sizes} GB",),
        "Section 2.1 does not state how it counts. Its two numbers, 44 GB for 22 GB and 4 GB for the 2 GB left besides "
        "20 GB of tables, are twice the data. Appendix D counts what a server sends, 37.5 GB for 20 GB; the same rule "
        "gives 41.25 GB for 22 GB.",
        choices.agreement,
    )


@CLAIMS.stated(
    "hybrid-transfer",
    "section 2.1, figure 1",
    "Hybrid parallelism reduces the largest transfer of a DLRM of 22 GB on 16 servers from 44 GB to 4 GB",
    [44, 4],
    "rounds to the printed digits",
    scope={"servers": 16, "model [GB]": 22, "tables [GB]": 20, "printed, before and after [GB]": ["44", "4"]},
    procedure="We compute the all-reduce of the model, and of the model without its tables.",
)
def _hybrid(laboratory: Laboratory) -> Measurement:
    servers, model, tables = (laboratory.scope[name] for name in ("servers", "model [GB]", "tables [GB]"))
    whole, rest = (PrintedNumber(text) for text in laboratory.scope["printed, before and after [GB]"])
    before, after = ring_bytes(model, servers), ring_bytes(model - tables, servers)
    choices = Readings("all-reduce of the data")
    for name in before:
        choices.add(name, whole.holds(before[name]) and rest.holds(after[name]), [before[name], after[name]])
    return choices.measurement(
        (f"{servers} servers, {model} GB, of which {tables} GB are tables",),
        "The size of the part that stays replicated is not stated; it is what appendix D's tables leave. "
        "Transfers of rows are 32 MB, so the largest transfer is an all-reduce.",
        choices.agreement,
    )


@CLAIMS.stated(
    "all-reduce-size",
    "appendix D",
    "Under data parallelism each of 16 servers sends 37.5 GB for an all-reduce of 20 GB, in 3 s at 100 Gb/s",
    [37.5, 3],
    "rounds to the printed digits",
    scope={"servers": 16, "data [GB]": 20, "link [Gb/s]": 100, "printed": ["37.5", "3"]},
    procedure="We count the bytes of a ring all-reduce.",
)
def _reduce_size(laboratory: Laboratory) -> Measurement:
    servers, data, link, printed = (
        laboratory.scope[name] for name in ("servers", "data [GB]", "link [Gb/s]", "printed")
    )
    sent = 2 * (servers - 1) / servers * data
    seconds = 8 * sent / link
    good = PrintedNumber(printed[0]).holds(sent) and PrintedNumber(printed[1]).holds(seconds)
    return Measurement(
        {"sent [GB]": sent, "time [s]": seconds},
        verdict_if(good),
        (f"{servers} servers, {data} GB",),
        "A ring sends 2 (k-1)/k of the data over every hop; sending and receiving overlap.",
    )


@CLAIMS.stated(
    "transfer-size",
    "section 2.1; appendix D",
    "A model-parallel transfer of the example DLRM has 32 MB",
    32,
    PrintedNumber("32").tolerance,
    scope={"servers": 16, "printed [MB]": "32"},
    procedure="We add up the activations of appendix D.",
)
def _transfer_size(laboratory: Laboratory) -> Measurement:
    spec = f"servers:n={laboratory.scope['servers']},degree=3,traffic=dlrm"
    size = float(parse(spec).point_to_point[0, 1])
    number = PrintedNumber(laboratory.scope["printed [MB]"])
    choices = Readings("MB")
    choices.add("2^20 bytes", number.holds(size / 2**20), size / 2**20, natural=True)
    choices.add("10^6 bytes", number.holds(size / 1e6), size / 1e6)
    return choices.measurement(
        (spec,), "8192 samples with 512 activations of 8 bytes are 32 * 2^20 bytes.", choices.agreement
    )


def dlrm_weights(servers_section: str) -> dict[str, float]:
    """Dense weights of the DLRM of a section of List 1, under each structure that the list leaves open.

    List 1 has a stack of dense layers and a stack of feature layers, and does not say which of the two is at the
    bottom, nor what connects the stacks with the tables. The authors' scripts have the dense layers at the bottom.
    """
    job = training_job("dlrm", servers_section)
    layers, width, features, feature_width = {
        "5.4": (8, 2048, 16, 4096),
        "6": (4, 1024, 8, 2048),
    }[servers_section]
    columns, count = job.tables[0].columns, job.tables[0].count
    stacks = layers * (width + 1) * width + features * (feature_width + 1) * feature_width
    bare = float(stacks + ((count + 1) * columns + 1) * width + width + 1)
    return {
        "dense layers at the bottom, as in the authors' scripts": float(job.dense_weights),
        "features at the bottom, one layer to the width of a table": bare + (feature_width + 1) * columns,
        "features at the bottom, no such layer": bare,
    }


def _share(section: str, note: str) -> Callable[[Laboratory], Measurement]:
    def measure(laboratory: Laboratory) -> Measurement:
        servers, printed = laboratory.scope["servers"], laboratory.scope["printed, by batch [%]"]
        rounding = laboratory.scope["labels"]
        direct = {
            batch: float(traffic_of(training_job("dlrm", section, int(batch)), servers)[0].sum()) for batch in printed
        }
        choices = Readings("structure; all-reduce bytes; rounding")
        for structure, weights in dlrm_weights(section).items():
            for count, factor in (("gradients", 1.0), ("what rings send", 2 * (servers - 1) / servers)):
                share = {
                    batch: 100 * size / (factor * servers * NUMBER_BYTES * weights) for batch, size in direct.items()
                }
                for name in ("nearest", "up") if rounding == "one significant digit" else ("nearest",):
                    holds = all(_label(share[batch], text, name) for batch, text in printed.items())
                    choices.add(
                        f"{structure}; {count}; {name}", holds, " ".join(f"{value:.4g}" for value in share.values())
                    )
        return choices.measurement(
            (f"servers:n={servers},degree=4,traffic=dlrm,section={section}",),
            "Point-to-point bytes in both directions over the bytes of all-reduce, summed over all servers. " + note,
            choices.agreement,
        )

    return measure


def _label(share: float, text: str, rounding: str) -> bool:
    """Whether a share gets this label: rounded to its digits, or up to its last nonzero digit."""
    if rounding == "nearest":
        return PrintedNumber(text).holds(share)
    step = 10 ** (len(text) - 1)
    return math.ceil(share / step - 1e-9) * step == int(text)


CLAIMS.stated(
    "all-to-all-share",
    "section 5.4, figure 12 (labels of an axis)",
    "With 128 tables on 128 servers the all-to-all traffic is 3, 5, 10, 20, 40 and 80 % of the all-reduce "
    "traffic at batch sizes 64 to 2048 per GPU",
    {64: 3, 128: 5, 256: 10, 512: 20, 1024: 40, 2048: 80},
    "one significant digit, to the nearest or up",
    scope={
        "servers": 128,
        "labels": "one significant digit",
        "printed, by batch [%]": {"64": "3", "128": "5", "256": "10", "512": "20", "1024": "40", "2048": "80"},
    },
    weight=2,
    procedure="We compute both kinds of traffic from List 1, for every structure that it leaves open.",
)(
    _share(
        "5.4",
        "The shares double from batch to batch, as the labels do from 5 to 80. At batch 64 they are "
        "2.4 to 2.5 %, which is 3 only if rounded up.",
    )
)


CLAIMS.stated(
    "testbed-share",
    "section 6, figure 21 (labels of an axis)",
    "On the testbed of 12 servers the all-to-all traffic is 5, 10, 19, 39 and 78 % of the all-reduce traffic at "
    "batch sizes 32 to 512",
    {32: 5, 64: 10, 128: 19, 256: 39, 512: 78},
    "rounds to the printed digits",
    scope={
        "servers": 12,
        "labels": "two digits",
        "printed, by batch [%]": {"32": "5", "64": "10", "128": "19", "256": "39", "512": "78"},
    },
    procedure="We compute both kinds of traffic from List 1, for every structure that it leaves open.",
)(
    _share(
        "6",
        "The labels fit the gradients of a model without a layer between the bottom stack and the width "
        "of a table; List 1 mentions none.",
    )
)


@CLAIMS.stated(
    "optical-switches",
    "appendix B, Table 1",
    "Compared with a patch panel, a port of an OCS is five times as expensive, it has three times fewer ports, "
    "and it reconfigures four orders of magnitude faster (10 ms against several minutes)",
    [5, 3, 4],
    "rounds to the printed digits",
    scope={
        "cost of a port [$]": [100, 520],
        "ports": [1008, 384],
        "latency [s]": 0.01,
        "orders of magnitude": 4,
        "times": {"cost of a port": 5, "ports": 3},
    },
    procedure="We divide the numbers of Table 1.",
)
def _switches(laboratory: Laboratory) -> Measurement:
    """Appendix B's comparison of an OCS with a patch panel."""
    cost, ports, latency = (laboratory.scope[name] for name in ("cost of a port [$]", "ports", "latency [s]"))
    orders = laboratory.scope["orders of magnitude"]
    ratios = {"cost of a port": cost[1] / cost[0], "ports": ports[0] / ports[1]}
    times = laboratory.scope["times"]
    plain = all(PrintedNumber(str(times[name])).holds(value) for name, value in ratios.items())
    choices = Readings("several minutes")
    for minutes in (2, 3, 5, 10):
        faster = math.log10(60 * minutes / latency)
        choices.add(
            f"{minutes} min",
            plain and round(faster) == orders,
            {**ratios, "orders of magnitude": faster},
            natural=minutes == 3,
        )
    return choices.measurement(
        ("Table 1, appendix B",),
        "The ratios round to five and three; the orders of magnitude depend on what 'several minutes' means.",
        choices.agreement,
    )
