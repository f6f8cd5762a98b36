"""Claims of the LuMorph paper about the time of an all-reduce: abstract, section 5, figures 7 and 8.

The text is compared with the curves that the authors drew, and these with the closed forms of the text. Figure 7 counts
buffers in MiB and bandwidths in GiB/s.
"""

from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.ledger.claim import Measurement, Measures
from opticoll.analysis.ledger.readings import Readings, Sweep, spread
from opticoll.analysis.ledger.tolerances import ABOUT, DRAWN
from opticoll.analysis.ledger.verdict import Verdict, verdict_if
from opticoll.analysis.papers.lumorph.drawn_points import fitted_buffer
from opticoll.analysis.papers.lumorph.machine_times import GRIDS, LIGHTPATH, optical, recursive_time, usable
from opticoll.formulations.lumorph.cost_formulas import LUMORPH_2, LUMORPH_4, RATES, RING, SQUARES, TREE, formula
from opticoll.instances.published.lumorph_numbers import figure
from opticoll.solvers.methods.lumorph.patterns import factors

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.analysis.ledger.claim import Laboratory


VARIANTS = (LUMORPH_2, LUMORPH_4)
ALPHA, DELAY = 0.7, 3.7
#: Bytes per microsecond of a GPU, 300 GiB/s, and bytes of a MiB.
RATE, MIB = RATES["plotted"], 2.0**20
#: What a sentence about LUMORPH without a number is about.
FASTER = "the faster variant"
MEASURES = Measures("lumorph")


def _panel(n: int) -> dict[str, dict[float, float]]:
    return figure("7", f"{n}_gpus")


def _better_variant(n: int) -> dict[float, float]:
    """Time of the faster variant at every size."""
    curves = [_panel(n)[name] for name in VARIANTS]
    return {x: min(curve[x] for curve in curves) for x in curves[0]}


def _lost(n: int) -> dict[str, list[float]]:
    """Sizes at which another algorithm is faster than both variants, by its name."""
    ours, others = _better_variant(n), {name: c for name, c in _panel(n).items() if name not in VARIANTS}
    return {name: [x for x, time in curve.items() if time < ours[x]] for name, curve in others.items()}


def _behind_ring(n: int) -> list[tuple[str, float]]:
    """Variants and sizes at which the ring is faster."""
    curves = _panel(n)
    return [(mine, x) for mine in VARIANTS for x, time in curves[mine].items() if curves[RING][x] < time]


def _less(fast: float, slow: float) -> float:
    """Time saved [%]."""
    return 100 * (1 - fast / slow)


@MEASURES.of("74-percent")
def _seventy_four(laboratory: Laboratory) -> Measurement:
    number, n = laboratory.number(laboratory.scope["up to [%]"]), laboratory.scope["GPUs"]
    curves, choices = _panel(n), Readings("largest value of figure 7")
    for rival in (RING, TREE):
        for name in VARIANTS:
            saved = {x: _less(curves[name][x], curves[rival][x]) for x in curves[name]}
            faster = {x: 100 * (curves[rival][x] / curves[name][x] - 1) for x in curves[name]}
            for words, values in (("time saved", saved), ("gain in speed", faster)):
                most = max(values.values())
                some = [x for x in values if number.holds(values[x])]
                what = f"{words} over {rival.removeprefix('Ideal switch+').lower()}, {name}"
                choices.add(what, number.holds(most), round(most, 1))
                choices.add(what, bool(some), some, name="at some size of figure 7")
    gains = [curves[r][x] / curves[name][x] - 1 for r, name in product((RING, TREE), VARIANTS) for x in curves[name]]
    choices.add(
        "gain in speed, both variants over ring and tree", number.holds(100 * max(gains)), round(100 * max(gains), 1)
    )
    at_point: dict[str, list[float]] = {"time saved": [], "gain in speed": []}
    for rival, name in product((RING, TREE), VARIANTS):
        at_point["time saved"].append(_less(curves[name][64.0], curves[rival][64.0]))
        at_point["gain in speed"].append(100 * (curves[rival][64.0] / curves[name][64.0] - 1))
    for words, shares in at_point.items():
        most = max(shares)
        tried = f"{words}, the most over ring and tree"
        choices.add(tried, number.holds(most), round(most, 1), name="64 MB, as in section 5")
    met = [choice.tried for choice in choices if choice.verdict is Verdict.REPRODUCED]
    return choices.measurement(
        (f"figure 7, {n} GPUs",), measured=f"{len(met)} of {len(choices)} readings agree: {'; '.join(met)}"
    )


