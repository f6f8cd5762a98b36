r"""Claims of the LuMorph paper about routes and waveguides: sections 3.2 and 5, figures 3, 5 and 6.

The authors' figures count the circuits on an edge in both directions together and ignore wavelengths; constraint (6) of
Algorithm 1 counts the circuits of one wavelength. The paper does not say how GPUs are numbered: by rows, or by 2x2
squares as in section 3.2; nor which shapes the grids have.

The points drawn in the figures are compared with ours: equal, bounded, or unknown. Every digitised point of figures 5,
6, 7, 8, 10 and 11 has an interval of ours, a single value where it is computed:

    5, 6   routes of least overlap: the optimum, straight routes that attain a cut; random routes: at least the optimum
    7, 8b  the closed form as plotted, see :func:`opticoll.formulations.lumorph.cost_formulas.formula`; 8b is LUMORPH-2
    8a     the same, with the buffer that the ring's time implies: the paper states none
    10     the share of the logged calls among more than one GPU that are at most this large
    11     N batch / time: the time is at least that with free communication, which is drawn, and at most longer by
           the plotted time of all communication, one call at a time

Figure 3 has times of Gurobi on a different machine, which cannot be computed.

Ratios of figure 11, :func:`gains`, are bounded twice: by these intervals, and in bert and inception, which send nothing
between layers, by the drawn time of the ring under the model of appendix C, one queue of calls (:func:`queue_bounds`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.ledger.claim import Claims, Measurement, Verdict
from opticoll.analysis.ledger.readings import Readings
from opticoll.analysis.papers.lumorph.drawn_lines import GRIDS
from opticoll.formulations.lumorph.cost_formulas import LUMORPH_2, LUMORPH_4, RING, SQUARES, TREE, formula, layer_time
from opticoll.instances.published.lumorph_numbers import BATCH, GPUS, MODELS, drawn, figure, iteration
from opticoll.solvers.task import PROVEN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.analysis.ledger.claim import Laboratory
    from opticoll.solvers.task import Json

    I64 = NDArray[np.int64]


PAPER = "lumorph"
_ALL = [4, 8, 16, 32, 64, 128, 256]
_COMPUTED = (
    "We route the circuits of every step on a grid of each size, count the circuits on the busiest edge, and "
    "compare with the curves read from the vector graphics of the figure"
)
CLAIMS = Claims(PAPER)
MCF, RANDOM = "MCF", "Random"
VARIANTS = {"Lumorph-2": 2, "Lumorph-4": 4}


def circuits(n: int, radix: int) -> Iterator[tuple[I64, I64]]:
    """Sources and targets of every step of the recursive exchange on n ranks; the last step takes what is left."""
    ranks, reached = np.arange(n), 1
    while reached < n:
        m = radix if n // reached % radix == 0 else n // reached
        digit = ranks // reached % m
        targets = [ranks + ((digit + k) % m - digit) * reached for k in range(1, m)]
        yield np.tile(ranks, m - 1), np.concatenate(targets)
        reached *= m


def numbering(grid: str, by: str) -> I64:
    """Tile of every rank: by ``rows``, or by ``squares`` of 2x2, 4x4, ... tiles while both sides are even."""
    rows, columns = map(int, grid.split("x"))
    tile = np.arange(rows * columns).reshape(rows, columns)

    def quarters(part: I64) -> I64:
        r, c = part.shape
        if r == 1 or c == 1 or r % 2 or c % 2:
            return part.ravel()
        if r < c:
            return np.concatenate([quarters(part[:, : c // 2]), quarters(part[:, c // 2 :])])
        if c < r:
            return np.concatenate([quarters(part[: r // 2]), quarters(part[r // 2 :])])
        halves = (part[: r // 2], part[r // 2 :])
        return np.concatenate([quarters(p) for half in halves for p in (half[:, : c // 2], half[:, c // 2 :])])

    return tile.ravel() if by == "rows" else quarters(tile)


@cache
def overlaps(grid: str, radix: int, by: str, routes: str, seed: int = 0) -> tuple[tuple[int, int], ...]:
    """The busiest edge of every step: circuits in one direction, and in both together.

    ``routes`` is ``straight`` (row first, then column; the best of both orders) or ``random`` shortest paths.
    """
    from opticoll.instances import parse
    from opticoll.solvers.methods.lumorph.overlap_search import shortest_routes, straight_or_shortest

    mesh: Any = parse(f"lightpath:{grid}")
    tile, random = numbering(grid, by), np.random.default_rng(seed)
    edge = np.minimum(mesh.tail, mesh.head) * mesh.n + np.maximum(mesh.tail, mesh.head)
    _, number = np.unique(edge, return_inverse=True)
    measured = []
    for sources, targets in circuits(mesh.n, radix):
        pairs = tile[sources], tile[targets]
        paths = straight_or_shortest(mesh, *pairs) if routes == "straight" else shortest_routes(mesh, *pairs, random)
        loads = np.bincount(paths.arcs, minlength=mesh.arcs)
        measured.append((int(loads.max()), int(np.bincount(number, loads).max())))
    return tuple(measured)


def _most(grid: str, radix: int, by: str, routes: str, seed: int = 0, *, both: bool = True) -> int:
    return max(step[both] for step in overlaps(grid, radix, by, routes, seed))


def least_by_cuts(grid: str, radix: int, by: str) -> list[int]:
    """Lower bound on the overlap of every step, both directions: circuits across a straight cut over its edges."""
    rows, columns = map(int, grid.split("x"))
    tile, bounds = numbering(grid, by), []
    for sources, targets in circuits(rows * columns, radix):
        bound = 0
        for side, across, position in ((columns, rows, lambda v: v % columns), (rows, columns, lambda v: v // columns)):
            ends = position(tile[sources]), position(tile[targets])
            for line in range(1, side):
                bound = max(bound, -(-int(((ends[0] < line) != (ends[1] < line)).sum()) // across))
        bounds.append(bound)
    return bounds


# figure 5 -----------------------------------------------------------------------------------------------------


def proven_overlap(grid: str, radix: int, by: str) -> int:
    """The least overlap in both directions: straight routes that attain a cut.

    Raises
    ------
    ArithmeticError
        If they do not.
    """
    least, bound = _most(grid, radix, by, "straight"), max(least_by_cuts(grid, radix, by))
    if least != bound:
        msg = f"radix {radix} on {grid} by {by}: straight routes overlap {least} times, the cuts give {bound}"
        raise ArithmeticError(msg)
    return least


MIB = 2.0**20
FREE = "Zero-cost"
#: Panels of every figure.
PANELS = {
    "5": ("left", "right_256_gpus"),
    "6": ("waveguides_20", "waveguides_40"),
    "7": ("64_gpus", "128_gpus", "256_gpus"),
    "8a": ("256_gpus",),
    "8b": ("",),
    "10": ("",),
    "11": MODELS,
}
#: Largest deviation of a computed point from the drawn one: whole circuits, 0.001 us, the digits of a share, and for
#: figure 11 the rounding of the drawn throughputs, relative.
TOLERANCE = {"5": 0.0, "6": 0.0, "7": 1.001e-3, "8a": 1.001e-3, "8b": 1.001e-3, "10": 5.001e-5, "11": 1e-5}
#: Resolution of the sizes in the drawing of figure 10 [bytes].
SIZE_RESOLUTION = 20


@dataclass(frozen=True)
class Point:
    """A drawn point at ``x`` with value ``drawn``, and our interval ``low`` to ``high``.

    ``exact``: the interval is a computed value; otherwise it holds every value that the paper's data allow.
    """

    figure: str
    panel: str
    series: str
    x: float
    drawn: float
    low: float
    high: float
    exact: bool

    @property
    def agrees(self) -> bool:
        """Whether the drawn value lies in our interval, up to the tolerance of its figure."""
        slack = TOLERANCE[self.figure] * (abs(self.drawn) if self.figure == "11" else 1.0)
        return self.low - slack <= self.drawn <= self.high + slack


# circuits -----------------------------------------------------------------------------------------------------------

#: The paper states no shapes. On 2x4 tiles, as in the code, LUMORPH-4 needs 8 circuits on an edge, on 4x2 the drawn 4.
SHAPES = {**GRIDS, 8: "4x2"}


def least_reconfigurations(name: str, n: int, waveguides: int) -> int:
    """Rounds of an all-reduce with the fewest splits of its steps, circuits counted in both directions.

    Raises
    ------
    ArithmeticError
        If some step's routes are not proven to need the fewest rounds.
    """
    grid, radix = SHAPES[n], VARIANTS[name]
    steps = [both for _, both in overlaps(grid, radix, "rows", "straight")]
    rounds = [ceil(step / waveguides) for step in steps]
    if rounds != [ceil(bound / waveguides) for bound in least_by_cuts(grid, radix, "rows")]:
        msg = f"{name} on {grid}, {waveguides} waveguides: the cuts do not prove {rounds} rounds"
        raise ArithmeticError(msg)
    return 2 * sum(rounds)


def _circuits(number: str, panel: str, series: str, x: float) -> tuple[float, float, bool]:
    name, _, routes = series.partition("+")
    radix = VARIANTS[name]
    if number == "6":
        waveguides = int(panel.rpartition("_")[2])
        least: float = least_reconfigurations(name, int(x), waveguides)
        most = 2.0 * sum(ceil(_count(int(x), radix, k) / waveguides) for k in range(_steps(int(x), radix)))
    else:
        n = int(x) if panel == "left" else 256
        least, most = proven_overlap(SHAPES[n], radix, "rows"), float(_count(n, radix, 0))
        if panel != "left":
            least, most = max(least - x, 0.0), max(most - x, 0.0)
    return (least, least, True) if routes == MCF else (least, most, False)


def _steps(n: int, radix: int) -> int:
    return len(overlaps(SHAPES[n], radix, "rows", "straight"))


def _count(n: int, radix: int, step: int) -> int:
    """Circuits of a step, an upper bound on those of one edge."""
    reached = radix**step
    return n * (min(radix, n // reached) - 1)


# times of an all-reduce ---------------------------------------------------------------------------------------------


def fitted_buffer() -> float:
    """Buffer of figure 8a [bytes], which the paper does not state, from the drawn time of the ring."""
    (ring,) = set(figure("8a", "256_gpus")[RING].values())
    cost = formula(RING, 256, "plotted")
    return (ring - cost.time(0.0)) * cost.rate / cost.volume


def _time(number: str, panel: str, series: str, x: float) -> float:
    if number == "7":
        return formula(series, int(panel.partition("_")[0]), "plotted").time(x * MIB)
    if number == "8a":
        return formula(series, 256, "plotted", reconfigure_us=x / 1e3).time(fitted_buffer())
    buffer = float(series.partition(" ")[0]) * MIB
    return formula(LUMORPH_2, 256, "plotted", rate=16 * x * 2**30 / 1e6).time(buffer)


# sizes of the calls -------------------------------------------------------------------------------------------------


@cache
def call_sizes(model: str, n: int = 256) -> tuple[int, ...]:
    """Buffers of an iteration's all-reduces among more than one GPU, ascending [bytes]."""
    return tuple(sorted(call.size for call in iteration(model, n)[0] if len(call.ranks) > 1))


