"""Claims of the LuMorph paper about routes and waveguides: sections 3.2 and 5, figures 3, 5 and 6.

Constraint (6) of Algorithm 1 counts the circuits of one wavelength; the figures count those of all together.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from opticoll.analysis.ledger.claim import Measurement, Measures
from opticoll.analysis.ledger.comparisons import interval_of_mean, seconds_of
from opticoll.analysis.ledger.readings import Readings
from opticoll.analysis.ledger.tolerances import ABOUT
from opticoll.analysis.papers.lumorph.machine_times import GRIDS
from opticoll.analysis.papers.lumorph.route_overlaps import (
    MCF,
    RANDOM,
    VARIANTS,
    busiest_edge,
    overlaps,
    proven_overlap,
)
from opticoll.instances.published.lumorph_numbers import figure

if TYPE_CHECKING:
    from opticoll.analysis.ledger.claim import Laboratory


MEASURES = Measures("lumorph")


@MEASURES.of("figure-5")
def _figure_5(laboratory: Laboratory) -> Measurement:
    drawn = figure("5", "left")
    cases: dict[str, tuple[str, dict[int, str]]] = {
        "rows, 8 GPUs on 2x4": ("rows", GRIDS),
        "rows, 8 GPUs on 4x2": ("rows", {**GRIDS, 8: "4x2"}),
        "2x2 squares, 8 GPUs on 2x4": ("squares", GRIDS),
    }
    choices = Readings("numbering and shape")
    for words, (by, grids) in cases.items():
        points = [(name, n) for name in VARIANTS for n in laboratory.scope["GPUs"]]
        off = [
            f"{name}, {n} GPUs: {least} instead of {drawn[f'{name}+{MCF}'][n]:g}"
            for name, n in points
            if (least := proven_overlap(grids[n], VARIANTS[name], by)) != drawn[f"{name}+{MCF}"][n]
        ]
        choices.add(words, not off, off or f"all {len(points)} points")
    return choices.measurement(("figure 5, left",))


@MEASURES.of("random-worse")
def _random(laboratory: Laboratory) -> Measurement:
    sizes, seeds = laboratory.scope["GPUs"], laboratory.seeds(laboratory.scope["seeds"])
    drawn = figure("5", "left")
    choices = Readings("random routes; algorithm; GPUs numbered by")
    closest = math.inf
    for name, radix in VARIANTS.items():
        ratios = {n: round(drawn[f"{name}+{RANDOM}"][n] / drawn[f"{name}+{MCF}"][n], 2) for n in sizes}
        closest = min(closest, *ratios.values())
        choices.add(
            ("as drawn in figure 5", name, "not stated"),
            min(ratios.values()) > 1 + ABOUT,
            {f"{n} GPUs": ratio for n, ratio in ratios.items()},
        )
        for by in ("rows", "squares"):
            text, least_ratio = [], math.inf
            for n in sizes:
                least = busiest_edge(GRIDS[n], radix, by, "straight")
                mean, half = interval_of_mean([busiest_edge(GRIDS[n], radix, by, "random", s) / least for s in seeds])
                least_ratio = min(least_ratio, mean)
                text.append(f"{n}: {mean:.2f} ({mean - half:.2f} to {mean + half:.2f})")
            choices.add(("uniform shortest paths", name, by), least_ratio > 1 + ABOUT, ", ".join(text))
    return choices.measurement(
        ("figure 5, left", *(f"lightpath:{GRIDS[n]}" for n in sizes)),
        f"Ratio of overlaps, random over least; mean and 95 % interval over {len(seeds)} seeds. True of the "
        "drawn curves, whose random routes are not all shortest in the authors' code. In doubling, partners lie "
        "in one row or column under both numberings, so the shortest path is unique and nothing is lost; "
        "in quadrupling it depends on the numbering.",
        value=round(closest, 3),
    )


@MEASURES.of("overlap-grows")
def _grows(laboratory: Laboratory) -> Measurement:
    sizes = laboratory.scope["GPUs"]
    choices = Readings("increases")
    curves = {name: [curve[n] for n in sizes] for name, curve in figure("5", "left").items()}
    falls = [name for name, row in curves.items() if any(b < a for a, b in pairwise(row))]
    rises = all(row[-1] > row[0] for row in curves.values())
    choices.add("from the smallest to the largest size", rises, curves)
    choices.add("at every step of figure 5", not falls, f"falls at one step: {falls}")
    more = all(
        curves[f"Lumorph-4+{kind}"][i] >= curves[f"Lumorph-2+{kind}"][i]
        and curves[f"Lumorph-4+{kind}"][-1] > curves[f"Lumorph-2+{kind}"][-1]
        for kind in (MCF, RANDOM)
        for i in range(len(sizes))
    )
    choices.add("figure 5", more, "never less", name="quadrupling against doubling")
    for by in ("rows", "squares"):
        least = {
            name: [busiest_edge(GRIDS[n], radix, by, "straight") for n in sizes] for name, radix in VARIANTS.items()
        }
        holds = all(row[-1] > row[0] and row == sorted(row) for row in least.values()) and all(
            a <= b for a, b in zip(*least.values(), strict=True)
        )
        choices.add(by, holds, least, name="least overlap computed, GPUs numbered")
    return choices.measurement(("figure 5, left", *(f"lightpath:{GRIDS[n]}" for n in sizes)), measured=curves)


@MEASURES.of("thirty-waveguides")
def _thirty(laboratory: Laboratory) -> Measurement:
    enough, n, algorithms = laboratory.scope.values("waveguides", "GPUs", "all algorithms")
    left = {name: curve[enough] for name, curve in figure("5", f"right_{n}_gpus").items()}
    choices = Readings("circuits counted")
    for words, kinds in (("random routes as well", (MCF, RANDOM)), ("routes of least overlap", (MCF,))):
        names = [f"{a}+{kind}" for a in algorithms for kind in kinds]
        most = max(left[name] for name in names)
        choices.add(f"{words}, both directions", most == 0, enough + most)
    side = {name: busiest_edge(GRIDS[n], radix, "rows", "straight", both=False) for name, radix in VARIANTS.items()}
    choices.add("routes of least overlap, each direction", max(side.values()) <= enough, max(side.values()))
    return choices.measurement(
        (f"figure 5, right, {n} GPUs",),
        f"Imprecise: {choices[1].measured} waveguides are needed if both directions of an edge share them, as the "
        f"figure counts, and {max(side.values())} for each direction. Measured: {enough} and the circuits in excess "
        "on the busiest edge, as drawn. The curve of LUMORPH-4 with the best routes reaches 0 at the next plotted "
        "point, 35, with random routes at 50.",
        left,
        witness=f"Section 5: figure 5 (right) shows that {enough} waveguides eliminate congestion for all algorithms. "
        f"Figure 5 (right): LUMORPH-4 + MCF has {left['Lumorph-4+MCF']:g} circuits too many at {enough}, "
        f"LUMORPH-4 + Random {left['Lumorph-4+Random']:g}",
    )


def _split(n: int, radix: int, by: str, waveguides: int, *, both: bool = True) -> int:
    """Rounds of an all-reduce whose steps are split until no edge has more circuits than waveguides."""
    return 2 * sum(-(-step[both] // waveguides) for step in overlaps(GRIDS[n], radix, by, "straight"))


@MEASURES.of("fewer-waveguides")
def _fewer(laboratory: Laboratory) -> Measurement:
    few, many, n = laboratory.scope.values("few waveguides", "many waveguides", "GPUs")
    less = 1 - ABOUT
    drawn = {w: figure("6", f"waveguides_{w}") for w in (few, many)}
    choices = Readings("algorithm and routes, figure 6")
    for name in drawn[few]:
        pair = [drawn[w][name][n] for w in (few, many)]
        choices.add(name, pair[1] < less * pair[0], pair)
    total = [sum(drawn[w][name][n] for name in drawn[w]) for w in (few, many)]
    choices.add("reconfigurations in total", total[1] < less * total[0], total, name="all curves of figure 6")
    for by in ("rows", "squares"):
        for name, radix in VARIANTS.items():
            pair = [_split(n, radix, by, w) for w in (few, many)]
            words = f"{name}, routes of least overlap, GPUs numbered by {by}"
            choices.add(words, pair[1] < less * pair[0], pair, name="computed from overlaps in both directions")
            pair = [_split(n, radix, by, w, both=False) for w in (few, many)]
            choices.add(words, pair[1] < less * pair[0], pair, name="computed from overlaps per direction")
    agree = all(
        _split(k, radix, "rows", w) == drawn[w][f"{name}+{MCF}"][k]
        for w in (few, many)
        for name, radix in VARIANTS.items()
        for k in GRIDS
        if (name, k) != ("Lumorph-4", 8)
    )
    return choices.measurement(
        (f"figure 6, {n} GPUs",),
        f"Reconfigurations of an all-reduce with {few} and {many} waveguides; much lower is by more than {ABOUT:.0%}. "
        "True of three of the four curves; LUMORPH-2 with the best routes needs 16 in both cases. "
        + (
            "Splitting every step into as many rounds as its overlap needs gives the drawn points of the best "
            "routes (8 GPUs and LUMORPH-4 apart, see lumorph.figure-5)."
            if agree
            else ""
        ),
        {choice.tried: choice.measured for choice in choices if "figure 6" in choice.name},
    )


@MEASURES.of("route-times")
def _route_times(laboratory: Laboratory) -> Measurement:
    most, limit = laboratory.scope.values("GPUs, at most", "tens of seconds, below [s]")
    drawn = {name: curve[most] for name, curve in figure("3").items()}
    choices = Readings("Algorithm 2 by Gurobi, as drawn in figure 3")
    for name, value in drawn.items():
        choices.add(name, value < limit, f"{value:.1f} s")
    spec = f"lightpath:{GRIDS[most]},waveguides=16"
    record = laboratory.proven(
        "lumorph.min-overlap", spec, method="negotiated-rerouting", circuits="recursive-quadrupling:2"
    )
    took = seconds_of(record)
    choices.add("heuristic routes and a cut as proof", took < limit, f"proven in {took:.0f} s", name="solved here")
    return choices.measurement((spec,))