@MEASURES.of("eighty-percent")
def _eighty(laboratory: Laboratory) -> Measurement:
    scope = laboratory.scope
    n, size, number = scope["GPUs"], scope["buffer [MB]"], laboratory.number(scope["less time, nearly [%]"], 100.0)
    rivals, curves, choices = scope["compared with both"], _panel(n), Readings()
    for name in VARIANTS:
        saved = {rival: round(_less(curves[name][size], curves[rival][size]), 1) for rival in rivals}
        faster = {rival: round(100 * (curves[rival][size] / curves[name][size] - 1), 1) for rival in rivals}
        for words, values in (("time saved", saved), ("gain in speed", faster)):
            holds = all(number.holds(value) for value in values.values())
            choices.add(words, holds, values, name=f"{name}, {size:g} MB in figure 7")
        at_any = [x for x in curves[name] if all(number.holds(_less(curves[name][x], curves[r][x])) for r in rivals)]
        choices.add("any size of figure 7", bool(at_any), at_any, name=f"{name}, buffer")
    two = {rival: round(_less(curves["Lumorph-2"][size], curves[rival][size]), 1) for rival in rivals}
    return choices.measurement(
        (f"figure 7, {n} GPUs",),
        "Of substance: at 64 MB the data transfer dominates, and all algorithms but the tree move nearly the same "
        "volume. The tree moves twice the volume of LUMORPH-2, so no size saves more than half of its time. LUMORPH-2 "
        "saves 80 % over the ring alone at 0.1 MB, where the tree is faster than both; 74 % is LUMORPH-2's gain in "
        f"speed over the tree alone at 64 MB. LUMORPH-2's two savings at 64 MB add up to {sum(two.values()):.1f} %, "
        "which is no saving over either.",
        two,
        value=two,
        saved_by="a buffer of 0.1 MB and the ring alone, where 80 % of the time are saved; or the gain in speed over "
        "the tree alone, 74 %",
        witness=f"Section 5: nearly 80 % less time than both ring and tree. Figure 7: ring {curves[RING][size]:.0f} "
        f"us, tree {curves[TREE][size]:.0f} us, LUMORPH-2 {curves['Lumorph-2'][size]:.0f} us, LUMORPH-4 "
        f"{curves['Lumorph-4'][size]:.0f} us",
    )


@MEASURES.of("74-and-80")
def _against_80(laboratory: Laboratory) -> Measurement:
    most, nearly = laboratory.scope.values("up to [%]", "nearly [%]")
    choices = Readings("baselines and meaning of faster of both")
    choices.add("the same", laboratory.number(nearly, 100.0).ends[0] <= most, f"{nearly} and {most}")
    choices.add("not the same", True, "two statements")
    return choices.measurement((), measured=[most, float(nearly)])


def closed_form(name: str, n: int, size: float, delay: float = DELAY, factor: float = 1.0) -> float:
    """Time of an all-reduce of ``size`` MiB at 300 GiB/s [us]; ``factor`` multiplies the time of LUMORPH's data.

    Rounds and volumes are those of the text, and where it gives none (tree, D&C) those of the figures.
    """
    cost = formula(name, n, "plotted" if name in (TREE, SQUARES) else "printed", reconfigure_us=delay, rate=RATE)
    return cost.time(0.0, ALPHA) + (1.0 if name in (RING, TREE) else factor) * cost.volume * size * MIB / RATE


