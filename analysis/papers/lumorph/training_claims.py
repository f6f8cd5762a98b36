"""Claims of the LuMorph paper about training (section 6, figures 10 and 11) and about the hardware (sections 2, 3, 7).

The training times are the authors' simulations: their compute times are not published, so we compare the text with
the drawn curves, bound these from the logged calls, and compare figure 10 with the logs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean, median

import numpy as np

from opticoll.analysis.ledger.claim import Laboratory, Measurement, Measures
from opticoll.analysis.ledger.readings import Readings
from opticoll.analysis.ledger.tolerances import DRAWN, similar
from opticoll.analysis.ledger.verdict import verdict_if
from opticoll.analysis.papers.lumorph.drawn_points import call_sizes, drawn_time, gains
from opticoll.analysis.papers.lumorph.replayed_training import replayed_gain
from opticoll.analysis.papers.lumorph.route_overlaps import VARIANTS as ROUTED
from opticoll.analysis.papers.lumorph.route_overlaps import circuits, proven_overlap
from opticoll.analysis.papers.lumorph.time_claims import FASTER
from opticoll.instances.published.lumorph_numbers import all_reduces, figure

MODELS = ("bert", "inception", "ncf")
#: Sizes of calls by which models are compared.
_SIZES: dict[str, Callable[[Sequence[int]], float]] = {"mean": fmean, "largest": max, "median": median}
RING, FREE, VARIANTS = "Ideal switch+Ring", "Zero-cost", ("Lumorph-2", "Lumorph-4")
#: Resolution of the sizes that figure 10 draws [bytes].
PLOTTED = 70
SIMULATED = "The throughputs are read from figure 11, the output of the authors' simulator."
MEASURES = Measures("lumorph")


def _gains(model: str) -> dict[str, dict[int, float]]:
    """Training throughput over that with the ring, by variant and number of GPUs."""
    curves = figure("11", model)
    return {name: {int(n): curves[name][n] / curves[RING][n] for n in curves[name]} for name in (*VARIANTS, FREE)}


def _bounded(model: str, *algorithms: str) -> str:
    """Bounds on a ratio on 256 GPUs, from the logged calls and the drawn curve of free communication, in words."""
    parts = []
    for gain in gains(model):
        if gain.gpus == 256 and gain.algorithm in algorithms:
            low, high = gain.queue or (gain.low, gain.high)
            parts.append(f"{low:.3f} to {high:.3f} ({gain.algorithm})")
    given = " and of the ring, the calls in one queue," if model != "ncf" else ""
    return (
        f"Its compute times are not published. The logged calls and the drawn times of free communication{given} "
        f"give gains of {' and '.join(parts)} for {model} on 256 GPUs."
    )


@MEASURES.of("training")
def _training(laboratory: Laboratory) -> Measurement:
    number, models = laboratory.number(laboratory.scope["up to"]), laboratory.scope["models"]
    at = {model: _gains(model) for model in models}
    best = {name: max((gain, model, n) for model in models for n, gain in at[model][name].items()) for name in VARIANTS}
    largest = max(best.values())
    mean = {name: fmean(max(at[model][name].values()) for model in models) for name in VARIANTS}
    choices = Readings("average or largest")
    choices.add(
        "largest over models, sizes and variants (section 6.1: up to)", number.holds(largest[0]), round(largest[0], 3)
    )
    for name, value in best.items():
        choices.add(f"largest of {name}, {value[1]}, {value[2]} GPUs", number.holds(value[0]), round(value[0], 3))
    for name, average in mean.items():
        choices.add(f"mean of the best of each model, {name}", number.holds(average), round(average, 3))
    free = drawn_time("bert", 256, FREE)
    scaled, plain = replayed_gain(256, free_us=free), replayed_gain(256)
    joined, late = replayed_gain(256, free_us=free, split=False), replayed_gain(256, free_us=free, overlap=False)
    replayed = {
        "published computing times, scaled to the drawn free communication": scaled,
        "published computing times as they are": plain,
    }
    for words, gain in replayed.items() if "bert" in models else ():
        choices.add(words, number.holds(gain), round(gain, 3), name="replay of BERT on 256 GPUs")
    return choices.measurement(
        ("figure 11",),
        f"{SIMULATED} {_bounded('bert', *VARIANTS)} "
        f"The text agrees with the figure: BERT on 256 GPUs. As an average over the models, which "
        f"the abstract's words allow, the gain is {max(mean.values()):.2f}. Replayed in one queue, with the computing "
        f"times that TopoOpt's authors published for the same operators and every logged call issued when its gradient "
        f"is ready, it is {scaled:.3f} if those times are scaled to the drawn free communication, {plain:.3f} if not. "
        f"It is a gain on many small calls: {joined:.3f} if each layer sends weights and biases in one. With all calls "
        f"left to the end it is {late:.3f}. Both are scaled.",
        {name: round(value[0], 3) for name, value in best.items()},
    )


@MEASURES.of("inception")
def _inception(laboratory: Laboratory) -> Measurement:
    printed, name = laboratory.scope.values("gain", "variant")
    gains, number = _gains("inception"), laboratory.number(printed)
    most = max(gains[name].values())
    near = min(gains[mine][n] / gains[FREE][n] for mine in VARIANTS for n in gains[mine])
    return Measurement(
        {name: round(most, 4), "share of zero-cost throughput, least": round(near, 4)},
        verdict_if(number.holds(most) and similar(near)),
        ("figure 11",),
        f"{SIMULATED} {_bounded('inception', name)} "
        f"The printed 1.31 is {round(most, 3)} cut. Both variants reach at least {100 * near:.1f} % of the throughput "
        "with free communication.",
        value=round(most, 4),
    )


@MEASURES.of("ncf")
def _ncf(laboratory: Laboratory) -> Measurement:
    number, gains = laboratory.number(laboratory.scope["gain, around [%]"]), _gains("ncf")
    n = laboratory.scope["GPUs"]
    choices = Readings()
    for name in VARIANTS:
        choices.add(
            name,
            number.holds(100 * (gains[name][n] - 1)),
            round(100 * (gains[name][n] - 1), 2),
            name=f"variant, {n} GPUs",
        )
    best = max(gains[name][n] for name in VARIANTS)
    choices.add(FASTER, number.holds(100 * (best - 1)), round(100 * (best - 1), 2), name=f"variant, {n} GPUs")
    slower = [f"{name}, {k} GPUs" for name in VARIANTS for k, gain in gains[name].items() if gain < 1]
    return choices.measurement(
        ("figure 11",),
        f"{SIMULATED} {_bounded('ncf', *VARIANTS)} "
        f"LUMORPH-2 is near 8 %, LUMORPH-4 below. On fewer GPUs both are mostly slower than the "
        f"ring ({len(slower)} of 14 points).",
    )


@MEASURES.of("figure-10")
def _figure_10(laboratory: Laboratory) -> Measurement:
    curves = figure("10")
    choices = Readings("all-reduces of one GPU")
    for words, least in (("left out", 2), ("counted", 1)):
        worst = 0.0
        for model in laboratory.scope["models"]:
            sizes = [c.size for c in all_reduces(model, 256) if c.participants >= least for _ in range(c.calls)]
            for x, y in curves[model].items():
                low, high = x - DRAWN * abs(x) - PLOTTED, x + DRAWN * abs(x) + PLOTTED
                ends = (low, *(s for s in sizes if low < s <= high))
                near = [sum(s <= end for s in sizes) / len(sizes) for end in ends]
                worst = max(worst, min(abs(y - share) for share in near))
        choices.add(words, worst <= DRAWN, f"largest deviation {worst:.2g}")
    counts = {model: len(call_sizes(model)) for model in laboratory.scope["models"]}
    return choices.measurement(("figure 10",), measured=counts)


@MEASURES.of("ncf-calls")
def _larger(laboratory: Laboratory) -> Measurement:
    few, others = laboratory.scope.values("model", "against")
    counts = {model: len(call_sizes(model)) for model in (few, *others)}
    choices = Readings("size of the calls")
    for name, rule in _SIZES.items():
        values = {model: rule(call_sizes(model)) for model in (few, *others)}
        holds = all(values[few] > values[m] and counts[few] < counts[m] for m in others)
        choices.add(name, holds, {m: f"{v / 1e6:.3g} MB" for m, v in values.items()})
    return choices.measurement(
        ("published logs, 256 GPUs",), measured={"calls": counts, "mean size": choices[0].measured}
    )


@MEASURES.of("bert-calls")
def _many_small(laboratory: Laboratory) -> Measurement:
    model, others = laboratory.scope.values("model", "against")
    counts = {name: len(call_sizes(name)) for name in (model, *others)}
    means = {name: fmean(call_sizes(name)) for name in (model, *others)}
    choices = Readings("small")
    choices.add("mean below every other model's", all(means[model] < means[name] for name in others), means)
    choices.add("mean below NCF's", means[model] < means["ncf"], means)
    choices.add(
        "more calls than every other model", all(counts[model] > counts[name] for name in others), counts, name="many"
    )
    choices.add("more calls than NCF", counts[model] > counts["ncf"], counts, name="many")
    return choices.measurement(
        ("published logs, 256 GPUs",),
        measured={"calls": counts, "mean size": {name: f"{value / 1e6:.3g} MB" for name, value in means.items()}},
    )


@MEASURES.of("inception-calls")
def _comparable(laboratory: Laboratory) -> Measurement:
    first, second = laboratory.scope.values("model", "compared with")
    choices = Readings("size of the calls")
    for name, rule in _SIZES.items():
        ratio = rule(call_sizes(second)) / rule(call_sizes(first))
        choices.add(name, similar(ratio), float(f"{ratio:.3g}"))
    return choices.measurement(
        ("published logs, 256 GPUs",), saved_by="a factor of three that counts as comparable, and the largest calls"
    )


# text against text ------------------------------------------------------------------------------------------------


@MEASURES.of("eight-lasers")
def _eight_lasers(laboratory: Laboratory) -> Measurement:
    drawn, stated = laboratory.scope.values("lasers in the example of section 3", "lasers per tile")
    choices = Readings("the eight lasers on the tile")
    choices.add("all lasers of a tile", drawn == stated, f"{drawn} and {stated}")
    choices.add("those that the ports of a GPU can drive", drawn <= stated, f"{drawn} of {stated}")
    return choices.measurement(
        (),
        measured=[drawn, stated],
        value=stated,
        saved_by=f"{stated} in place of {drawn}, or fewer lasers in the example",
    )


@MEASURES.of("lane-rates")
def _lane_rates(laboratory: Laboratory) -> Measurement:
    low, high = laboratory.scope["section 5 [Gb/s]"]
    shown = laboratory.scope["section 7 [Gb/s]"]
    bits = [2 * width for width in laboratory.scope["spectral widths of PAM-4 [GHz]"]]
    choices = Readings("range")
    choices.add("contains the rates shown", bits == shown and all(low <= rate <= high for rate in shown), shown)
    choices.add("ends at the highest rate shown", [low, high] == shown, f"{high} and {shown[-1]}")
    return choices.measurement((), measured=bits, saved_by=f"{shown[-1]} in place of {high}")


@MEASURES.of("rack-all-to-all")
def _rack(laboratory: Laboratory) -> Measurement:
    lasers, n = laboratory.scope.values("lasers", "GPUs")
    rounds = {k: -(-(k - 1) // lasers) for k in (8, 16, 32, 64, n)}
    return Measurement(
        {f"{k} GPUs": count for k, count in rounds.items()}, verdict_if(rounds[n] > 1), instances=(f"{n} GPUs",)
    )


@MEASURES.of("path-loss")
def _losses(laboratory: Laboratory) -> Measurement:
    crossing, per_cm, edge = laboratory.scope.values(
        "loss per crossing [dB]", "loss per cm, at most [dB]", "wafer [cm]"
    )
    tiles, wafers = laboratory.scope.values("tiles of a wafer", "wafers")
    grid = "x".join(str(a * b) for a, b in zip(tiles, wafers, strict=True))
    measured = {}
    for name, radix in ROUTED.items():
        proven_overlap(grid, radix, "rows")
        hops = [0, 0]
        for sources, targets in circuits(math.prod(tiles) * math.prod(wafers), radix):
            columns = tiles[1] * wafers[1]
            down, right = (np.abs(f(sources, columns) - f(targets, columns)) for f in (np.floor_divide, np.mod))
            far = int((down / tiles[0] + right / tiles[1]).argmax())
            hops = max(hops, [int(down[far]), int(right[far])], key=lambda h: h[0] / tiles[0] + h[1] / tiles[1])
        fibres = sum(hop // size for hop, size in zip(hops, tiles, strict=True))
        length = edge * sum(hop / size for hop, size in zip(hops, tiles, strict=True))
        measured[name] = {
            "tiles down and across": hops,
            "fibres between wafers, at least": fibres,
            "crossings [dB], at most": round((sum(hops) - fibres) * crossing, 2),
            "waveguides [dB], at most": round(length * per_cm, 2),
        }
    return Measurement(measured, instances=(f"lightpath:{grid}",))
