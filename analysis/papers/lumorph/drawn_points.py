"""The points drawn in LuMorph's figures 5 to 8, 10 and 11, compared with ours: equal, bounded, or unknown.

Every digitised point has an interval of ours, a single value where it is computed:

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

from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import ceil

from opticoll.analysis.papers.lumorph.route_overlaps import (
    MCF,
    SHAPES,
    VARIANTS,
    least_reconfigurations,
    overlaps,
    proven_overlap,
)
from opticoll.formulations.lumorph.cost_formulas import LUMORPH_2, LUMORPH_4, RING, formula, layer_time
from opticoll.instances.published.lumorph_numbers import BATCH, GPUS, MODELS, drawn, figure, iteration

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
