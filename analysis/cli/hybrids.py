"""The command ``hybrids``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from opticoll.analysis.cli.completions import complete_instances
from opticoll.analysis.cli.options import JSON, FloatRange

if TYPE_CHECKING:
    from opticoll.analysis.hybrids import Hybrids


@click.command()
@click.argument("graph", shell_complete=complete_instances)
@click.option("--gpus", type=click.IntRange(min=1), required=True, help="Number of GPUs.")
@click.option("--batch", type=click.IntRange(min=1), required=True, help="Samples of all GPUs in an iteration.")
@click.option("--degree", type=click.IntRange(min=1), default=4, show_default=True, help="Circuits of a GPU.")
@click.option("--link", metavar="RATE", help="Bandwidth of a circuit (default: 100Gb/s).")
@click.option("--memory", type=FloatRange(min=0), default=0.0, help="Memory of a GPU [GiB] (default: no limit).")
@JSON
def hybrids(graph: str, as_json: bool, **settings: Any) -> int:
    """Compare all k-way model and l-way data parallelisms of a computation graph.

    GRAPH is op-graph:model=..., without parts and batch. For every k that divides the number of GPUs, groups of k GPUs
    are placed by SiP-ML's Algorithm 1; the time of an iteration is compared with a lower bound on every placement.

    \b
    opticoll hybrids op-graph:model=transformer,layers=4 --gpus 16 --batch 64
    opticoll hybrids op-graph:model=dlrm,layers=2 --gpus 16 --batch 65536 --degree 5 --link 8Tb/s
    """  # noqa: D301  click's mark for a paragraph that keeps its lines
    from opticoll.analysis.cli import output

    with output.diverted_stdout():
        from opticoll.analysis import hybrids as parallelism

        result = parallelism.hybrids(graph, **settings)
    if as_json:
        output.emit_json(result)
    else:
        _show(result)
    return 0


def _show(result: Hybrids) -> None:
    """Print a row for every k, and the best one."""
    from opticoll.analysis.cli import output

    output.show_table(result.rows, ["k", "replicas", "step_us", "all_reduce_us", "time_us", "bound_us"])
    fields = {
        "best": f"k = {result.best}, {result.time_us:.6g} us",
        "bound": f"{result.bound_us:.6g} us, over all k of the table",
    }
    if result.omitted:
        fields["omitted"] = f"k = {', '.join(map(str, result.omitted))}"
    output.show_fields(fields, None)