def shares(model: str) -> dict[int, float]:
    """The distribution of figure 10: size [bytes], share of the calls that are at most this large."""
    sizes = call_sizes(model)
    return {size: sum(other <= size for other in sizes) / len(sizes) for size in sorted(set(sizes))}


def _share(model: str, x: float, value: float) -> float:
    """The share nearest to the drawn one at a size that the drawing cannot tell from ``x``."""
    steps = shares(model)
    low = max((share for size, share in steps.items() if size <= x - SIZE_RESOLUTION), default=0.0)
    near = [low, *(share for size, share in steps.items() if abs(size - x) < SIZE_RESOLUTION)]
    return min(near, key=lambda share: abs(share - value))


# training -----------------------------------------------------------------------------------------------------------


@cache
def communication(model: str, n: int, algorithm: str) -> float:
    """Time of all all-reduces and transfers of an iteration, in sequence, as plotted [us]."""
    cost = formula(algorithm, n, "plotted")
    return sum(cost.time(size) for size in call_sizes(model, n)) + layers(model, n)


def layers(model: str, n: int) -> float:
    """Time of the transfers between layers, both passes, as the authors' code prices them [us]."""
    total, result = 0.0, iteration(model, n)[1]
    for layer in sorted({each.layer for each in result}):
        group = [each for each in result if each.layer == layer]
        sources = tuple(gpu for each in group for gpu in each.sources)
        ends = (sources, group[0].targets)
        total += sum(layer_time(*way, group[0].size) for way in (ends, ends[::-1]))
    return total


