"""Claims of the LuMorph paper about routes, waveguides and hardware."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.ledger.claim import Claim, Measurement, verdict_if
from opticoll.analysis.ledger.sweeps import Sweep
from opticoll.analysis.papers.lumorph.built_schedules import optical, reconfigurations

if TYPE_CHECKING:
    from opticoll.analysis.ledger.claim import Laboratory

PAPER = "lumorph"
#: Grids of 16 to 256 tiles, doubling in size.
GRIDS = ("4x4", "4x8", "8x8", "8x16", "16x16")
#: Grids of 256 tiles.
WIDE = ("16x16", "8x32", "4x64")
#: Number of random draws of shortest paths per step.
DRAWS = 3
#: Name of the exchange by radix.
RADIX = {2: "recursive-doubling", 4: "recursive-quadrupling"}


@cache
def overlaps(grid: str, radix: int) -> tuple[tuple[float, float], ...]:
    """The proven least overlap of every step, and the mean overlap of random shortest paths over :data:`DRAWS` draws.

    Raises
    ------
    ArithmeticError
        If the routes of a step do not attain its bound.
    """
    from opticoll.formulations.lumorph import min_overlap
    from opticoll.instances import parse
    from opticoll.solvers.methods.lumorph.overlap_search import load_of, shortest_routes, straight_or_shortest

    mesh: Any = parse(f"lightpath:{grid}")
    measured = []
    for step in range(math.ceil(math.log(mesh.n) / math.log(radix) - 1e-9)):
        data = min_overlap.prepare(mesh, {"circuits": f"{RADIX[radix]}:{step}"})
        least = load_of(straight_or_shortest(data.topology, *data.commodities))
        if least > data.cuts[0].value:
            msg = f"step {step} of radix {radix} on {grid}: {least} is not proven, the bound is {data.cuts[0].value}"
            raise ArithmeticError(msg)
        draws = [load_of(shortest_routes(data.topology, *data.commodities, np.random.default_rng([step, number])))
                 for number in range(DRAWS)]  # fmt: skip
        measured.append((float(least), float(np.mean(draws))))
    return tuple(measured)


def _random(_: Laboratory) -> Measurement:
    sweep = Sweep()
    for grid in GRIDS:
        for radix in RADIX:
            least, drawn = (max(step[i] for step in overlaps(grid, radix)) for i in (0, 1))
            sweep.add(drawn / least, holds=drawn > least, size=len(sweep.ratios), case=f"{grid}, radix {radix}")
    return Measurement(
        f"{min(sweep.ratios):.3g} to {max(sweep.ratios):.3g} times the overlap", verdict_if(not sweep.wrong),
        tuple(f"lightpath:{grid}" for grid in GRIDS),
        f"Largest overlap over all steps: mean of {DRAWS} random draws over the least, which straight routes attain "
        "and a cut proves. The paper does not say how much counts as significant.", **sweep.row,
    )  # fmt: skip


def _growing(_: Laboratory) -> Measurement:
    measured = {f"{RADIX[radix]}, {'random' if i else 'least'}": [max(step[i] for step in overlaps(grid, radix))
             for grid in GRIDS] for radix in RADIX for i in (0, 1)}  # fmt: skip
    never_falls = all(bool((np.diff(row) >= 0).all()) and row[-1] > row[0] for row in measured.values())
    return Measurement(
        measured, verdict_if(never_falls), tuple(f"lightpath:{grid}" for grid in GRIDS),
        "Largest overlap at 16, 32, 64, 128 and 256 tiles. The least overlap is half the longer side (doubling) or "
        "the whole longer side (quadrupling), so it does not change where only the shorter side doubles.",
    )  # fmt: skip


def _quadrupling(_: Laboratory) -> Measurement:
    sweep = Sweep()
    for number, grid in enumerate(GRIDS):
        two, four = (max(step[0] for step in overlaps(grid, radix)) for radix in (2, 4))
        sweep.add(four / two, holds=four > two, size=number, case=f"{grid}: {four:g} and {two:g}")
    return Measurement(
        f"{min(sweep.ratios):g} to {max(sweep.ratios):g} times the overlap of doubling", verdict_if(not sweep.wrong),
        tuple(f"lightpath:{grid}" for grid in GRIDS), "Ratio of the least overlaps, each the largest over all steps.",
        **sweep.row,
    )  # fmt: skip


def _bandwidth(_: Laboratory) -> Measurement:
    """Time saved by lasers of twice the rate, by buffer size."""
    from dataclasses import replace

    from opticoll.analysis.papers.lumorph.cost import LIGHTPATH

    line = optical("LUMORPH-4", "16x16")
    measured = {}
    for size, name in ((64e3, "64 KB"), (4e6, "4 MB"), (64e6, "64 MB"), (1e9, "1 GB")):
        slow, fast = (line.time(size, replace(LIGHTPATH, laser_gbps=rate)) for rate in (112.0, 224.0))
        measured[name] = round(1 - fast / slow, 3)
    gains = list(measured.values())
    return Measurement(
        measured, verdict_if(gains == sorted(gains) and gains[-1] > gains[0]), ("lightpath:16x16",),
        "Share of the time of LUMORPH-4 that lasers of 224 Gb/s save over lasers of 112 Gb/s: near 0 where the cost "
        "of rounds dominates, near 0.5 where that of data dominates.", count=len(gains), violations=0,
    )  # fmt: skip


def _rack(laboratory: Laboratory) -> Measurement:
    del laboratory
    from opticoll.analysis.papers.lumorph.cost import LIGHTPATH

    rounds = {n: -(-(n - 1) // LIGHTPATH.lasers) for n in (8, 16, 32, 64, 256)}
    return Measurement(
        {f"N={n}": count for n, count in rounds.items()}, verdict_if(rounds[256] > 1 and rounds[8] == 1),
        ("256 GPUs, 16 lasers",),
        "A GPU receives from each other GPU with one photodiode, which takes at least ceil((N-1)/16) rounds: 16 at N "
        "= 256. One round is possible up to N = 17.",
    )  # fmt: skip


def _enough(name: str, grid: str, *, per_wavelength: bool) -> int:
    """The smallest number of waveguides with which no round is split."""
    low, high = 1, 64
    least = reconfigurations(name, grid, high, per_wavelength=per_wavelength)
    while low < high:
        middle = (low + high) // 2
        if reconfigurations(name, grid, middle, per_wavelength=per_wavelength) == least:
            high = middle
        else:
            low = middle + 1
    return low


def _thirty(_: Laboratory) -> Measurement:
    measured = {
        f"{name} on {grid}": {"wavelengths ignored": _enough(name, grid, per_wavelength=False),
                              "by wavelength": _enough(name, grid, per_wavelength=True)}
        for grid in WIDE for name in ("LUMORPH-2", "LUMORPH-4")
    }  # fmt: skip
    most = max(each["wavelengths ignored"] for each in measured.values())
    return Measurement(
        measured, verdict_if(most <= 30), tuple(f"lightpath:{g}" for g in WIDE),
        "The paper does not state the shape of the 256 tiles. If wavelengths are ignored, 16x16 needs 16 waveguides, "
        "8x32 needs 32 and 4x64 needs 64: the overlap of the last step. Counted by wavelength, as in (6), bundles for "
        "three peers share waveguides, and LUMORPH-4 needs only 8, 11 and 32.",
    )  # fmt: skip


def _fewer(_: Laboratory) -> Measurement:
    measured = {
        f"{name} on {grid}": [reconfigurations(name, grid, w, per_wavelength=each) for w in (20, 40)]
        for grid in WIDE for name, each in (("LUMORPH-2", True), ("LUMORPH-4", False))
    }  # fmt: skip
    differ = [name for name, (few, many) in measured.items() if few > many]
    return Measurement(
        measured, verdict_if(len(differ) == len(measured)),
        tuple(f"lightpath:{g}" for g in WIDE),
        f"Reconfigurations with 20 and 40 waveguides; only {', '.join(differ)} need more with 20. A square of 256 "
        "tiles needs 16 waveguides, so its rounds are never split.",
    )  # fmt: skip


def _route_times(laboratory: Laboratory) -> Measurement:
    measured, worst = {}, 0.0
    for circuits in ("recursive-doubling:6", "recursive-quadrupling:2", "permutation"):
        record = laboratory.solve("lumorph.min-overlap", "lightpath:8x16,waveguides=16", circuits=circuits)
        took = sum(record["time"][part] or 0.0 for part in ("build_s", "compile_s", "solve_s", "verify_s"))
        worst = max(worst, took)
        measured[circuits] = f"overlap {record['objective']:g} ({record['proof']})"
    return Measurement(
        {**measured, "longest [s]": round(worst, 1)}, verdict_if(worst < 100),
        ("lightpath:8x16",), "Routes of proven least overlap on 128 tiles, in well under tens of seconds.",
    )  # fmt: skip


_HARDWARE = "A measurement on the fabricated wafer, which we cannot repeat."

CLAIMS: tuple[Claim, ...] = (
    Claim("lumorph.random-worse", PAPER, "section 5, figure 5",
          "Random shortest paths overlap significantly more than routes of least overlap", "more", "exact", _random),
    Claim("lumorph.overlap-grows", PAPER, "section 5, figure 5",
          "The overlap increases up to 256 GPUs for both kinds of routes",
          "never falls, and rises from 16 to 256", "exact", _growing),
    Claim("lumorph.quadrupling-overlap", PAPER, "section 5, figure 5", "Quadrupling causes more overlap than doubling",
          "more", "exact", _quadrupling),
    Claim("lumorph.laser-bandwidth", PAPER, "section 5, figure 8b", "Faster lasers help most with large buffers",
          "rising with the buffer", "exact", _bandwidth),
    Claim("lumorph.rack-all-to-all", PAPER, "section 3",
          "16 lasers do not complete an all-to-all of 256 GPUs in one round", "more than 1", "exact", _rack),
    Claim("lumorph.thirty-waveguides", PAPER, "section 5, figure 5", "30 waveguides remove all congestion at 256 GPUs",
          30, "at most", _thirty),
    Claim("lumorph.fewer-waveguides", PAPER, "section 5, figure 6",
          "With 20 waveguides there are more reconfigurations than with 40", "more", "none", _fewer),
    Claim("lumorph.route-times", PAPER, "section 3.2, figure 3",
          "Routes of least overlap are found in tens of seconds for up to 128 nodes", "tens of seconds",
          "order of magnitude", _route_times),
    Claim("lumorph.bit-errors", PAPER, "section 7", "Bit error rates are below 7e-13 at 10 to 20 Gb/s", 7e-13,
          reason=_HARDWARE),
    Claim("lumorph.propagation-loss", PAPER, "section 7", "Waveguides lose less than 0.4 dB/cm", 0.4, reason=_HARDWARE),
    Claim("lumorph.wafer", PAPER, "section 1", "A wafer connects up to 32 GPUs with 16 lasers each", [32, 16],
          reason="A property of the hardware, which our models take as an input."),
    Claim("lumorph.power", PAPER, "section 2", "Photonic interconnects need an order of magnitude less power",
          "a magnitude", reason="Taken from other papers; our models do not include power."),
    Claim("lumorph.zero-cost", PAPER, "section 6.1, figure 11",
          "Inception trains nearly as fast as with free communication", "near",
          reason="Needs FlexFlow's simulator and compute times measured on an A100, which are not published."),
)  # fmt: skip
