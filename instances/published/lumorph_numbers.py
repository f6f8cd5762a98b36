"""Numbers published by the papers' authors: LuMorph's figures, and the communication of its three models.

Source   the vector graphics of the paper's technical report, and the logs ``logs/MODEL/comms_N.log`` of
         https://github.com/lumorphnetwork/code, commit 53cbbf710c3f0e9ef6ba7b525d5d832039914d70 (2023-09-23)
Licence  the repository has no licence file; the tables contain only numbers, in our own format

``lumorph_figures.csv``: a point per row, read from the drawing to 0.01 % of an axis. Units by figure:

    3    x GPUs, y time to compute routes [s]
    5    left: x GPUs, y circuits on the busiest edge; right_256_gpus: x waveguides per edge, y circuits in excess
    6    x GPUs, y reconfigurations of an all-reduce; panels by number of waveguides per edge
    7    x buffer [MiB], y time of an all-reduce [us]; panels by number of GPUs
    8a   x reconfiguration delay [ns], y time of an all-reduce on 256 GPUs [us]
    8b   x rate of a laser [GB/s], y time of an all-reduce on 256 GPUs [us]; series by buffer size
    10   x size of an all-reduce [byte], y share of calls up to this size
    11   x GPUs, y training throughput [samples/s]; panels by model

``lumorph_calls.csv``: communication of one iteration, in the order of the logs. ``gpus`` is the number of GPUs, ``any``
where the logs are the same for all (bert, inception); ``bytes`` is the buffer of one GPU, or one transfer. By ``kind``:

    all-reduce  ``repeat`` equal calls in a row, in each of which all GPUs take part
    local       one call for each GPU of ``sources``, with no other participant: no data is sent
    transfer    layer to layer: every GPU of ``sources`` sends to every GPU as input of operator ``layer``, and receives
                as much in the backward pass; a GPU listed twice sends twice

Transfers of a GPU to itself, which the logs also list, are omitted. ``sources``: ``0-3 7`` stands for 0 1 2 3 7.
"""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from opticoll.instances.training.training_iteration import AllReduceCall, LayerTransfer

#: Models with logs, the numbers of GPUs of each, and the samples that one GPU processes per iteration.
MODELS = ("bert", "ncf", "inception")
GPUS = (4, 8, 16, 32, 64, 128, 256)
#: Samples of ncf and inception follow from the logged sizes; 16 is assumed for bert (sequences of 64 fit its sizes).
BATCH = {"bert": 16, "ncf": 256, "inception": 64}


@dataclass(frozen=True)
class AllReduceCalls:
    """``calls`` equal all-reduces of an iteration, of ``size`` bytes, in which ``participants`` GPUs take part."""

    participants: int
    size: int
    calls: int


def _rows(name: str) -> list[dict[str, str]]:
    text = (files(__package__) / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def drawn(number: str) -> tuple[tuple[str, str, float, float], ...]:
    """All points of a figure as (panel, series, x, y); a vertical step has several points at one x."""
    rows = (row for row in _rows("lumorph_figures.csv") if row["figure"] == number)
    return tuple((row["panel"], row["series"], float(row["x"]), float(row["y"])) for row in rows)


@cache
def figure(number: str, panel: str = "") -> dict[str, dict[float, float]]:
    """Curves of a panel as series, x, y; the last of several points at one x.

    Raises
    ------
    KeyError
        If the table has no such panel.
    """
    curves: dict[str, dict[float, float]] = {}
    for where, series, x, y in drawn(number):
        if where == panel:
            curves.setdefault(series, {})[x] = y
    if not curves:
        msg = f"no curves of figure {number} {panel}".rstrip()
        raise KeyError(msg)
    return curves


def _numbers(text: str) -> list[int]:
    results: list[int] = []
    for part in text.split():
        first, _, last = part.partition("-")
        results += range(int(first), int(last or first) + 1)
    return results


@cache
def iteration(model: str, gpus: int) -> tuple[tuple[AllReduceCall, ...], tuple[LayerTransfer, ...]]:
    """All-reduce calls and transfers of one iteration, in the order of the log.

    Raises
    ------
    KeyError
        If there is no log of this model and number of GPUs.
    """
    if model not in MODELS or gpus not in GPUS:
        msg = f"no log of {model} on {gpus} GPUs"
        raise KeyError(msg)
    everyone = tuple(range(gpus))
    calls: list[AllReduceCall] = []
    transfers: list[LayerTransfer] = []
    for row in _rows("lumorph_calls.csv"):
        if row["model"] != model or row["gpus"] not in ("any", str(gpus)):
            continue
        size = int(row["bytes"])
        if row["kind"] == "all-reduce":
            calls += [AllReduceCall(everyone, size)] * int(row["repeat"])
        elif row["kind"] == "local":
            calls += [AllReduceCall((gpu,), size) for gpu in _numbers(row["sources"])]
        else:
            transfers.append(LayerTransfer(int(row["layer"]), size, tuple(_numbers(row["sources"])), everyone))
    return tuple(calls), tuple(transfers)


@cache
def all_reduces(model: str, gpus: int) -> tuple[AllReduceCalls, ...]:
    """All-reduce calls of an iteration, grouped by participants and size."""
    counted = Counter((len(call.ranks), call.size) for call in iteration(model, gpus)[0])
    return tuple(AllReduceCalls(*kind, calls) for kind, calls in sorted(counted.items()))