def drawn_time(model: str, n: int, series: str) -> float:
    """Time of an iteration from the throughput drawn in figure 11 [us]."""
    return 1e6 * n * BATCH[model] / figure("11", model)[series][n]


def iteration_bounds(model: str, n: int, series: str) -> tuple[float, float]:
    """Minimum and maximum time of an iteration [us]; computing takes the drawn time with free communication."""
    free = drawn_time(model, n, FREE)
    return (free, free) if series == FREE else (free, free + communication(model, n, series))


# all of them --------------------------------------------------------------------------------------------------------


def _drawn_interval(number: str, panel: str, series: str, x: float, value: float) -> tuple[float, float, bool]:
    if number in ("5", "6"):
        return _circuits(number, panel, series, x)
    if number == "11":
        least, most = iteration_bounds(panel, int(x), series)
        samples = 1e6 * x * BATCH[panel]
        return samples / most, samples / least, False
    value = _share(series, x, value) if number == "10" else _time(number, panel, series, x)
    return value, value, True


@cache
def points(number: str) -> tuple[Point, ...]:
    """All points of a figure; the drawn curve of free communication in figure 11, an input of ours, is omitted.

    Raises
    ------
    KeyError
        For a figure that is not in :data:`PANELS`.
    """
    panels = PANELS[number]
    return tuple(
        Point(number, panel, series, x, y, *_drawn_interval(number, panel, series, x, y))
        for panel, series, x, y in sorted(drawn(number), key=lambda row: panels.index(row[0]))
        if (number, series) != ("11", FREE)
    )


