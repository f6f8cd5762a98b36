"""The command ``iteration``."""

from __future__ import annotations

from typing import Any

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.completions import names_of
from opticoll.analysis.cli.options import JSON


@click.command()
@click.argument("model", metavar="bert|candle|dlrm|ncf|resnet50|vgg")
@click.argument("network", shell_complete=names_of("instances"))
@click.option(
    "--link",
    metavar="RATE",
    help="Rate of a capacity of 1, an optical interface or a wavelength (default: 100Gb/s).",
)
@click.option("--servers", type=click.IntRange(min=2), help="Number of servers that train (default: all).")
@click.option(
    "--section",
    type=click.Choice(["5.3", "5.4", "5.6"]),
    default="5.3",
    show_default=True,
    help="Section of the TopoOpt paper that sets the sizes.",
)
@click.option("--batch", type=click.IntRange(min=1), help="Samples per GPU (default: those of the section).")
@click.option(
    "--overlap",
    type=click.Choice(["backward", "none"]),
    default="backward",
    show_default=True,
    help="Communicate while computing (backward), or only afterwards (none).",
)
@click.option(
    "--routing",
    type=click.Choice(["auto", "single", "even"]),
    default="auto",
    show_default=True,
    help="One shortest path, or all evenly; auto: even over switches, else single.",
)
@click.option("--latency", type=float, default=1e-6, show_default=True, help="Latency of a hop [s].")
@click.option("--ring-factor", type=float, help="Bytes over each hop of a ring per byte reduced (default: 2(k-1)/k).")
@click.option(
    "--rings",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Rings of TotientPerms that share an all-reduce, on a topology.",
)
@click.option("--check", is_flag=True, help="Record all rates, and check the schedule.")
@JSON
def iteration(model: str, network: str, as_json: bool, **settings: Any) -> int:
    """Simulate a training iteration of MODEL over NETWORK at flow level.

    NETWORK is a topology, whose ranks are the servers, or circuits:n=..,degree=... The time is compared with lower
    bounds on every schedule.

    \b
    opticoll iteration dlrm "circuits:n=128,degree=4"
    opticoll iteration dlrm "fat-tree:k=8,capacity=4" --link 25Gb/s
    """  # noqa: D301  click's mark for a paragraph that keeps its lines
    with output.diverted_stdout():
        from opticoll.analysis.training import iteration as iteration_times

        result = iteration_times.iteration(model, network, **settings)
    return output.show(result, as_json=as_json)
