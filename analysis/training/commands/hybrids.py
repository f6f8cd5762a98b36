"""The command ``hybrids``."""

from __future__ import annotations

from typing import Any

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.completions import names_of
from opticoll.analysis.cli.options import JSON, FloatRange


@click.command()
@click.argument("graph", shell_complete=names_of("instances"))
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
    with output.diverted_stdout():
        from opticoll.analysis.training import hybrids as parallelism

        result = parallelism.hybrids(graph, **settings)
    return output.show(result, as_json=as_json)