def _delays(laboratory: Laboratory) -> dict[str, dict[float, float]]:
    """Speed of both variants relative to the ring by delay [ns], as drawn in figure 8a."""
    curves = figure("8a", f"{laboratory.scope['GPUs']}_gpus")
    return {name: {x: curves[RING][x] / curves[name][x] for x in curves[name]} for name in VARIANTS}


def _at_delay(laboratory: Laboratory, holds: Callable[[float], bool]) -> tuple[dict[str, float], Readings]:
    """These speeds at the delay of a claim, and the readings under which it holds."""
    choices, delay = Readings("variant, buffer of figure 8a"), 1e3 * laboratory.scope["delay [us]"]
    ratios = {name: round(values[delay], 2) for name, values in _delays(laboratory).items()}
    for name, value in (*ratios.items(), (FASTER, max(ratios.values()))):
        choices.add(name, holds(value), value)
    return ratios, choices


@MEASURES.of("four-times")
def _four_times(laboratory: Laboratory) -> Measurement:
    number, delay = laboratory.number(laboratory.scope["times"]), laboratory.scope["delay [us]"]
    ratios, choices = _at_delay(laboratory, number.holds)
    for name, factor in (("Lumorph-2", 1.0), ("Lumorph-4", 4 / 3)):
        sizes = np.linspace(0.01, 100, 10_000)
        good = [x for x in sizes if number.holds(closed_form(RING, 256, x) / closed_form(name, 256, x, delay, factor))]
        words = f"{min(good):.2g} to {max(good):.2g} MiB" if good else "none"
        choices.add(name, bool(good), words, name="any buffer, closed form")
    return choices.measurement(
        ("figure 8a",),
        f"The buffer is not stated; the times of figure 8a fit {fitted_buffer() / MIB:.2f} MiB. There LUMORPH-4 "
        "rounds to four times and LUMORPH-2 to three. LUMORPH-2 fits both this sentence and the one about "
        "25 us if the buffer is smaller.",
        ratios,
    )


@MEASURES.of("slow-switches")
def _slow_switches(laboratory: Laboratory) -> Measurement:
    delay = laboratory.scope["delay [us]"]
    ratios, choices = _at_delay(laboratory, lambda value: value <= 1)
    for name, factor, words in (
        ("Lumorph-2", 1.0, "volume of the text"),
        ("Lumorph-4", 4 / 3, "volume of figure 7"),
        ("Lumorph-4", 1 / usable(16, 3), "15 of 16 lasers"),
    ):
        fixed = closed_form(RING, 256, 0) - closed_form(name, 256, 0, delay)
        slope = (closed_form(name, 256, 1.0, delay, factor) - closed_form(name, 256, 0, delay)) - (
            closed_form(RING, 256, 1.0) - closed_form(RING, 256, 0)
        )
        if fixed <= 0:
            text = "never faster"
        else:
            text = f"faster below {fixed / slope:.0f} MiB" if slope > 1e-9 else "faster at every size"
        choices.add(f"{name}, {words}", fixed <= 0, text, name="any buffer, closed form")
    return choices.measurement(
        ("figure 8a",),
        f"Speed relative to the ring: in figure 8a itself LUMORPH-4, which reconfigures half as often, is "
        f"{ratios['Lumorph-4']:.2f} times as fast at {delay:g} us. LUMORPH-2 loses at every buffer size.",
        ratios,
    )


