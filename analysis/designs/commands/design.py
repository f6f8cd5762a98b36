"""The command ``design``."""

from __future__ import annotations

from typing import Any

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.options import JSON, progress_line, refuse_together


@click.command()
@click.argument("sizes", nargs=-1, required=True, metavar="n=N degree=D | pod cubes=K")
@click.option("--directed", is_flag=True, help="Links may run one way only (default: every link runs both ways).")
@click.option("--search", is_flag=True, help="Run a new search instead of using the table of records.")
@click.option(
    "--starts",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Number of local searches per group, and of starts of the link exchange.",
)
@click.option(
    "--time-limit",
    type=float,
    metavar="S",
    help="Limit of the search and of the final solve [s] (default: none; with --delay 30).",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the search.")
@click.option(
    "--delay",
    metavar="TIME",
    help="Time of a change of circuits, such as 3.7us or a technology such as 3d-mems (with --shard), or in shards / "
    "link bandwidth: whether to change circuits during an all-to-all, and how often.",
)
@click.option("--shard", metavar="SIZE", help="What a node sends to another, such as 64MB; with --delay.")
@click.option("--bandwidth", metavar="RATE", help="Bandwidth of a circuit, such as 100Gb/s; with --delay in seconds.")
@JSON
def design(
    sizes: tuple[str, ...],
    search: bool,
    delay: str | None,
    shard: str | None,
    bandwidth: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Find a topology of N nodes with D ports each that has a small all-to-all time T.

    The topology comes from a table of records, or from a search among vertex-transitive topologies. Either way, T is
    computed, verified and compared with a bound that holds for every topology of this degree.

    With --delay, find out whether an all-to-all should keep one topology or change circuits in between, and how often:
    for every number of configurations, the best sequence found and a bound on all sequences.

    With pod, the nodes are chips of K cubes behind optical switches (side=4 chips in each dimension): find the
    permutation of the cubes at every switch (places=free) or one for every dimension (places=same); with survive=1 for
    the worst T after the loss of any one switch.

    \b
    opticoll design n=64 degree=4
    opticoll design pod cubes=8
    opticoll design n=64 degree=4 --delay 3.7us --shard 64MB --bandwidth 100Gb/s
    """  # noqa: D301  click's mark for a paragraph that keeps its lines
    if sizes[0] == "pod":
        for name, value in {
            "directed": options["directed"],
            "delay": delay,
            "shard": shard,
            "bandwidth": bandwidth,
        }.items():
            if value:
                click.get_current_context().fail(f"--{name} is not for the wiring of a pod; omit it")
        kept = {name: options[name] for name in ("starts", "time_limit", "seed")}
        return _pod(sizes[1:], as_json, table=not search, **kept)
    given = dict(word.partition("=")[::2] for word in sizes)
    if (
        set(given) != {"n", "degree"}
        or len(sizes) != 2
        or not all(v.isdecimal() and len(v) < 19 for v in given.values())
    ):
        output.notify(f"design: cannot read {' '.join(sizes)[:60]!r}; write whole numbers, such as n=64 degree=4")
        return 2
    n, degree = int(given["n"]), int(given["degree"])
    if delay is not None:
        refuse_together(("--delay", "--search"))
        kept = {name: options[name] for name in ("directed", "time_limit", "seed")}
        title = f"design n={n} degree={degree}"
        with output.diverted_stdout(), progress_line(title, shown=True, plain=not as_json) as on_progress:
            from opticoll.analysis.designs.reconfigure import reconfigure

            answer = reconfigure(
                n, degree, delay, shard=shard or "", bandwidth=bandwidth or "", on_progress=on_progress, **kept
            )
        return output.show(answer, as_json=as_json)
    if shard is not None or bandwidth is not None:
        output.notify("design: --shard and --bandwidth are for times in seconds; add --delay TIME")
        return 2
    with output.diverted_stdout():
        from opticoll.analysis.designs import design as designs

        result = designs.design(n, degree, table=not search, **options)
    return output.show(result, as_json=as_json)


def _pod(words: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """The design of a pod with these sizes."""
    given = dict(word.partition("=")[::2] for word in words)
    sizes = {name: value for name, value in given.items() if name != "places"}
    if (
        "cubes" not in given
        or not set(given) <= {"cubes", "side", "places", "survive"}
        or len(given) != len(words)
        or not all(v.isdecimal() and len(v) < 19 for v in sizes.values())
    ):
        remedy = "write cubes=8, and side=4, places=same or survive=1"
        output.notify(f"design pod: cannot read {' '.join(words)[:60]!r}; {remedy}")
        return 2
    numbers: dict[str, Any] = {name: int(value) for name, value in sizes.items()}
    with output.diverted_stdout():
        from opticoll.analysis.designs import pods

        result = pods.pod_design(places=given.get("places", "free"), **numbers, **options)
    return output.show(result, as_json=as_json)