@CLAIMS.stated(
    "figure-5",
    "figure 5, left",
    "Figure 5 (left) plots the least overlap of circuits over all routes, for LUMORPH-2 and LUMORPH-4 on 4 to 256 GPUs",
    "all 14 points equal",
    scope={"GPUs": _ALL},
    weight=2,
    procedure=f"{_COMPUTED}.",
)
def _figure_5(laboratory: Laboratory) -> Measurement:
    drawn = figure("5", "left")
    cases: dict[str, tuple[str, dict[int, str]]] = {
        "rows; 8 GPUs on 2x4": ("rows", GRIDS),
        "rows; 8 GPUs on 4x2": ("rows", {**GRIDS, 8: "4x2"}),
        "2x2 squares; 8 GPUs on 2x4": ("squares", GRIDS),
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
    return choices.measurement(
        ("figure 5, left",),
        "Circuits on the busiest edge in both directions together, with straight routes; every value is "
        "proven by a cut. With GPUs numbered by rows, all points agree except LUMORPH-4 on 8 GPUs (4x2 tiles).",
    )


def _interval(values: list[float]) -> tuple[float, float, float]:
    """Mean and 95 % interval of the mean, by Student's t."""
    from scipy.stats import t

    mean = float(np.mean(values))
    wide = float(t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values)))
    return mean, mean - wide, mean + wide


