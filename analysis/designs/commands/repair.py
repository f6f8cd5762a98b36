"""The command ``repair``."""

from __future__ import annotations

from typing import Any

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.completions import names_of
from opticoll.analysis.cli.options import JSON


@click.command()
@click.argument("instance", shell_complete=names_of("instances"))
@click.option(
    "--circuit",
    "circuits",
    multiple=True,
    metavar="U-V",
    help="Pair of servers whose circuit fails; repeatable (default: every pair with a circuit, one at a time).",
)
@click.option(
    "--optimum/--no-optimum",
    default=None,
    help="Compute the least load over the circuits that are left (default: up to 32 servers).",
)
@JSON
def repair(instance: str, as_json: bool, **settings: Any) -> int:
    """Repair TopologyFinder's design of INSTANCE after a circuit fails, and price it.

    INSTANCE is servers:n=..,degree=..,traffic=... Each failure is repaired by forwarding (reroute), by moving the share
    of broken rings to other rings (spread), and by swapping ports with circuits that no ring uses (swap).

    \b
    opticoll repair servers:n=16,degree=4,traffic=candle --circuit 0-1
    opticoll repair servers:n=16,degree=4,traffic=dlrm
    """  # noqa: D301  click's mark for a paragraph that keeps its lines
    with output.diverted_stdout():
        from opticoll.analysis.designs import repair as repairs

        result = repairs.repair(instance, **settings)
    return output.show(result, as_json=as_json)
