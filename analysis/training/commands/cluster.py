"""The command ``cluster``."""

from __future__ import annotations

from typing import Any

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.options import JSON


@click.command()
@click.argument("network", metavar="topoopt|ideal-switch|fat-tree|oversubscribed-fat-tree")
@click.option("--servers", type=click.IntRange(min=2), default=432, show_default=True, help="Servers of the cluster.")
@click.option("--degree", type=click.IntRange(min=1), default=8, show_default=True, help="Interfaces of a server.")
@click.option("--link", metavar="RATE", default="100Gb/s", show_default=True, help="Rate of an interface.")
@click.option("--job-servers", type=click.IntRange(min=2), default=16, show_default=True, help="Servers of a job.")
@click.option("--jobs", type=click.IntRange(min=1), default=400, show_default=True, help="Number of jobs.")
@click.option("--load", type=float, help="Work that arrives, over that which the servers can do (default: 0.6).")
@click.option("--active", type=click.IntRange(min=1), help="Keep this many jobs active instead of letting them arrive.")
@click.option("--work", type=float, default=86400.0, show_default=True, help="Mean duration of a job alone [s].")
@click.option(
    "--placement",
    type=click.Choice(["first", "random"]),
    default="first",
    show_default=True,
    help="Free servers of lowest numbers, or a random choice of them.",
)
@click.option("--setup", type=float, default=0.0, show_default=True, help="Time to set up the circuits of a job [s].")
@click.option(
    "--look-ahead",
    type=click.Choice(["none", "arrival", "sequence"]),
    default="none",
    show_default=True,
    help="Set up circuits on second ports from a job's arrival on, or, with a known sequence, at any time.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of jobs and placements.")
@JSON
def cluster(network: str, as_json: bool, **settings: Any) -> int:
    """Simulate jobs that share a cluster: arrival, queue, placement, and the time of their iterations on NETWORK.

    \b
    opticoll cluster topoopt --active 27
    opticoll cluster oversubscribed-fat-tree --active 27 --placement random
    opticoll cluster topoopt --load 0.8 --setup 180 --look-ahead sequence
    """  # noqa: D301  click's mark for a paragraph that keeps its lines
    given = {name: value for name, value in settings.items() if value is not None}
    with output.diverted_stdout():
        from opticoll.analysis.training import cluster as clusters

        result = clusters.cluster(network, **given)
    return output.show(result, as_json=as_json)
