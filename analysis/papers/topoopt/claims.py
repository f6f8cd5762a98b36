"""Claims of the TopoOpt paper about its theorems, algorithms, examples and traffic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.ledger.claim import Claim, Measurement, PrintedNumber, Verdict
from opticoll.analysis.ledger.sweeps import spread
from opticoll.formulations.topoopt.design import lower_bounds
from opticoll.instances import parse
from opticoll.instances.training_jobs import NUMBER_BYTES, traffic_of, training_job
from opticoll.solvers.methods.topoopt import totient_rings as rings
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opticoll.analysis.ledger.claim import Laboratory

PAPER = "topoopt"
#: The number of primes up to n is at most this times n / ln n, for every n > 1 (Rosser and Schoenfeld 1962).
PRIMES = 1.25506


def swept(wrong: Sequence[str], count: int, measured: Any, where: str, reason: str, **more: Any) -> Measurement:
    """The measurement of a sweep: reproduced if no case is wrong, and the first wrong case as counterexample."""
    verdict = Verdict.NOT_REPRODUCED if wrong else Verdict.REPRODUCED
    return Measurement(
        measured, verdict, (where,), reason, count, len(wrong), counterexample=wrong[0] if wrong else None, **more
    )


# rings ----------------------------------------------------------------------------------------------------------


def _theorem_2(_: Laboratory) -> Measurement:
    wrong, count = [], 0
    for n in range(2, 257):
        coprime = set(rings.totient_perms(n))
        for p in range(1, n):
            count += 1
            if rings.is_single_ring(n, p) != (p in coprime):
                wrong.append(f"n={n}, p={p}")
    return swept(
        wrong,
        count,
        f"{count - len(wrong)} of {count}",
        "n = 2 .. 256, every p < n",
        "Every +p ring is walked. An equivalence has no ratio.",
    )


def _twelve(_: Laboratory) -> Measurement:
    walked = [p for p in range(1, 12) if rings.is_single_ring(12, p)]
    agree = walked == [1, 5, 7, 11]
    return Measurement(
        walked, Verdict.REPRODUCED if agree else Verdict.NOT_REPRODUCED, ("12 servers",), "Every ring is walked."
    )


def _theorem_1(_: Laboratory) -> Measurement:
    wrong, ratios = [], []
    for n in range(2, 513):
        for d in range(1, 9):
            here, bound = rings.diameter(n, rings.selected(n, d)), rings.theorem_1(n, d)
            ratios.append(bound / here)
            if here > bound:
                wrong.append(f"n={n}, d={d}: diameter {here}, d n^(1/d) = {bound:.3f}")
    reason = (
        "The diameter never exceeds d n^(1/d), even with constant 1, although the steps are projected to coprime "
        "numbers."
    )
    return swept(wrong, len(ratios), max(1 / r for r in ratios), "n = 2 .. 512, d = 1 .. 8", reason,
                  tightness=spread(ratios))  # fmt: skip


def _kappa(_: Laboratory) -> Measurement:
    wrong, ratios = [], []
    for ratio in range(2, 9):
        for d in range(1, 5):
            computed = rings.geometric_coins(ratio, d)
            ratios.append(d * ratio / computed)
            if computed != d * ratio:
                wrong.append(f"x={ratio}, d={d}: {computed}, not {d * ratio}")
    reason = (
        "The greedy digits of x^d - 1 are all x - 1, so d (x - 1) coins are needed for every x and d; d x is an upper "
        "bound, too large by d. Tightness: d x over the number of coins."
    )
    return swept(wrong, len(ratios), "d (x - 1)", "x = 2 .. 8, d = 1 .. 4", reason, tightness=spread(ratios))


def _primes(_: Laboratory) -> Measurement:
    ratios = {n: (len(rings.totient_perms(n, primes=True)) - 1) / (n / math.log(n)) for n in range(17, 2049)}
    wrong = [f"n={n}: {ratio:.4f} n / ln n" for n, ratio in ratios.items() if ratio > PRIMES]
    lost = max(rings.mean_hops(n, rings.selected(n, 4, True)) / rings.mean_hops(n, rings.selected(n, 4))
               for n in range(16, 257))  # fmt: skip
    reason = (
        f"Number of prime steps over n / ln n: at most {PRIMES}, as for all primes up to any n. At d = 4 and n <= "
        f"256, prime steps increase mean hops by at most {100 * (lost - 1):.0f} %."
    )
    values = list(ratios.values())
    return swept(wrong, len(values), max(values), "n = 17 .. 2048", reason, tightness=spread(values))


def _coin_change(_: Laboratory) -> Measurement:
    import scipy.sparse as sp
    from scipy.sparse.csgraph import dijkstra

    wrong, ratios = [], []
    for n in range(2, 129):
        for d in (1, 2, 3, 4, 8):
            coins = sorted(set(rings.selected(n, d)))
            distance, last = rings.coin_table(n, coins)
            tail = np.repeat(np.arange(n), len(coins))
            graph = sp.csr_array((np.ones(tail.size), (tail, (tail + np.tile(coins, n)) % n)), shape=(n, n))
            true = dijkstra(graph, indices=0, unweighted=True)
            routed = [len(rings.coin_sequence(n, last, m)) for m in range(n)]
            ratios.append(max(a / b for a, b in zip(routed[1:], true[1:], strict=True)))
            if not np.array_equal(true, distance) or not np.array_equal(true, routed):
                wrong.append(f"n={n}, coins {coins}")
    return swept(wrong, len(ratios), f"{len(ratios) - len(wrong)} of {len(ratios)}", "n = 2 .. 128, d = 1, 2, 3, 4, 8",
                  "Number of coins compared with Dijkstra on the circulant graph, for every distance. Ratio: the "
                  "worst route over the shortest one.", tightness=spread(ratios))  # fmt: skip


def _coin_print(_: Laboratory) -> Measurement:
    wrong, ratios = [], []
    for n in range(3, 65):
        for d in (2, 3, 4):
            coins = sorted(set(rings.selected(n, d)))
            printed = rings.as_printed(n, coins)
            hops = rings.hops(n, coins)
            ratios.append(0.0 if printed is None else float(printed[1:].sum() / hops[1:].sum()))
            if printed is None or not np.array_equal(printed[1:], hops[1:]):
                wrong.append(f"n={n}, coins {coins}")
    reason = (
        "A coin starts at distance 0 although it is one hop, so all distances are too small by one; the routes are "
        "correct. Ratio: sum of printed distances over sum of true ones."
    )
    return swept(wrong, len(ratios), "hops - 1", "n = 3 .. 64, d = 2, 3, 4", reason, tightness=spread(ratios))


def _failure(_: Laboratory) -> Measurement:
    import networkx as nx

    wrong, count = [], 0
    for n in range(3, 49):
        for d in range(2, 6):
            coins = sorted(set(rings.selected(n, d)))
            graph: nx.MultiDiGraph[int] = nx.MultiDiGraph(
                [(i, (i + p) % n) for i in range(n) for p in rings.selected(n, d)]
            )
            for p in coins:  # by symmetry one circuit of each ring represents all
                graph.remove_edge(0, p)
                count += 1
                if not nx.is_strongly_connected(graph):
                    wrong.append(f"n={n}, d={d}: circuit +{p}")
                graph.add_edge(0, p)
    return swept(wrong, count, f"{count - len(wrong)} of {count}", "n = 3 .. 48, d = 2 .. 5, every circuit",
                  "Rings of data-parallel jobs with one circuit removed, one for each ring (the others are "
                  "symmetric). A yes-or-no property has no ratio.")  # fmt: skip


def _trees(_: Laboratory) -> Measurement:
    wrong, ratios = [], []
    for n in range(2, 257, 2):
        trees = rings.double_binary_tree(n)
        sent = rings.tree_traffic(trees, 1.0).sum(axis=1)
        roots = [int(np.flatnonzero(parent < 0)[0]) for parent in trees]
        inner = np.delete(sent, roots)
        ratios.append(float(inner.min() / inner.max()) if inner.size else 1.0)
        if not np.allclose(inner, 2.0) or sent.max() > 2.0 + 1e-9:
            wrong.append(f"n={n}")
    return swept(wrong, len(ratios), "2 S bytes per server", "even n = 2 .. 256",
                  "All servers except the two roots send 2 S bytes; for odd n one more server sends 1.5 S. Ratio: "
                  "smallest over largest amount.", tightness=spread(ratios))  # fmt: skip


def _direct(_: Laboratory) -> Measurement:
    wrong, ratios = [], []
    for name in ("dlrm", "candle", "bert", "ncf", "resnet50", "vgg"):
        for degree in (4, 8):
            pool = parse(f"servers:n=128,degree={degree},traffic={name},section=5.3,parallel=data")
            computed = topology_finder(pool)
            ratios.append(computed.max_load / lower_bounds(pool)["max-load"].value)
            if not math.isclose(ratios[-1], 1.0, rel_tol=1e-9) or not math.isclose(
                computed.bandwidth_tax, 1.0, rel_tol=1e-9
            ):
                wrong.append(f"{name}, d={degree}")
    return swept(wrong, len(ratios), max(ratios), "six jobs, data parallel, n = 128, d = 4, 8",
                  "Maximum load over the bound by ports; bandwidth tax 1.", tightness=spread(ratios))  # fmt: skip


# traffic --------------------------------------------------------------------------------------------------------


def _dlrm_size(_: Laboratory) -> Measurement:
    numbers = 4 * 512 * 10**7
    reason = (
        f"4 tables of 512 columns and 10^7 rows are {numbers / 1e9:.1f} billion numbers: {8 * numbers / 1e9:.0f} GB "
        "in the double precision of appendix D. 22 GB (and the 20 GB of appendix D) would fit numbers of one byte."
    )
    gigabytes = 8 * numbers / 1e9
    verdict = MODEL.verdict(gigabytes, Verdict.SELF_CONTRADICTED)
    return Measurement(gigabytes, verdict, ("section 2.1's DLRM",), reason)


def _reduce_size(_: Laboratory) -> Measurement:
    sent = 2 * 15 / 16 * 20
    return Measurement(
        sent, REDUCED.verdict(sent), ("16 servers, 20 GB",), "2 (k-1)/k of the data cross each hop of the ring."
    )


def _transfer_size(_: Laboratory) -> Measurement:
    computed = parse("servers:n=16,degree=3,traffic=dlrm").point_to_point[0, 1] / 2**20
    return Measurement(float(computed), TRANSFERRED.verdict(float(computed)), ("servers:n=16,degree=3,traffic=dlrm",),
                       "8192 samples with 512 activations of 8 bytes: 32 MiB (33.6 MB).")  # fmt: skip


def _share(section: str, servers: int, printed: dict[int, str]) -> Callable[[Laboratory], Measurement]:
    def measure(_: Laboratory) -> Measurement:
        computed, wrong, ratios = {}, [], []
        for batch in printed:
            job = training_job("dlrm", section, batch)
            direct = float(traffic_of(job, servers)[0].sum())
            share, number = 100 * direct / (servers * NUMBER_BYTES * job.dense_weights), PrintedNumber(printed[batch])
            computed[batch] = round(share, 2)
            ratios.append(share / number.value)
            if not number.holds(share):
                wrong.append(f"batch {batch}: {share:.2f} %, printed {printed[batch]} %")
        reason = (
            f"Our shares are {min(ratios):.3g} to {max(ratios):.3g} times the printed ones; "
            f"{len(printed) - len(wrong)} of {len(printed)} round to them. Point-to-point bytes in both directions "
            "over the bytes of the gradients of all servers; over the bytes that rings send, 2 (n-1)/n times as many, "
            "the share would be half."
        )
        return swept(wrong, len(printed), computed, f"servers:n={servers},degree=4,traffic=dlrm,section={section}",
                     reason, tightness=spread(ratios))  # fmt: skip

    return measure


#: Numbers of the print that are measured here.
MODEL, REDUCED, TRANSFERRED = PrintedNumber("22"), PrintedNumber("37.5"), PrintedNumber("32")

_FLEXFLOW = "the strategies come from FlexFlow's search over GPU kernel times, which are not published"
_PACKETS = "the times come from a packet simulator over FlexFlow's task graphs, which are not published"
_HARDWARE = "measured on a testbed of 12 A100 servers with modified NICs and a patch panel, which we cannot repeat"

CLAIMS: tuple[Claim, ...] = (
    Claim("topoopt.theorem-2", PAPER, "Theorem 2", "+p is one ring through all n servers iff gcd(p, n) = 1", "always",
          measure=_theorem_2),
    Claim("topoopt.twelve-servers", PAPER, "section 4.3", "12 servers have four ring permutations", [1, 5, 7, 11],
          measure=_twelve),
    Claim("topoopt.theorem-1", PAPER, "Theorem 1", "the diameter of the selected rings is O(d n^(1/d))",
          "diameter / (d n^(1/d)) <= 1", measure=_theorem_1),
    Claim("topoopt.kappa", PAPER, "appendix E.2",
          "with coins 1, x, .. x^(d-1) the amount n - 1 = x^d - 1 takes d x coins", "d x", measure=_kappa),
    Claim("topoopt.primes", PAPER, "section 4.3", "restricting steps to primes leaves O(n / ln n) of them", "bounded",
          measure=_primes),
    Claim("topoopt.coin-change", PAPER, "appendix E.3", "CoinChangeMod finds routes with the fewest hops", "always",
          measure=_coin_change),
    Claim("topoopt.algorithm-4", PAPER, "Algorithm 4", "curr_dist is the number of coins for every distance", "hops",
          measure=_coin_print),
    Claim("topoopt.one-failure", PAPER, "section 7", "a single link failure does not disconnect the graph", "never",
          measure=_failure),
    Claim("topoopt.double-trees", PAPER, "appendix A",
          "all servers except the roots send equal amounts in the double binary tree", "always", measure=_trees),
    Claim("topoopt.direct-rings", PAPER, "section 5.3", "data-parallel jobs run as fast as on the ideal switch", 1.0,
          measure=_direct),
    Claim("topoopt.dlrm-size", PAPER, "sections 2.1, D", "4 tables of 512 columns and 10^7 rows make a model of 22 GB",
          MODEL.value, MODEL.tolerance, _dlrm_size),
    Claim("topoopt.all-reduce-size", PAPER, "appendix D",
          "an all-reduce of 20 GB among 16 servers sends 37.5 GB per server", 37.5, REDUCED.tolerance, _reduce_size),
    Claim("topoopt.transfer-size", PAPER, "section 2.1, D", "a model-parallel transfer of the DLRM has 32 MB", 32.0,
          TRANSFERRED.tolerance + " MB of 2^20 bytes", _transfer_size),
    Claim("topoopt.all-to-all-share", PAPER, "figure 12", "all-to-all over all-reduce bytes by batch size [%]",
          {64: 3, 128: 5, 256: 10, 512: 20, 1024: 40, 2048: 80}, "rounds to the printed digits: 0.5 points",
          _share("5.4", 128, {64: "3", 128: "5", 256: "10", 512: "20", 1024: "40", 2048: "80"})),
    Claim("topoopt.testbed-share", PAPER, "figure 21",
          "all-to-all over all-reduce bytes by batch size on the testbed [%]",
          {32: 5, 64: 10, 128: 19, 256: 39, 512: 78}, "rounds to the printed digits: 0.5 points",
          _share("6", 12, {32: "5", 64: "10", 128: "19", 256: "39", 512: "78"})),
    Claim("topoopt.iteration-time", PAPER, "figure 11",
          "training is 2.8 times as fast as on a fat-tree of the same cost", 2.8, reason=_FLEXFLOW),
    Claim("topoopt.abstract", PAPER, "abstract, section 1",
          "training is up to 3.4 times as fast as on fat-trees of similar cost", 3.4, reason=_FLEXFLOW),
    Claim("topoopt.other-models", PAPER, "figure 11", "speed-up over the fat-tree: VGG 2.8, BERT 3, DLRM 2.8, NCF 2.1",
          {"vgg": 2.8, "bert": 3, "dlrm": 2.8, "ncf": 2.1}, reason=_FLEXFLOW),
    Claim("topoopt.below-ideal", PAPER, "figure 11", "an ideal switch is 1.3 times as fast for DLRM, 1.7 for NCF",
          {"dlrm": 1.3, "ncf": 1.7}, reason=_FLEXFLOW),
    Claim("topoopt.shared-mean", PAPER, "figure 16",
          "on shared clusters training is on average 1.7 times as fast as on the fat-tree, and 1.15 times as fast as "
          "on the oversubscribed one", [1.7, 1.15], reason=_PACKETS),
    Claim("topoopt.forwarding-bert", PAPER, "figure 17b",
          "forwarding while circuits are reconfigured slows BERT down by a factor of 1.4", 1.4, reason=_PACKETS),
    Claim("topoopt.testbed-times", PAPER, "figure 21",
          "at batch 512 the prototype is 1.6 times as fast as a 25 Gb/s switch", 1.6, reason=_HARDWARE),
    Claim("topoopt.discounts", PAPER, "section 5.2",
          "at 4,394 servers and discounted prices the ideal switch costs 3.6 instead of 3.0 times as much", [3.0, 3.6],
          reason="the discounts come from another paper; only the one for patch panels is stated"),
    Claim("topoopt.shared-clusters", PAPER, "figure 16", "the tail iteration time is 3.4 times better at full load",
          3.4, reason=_PACKETS),
    Claim("topoopt.reconfiguration", PAPER, "figure 17", "a network that reconfigures within 1 us matches TopoOpt",
          "1 us", reason=_PACKETS),
    Claim("topoopt.throughput", PAPER, "figure 19", "the prototype trains as fast as with a 100 Gb/s switch", "equal",
          reason=_HARDWARE),
    Claim("topoopt.accuracy", PAPER, "figure 20", "VGG19 reaches 90 % accuracy 2.0 times as fast as with 25 Gb/s", 2.0,
          reason=_HARDWARE),
    Claim("topoopt.production", PAPER, "figures 2-4",
          "the network overhead of production jobs on 128 GPUs is up to 60 %", 60,
          reason="traces of the clusters of a company, which are not published"),
    Claim("topoopt.cost-sip-ml", PAPER, "section 5.2", "SiP-ML is the most expensive", "SiP-ML",
          reason="Table 2 has no prices of silicon photonics"),
)  # fmt: skip