@MEASURES.of("fastest")
def _fastest(laboratory: Laboratory) -> Measurement:
    choices, counts = Readings("each of the two variants"), laboratory.scope["GPUs"]
    lost = {f"{name}, {n} GPUs": sizes for n in counts for name, sizes in _lost(n).items()}
    cases = {
        "every size, every rival": lost,
        "every size, against the ring": {k: v for k, v in lost.items() if RING in k},
        "8 MB and more": {k: [x for x in v if x >= 8] for k, v in lost.items()},
    }
    for words, table in cases.items():
        bad = {k: v for k, v in table.items() if v}
        choices.add(words, not bad, bad or "always fastest", name="sizes and rivals; better of the two variants")
    slowest = max(
        (_better_variant(n)[x] / time, f"{n} GPUs, {x:g} MB") for n in counts for x, time in _panel(n)[TREE].items()
    )
    n = max(counts)
    both = [f"{variant} loses to the ring at {x:g} MB, {n} GPUs" for n in counts for variant, x in _behind_ring(n)]
    choices.add("every size, against the ring", not both, both)
    return choices.measurement(
        tuple(f"figure 7, {n} GPUs" for n in counts),
        f"In figure 7 the tree is faster up to 4 MB ({_panel(n)[TREE][4.0]:.1f} against {_better_variant(n)[4.0]:.1f} "
        f"us there, {n} GPUs) and D&C up to 0.4 MB. From 8 MB on one of the two variants is the fastest. The paper "
        f"states no range of sizes. Measured: the largest time of the better variant over the tree's ({slowest[1]}).",
        {k: f"faster at {', '.join(f'{x:g}' for x in v)} MB" for k, v in lost.items() if v},
        value=round(slowest[0], 3),
    )


@MEASURES.of("figure-7")
def _figure_7(laboratory: Laboratory) -> Measurement:
    sizes, grids = laboratory.scope.values("buffers [MB]", "GPUs")
    worst = {}
    for name, factor in ((RING, 1.0), (TREE, 1.0), ("Lumorph-2", 1.0)):
        worst[name] = max(
            abs(closed_form(name, n, x, factor=factor) / _panel(n)[name][x] - 1) for n in grids for x in sizes
        )
    decimal = Sweep()
    for n, x in product(grids, sizes):
        once = closed_form("Lumorph-2", n, 0)
        time, drawn = once + (closed_form("Lumorph-2", n, x) - once) * RATE / MIB / 0.3, _panel(n)["Lumorph-2"][x]
        deviation = abs(time / drawn - 1)
        case = f"LUMORPH-2, {n} GPUs, {x:g} MB: {time:.1f} us, in the figure {drawn:.1f} us"
        decimal.add(deviation, holds=deviation <= DRAWN, size=n, case=case)
    choices = Readings("units")
    choices.add("MiB and GiB/s", max(worst[RING], worst["Lumorph-2"]) <= DRAWN, worst)
    choices.add("MB and GB/s", not decimal.wrong, f"LUMORPH-2 deviates by up to {max(decimal.ratios):.1%}")
    return choices.measurement(
        tuple(f"figure 7, {n} GPUs" for n in grids),
        measured={name: f"largest deviation {value:.2%}" for name, value in worst.items()},
        count=len(decimal.ratios),
        violations=len(decimal.wrong),
        witness=decimal.row["witness"],
    )


@MEASURES.of("quadrupling-cost")
def _quadrupling_cost(laboratory: Laboratory) -> Measurement:
    n, sizes = laboratory.scope.values("GPUs", "buffers [MB]")
    curve = _panel(n)["Lumorph-4"]
    choices = Readings("share of the bandwidth in use")
    for words, factor in (
        ("whole bandwidth, as appendix B", 1.0),
        ("15 of 16 lasers: 16/15", 1 / usable(16, 3)),
        ("three of four links: 4/3", 4 / 3),
    ):
        off = max(abs(closed_form("Lumorph-4", n, x, factor=factor) / curve[x] - 1) for x in sizes)
        choices.add(words, off <= DRAWN, round(off, 6))
    return choices.measurement((f"figure 7, {n} GPUs",))


