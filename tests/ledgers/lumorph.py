"""The claims of the LuMorph paper: their verdicts, and second measurements that share no code with the ledger's."""

from __future__ import annotations

import csv
import itertools
import math
from collections import Counter
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from second_measurements import (
    AGREES,
    NOT,
    OPEN,
    REFUTED,
    REPRODUCED,
    UNTESTABLE,
    PaperLedger,
    constant,
)

import opticoll.instances.published
from opticoll.analysis.ledger.claim import Laboratory
from opticoll.analysis.papers.lumorph import claims as lumorph_claims
from opticoll.analysis.papers.lumorph import route_claims, time_claims, training_claims
from opticoll.analysis.papers.lumorph.machine_times import Line
from opticoll.instances import parse

LEDGER = PaperLedger(
    "lumorph",
    {
        REPRODUCED: "volume rack-all-to-all log-bound steps log-all-to-all every-round one-round more-peers lane-rates",
        AGREES: "training squares-cross laser-bandwidth route-times inception bert-calls random-worse",
        NOT: "figure-7 r-min overlap-grows 74-percent ncf fewer-waveguides slow-switches fastest "
        "quadrupling-cost inception-calls eight-lasers appendix-b forwarding cover co-scheduling "
        "thirty-waveguides",
        REFUTED: "eighty-percent algorithm-1 algorithm-2 algorithm-3",
        OPEN: "figure-5 figure-10 ncf-calls four-times eight-gpus 74-and-80 path-loss",
        UNTESTABLE: "bit-errors power",
    },
    undecided="path-loss 74-and-80 eight-gpus",
    slow="algorithm-1 eight-gpus one-round r-min",
)


#: A record of a proven schedule of one round.
SOLVED = {
    "proof": "optimal",
    "termination": "optimal",
    "objective": 1,
    "bound": 1,
    "message": "",
    "metrics": {"rounds": 1},
    "time": {"build_s": 0.0, "compile_s": 0.0, "solve_s": 1.0, "verify_s": 0.0},
}


VARIANTS = ("Lumorph-2", "Lumorph-4")


def more_rounds_with_fewer(true):
    """Figure 6 with nine rounds for 20 waveguides and one for 40, wherever it draws any."""
    return lambda *panel: {
        name: dict.fromkeys(curve, 9.0 if panel[-1].endswith("20") else 1.0) for name, curve in true(*panel).items()
    }