@CLAIMS.stated(
    "random-worse",
    "section 5, figure 5",
    "Randomly chosen shortest paths overlap significantly more than the routes of least overlap",
    "more",
    "95 % interval",
    scope={"GPUs": [64, 128, 256], "seeds": 8},
    weight=2,
    procedure=f"{_COMPUTED}; eight seeds.",
)
def _random(laboratory: Laboratory) -> Measurement:
    sizes, seeds = laboratory.scope["GPUs"], laboratory.seeds(laboratory.scope["seeds"])
    drawn = figure("5", "left")
    choices = Readings("random routes")
    measured: dict[str, Json] = {}
    for name, radix in VARIANTS.items():
        ratios = {n: round(drawn[f"{name}+{RANDOM}"][n] / drawn[f"{name}+{MCF}"][n], 2) for n in sizes}
        choices.add(
            f"as drawn in figure 5, {name}",
            min(ratios.values()) > 1,
            {f"{n} GPUs": ratio for n, ratio in ratios.items()},
        )
        for by in ("rows", "squares"):
            text, least_ratio = [], math.inf
            for n in sizes:
                least = _most(GRIDS[n], radix, by, "straight")
                mean, low, high = _interval([_most(GRIDS[n], radix, by, "random", s) / least for s in seeds])
                least_ratio = min(least_ratio, low)
                text.append(f"{n}: {mean:.2f} ({low:.2f} to {high:.2f})")
            choices.add(f"uniform shortest paths, {name}, GPUs numbered by {by}", least_ratio > 1, ", ".join(text))
    measured = choices.by_reading
    return choices.measurement(
        ("figure 5, left", *(f"lightpath:{GRIDS[n]}" for n in sizes)),
        f"Ratio of overlaps, random over least; mean and 95 % interval over {len(seeds)} seeds. True of the "
        "drawn curves, whose random routes are not all shortest in the authors' code. In doubling, partners lie "
        "in one row or column under both numberings, so the shortest path is unique and nothing is lost; "
        "in quadrupling it depends on the numbering.",
        measured,
    )


@CLAIMS.stated(
    "overlap-grows",
    "section 5, figure 5",
    "The overlap of circuits grows up to 256 GPUs for both kinds of routes, and is larger for recursive "
    "quadrupling than for doubling",
    "rises",
    scope={"GPUs": _ALL},
    procedure=f"{_COMPUTED}.",
)
def _grows(laboratory: Laboratory) -> Measurement:
    sizes = laboratory.scope["GPUs"]
    choices = Readings("increases")
    curves = {name: [curve[n] for n in sizes] for name, curve in figure("5", "left").items()}
    falls = [name for name, row in curves.items() if any(b < a for a, b in pairwise(row))]
    rises = all(row[-1] > row[0] for row in curves.values())
    choices.add("from the smallest to the largest size", rises, curves, natural=True)
    choices.add("at every step of figure 5", not falls, f"falls at one step: {falls}")
    more = all(
        curves[f"Lumorph-4+{kind}"][i] >= curves[f"Lumorph-2+{kind}"][i]
        and curves[f"Lumorph-4+{kind}"][-1] > curves[f"Lumorph-2+{kind}"][-1]
        for kind in (MCF, RANDOM)
        for i in range(len(sizes))
    )
    choices.add("figure 5", more, "never less", name="quadrupling against doubling", natural=True)
    for by in ("rows", "squares"):
        least = {name: [_most(GRIDS[n], radix, by, "straight") for n in sizes] for name, radix in VARIANTS.items()}
        holds = all(row[-1] > row[0] and row == sorted(row) for row in least.values()) and all(
            a <= b for a, b in zip(*least.values(), strict=True)
        )
        choices.add(by, holds, least, name="least overlap computed, GPUs numbered", natural=True)
    return choices.measurement(
        ("figure 5, left", *(f"lightpath:{GRIDS[n]}" for n in sizes)),
        "Least overlaps never fall. The drawn overlaps of random routes fall at one step, from 32 to 64 GPUs, "
        "where the grid becomes square.",
        curves,
    )


CONTRADICTED = Verdict.SELF_CONTRADICTED


