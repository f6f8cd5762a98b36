"""Load the curves of LuMorph's figures and the all-reduce calls of its three models.

Source   the vector graphics of the paper's technical report, and the logs ``logs/MODEL/comms_N.log`` of
         https://github.com/lumorphnetwork/code, commit 53cbbf710c3f0e9ef6ba7b525d5d832039914d70 (2023-09-23)
Licence  the repository has no licence file; the tables hold numbers only, in our own format

``lumorph_figures.csv``: a point per row, read from the drawing to 0.01 % of an axis. Units by figure:

    3    x GPUs, y time to compute routes [s]
    5    left: x GPUs, y circuits on the busiest edge; right_256_gpus: x waveguides per edge, y circuits in excess
    6    x GPUs, y reconfigurations of an all-reduce; panels by number of waveguides per edge
    7    x buffer [MiB], y time of an all-reduce [us]; panels by number of GPUs
    8a   x reconfiguration delay [ns], y time of an all-reduce on 256 GPUs [us]
    8b   x rate of a laser [GB/s], y time of an all-reduce on 256 GPUs [us]; series by buffer size
    10   x size of an all-reduce [byte], y share of calls up to this size
    11   x GPUs, y training throughput [samples/s]; panels by model

``lumorph_allreduces.csv``: ``calls`` all-reduces of ``bytes`` (the buffer of one GPU) in an iteration of ``model`` on
``gpus`` GPUs, of which ``participants`` take part.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class AllReduceCalls:
    """Equal all-reduce calls of an iteration; see the module for the columns."""

    model: str
    gpus: int
    participants: int
    size: int
    calls: int


def _rows(name: str) -> list[dict[str, str]]:
    text = (files(__package__) / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def figure(number: str, panel: str = "") -> dict[str, dict[float, float]]:
    """The curves of a panel: series, x, y.

    Raises
    ------
    KeyError
        If the table has no such panel.
    """
    curves: dict[str, dict[float, float]] = {}
    for row in _rows("lumorph_figures.csv"):
        if (row["figure"], row["panel"]) == (number, panel):
            curves.setdefault(row["series"], {})[float(row["x"])] = float(row["y"])
    if not curves:
        msg = f"no curves of figure {number} {panel}".rstrip()
        raise KeyError(msg)
    return curves


@cache
def all_reduces(model: str, gpus: int) -> tuple[AllReduceCalls, ...]:
    """The all-reduce calls of an iteration."""
    return tuple(
        AllReduceCalls(row["model"], int(row["gpus"]), int(row["participants"]), int(row["bytes"]), int(row["calls"]))
        for row in _rows("lumorph_allreduces.csv")
        if (row["model"], row["gpus"]) == (model, str(gpus))
    )
