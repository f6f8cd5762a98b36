"""The command ``design``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opticoll.analysis.cli.options import JSON, notify

if TYPE_CHECKING:
    from opticoll.analysis.design import TopologyDesign


@click.command()
@click.argument("sizes", nargs=-1, required=True, metavar="n=N degree=D")
@click.option("--directed", is_flag=True, help="Links may run one way only (default: every link runs both ways).")
@click.option("--search", is_flag=True, help="Run a new search instead of using the table of records.")
@click.option("--compare", "others", is_flag=True, help="Also solve well-known topologies of the same size and degree.")
@click.option(
    "--failed-links",
    type=click.IntRange(0, 1),
    default=0,
    show_default=True,
    help="With 1, also compute the worst T after one link has failed.",
)
@click.option("--rack", type=click.IntRange(min=0), default=0, metavar="R", help="Nodes per rack (default: no racks).")
@click.option(
    "--cables",
    type=click.IntRange(min=0),
    default=0,
    metavar="C",
    help="Maximum number of cables from one rack to another (default: any number).",
)
@click.option(
    "--uplinks",
    type=click.IntRange(min=0),
    default=0,
    metavar="U",
    help="Maximum number of cables from a rack to all others (default: any number).",
)
@click.option(
    "--starts",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Number of local searches per group, and of starts of the link exchange.",
)
@click.option("--time-limit", type=float, metavar="S", help="Limit of the search and of the final solve [s].")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the search.")
@JSON
def design(
    sizes: tuple[str, ...],
    directed: bool,
    search: bool,
    others: bool,
    failed_links: int,
    rack: int,
    cables: int,
    uplinks: int,
    starts: int,
    time_limit: float | None,
    seed: int,
    as_json: bool,
) -> int:
    """Find a topology of N nodes with D ports each that has a small all-to-all time T.

    The topology comes from a table of records, or from a search among vertex-transitive topologies. Either way, T is
    computed, verified and compared with a bound that holds for every topology of this degree.

    \b
    opticoll design n=64 degree=4
    opticoll design n=32 degree=4 --rack 8 --cables 2 --uplinks 6
    """  # noqa: D301  click's mark for a paragraph that keeps its lines
    from opticoll.analysis.cli import output

    given = dict(word.partition("=")[::2] for word in sizes)
    if (
        set(given) != {"n", "degree"}
        or len(sizes) != 2
        or not all(v.isdecimal() and len(v) < 9 for v in given.values())
    ):
        notify(f"design: cannot read {' '.join(sizes)[:60]!r}; write whole numbers, such as n=64 degree=4")
        return 2
    with output.diverted_stdout():
        from opticoll.analysis import design as topology_design

        result = topology_design.design(
            int(given["n"]),
            int(given["degree"]),
            directed=directed,
            table=not search,
            compare=others,
            failed_links=failed_links,
            starts=starts,
            time_limit=time_limit,
            seed=seed,
            rack=rack,
            cables=cables,
            uplinks=uplinks,
        )
    if as_json:
        output.emit_json(topology_design.as_json(result))
    else:
        _show_design(result)
    return 0


def _racks(design: TopologyDesign) -> str:
    limits = [f"of {design.rack} nodes"]
    if design.cables:
        limits.append(f"at most {design.cables} cables from one to another")
    if design.uplinks:
        limits.append(f"at most {design.uplinks} from one to all others")
    return ", ".join(limits)


def _show_design(design: TopologyDesign) -> None:
    """Print a topology, its time, and the bound on all topologies of its degree."""
    from opticoll.analysis.cli import output
    from opticoll.analysis.rendering import number

    fields = {
        "nodes": f"{design.n}, degree {design.degree}, links {'one way' if design.directed else 'both ways'}",
        **({"racks": _racks(design)} if design.rack else {}),
        "topology": f"{design.topology}   (from the {design.source})",
        "T": f"{number(design.T)}   ({design.proof} for this topology)",
        "T bound": f"{number(design.bound)}   for any topology: {design.reason}",
        "gap": "none: best possible" if design.best_possible else f"{100 * design.gap:.2f} %",
    }
    if design.T_failed is not None and design.failed_link is not None:
        tail, head = design.failed_link
        grown = f"+{100 * (design.T_failed / design.T - 1):.2f} %, without {tail} to {head}"
        fields["T, one failed"] = f"{number(design.T_failed)}   ({grown})"
    output.show_fields(fields, "design")
    if design.others:
        rows = [{"topology": other.topology, "T": other.T, "proof": other.proof} for other in design.others]
        output.show_table(rows, ["topology", "T", "proof"], "for comparison")