@MEASURES.of("squares-cross")
def _squares_cross(laboratory: Laboratory) -> Measurement:
    n, printed = laboratory.scope["GPUs"], laboratory.number(laboratory.scope["buffer [MB]"])
    choices, last = Readings("exact crossing, MiB"), 0.0
    for size_of_grid in (n, 128, 64):
        curves = _panel(size_of_grid)
        better = [x for x in curves["D&C"] if curves["D&C"][x] < curves[RING][x]]
        last = max(better) if size_of_grid == n else last
        worse = [x for x in curves["D&C"] if x not in better]
        choices.add(
            str(size_of_grid),
            max(better) == printed.value < min(worse),
            f"better up to {max(better):g} MB, worse from {min(worse):g} MB",
            name="GPUs, sizes of figure 7",
        )
    gap = closed_form(RING, n, 0) - closed_form("D&C", n, 0)
    slope = (closed_form("D&C", n, 1) - closed_form("D&C", n, 0)) - (closed_form(RING, n, 1) - closed_form(RING, n, 0))
    choices.add("curves of figure 7", printed.holds(gap / slope), gap / slope)
    line, rounds = optical("D&C", "16x16"), 2 * 255 * ALPHA
    built = (rounds - line.time(0)) / (line.time(1) - line.time(0) - 2 * 255 / 256 * LIGHTPATH.beta) / 1e6
    choices.add("schedule built here", printed.holds(built), round(built, 1), name="exact crossing, MB")
    return choices.measurement(
        (f"figure 7, {n} GPUs",),
        f"The plotted sizes double; 16 MB is the last at which D&C is faster. The curves cross at "
        f"{gap / slope:.1f} MiB.",
        choices[0].measured,
        value=last,
    )


@MEASURES.of("laser-bandwidth")
def _laser_rates(laboratory: Laboratory) -> Measurement:
    gains = {name: round(_less(curve[max(curve)], curve[min(curve)]), 1) for name, curve in figure("8b").items()}
    gains = dict(sorted(gains.items(), key=lambda item: float(item[0].split()[0])))
    rates = figure("8b")["8 MB"]
    assert [min(rates), max(rates)] == laboratory.scope["laser rates [GB/s]"]
    values = list(gains.values())
    return Measurement(
        gains,
        verdict_if(values == sorted(values) and values[-1] > 100 * ABOUT),
        instances=("figure 8b",),
        count=len(gains) - 1,
        violations=sum(after < before for before, after in pairwise(values)),
    )


@MEASURES.of("more-peers")
def _more_peers(laboratory: Laboratory) -> Measurement:
    n, peers = laboratory.scope.values("GPUs", "peers")
    choices = Readings("bandwidth in use")
    ratios: list[float] = []
    first: list[float] = []
    models: dict[str, Callable[[int, float], float]] = {
        "bundles of whole lasers of 16": lambda k, size: recursive_time((factors(n, k + 1) or ()), size, LIGHTPATH),
        "k of k + 1 links, as figure 7": lambda k, size: (
            2 * len(factors(n, k + 1) or ()) * (ALPHA + DELAY)
            + 2 * (n - 1) / n * size * LIGHTPATH.beta * ((k + 1) / k if k > 1 else 1)
        ),
    }
    for words, time in models.items():
        gains = []
        for size in np.logspace(3, 10, 71):
            single, three, seven = (time(k, float(size)) for k in (1, 3, peers))
            if three < single:
                gains.append((three - seven) / (single - three))
        ratios += gains
        first = first or gains
        choices.add(words, max(gains) < 1, spread(gains))
    return choices.measurement(
        (f"{n} GPUs",),
        count=len(first),
        violations=sum(ratio >= 1 for ratio in first),
        witness=f"seven peers save {max(first):.3g} times as much" if max(first) >= 1 else None,
        tightness=spread(ratios),
    )


@MEASURES.of("volume")
def _volume(laboratory: Laboratory) -> Measurement:
    sweep = Sweep()
    for n in laboratory.scope["GPUs"]:
        bound = 2 * (n - 1) / n
        moved = optical("LUMORPH-2", GRIDS[n]).weight * LIGHTPATH.lasers
        equal = bool(np.isclose(moved, bound))
        sweep.add(bound / moved, holds=equal, size=n, case=f"{n} GPUs: {moved} B, bound {bound} B")
    return sweep.measurement(
        [case for _, case in sweep.wrong] or "equal", tuple(f"lightpath:{GRIDS[n]}" for n in laboratory.scope["GPUs"])
    )
