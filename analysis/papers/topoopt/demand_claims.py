"""Claims of the TopoOpt paper about the traffic of its models, and about its switches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from opticoll.analysis.ledger.claim import Measurement, Measures
from opticoll.analysis.ledger.readings import Readings
from opticoll.analysis.ledger.tolerances import PrintedNumber
from opticoll.analysis.ledger.verdict import verdict_if
from opticoll.instances import parse
from opticoll.instances.training.training_jobs import NUMBER_BYTES, traffic_of, training_job

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.analysis.ledger.claim import Laboratory


#: Structure of the DLRM in List 1.
NO_LAYER = "features at the bottom, no such layer"
MEASURES = Measures("topoopt")


@MEASURES.of("dlrm-size")
def _dlrm_size(laboratory: Laboratory) -> Measurement:
    tables, columns, rows = laboratory.scope.values("tables", "columns", "rows")
    printed, numbers = laboratory.number(laboratory.scope["printed [GB]"]), tables * columns * rows
    size = {f"{width} bytes": width * numbers / 1e9 for width in (1, 2, 4, 8)}
    choices = Readings("bytes of an entry")
    for name, value in size.items():
        choices.add(
            f"{name}{', as in appendix D' if name == '8 bytes' else ''}",
            printed.value - 2 <= value <= printed.value,
            value,
        )
    return choices.measurement(
        ("section 2.1's DLRM",),
        f"The tables have {numbers / 1e9:.2f} billion entries. Section 2.1 does not say how many bytes an entry has; "
        "with one byte they fit the 20 GB of tables in appendix D and leave less than 2 GB for the rest of the model. "
        "Appendix D counts 8 bytes; its example does not repeat the dimensions.",
        choices.agreement,
        saved_by="one byte an entry, or 163.84 GB in place of 22 GB",
    )


def ring_bytes(size: float, servers: int) -> dict[str, float]:
    """Bytes per server of an all-reduce of this size, under the two conventions of the paper."""
    return {
        "2 (k-1)/k of the data, what a server of a ring sends": 2 * (servers - 1) / servers * size,
        "twice the data, one reduction and one broadcast": 2 * size,
    }


@MEASURES.of("all-reduce-44")
def _reduce(laboratory: Laboratory) -> Measurement:
    servers, sizes, printed = laboratory.scope.values("servers", "data [GB]", "printed [GB]")
    number = laboratory.number(printed)
    choices = Readings("all-reduce of the data")
    for name, value in ring_bytes(sizes, servers).items():
        choices.add(name, number.holds(value), value)
    return choices.measurement((f"{servers} servers, {sizes} GB",), measured=choices.agreement)


@MEASURES.of("hybrid-transfer")
def _hybrid(laboratory: Laboratory) -> Measurement:
    servers, model, tables = laboratory.scope.values("servers", "model [GB]", "tables [GB]")
    whole, rest = (laboratory.number(text) for text in laboratory.scope["printed, before and after [GB]"])
    before, after = ring_bytes(model, servers), ring_bytes(model - tables, servers)
    choices = Readings("all-reduce of the data")
    for name in before:
        choices.add(name, whole.holds(before[name]) and rest.holds(after[name]), [before[name], after[name]])
    return choices.measurement(
        (f"{servers} servers, {model} GB, of which {tables} GB are tables",), measured=choices.agreement
    )


@MEASURES.of("all-reduce-size")
def _reduce_size(laboratory: Laboratory) -> Measurement:
    servers, data, link, printed = laboratory.scope.values("servers", "data [GB]", "link [Gb/s]", "printed")
    sent = 2 * (servers - 1) / servers * data
    seconds = 8 * sent / link
    good = laboratory.number(printed[0]).holds(sent) and laboratory.number(printed[1]).holds(seconds)
    return Measurement(
        {"sent [GB]": sent, "time [s]": seconds},
        verdict_if(good),
        (f"{servers} servers, {data} GB",),
        value=[sent, seconds],
    )


@MEASURES.of("transfer-size")
def _transfer_size(laboratory: Laboratory) -> Measurement:
    spec = f"servers:n={laboratory.scope['servers']},degree=3,traffic=dlrm"
    size = float(parse(spec).point_to_point[0, 1])
    number = laboratory.number(laboratory.scope["printed [MB]"])
    choices = Readings("MB")
    choices.add("2^20 bytes", number.holds(size / 2**20), size / 2**20)
    choices.add("10^6 bytes", number.holds(size / 1e6), size / 1e6)
    return choices.measurement((spec,), measured=choices.agreement)


def dlrm_weights(servers_section: str) -> dict[str, float]:
    """Dense weights of the DLRM of a section of List 1, under each structure that the list leaves open.

    List 1 has a stack of dense layers and a stack of feature layers, and does not say which of the two is at the
    bottom, nor what connects the stacks with the tables. The authors' scripts have the dense layers at the bottom.
    """
    job = training_job("dlrm", servers_section)
    layers, width, features, feature_width = {
        "5.4": (8, 2048, 16, 4096),
        "6": (4, 1024, 8, 2048),
    }[servers_section]
    columns, count = job.tables[0].columns, job.tables[0].count
    stacks = layers * (width + 1) * width + features * (feature_width + 1) * feature_width
    bare = float(stacks + ((count + 1) * columns + 1) * width + width + 1)
    return {
        "dense layers at the bottom, as in the authors' scripts": float(job.dense_weights),
        "features at the bottom, one layer to the width of a table": bare + (feature_width + 1) * columns,
        NO_LAYER: bare,
    }


def _share(section: str, note: str) -> Callable[[Laboratory], Measurement]:
    def measure(laboratory: Laboratory) -> Measurement:
        servers, printed, rounding = laboratory.scope.values("servers", "printed, by batch [%]", "labels")
        direct = {
            batch: float(traffic_of(training_job("dlrm", section, int(batch)), servers)[0].sum()) for batch in printed
        }
        choices = Readings("structure; all-reduce bytes; rounding")
        for structure, weights in dlrm_weights(section).items():
            for count, factor in (("gradients", 1.0), ("what rings send", 2 * (servers - 1) / servers)):
                share = {
                    batch: 100 * size / (factor * servers * NUMBER_BYTES * weights) for batch, size in direct.items()
                }
                for name in ("nearest", "up") if rounding == "one significant digit" else ("nearest, two digits",):
                    holds = all(_label(share[batch], text, name) for batch, text in printed.items())
                    choices.add((structure, count, name), holds, {k: float(f"{v:.4g}") for k, v in share.items()})
        return choices.measurement(
            (f"servers:n={servers},degree=4,traffic=dlrm,section={section}",),
            "Point-to-point bytes in both directions over the bytes of all-reduce, summed over all servers. " + note,
            choices.agreement,
        )

    return measure


def _label(share: float, text: str, rounding: str) -> bool:
    """Whether a share gets this label: rounded to its digits, or up to its last nonzero digit."""
    if rounding.startswith("nearest"):
        return PrintedNumber(text).holds(share)
    step = 10 ** (len(text) - 1)
    return math.ceil(share / step - 1e-9) * step == int(text)


MEASURES.of("all-to-all-share")(
    _share(
        "5.4",
        "The shares double from batch to batch, as the labels do from 5 to 80. At batch 64 they are "
        "2.4 to 2.5 %, which is 3 only if rounded up.",
    )
)


MEASURES.of("testbed-share")(
    _share(
        "6",
        "The labels fit the gradients of a model without a layer between the bottom stack and the width "
        "of a table; List 1 mentions none.",
    )
)


@MEASURES.of("optical-switches")
def _switches(laboratory: Laboratory) -> Measurement:
    cost, ports, latency = laboratory.scope.values("cost of a port [$]", "ports", "latency [s]")
    orders = laboratory.number(str(laboratory.scope["orders of magnitude"]))
    ratios = {"cost of a port": cost[1] / cost[0], "ports": ports[0] / ports[1]}
    times = laboratory.scope["times"]
    plain = all(laboratory.number(str(times[name])).holds(value) for name, value in ratios.items())
    choices = Readings("several minutes")
    for minutes in (2, 3, 5, 10):
        faster = math.log10(60 * minutes / latency)
        choices.add(
            f"{minutes} min",
            plain and orders.holds(faster),
            {**ratios, "orders of magnitude": faster},
        )
    return choices.measurement(("Table 1, appendix B",), measured=choices.agreement)