LEDGER.falsified = [
    ("eighty-percent", {"less time, nearly [%]": "40"}, NOT),
    ("eighty-percent", {"compared with both": ["Ideal switch+Tree"], "less time, nearly [%]": "74"}, NOT),
    ("74-percent", {"up to [%]": "891"}, AGREES),
    ("four-times", {"times": "90"}, NOT),
    ("slow-switches", {"delay [us]": 3.7}, NOT),
    ("slow-switches", {}, REPRODUCED, (time_claims, "_delays", lambda true: half_as_fast(true))),
    ("squares-cross", {"buffer [MB]": "64"}, NOT),
    ("training", {"up to": "1.8"}, NOT),
    ("training", {"models": ["ncf"]}, NOT),
    ("inception", {"gain": "1.32"}, REPRODUCED),
    (
        "ncf",
        {},
        AGREES,
        (training_claims, "_gains", lambda _true: lambda _: {name: {256: 1.08} for name in VARIANTS}),
    ),
    ("ncf-calls", {"model": "inception", "against": ["bert", "ncf"]}, NOT),
    ("inception-calls", {"compared with": "inception"}, REPRODUCED),
    ("lane-rates", {"section 5 [Gb/s]": [120, 224]}, NOT),
    ("eight-lasers", {"lasers in the example of section 3": 16}, REPRODUCED),
    ("thirty-waveguides", {"waveguides": 50}, REPRODUCED),
    ("fewer-waveguides", {}, AGREES, (route_claims, "figure", lambda true: more_rounds_with_fewer(true))),
    ("figure-5", {"GPUs": [4, 16, 64, 256]}, REPRODUCED),
    ("figure-5", {}, NOT, (route_claims, "proven_overlap", constant(1))),
    ("algorithm-2", {"arcs into the destination": {"formula (16)": 1}}, REPRODUCED),
    ("algorithm-3", {"GPUs": 17, "layer 129 of NCF: senders, receivers": [16, 16]}, REPRODUCED),
    ("appendix-b", {"chunks of B/N": 15}, REPRODUCED),
    ("log-bound", {"peers per round": 3}, NOT),
    ("rack-all-to-all", {"lasers": 255}, NOT),
    ("log-all-to-all", {"GPUs": [4, 6]}, NOT),
    ("volume", {"GPUs": [4]}, NOT, (time_claims, "optical", constant(Line(4, 1.0, 4, 0.0)))),
    ("algorithm-1", {"grids": ["2x2"]}, REPRODUCED, (Laboratory, "solve", constant(SOLVED))),
    ("r-min", {"tiles": [3, 4]}, REPRODUCED, (Laboratory, "solve", constant(SOLVED))),
    ("steps", {}, NOT, (lumorph_claims, "recursive", lambda true: lambda n, radix: true(n, 2 if radix == 4 else 8))),
    ("forwarding", {"GPUs": [8, 16]}, REPRODUCED, (lumorph_claims, "violations", constant({"redundant": 0}))),
    (
        "every-round",
        {"grids": ["2x4"], "algorithms": ["D&C"]},
        NOT,
        (lumorph_claims, "optical", constant(Line(3, 1.0, 4, 0.0))),
    ),
    ("one-round", {}, NOT, (Laboratory, "solve", constant({"objective": 2}))),
    ("co-scheduling", {"models": ["training:random,gpus=16,calls=32,seed=0"]}, REPRODUCED),
    ("cover", {"GPUs": 2000, "draws": 1}, REPRODUCED),
    ("overlap-grows", {"GPUs": [4, 256]}, REPRODUCED),
    (
        "random-worse",
        {"GPUs": [64], "seeds": 2},
        REPRODUCED,
        (route_claims, "busiest_edge", lambda _true: lambda *how, **_: 16 if how[3] == "random" else 8),
    ),
    ("route-times", {"tens of seconds, below [s]": 0.001}, NOT, (Laboratory, "solve", constant(SOLVED))),
    (
        "fastest",
        {"GPUs": [256]},
        REPRODUCED,
        (
            time_claims,
            "figure",
            lambda true: (
                lambda *panel: {
                    name: {x: y / 100 if name.startswith("Lumorph") else y for x, y in curve.items()}
                    for name, curve in true(*panel).items()
                }
            ),
        ),
    ),
    ("figure-7", {"GPUs": [64]}, REPRODUCED, (time_claims, "DRAWN", lambda _true: 0.05)),
    ("quadrupling-cost", {}, REPRODUCED, (time_claims, "closed_form", lambda true: with_the_drawn_factor(true))),
    (
        "laser-bandwidth",
        {},
        NOT,
        (
            time_claims,
            "figure",
            lambda true: lambda *panel: {name: dict.fromkeys(curve, 1.0) for name, curve in true(*panel).items()},
        ),
    ),
    (
        "more-peers",
        {},
        NOT,
        (time_claims, "recursive_time", lambda _true: seven_are_best),
    ),
    (
        "figure-10",
        {},
        NOT,
        (
            training_claims,
            "figure",
            lambda true: (
                lambda *panel: {name: {x: y / 2 for x, y in curve.items()} for name, curve in true(*panel).items()}
            ),
        ),
    ),
    ("bert-calls", {"against": ["ncf"]}, REPRODUCED),
]


def more_rounds_than_taken():
    """Every mesh needs fewer rounds than the next smaller one takes."""
    count = itertools.count(100, -1)
    return lambda *_args, **_kwargs: {"bound": next(count), "objective": 1}


def half_as_fast(true):
    """Both variants at half their speed."""
    return lambda laboratory: {name: {x: y / 2 for x, y in curve.items()} for name, curve in true(laboratory).items()}


def seven_are_best(steps, *_):
    """A time by the number of steps, with 1, 3 and 7 peers: 10, 9 and 1."""
    return {8: 10.0, 4: 9.0}.get(len(steps), 1.0)


def with_the_drawn_factor(true):
    """Closed forms that charge LUMORPH-4 with 4/3 of the volume."""
    return lambda name, n, size, delay=3.7, factor=1.0: true(name, n, size, delay, 4 / 3)


def points(number, panel, series):
    path = Path(opticoll.instances.published.__file__).with_name("lumorph_figures.csv")
    with path.open(newline="", encoding="utf-8") as file:
        return {float(row[3]): float(row[4]) for row in csv.reader(file) if row[:3] == [number, panel, series]}