@CLAIMS.stated(
    "thirty-waveguides",
    "section 5 against figure 5, right",
    "According to figure 5 (right), 30 waveguides are enough to eliminate congestion for all algorithms on 256 GPUs",
    "no congestion at 30 waveguides",
    scope={"waveguides": 30, "GPUs": 256, "all algorithms": ["Lumorph-2", "Lumorph-4"]},
    weight=2,
    procedure="We read the curves from the vector graphics of the figure.",
)
def _thirty(laboratory: Laboratory) -> Measurement:
    enough = laboratory.scope["waveguides"]
    n, algorithms = laboratory.scope["GPUs"], laboratory.scope["all algorithms"]
    left = {name: curve[enough] for name, curve in figure("5", f"right_{n}_gpus").items()}
    sets = {
        "LUMORPH-2 and -4, both kinds of routes": [f"{a}+{kind}" for a in algorithms for kind in (MCF, RANDOM)],
        "LUMORPH-2 and -4, routes of least overlap": [f"{a}+{MCF}" for a in algorithms],
    }
    choices = Readings("all algorithms", otherwise=CONTRADICTED)
    for words, names in sets.items():
        choices.add(words, all(left[name] == 0 for name in names), {name: left[name] for name in names})
    side = {name: _most(GRIDS[n], radix, "rows", "straight", both=False) for name, radix in VARIANTS.items()}
    return choices.measurement(
        (f"figure 5, right, {n} GPUs",),
        "Measured: circuits in excess of 30 waveguides on the busiest edge, as drawn. The curve of LUMORPH-4 "
        "with the best routes reaches 0 at 35, with random routes at 50. The figure counts both directions "
        f"together; counted per direction, {max(side.values())} waveguides would be enough for "
        "the best routes. The sentence refers to the figure.",
        left,
        witness=f"Section 5: figure 5 (right) shows that {enough} waveguides eliminate congestion for all algorithms. "
        f"Figure 5 (right): LUMORPH-4 + MCF has {left['Lumorph-4+MCF']:g} circuits too many at {enough}, "
        f"LUMORPH-4 + Random {left['Lumorph-4+Random']:g}",
    )


# figures 6 and 3 ----------------------------------------------------------------------------------------------


