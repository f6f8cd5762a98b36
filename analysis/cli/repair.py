"""The command ``repair``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from opticoll.analysis.cli.completions import complete_instances
from opticoll.analysis.cli.options import JSON

if TYPE_CHECKING:
    from opticoll.analysis.repair import Repairs


@click.command()
@click.argument("instance", shell_complete=complete_instances)
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
    from opticoll.analysis.cli import output

    with output.diverted_stdout():
        from opticoll.analysis import repair as repairs

        result = repairs.repair(instance, **settings)
    if as_json:
        output.emit_json(result)
    else:
        _show(result)
    return 0


def _show(result: Repairs) -> None:
    """Print a row for every repair, and the loads before the failures."""
    from opticoll.analysis.cli import output

    columns = ("median_over_intact", "worst_over_intact", "median_over_least", "worst_over_least")
    output.show_table(result.rows, ["repair", "possible", *columns])
    fields = {
        "failures": f"{len(result.failures)}, one at a time, of {result.circuits} circuits",
        "intact": f"{result.load:.6g} bytes over the busiest circuit",
    }
    if result.least is not None:
        after = [one.least for one in result.failures if one.least is not None]
        fields["least"] = f"{result.least:.6g} bytes over the same circuits, {max(after):.6g} after the worst failure"
    fields["check"] = f"worst violation {result.violation:.2g}"
    output.show_fields(fields, None)