def all_reduce_us(n, mib, name):
    """Closed forms of section 4, with 300 GiB/s, written out once more."""
    data = mib / (300 * 1024) * 1e6
    rounds, volume, fixed = {
        "ring": (2 * n - 2, 2 - 2 / n, 0.7),
        "tree": (2 * math.log2(n), 4, 0.7),
        "two": (2 * math.log2(n), 2 - 2 / n, 4.4),
        "four": (math.log2(n), (2 - 2 / n) * 4 / 3, 4.4),
    }[name]
    return rounds * fixed + volume * data


@LEDGER.second("lumorph.eighty-percent")
def savings_at_64(row):
    ring, tree, two, four = (all_reduce_us(256, 64, name) for name in ("ring", "tree", "two", "four"))
    assert row.measured == {
        "Ideal switch+Ring": round(100 * (1 - two / ring), 1),
        "Ideal switch+Tree": round(100 * (1 - two / tree), 1),
    }
    assert min(two, four) / ring > 0.6
    # No buffer size saves 72 % over both, which is the least that counts as nearly 80 %.
    for size in np.geomspace(1e-6, 1e6, 400):
        fast = min(all_reduce_us(256, size, name) for name in ("two", "four"))
        assert fast > 0.28 * min(all_reduce_us(256, size, "ring"), all_reduce_us(256, size, "tree"))


@LEDGER.second("lumorph.training")
def throughputs(row):
    best = {}
    for name in ("Lumorph-2", "Lumorph-4"):
        gains = []
        for model in ("bert", "ncf", "inception"):
            ring, mine = points("11", model, "Ideal switch+Ring"), points("11", model, name)
            gains += [mine[n] / ring[n] for n in ring]
        best[name] = round(max(gains), 3)
    assert row.everything == best
    assert 1.65 < best["Lumorph-4"] < 1.75


@LEDGER.second("lumorph.74-percent")
def speed_over_the_tree(row):
    assert round(100 * (all_reduce_us(256, 64, "tree") / all_reduce_us(256, 64, "two") - 1)) == 74
    gain = all_reduce_us(256, 0.1, "ring") / all_reduce_us(256, 0.1, "four") - 1
    assert 100 * gain == pytest.approx(row.measured, rel=1e-3)


@LEDGER.second("lumorph.overlap-grows")
def figure_5_falls(row):
    """From 32 to 64 GPUs, both kinds of random routes of figure 5."""
    for name in ("Lumorph-2+Random", "Lumorph-4+Random"):
        curve = points("5", "left", name)
        assert curve[64.0] < curve[32.0]
        assert min(row.everything[name]) == curve[4.0]


@LEDGER.second("lumorph.fewer-waveguides")
def doubling_in_figure_6(row):
    """LUMORPH-2 on routes of least overlap has 16 rounds, one reconfiguration each, with 20 and with 40 waveguides."""
    few, many = (points("6", f"waveguides_{count}", "Lumorph-2+MCF")[256.0] for count in (20, 40))
    assert few == many == 16
    assert row.everything["Lumorph-2+MCF"] == [16.0, 16.0]


@LEDGER.second("lumorph.figure-7")
def decimal_units(row):
    """64 MB at 300 GB/s are 2 % off the curve, 64 MiB at 300 GiB/s on it."""
    drawn = points("7", "256_gpus", "Lumorph-2")[64.0]
    fixed = all_reduce_us(256, 0, "two")
    assert all_reduce_us(256, 64, "two") == pytest.approx(drawn, rel=1e-4)
    decimal = fixed + (drawn - fixed) / (2**20 / 1e6) * (2**30 / 1e9)
    assert abs(decimal / drawn - 1) > 0.01
    assert "2.1%" in next(c.measured for c in row.choices if c.natural)


@LEDGER.second("lumorph.ncf")
def gains_of_ncf(row):
    gains = [points("11", "ncf", name)[256.0] / points("11", "ncf", "Ideal switch+Ring")[256.0] for name in VARIANTS]
    assert row.measured == pytest.approx(100 * (min(gains) - 1), abs=0.01)
    assert row.measured < 7.2


@LEDGER.second("lumorph.squares-cross")
def crossing(row):
    def squares(mib):
        return 7 * (4.4 + mib / (300 * 1024) * 1e6)

    assert squares(16) < all_reduce_us(256, 16, "ring")
    assert squares(20.1) > all_reduce_us(256, 20.1, "ring")
    assert squares(19.9) < all_reduce_us(256, 19.9, "ring")
    assert row.everything.startswith("better up to 16 MB")