def _split(n: int, radix: int, by: str, waveguides: int, *, both: bool = True) -> int:
    """Rounds of an all-reduce whose steps are split until no edge has more circuits than waveguides."""
    return 2 * sum(-(-step[both] // waveguides) for step in overlaps(GRIDS[n], radix, by, "straight"))


@CLAIMS.stated(
    "fewer-waveguides",
    "section 5, figure 6",
    "Schedules reconfigure more often with 20 waveguides per edge than with 40",
    "more",
    scope={"few waveguides": 20, "many waveguides": 40, "GPUs": 256},
    procedure="We read the curves of figure 6, and compute the rounds into which the overlap splits each step.",
)
def _fewer(laboratory: Laboratory) -> Measurement:
    few, many, n = (laboratory.scope[name] for name in ("few waveguides", "many waveguides", "GPUs"))
    drawn = {w: figure("6", f"waveguides_{w}") for w in (few, many)}
    choices = Readings("algorithm and routes, figure 6")
    for name in drawn[few]:
        pair = [drawn[w][name][n] for w in (few, many)]
        choices.add(name, pair[0] > pair[1], pair)
    for by in ("rows", "squares"):
        for name, radix in VARIANTS.items():
            pair = [_split(n, radix, by, w) for w in (few, many)]
            words = f"{name}, routes of least overlap, GPUs numbered by {by}"
            choices.add(words, pair[0] > pair[1], pair, name="computed from overlaps in both directions")
            pair = [_split(n, radix, by, w, both=False) for w in (few, many)]
            choices.add(words, pair[0] > pair[1], pair, name="computed from overlaps per direction")
    agree = all(
        _split(k, radix, "rows", w) == drawn[w][f"{name}+{MCF}"][k]
        for w in (few, many)
        for name, radix in VARIANTS.items()
        for k in GRIDS
        if (name, k) != ("Lumorph-4", 8)
    )
    return choices.measurement(
        (f"figure 6, {n} GPUs",),
        f"Reconfigurations of an all-reduce with {few} and {many} waveguides. True of three of the four curves; "
        "LUMORPH-2 with the best routes needs 16 in both cases. "
        + (
            "Splitting every step into as many rounds as its overlap needs gives the drawn points of the best "
            "routes (8 GPUs and LUMORPH-4 apart, see lumorph.figure-5)."
            if agree
            else ""
        ),
        {choice.tried: choice.measured for choice in choices if "figure" in choice.name},
    )


@CLAIMS.stated(
    "route-times",
    "section 3.2, figure 3",
    "Algorithm 2 finds routes of least overlap within tens of seconds for up to 128 nodes",
    "tens of seconds",
    "below 100 s",
    scope={"GPUs, at most": 128, "tens of seconds, below [s]": 100},
    procedure="We read figure 3, and solve the hardest step of LUMORPH-4 on 128 GPUs by two methods.",
)
def _route_times(laboratory: Laboratory) -> Measurement:
    most, limit = laboratory.scope["GPUs, at most"], laboratory.scope["tens of seconds, below [s]"]
    drawn = {name: curve[most] for name, curve in figure("3").items()}
    choices = Readings("Algorithm 2 by Gurobi, as drawn in figure 3")
    for name, value in drawn.items():
        choices.add(name, value < limit, f"{value:.1f} s")
    spec = f"lightpath:{GRIDS[most]},waveguides=16"
    for words, method, seconds in (
        ("the integer program by HiGHS", "highs", 30.0),
        ("heuristic routes and a cut as proof", "negotiated-rerouting", 120.0),
    ):
        record = laboratory.solve(
            "lumorph.min-overlap", spec, method=method, time_limit_s=seconds, circuits="recursive-quadrupling:2"
        )
        took = sum(record["time"][part] or 0.0 for part in ("build_s", "compile_s", "solve_s", "verify_s"))
        proven = record["proof"] in PROVEN
        choices.add(
            words,
            proven and took < limit,
            f"{'proven' if proven else 'not proven'} in {took:.0f} s",
            name="solved here",
        )
    return choices.measurement(
        (spec,),
        "The text agrees with figure 3. Other programs and machines take other times: our heuristic is a "
        "different algorithm, and HiGHS was stopped after 30 s.",
    )


def queue_bounds(model: str, n: int, algorithm: str) -> tuple[float, float] | None:
    """Bounds on the time of an iteration by the drawn time of the ring [us]; None with transfers between layers.

    The model of appendix C: calls run one at a time in a fixed order, call k not before a time r_k set by computing,
    which waits for no call. With C_k the time of the calls from k on and Z that of computing, T is the largest of
    Z and r_k + C_k. A drawn T of the ring bounds every r_k by T - C_k, with equality for some k if T > Z, hence the T
    of another algorithm. The order is that of the log or the opposite; these bounds hold for both.
    """
    if iteration(model, n)[1]:
        return None
    free, ring = drawn_time(model, n, FREE), drawn_time(model, n, RING)
    calls = [call.size for call in iteration(model, n)[0] if len(call.ranks) > 1]
    lows, highs = [], []
    for order in (calls, calls[::-1]):
        theirs, ours = (
            list(accumulate(formula(name, n, "plotted").time(size) for size in order)) for name in (RING, algorithm)
        )
        ready = [min(ring - last, free) for last in theirs]
        highs.append(max(free, *(r + last for r, last in zip(ready, ours, strict=True))))
        lows.append(min((r + last for r, last in zip(ready, ours, strict=True) if r < free), default=free))
    return max(free, min(lows)), max(highs)


@dataclass(frozen=True)
class Gain:
    """Throughput over that with the ring: as drawn, our interval, and the one of the queue (None without)."""

    model: str
    gpus: int
    algorithm: str
    drawn: float
    low: float
    high: float
    queue: tuple[float, float] | None


def gains(model: str) -> list[Gain]:
    """The ratios of figure 11 for LUMORPH-2 and LUMORPH-4 at every size."""
    results = []
    for algorithm in (LUMORPH_2, LUMORPH_4):
        for n in GPUS:
            ring, mine = (drawn_time(model, n, series) for series in (RING, algorithm))
            (free, slowest), (_, most) = (iteration_bounds(model, n, series) for series in (RING, algorithm))
            queue = queue_bounds(model, n, algorithm)
            by_queue = None if queue is None else (ring / queue[1], ring / queue[0])
            results.append(Gain(model, n, algorithm, ring / mine, free / most, slowest / free, by_queue))
    return results


__all__ = [
    "PANELS",
    "SQUARES",
    "TOLERANCE",
    "TREE",
    "Gain",
    "Point",
    "call_sizes",
    "communication",
    "drawn_time",
    "fitted_buffer",
    "gains",
    "iteration_bounds",
    "layers",
    "least_reconfigurations",
    "points",
    "queue_bounds",
    "shares",
]