@LEDGER.second("lumorph.thirty-waveguides")
def excess(row):
    """Route the last step of quadrupling on 16x16 along its columns, by networkx, and count both directions."""
    grid = nx.grid_2d_graph(16, 16)
    loads = Counter()
    for column, first in itertools.product(range(16), range(4)):
        for a, b in itertools.permutations(range(first, 16, 4), 2):
            path = nx.shortest_path(grid.subgraph((r, column) for r in range(16)), (a, column), (b, column))
            loads.update(frozenset(edge) for edge in itertools.pairwise(path))
    crossing_pairs = 16 * 4 * 8  # of 64 groups of four, half of the 16 rows apart: 2 x 2 pairs, both directions
    assert max(loads.values()) == crossing_pairs // 16 == 32, "a cut of 16 edges proves it"
    assert points("5", "right_256_gpus", "Lumorph-4+MCF")[30] == 32 - 30 == row.everything["Lumorph-4+MCF"]
    assert row.measured == 47
    assert points("5", "right_256_gpus", "Lumorph-4+Random")[30] > 0


@LEDGER.second("lumorph.algorithm-1")
def nothing_is_sent(row):
    """Propagate (2) as printed: what can be 1 in round r needs a reception before r; there is none before the first."""
    received = {}
    for r in range(1, 20):
        can_send = {(s, c) for (s, c), when in received.items() if when < r}
        received.update({(d, c): r for d in range(4) for s, c in can_send if s != d})
    assert "in rational arithmetic: opticoll solve" in row.witness
    assert not received, "every C is 0, so the sum of (3) is 0 instead of 1"
    assert {choice.verdict for choice in row.choices} == {NOT}


@LEDGER.second("lumorph.algorithm-2")
def no_flow(row):
    """Without the arcs into the destination, (10) and (13) ask for a unit of flow that nobody absorbs."""
    for capacity, value in ((0, 0), (1, 1)):
        graph = nx.grid_2d_graph(3, 3).to_directed()
        nx.set_edge_attributes(graph, 1, "capacity")
        for tail in list(graph.predecessors((2, 2))):
            graph[tail][2, 2]["capacity"] = capacity
        assert min(1, nx.maximum_flow_value(graph, (0, 0), (2, 2))) == value
    assert set(row.everything["formula (16)"]) == {"infeasible"}


@LEDGER.second("lumorph.algorithm-3")
def one_sender(row):
    """The printed loop in plain Python: every receiver of a scatter picks its only sender in the first round."""
    sources = {receiver: [0] for receiver in range(1, 64)}
    picked = [(choices.pop(), receiver) for receiver, choices in sources.items() if choices]
    assert Counter(sender for sender, _ in picked)[0] == 63 > 16
    assert row.everything["scatter on 64 GPUs"].startswith("63 ")
    # Layer 129 of NCF: 64 receivers pick 16 of 32 senders each, 32 per sender on average, whatever they pick.
    assert min(16, 31) * 64 / 32 == 32 > 16
    (most,) = [int(text.split()[0]) for name, text in row.everything.items() if "NCF" in name]
    assert most >= 32


@LEDGER.second("lumorph.figure-5")
def cuts(row):
    """Least overlap by cuts alone: circuits of LUMORPH-4 on 8 GPUs across the middle of 2x4 tiles, and of 4x2."""
    pairs = [(a, b) for a, b in itertools.permutations(range(8), 2) if a // 4 == b // 4]
    assert sum((a % 4 < 2) != (b % 4 < 2) for a, b in pairs) / 2 == 8 > points("5", "left", "Lumorph-4+MCF")[8]
    assert row.everything["rows, 8 GPUs on 4x2"] == "all 14 points"


@LEDGER.second("lumorph.log-bound")
def doubling(row):
    for n in range(2, 65):
        holders, rounds = {0}, 0
        while len(holders) < n:
            holders |= set(itertools.islice((v for v in range(n) if v not in holders), len(holders)))
            rounds += 1
        assert rounds == math.ceil(math.log2(n))
    assert row.violations == 0


@LEDGER.second("lumorph.r-min")
def cut_bounds(row):
    """One laser, one waveguide: all-to-all needs the pairs across the middle of 1x5, which 2x3 does not."""
    assert math.ceil(2 * 3 / 1) == 6
    assert math.ceil(max(3 * 3 / 3, 2 * 4 / 2)) <= 5
    assert row.choices[1].measured.endswith("1x5 needs 6 rounds, 2x3 takes 5")


@LEDGER.second("lumorph.figure-10")
def steps_of_the_distribution(row):
    for model, calls in row.everything.items():
        levels = sorted(set(points("10", "", model).values()))
        assert all(abs(y * calls - round(y * calls)) < 0.02 for y in levels), "whole numbers of calls"


@LEDGER.second("lumorph.co-scheduling")
def conflicts(row):
    """Calls of the table that leave no GPU out conflict in pairs; maximum independent sets by networkx for the rest."""
    path = Path(opticoll.instances.published.__file__).with_name("lumorph_calls.csv")
    with path.open(newline="", encoding="utf-8") as file:
        shared = [r for r in csv.DictReader(file) if r["kind"] == "all-reduce" and r["gpus"] in ("any", "256")]
    assert {r["sources"] for r in shared} == {"all"}
    assert set(row.everything["models"].values()) == {0.0}
    (spec,) = row.everything["random calls"]
    calls = parse(spec).calls
    graph = nx.Graph()
    graph.add_nodes_from(range(len(calls)))
    graph.add_edges_from(
        (a, b) for a, b in itertools.combinations(range(len(calls)), 2) if set(calls[a].ranks) & set(calls[b].ranks)
    )

    def time(call):
        return (
            8.8 * math.ceil(math.log2(len(call.ranks)) / 2)
            + (2 - 2 / 2 ** math.ceil(math.log2(len(call.ranks)))) * 4 / 3 * call.size / (300 * 2**30) * 1e6
        )

    times = {k: time(call) for k, call in enumerate(calls)}
    clique, _ = nx.max_weight_clique(_weighted(graph, times), weight="whole")
    most = 100 * (1 - sum(times[k] for k in clique) / sum(times.values()))
    assert 0 < row.everything["random calls"][spec] <= most + 0.1, "calls that conflict in pairs take turns"


def _weighted(graph, times):
    nx.set_node_attributes(graph, {k: round(1000 * value) for k, value in times.items()}, "whole")
    return graph


@LEDGER.second("lumorph.eight-gpus")
def two_rounds_by_hand(row):
    """Seven chunks need two rounds of four lasers; i to i xor k on routes along rows, then columns, fits two rounds."""
    assert math.ceil(7 / 4) == 2
    for round_ in ((1, 2, 3, 4), (5, 6, 7)):
        edges = Counter()
        for k, i in itertools.product(round_, range(8)):
            (r, c), (s, d) = divmod(i, 4), divmod(i ^ k, 4)
            step = 1 if d > c else -1
            edges.update(((r, x), (r, x + step)) for x in range(c, d, step))
            edges.update([((r, d), (s, d))] if r != s else [])
        assert max(edges.values()) <= 4, "a wavelength for each circuit of an edge"
    assert row.everything["printed, with its indices corrected"].startswith("2 rounds, proven")


@LEDGER.second("lumorph.appendix-b")
def chunks_of_one_gpu(row):
    """GPU 0 of 16 sends its chunk to three, then four chunks to three."""
    held, sent = {0}, 0
    for stride in (1, 4):
        sent += 3 * len(held)
        held |= {h + k * stride for h in held for k in (1, 2, 3)}
    assert held == set(range(16))
    assert row.measured == sent / 16 == 3 * 5 / 16


@LEDGER.second("lumorph.forwarding")
def index_algorithm_forwards(row):
    """A chunk from i to i + j takes a hop for every binary digit 1 of j, and is forwarded at all but the last."""
    assert row.choices[0].measured.startswith(f"{8 * sum(j.bit_count() - 1 for j in range(1, 8))} forwarded receptions")
    assert math.ceil(127 / 16) > math.log2(128)


@LEDGER.second("lumorph.cover")
def a_call_left_out(row):
    """Two disjoint calls cover four GPUs; a third one between them is left out."""
    calls = [{0, 1}, {2, 3}, {0, 2}]
    assert calls[0] | calls[1] == set(range(4))
    assert not calls[0] & calls[1]
    assert row.violations


@LEDGER.second("lumorph.random-worse")
def one_shortest_path(row):
    """On grids numbered by rows, doubling joins GPUs of one row or column, with one shortest path between them."""
    for rows, columns in ((8, 8), (8, 16), (16, 16)):
        for i, bit in itertools.product(range(rows * columns), range(8)):
            if 1 << bit < rows * columns:
                (r, c), (s, d) = divmod(i, columns), divmod(i ^ 1 << bit, columns)
                assert r == s or c == d
    assert row.measured > 1.1


@LEDGER.second("lumorph.slow-switches")
def quadrupling_with_slow_switches(row):
    """LUMORPH-4 has 8 reconfigurations of 25 us, the ring 510 rounds of 0.7 us; the drawn times agree."""
    assert 8 * (25 + 0.7) < 510 * 0.7
    drawn = {name: points("8a", "256_gpus", name)[25e3] for name in ("Ideal switch+Ring", "Lumorph-4")}
    assert row.measured == round(drawn["Ideal switch+Ring"] / drawn["Lumorph-4"], 2) > 1.4


@LEDGER.second("lumorph.fastest")
def tree_at_4_mb(row):
    tree, two, four = (points("7", "256_gpus", name)[4.0] for name in ("Ideal switch+Tree", "Lumorph-2", "Lumorph-4"))
    assert tree == pytest.approx(all_reduce_us(256, 4, "tree"), abs=0.1)
    assert tree < 64 < 69 < min(two, four)
    assert row.measured > min(two, four) / tree


@LEDGER.second("lumorph.quadrupling-cost")
def four_thirds(row):
    """The slope of LUMORPH-4's curve between 8 and 64 MB is 4/3 of that of LUMORPH-2's."""
    two, four = (points("7", "256_gpus", name) for name in ("Lumorph-2", "Lumorph-4"))
    assert (four[64.0] - four[8.0]) / (two[64.0] - two[8.0]) == pytest.approx(4 / 3, abs=1e-3)
    assert row.measured == pytest.approx(1 - (35.2 + (four[64.0] - 35.2) * 3 / 4) / four[64.0], abs=1e-3)


@LEDGER.second("lumorph.inception")
def speed_of_inception(row):
    ring, four = (points("11", "inception", name) for name in ("Ideal switch+Ring", "Lumorph-4"))
    assert row.measured == pytest.approx(max(four[n] / ring[n] for n in ring), abs=1e-4)
    assert row.measured > 1.315


def logged(model):
    """Sizes of the all-reduces of a model in the table of calls."""
    path = Path(opticoll.instances.published.__file__).with_name("lumorph_calls.csv")
    with path.open(newline="", encoding="utf-8") as file:
        rows = [r for r in csv.DictReader(file) if (r["model"], r["kind"]) == (model, "all-reduce")]
    return [int(r["bytes"]) for r in rows if r["gpus"] in ("any", "256") for _ in range(int(r["repeat"]))]


@LEDGER.second("lumorph.bert-calls")
def calls_of_inception(row):
    bert, inception = logged("bert"), logged("inception")
    assert len(inception) > len(bert)
    assert np.mean(inception) < np.mean(bert)
    assert row.everything["calls"]["inception"] == len(inception)


@LEDGER.second("lumorph.inception-calls")
def sizes_of_calls(row):
    mean = np.mean(logged("bert")) / np.mean(logged("inception"))
    assert row.everything["mean"] == pytest.approx(mean, rel=1e-2)
    assert mean > 3


@LEDGER.second("lumorph.eight-lasers")
def lasers_at_300_gbytes(row):
    assert row.measured == 300 * 8 / 150


@LEDGER.second("lumorph.lane-rates")
def two_bits_a_symbol(row):
    assert row.measured == [2 * 56, 2 * 112] != row.printed


@LEDGER.second("lumorph.path-loss")
def straight_lines(row):
    """LUMORPH-2's last step joins rows 8 apart, LUMORPH-4's rows 12 apart: tiles of 5 cm, wafers of 4 rows."""
    for name, rows in (("Lumorph-2", 8), ("Lumorph-4", 12)):
        measured = row.everything[name]
        assert measured["tiles down and across"] == [rows, 0]
        assert measured["fibres between wafers, at least"] == rows // 4
        assert measured["crossings [dB], at most"] == 0.25 * (rows - rows // 4)
        assert measured["waveguides [dB], at most"] == pytest.approx(0.4 * 5 * rows)
