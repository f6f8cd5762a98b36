"""Write the generated parts of the documentation, and say what pages of formulations lack: run ``docs/tables.py``."""

from __future__ import annotations

import csv
import inspect
from functools import cache
from math import isnan
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import instance_page
import reconfigure_tables
from blocks import replaced, table

if TYPE_CHECKING:
    import pandas as pd

    from opticoll.analysis.benchmark.run_comparison import Compared
    from opticoll.solvers.methods import Beyond

ROOT = Path(__file__).resolve().parent.parent

FORMULATIONS = "docs/reference/formulations.md"
BLOCK = "formulations"
AUTO, LIMITS = "docs/guide/auto.md", "limits"
DESIGNS, RECORDS = "docs/guide/design.md", "records"
PODS, SLICES, ROUTES = "docs/guide/pods.md", "slices", "routes"
LIBRARY, LIBRARY_TABLE = "docs/guide/design-library.md", "library"
RECONFIGURE = reconfigure_tables.PAGE
#: Sizes of the page on designs.
SHOWN = (
    *(6, 8, 10, 12, 16, 20, 24, 27, 32, 36, 40, 48, 50, 56, 60, 64, 72, 80, 96, 100, 128, 144, 192, 256, 512, 1024),
    4096,
)
#: Page of the benchmark's published results.
BENCHMARK, PUBLISHED = "docs/guide/benchmark.md", "published"
PROBLEMS, LISTED = "docs/guide/benchmark-results.md", "problems"
#: Figures of generated pages.
FIGURES = ROOT / "docs" / "generated" / "figures"
#: Sizes at which each formulation is proven; the registry has the other columns.
PROVEN = {
    "alltoall.all-gather": "by max-flow on every topology tried",
    "alltoall.all-reduce": "by trees that meet a bound, up to N = 256; otherwise as an LP",
    "alltoall.broadcast": "by max-flow on every topology tried",
    "alltoall.channels": "small instances; larger ones where the load of any routes is attained",
    "alltoall.child": "with its master",
    "alltoall.link-mcf": "N = 40 as stated, N = 100 by decomposition",
    "alltoall.master": (
        "N = 1000 to 1e-10, N = 4096 to 1e-3, N = 16384 to 1e-2 with symmetries; "
        "exactly where symmetry is proven (`torus:32x32x32`)"
    ),
    "alltoall.min-congestion": "over all paths on 64 nodes",
    "alltoall.few-paths": "16 nodes and four paths of a pair",
    "alltoall.path-mcf": "on its path set; over all paths by column generation",
    "alltoall.reduce-scatter": "by max-flow on every topology tried",
    "alltoall.sccl": "N = 20 with one step more than the diameter",
    "alltoall.timestep-child": "with its master",
    "alltoall.timestep-mcf": "symmetric networks of 256 nodes by source, 64 by pair",
    "alltoall.virtual-channels": "small instances",
    "lumorph.co-scheduling": "the logs of all three models, up to 256 GPUs; 32 random calls",
    "lumorph.forwarded-rounds": "all-to-all on 16x16 tiles with 16 lasers, by the index algorithm; 2x4 by the program",
    "lumorph.iteration": "32 random calls and 8 stages on 16 GPUs",
    "lumorph.min-overlap": "permutations and recursive exchanges up to 16x16, also with 10 % of the links removed",
    "lumorph.rounds": "all-gather and all-to-all from 2x4 to 32x32 tiles; 2x4 by the program alone",
    "lumorph.sum-rounds": "all-reduce on 2x2 tiles with 1 to 16 lasers, 2x4 with 1, 4, 6 to 16; 32x32 with 16",
    "optree.one-stage": "closed form at any size; by branch and bound up to n = 5",
    "optree.tree": "n = 4096, by dynamic programming",
    "sipml.ocs-circuits": "in polynomial time; by ILP on 9 servers",
    "sipml.placement": "graphs of six sub-operations; larger ones with a gap to bounds",
    "sipml.ring-wavelengths": "8 nodes, 12 to 512 wavelengths",
    "topology.matchings": "random demands of 4 and 5 nodes on one or two switches (48 of 48); larger ones with a gap",
    "topology.steps": "64 nodes and 126 steps, by dynamic programming",
    "topology.sequence": "82 of 126 cases up to 64 nodes, d = 1, 2, 4, K = 1 to 8",
    "topoopt.circuits": "3 servers, 12 transfers; larger ones with a gap to bounds",
    "topoopt.routing": "12 servers, as a linear program",
    "topoopt.strategy": "all six models, by dynamic programming",
    "topoopt.utility": "128 servers of 8 ports, as a linear program",
    "topoopt.topology": "5 to 7 servers of degree 2; larger ones with a gap to bounds",
}


def formulation_table() -> str:
    """Markdown table with one row per formulation: source, class, methods, proven sizes."""
    from opticoll.formulations import formulations
    from opticoll.solvers.methods import methods_for

    rows = []
    for name, model in sorted(formulations().items()):
        methods = ", ".join(f"`{method}`" for method in sorted(methods_for(model)))
        rows.append((f"`{name}`", model.where, model.problem, methods, PROVEN.get(name, "see its docstring")))
    return "\n".join(table(("name", "in the paper", "class", "methods besides the solvers", "proven here"), rows))


def with_formulations(text: str) -> str:
    """Text of a page with the current table of formulations."""
    return replaced(text, BLOCK, formulation_table())


def with_limits(text: str) -> str:
    """Text of the page on ``auto`` with the sizes beyond which methods take over."""
    from opticoll.solvers.methods import methods

    found: dict[tuple[str, str, tuple[int, int]], list[tuple[Beyond, str]]] = {}
    for name, method in methods().items():
        for beyond in method.takes_over:
            where = "".join(f", `{parameter}={value}`" for parameter, value in beyond.where.items())
            size = beyond.variables, beyond.nonzeros or 0
            found.setdefault((f"`{beyond.formulation}`", where, size), []).append((beyond, f"`{name}`"))
    rows = []
    for (formulation, where, size), listed in sorted(found.items()):
        *others, last = [name for _, name in sorted(listed, key=lambda one: one[0].suits is None)]
        names = f"{', '.join(others)} or {last}, whichever suits" if others else last
        names += "" if others or listed[0][0].suits is None else ", if it suits"
        names += "".join(f"; {name} begins below, too" for beyond, name in listed if beyond.first)
        rows.append((formulation + where, f"{size[0]:,}; {size[1]:,}", names))
    heads = ("Formulation", "largest model: variables; nonzeros", "certified method beyond")
    return replaced(text, LIMITS, "\n".join(table(heads, rows)))


# commands -----------------------------------------------------------------------------------------------------------

COMMANDS = """# Commands

`opticoll COMMAND --help` prints the same. `eval "$(_OPTICOLL_COMPLETE=bash_source opticoll)"` in `~/.bashrc` completes
commands, options and names (`zsh_source` in `~/.zshrc`; `fish_source` for fish).

**Exit status.** 0 solved and verified, also at a limit with an incumbent; 2 invalid input (one line says what is wrong,
where, and how to fix it; nothing is stored); 3 no solution; 4 solver unavailable (package or licence); 130 after
Ctrl-C, 143 after SIGTERM (`solve` keeps its incumbent and ends as at a limit). `study`: 0 if no cell failed, 1 if some
failed or were not run, 3 if no cell has an answer (4 if all lack their solver). `claims`: 1 if a measurement failed.

**Output.** Results go to stdout, messages and progress to stderr. `--json` prints one JSON value on stdout and nothing
else; see [JSON output](json.md).

**Environment.** `OPTICOLL_STORE` is the results store (default: `results` in the current folder), `OPTICOLL_PLUGINS`
lists plug-ins, `OPTICOLL_SOLVERS` lists solver configurations; `OPTICOLL_DEBUG=1` shows tracebacks.
"""


def commands_page() -> str:
    """Usage, description and options of every command, from the command line itself."""
    import click

    from opticoll.analysis.cli.main import cli

    parts, context = [COMMANDS], click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        parts += _command(f"## {name}", f"opticoll {name}", command)
        for word, part in sorted(getattr(command, "commands", {}).items()):
            parts += _command(f"### {name} {word}", f"opticoll {name} {word}", part)
    return "\n".join(parts)


def _command(heading: str, name: str, command: Any) -> list[str]:
    """Heading, usage, description and options of a command."""
    import click

    context = click.Context(command, info_name=name, terminal_width=120, max_content_width=120)
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    parts = [f"{heading}\n\n```text\n{usage}\n```\n"]
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        example = paragraph.startswith("\b")
        body = paragraph.removeprefix("\b\n")
        parts.append(f"```sh\n{body}\n```\n" if example else f"{' '.join(body.split())}\n")
    options = [option for option in command.params if isinstance(option, click.Option)]
    rows = [record for option in options if (record := option.get_help_record(context))]
    if rows:
        parts += [*table(("Option", ""), ((_code(words), _cell(text)) for words, text in rows)), ""]
    return parts


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


# JSON ---------------------------------------------------------------------------------------------------------------

JSON = """# JSON output

With `--json`, a command prints one JSON value on stdout and nothing else. Undefined values are null; numbers are
printed in full precision. Later versions may add fields. The tables are made from the types of the rows, and tests
validate real outputs against them.
"""
#: Meaning of the fields of a run.
MEANING = {
    "key": "resume key: equal for runs of the same problem, method, options, limits, plug-ins and versions",
    "formulation": "name of the formulation",
    "paper": "paper that states it",
    "instance": "spec of the instance",
    "instance_hash": "hash of the contents of the instance",
    "n": "number of vertices",
    "arcs": "number of arcs",
    "method": "method that produced the answer",
    "form": "layer in which the model was built",
    "model": "whether the stated model was built, and why or why not",
    "solver": "solver, version, algorithm and options in force",
    "termination": "why the solve ended",
    "proof": "what the checked value and the recomputed bound prove",
    "sense": "`min` or `max`",
    "objective": "value of the verified solution",
    "objective_exact": 'the optimum as a fraction, `"761/51"`, proven in rational arithmetic; null without `--exact`',
    "bound": "best verified bound on the optimum",
    "bound_source": "where the bound comes from",
    "gap": "relative distance of objective and bound",
    "verified": "whether the solution passed the checker",
    "infeasible_by": "how infeasibility was proven",
    "violations": "worst violation of every block of constraints",
    "kkt": "relative errors of the optimality conditions of a linear program",
    "metrics": "further quantities: `F`, `T`, `rounds`, `max_load`, `conditional_on`, ...",
    "settings": "effective settings",
    "solver_claims": "what the solver itself reported; proves nothing",
    "time": "seconds by phase",
    "size": "size of the matrix",
    "peak_memory_mb": "peak memory of the solving process and its children [MB]",
    "message": "one line about a failure",
    "incumbents": "pairs of seconds and objective",
    "requested": "method, settings and limits as requested",
    "needed": "run whose solution was input",
    "repaired": "how far an approximate solution was changed to make it feasible",
    "start": "solution from which the run started: its source, its value, who began with it, and whether it was "
    "kept because nothing better was found",
    "plugins": "plug-ins that took part and the modules they loaded, with their SHA-256",
    "versions": "versions of the solvers and of the modelling layer in the resume key",
    "schedule": "file written by `--schedule`",
    "why": "what `--why` found: what limits the value, or the rows and bounds that contradict each other",
}


def json_page() -> str:
    """Fields and types of every JSON output, from the schemas."""
    from json_outputs import OUTPUTS, schema

    parts = [JSON]
    for command in OUTPUTS:
        top = schema(command)
        kinds = top.get("$defs", {})
        main = top["items"] if top.get("type") == "array" else top
        first = main["$ref"].rpartition("/")[2]
        one = "A list of objects." if top.get("type") == "array" else "One object."
        parts.append(f"## {command}\n\n{one}\n")
        parts += _fields(kinds[first], MEANING if command == "solve" else {})
        for name, kind in kinds.items():
            if name != first and "enum" in kind:
                parts.append(f"*{name}*: {', '.join(f'`{value}`' for value in kind['enum'])}.\n")
            elif name != first and "properties" in kind:
                parts.append(f"*{name}*: {', '.join(_field(*item) for item in kind['properties'].items())}.\n")
    return "\n".join(parts)


def _fields(kind: dict[str, Any], meaning: dict[str, str]) -> list[str]:
    rows = ((f"`{name}`", _type(value), meaning[name] if meaning else "") for name, value in kind["properties"].items())
    used = 3 if meaning else 2
    return [*table(("field", "type", "meaning")[:used], (row[:used] for row in rows)), ""]


def _field(name: str, value: dict[str, Any]) -> str:
    return f"`{name}` ({_type(value)})"


def _type(value: dict[str, Any]) -> str:
    """Type of a field in words; null is left out, as every field may be unknown."""
    if "$ref" in value:
        return str(value["$ref"].rpartition("/")[2])
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(_type(item) for item in value["anyOf"] if item.get("type") != "null"))
    if "enum" in value:
        return ", ".join(f"`{item}`" for item in value["enum"])
    if value.get("type") == "array":
        return f"list of {_type(value['items'])}" if value.get("items") else "list"
    return str(value.get("type", "any"))


# topologies of given degree ---------------------------------------------------------------------------------------


def with_records(text: str) -> str:
    """Text of the page on designs with a summary of the current table of records."""
    from opticoll.analysis.designs.design import RecordRow, records

    rows = records()

    def cell(row: RecordRow | None) -> str:
        if row is None:
            return ""
        return f"**{row.time:.5g}**" if row.best_possible else f"{row.time:.5g} (+{100 * row.gap:.1f} %)"

    optimal = sum(row.best_possible for row in rows.values())
    enumerated = sum(row.enumerated is not None for row in rows.values())
    one_way = [row for row in rows.values() if row.directed and row.genkautz]
    better = sum(row.time < row.genkautz * (1 - 1e-6) for row in one_way)
    lines = [
        f"{len(rows)} sizes, {min(n for n, *_ in rows)} to {max(n for n, *_ in rows)} nodes. {optimal} topologies are "
        f"proven best possible, {enumerated} of them by enumeration. Of the {len(one_way)} with one-way links, "
        f"{better} are faster than the generalized Kautz digraph. T by nodes and degree; bold: best possible, "
        "otherwise the distance from the bound:",
    ]
    degrees = sorted({degree for _, degree, _ in rows})
    for directed, title in ((False, "Links both ways"), (True, "Links one way")):
        listed = sorted({n for n, _, way in rows if way == directed and n in SHOWN})
        cells = ((n, *(cell(rows.get((n, d, directed))) for d in degrees)) for n in listed)
        lines += ["", *table((f"{title}: n", *(f"d = {d}" for d in degrees)), cells)]
    failures = [row.one_failure / row.time - 1 for row in rows.values() if row.one_failure]
    if failures:
        lines += [
            "",
            f"With one failed link, the worst is known for {len(failures)} of the topologies: T grows by "
            f"{100 * median(failures):.0f} % in the median, and by {100 * min(failures):.0f} to "
            f"{100 * max(failures):.0f} %.",
        ]
    return replaced(text, RECORDS, "\n".join(lines))


def with_slices(text: str) -> str:
    """Text of the page on pods with the tables of wirings, and of their routes."""
    from opticoll.analysis.designs.pods import PodRecord, pod_records
    from opticoll.instances.families.pods import even_shape, torus_time

    rows = pod_records()

    def cell(row: PodRecord | None) -> str:
        if row is None:
            return ""
        best = row.gap <= 1e-6 or row.enumerated
        return f"**{row.time:.5g}**" if best else f"{row.time:.5g} (+{100 * row.gap:.1f} %)"

    heads = "Cubes|Chips of the torus|Torus|Published twist|One permutation a dimension|Every switch its own|Bound|"
    heads += "Torus / best|Best without a switch|Wired for that"
    lines: list[tuple[object, ...]] = []
    for cubes in sorted({cubes for cubes, _, places in rows if places == "free"}):
        best, twist = rows[cubes, 4, "free"], rows.get((cubes, 4, "twisted"))
        torus = float(torus_time(None, cubes, 4, "torus") or 0)
        lost = "" if best.lost_switch is None else f"{best.lost_switch:.5g}"
        chips = "x".join(str(4 * edge) for edge in even_shape(cubes))
        twisted = "" if twist is None else f"{twist.time:.5g}"
        found = cell(rows.get((cubes, 4, "same"))), cell(best), f"{float(best.bound):.5g}", f"{torus / best.time:.2f}"
        lines.append((cubes, chips, f"{torus:.5g}", twisted, *found, lost, cell(rows.get((cubes, 4, "survive")))))
    text = replaced(text, SLICES, "\n".join(table(heads.split("|"), lines)))
    with (ROOT / "analysis/designs/pod_routes.csv").open(encoding="utf-8") as routes:
        lines = []
        for row in csv.DictReader(routes):
            load = f"**{row['load']}**" if row["load"] == row["bound"] else row["load"]
            lines.append((row["cubes"], row["layers"], load, row["bound"], row["layer_bound"]))
    heads = "Cubes|Layers|Load|Load at least|Layers at least, at that load"
    return replaced(text, ROUTES, "\n".join(table(heads.split("|"), lines)))


def with_library(text: str) -> str:
    """Text of the page on the network-design library with its table."""
    from design_library import library_rows

    lines = []
    for row in library_rows().values():
        published = f"{row.best_published:g}" + (", proven" if row.proven else ", later" if row.later else "")
        against, gap = f"{100 * row.against_published:+.2f} %", f"{100 * row.gap:.1f} %"
        value = f"{float(row.value):.3f}"
        lines.append((row.nodes, value, row.value, published, against, f"{row.bound:.2f}", gap, row.found))
    heads = ("n", "Value", "", "Published", "Difference", "Bound", "Gap", "Found")
    return replaced(text, LIBRARY_TABLE, "\n".join(table(heads, lines)))


def gap_figure() -> str:
    """SVG: gap of the records to the bound by nodes and degree, and of generalized Kautz digraphs."""
    import io

    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "opticoll"
    import matplotlib.pyplot as plt

    from opticoll.analysis.designs.design import records

    rows = records()
    figure, panels = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
    drawn = (
        ("records, links both ways", False, lambda row: row.gap),
        ("records, links one way", True, lambda row: row.gap),
        (
            "generalized Kautz digraphs",
            True,
            lambda row: None if row.genkautz is None else row.genkautz / float(row.bound) - 1,
        ),
    )
    for panel, (title, directed, gap) in zip(panels, drawn, strict=True):
        for degree in sorted({degree for _, degree, _ in rows}):
            points = sorted(
                (n, 100 * value)
                for (n, d, way), row in rows.items()
                if (d, way) == (degree, directed) and (value := gap(row)) is not None
            )
            panel.plot(*zip(*points, strict=True), marker=".", lw=0.8, label=f"d = {degree}")
        panel.set_xscale("log", base=2)
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("nodes")
    panels[0].set_ylabel("T above the bound [%]")
    panels[0].legend(fontsize=7, ncols=2)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    return text.getvalue()


# published results of the benchmark -------------------------------------------------------------------------------


@cache
def published_runs() -> Compared:
    """The comparison of the published runs, of which several pages show a part."""
    from opticoll.analysis.benchmark import run_comparison

    return run_comparison.compare()


def with_published(text: str) -> str:
    """Text of the page on the benchmark with its current results."""
    from opticoll.analysis.benchmark import benchmark_set

    compared = published_runs()
    made, best = compared.comparison, benchmark_set.best_known()
    grades = ", ".join(f"{sum(b.grade == grade for b in best.values())} {grade}" for grade in benchmark_set.GRADES)
    dates = compared.machines["first"].min(), compared.machines["last"].max()
    load = compared.machines["load"].median()
    lines = [
        f"{len(best)} problems: {grades}; {sum(b.open for b in best.values())} are open. "
        f"{len(made.runs)} published runs on {made.runs['problem'].nunique()} of them, {dates[0]} to {dates[1]}, under "
        f"{compared.limit_s:g} s of processor time, on a shared machine (median load {load:.0f} on two cores).",
    ]
    for name, words in (("linear", "Linear programs"), ("integer", "Integer programs")):
        if name not in made.summaries:
            continue
        heads = ("solver", "run", "solved", "inexact", "limit", "memory", "failed", "wrong", "mean [s]", "over")
        rows = []
        for row in made.summaries[name].to_dict("records"):
            keys = ("solver", "problems", "solved", "inexact", "limit", "memory", "failed", "wrong")
            mean, over = row["mean_penalised_s"], row["compared"]
            rows.append([row[key] for key in keys] + [f"{mean:.3g}" if over else "–", over or "–"])
        lines += ["", f"## {words}", "", *table(heads, rows)]
        lines += [
            "",
            "The penalised mean is over the problems that all solvers of the table with a mean ran on.",
            "",
            f"![{words}: performance profiles](../generated/figures/benchmark-profile-{name}.svg)",
        ]
        if name in compared.sensitivity:
            lines += ["", *_sensitivity(compared.sensitivity[name])]
    return replaced(text, PUBLISHED, "\n".join(lines))


def _sensitivity(measured: pd.DataFrame) -> list[str]:
    count, variants = int(measured["problems"].iloc[0]), int(measured["variants"].iloc[0])
    said = f"**Sensitivity.** {variants} orders of rows and columns of {count} problems: the least and the largest "
    rows = []
    for row in measured.to_dict("records"):
        rank = f"{row['rank_min']}" if row["rank_min"] == row["rank_max"] else f"{row['rank_min']}–{row['rank_max']}"
        rows.append((row["solver"], f"{row['mean_min_s']:.3g}–{row['mean_max_s']:.3g}", rank))
    return [f"{said}penalised mean, and rank.", "", *table(("solver", "mean [s]", "rank"), rows)]


def with_problems(text: str) -> str:
    """Text of the page on the benchmark's problems with the current list."""
    from opticoll.analysis.benchmark import benchmark_set

    best = benchmark_set.best_known()
    fastest = {row["problem"]: row for row in published_runs().comparison.problems.to_dict("records")}
    order = sorted(best, key=lambda name: (benchmark_set.GRADES.index(best[name].grade), best[name].size["nonzeros"]))
    rows, unsolved = [], []
    for name in order:
        one, quick = best[name], fastest.get(name)
        if quick is None:
            time = "not run"
        else:
            solved = quick["fastest_s"] is not None and not isnan(quick["fastest_s"])
            time = f"{quick['fastest_s']:.3g} ({quick['fastest']})" if solved else "not solved"
        value, bound = ("–" if v is None else f"{v:.8g}" for v in (one.value, one.bound))
        sizes = one.grade, one.size["nonzeros"], one.size["integers"]
        rows.append((f"`{name}`", *sizes, value, bound, "**open**" if one.open else one.proof, time))
        if one.open:
            unsolved.append((f"`{name}`", value, bound, one.tried))
    heads = ("problem", "grade", "nonzeros", "integers", "best known value", "bound", "proof", "fastest [s]")
    lines = [
        "## Open problems",
        "",
        *table(("problem", "value", "bound", "tried"), unsolved),
        "",
        "## All problems",
        "",
        "Sorted by grade and size; the fastest published run, or *not run*, or *not solved* within the limit.",
        "",
        *table(heads, rows),
    ]
    return replaced(text, LISTED, "\n".join(lines))


def benchmark_figures() -> dict[str, str]:
    """SVG figures of the published results by name."""
    from opticoll.analysis.benchmark import comparison
    from opticoll.analysis.plots.style import card

    made = published_runs().comparison
    return {f"benchmark-{one.name.removeprefix('solvers-')}": card(one.drawing) for one in comparison.figures(made)}


# all of them --------------------------------------------------------------------------------------------------------


def pages() -> dict[str, str]:
    """Text of every generated page by its path from the root."""
    return {
        FORMULATIONS: with_formulations((ROOT / FORMULATIONS).read_text(encoding="utf-8")),
        "docs/reference/commands.md": commands_page(),
        "docs/reference/json.md": json_page(),
        instance_page.PAGE: instance_page.page(),
        AUTO: with_limits((ROOT / AUTO).read_text(encoding="utf-8")),
        DESIGNS: with_records((ROOT / DESIGNS).read_text(encoding="utf-8")),
        PODS: with_slices((ROOT / PODS).read_text(encoding="utf-8")),
        LIBRARY: with_library((ROOT / LIBRARY).read_text(encoding="utf-8")),
        RECONFIGURE: reconfigure_tables.with_tables((ROOT / RECONFIGURE).read_text(encoding="utf-8")),
        BENCHMARK: with_published((ROOT / BENCHMARK).read_text(encoding="utf-8")),
        PROBLEMS: with_problems((ROOT / PROBLEMS).read_text(encoding="utf-8")),
    }


if __name__ == "__main__":
    for stale in FIGURES.glob("benchmark-*.svg"):
        stale.unlink()
    for figure, drawing in {
        **benchmark_figures(),
        "design-gap": gap_figure(),
        **reconfigure_tables.figures(),
    }.items():
        (FIGURES / f"{figure}.svg").write_text(drawing, encoding="utf-8")
    for page, content in pages().items():
        (ROOT / page).write_text(content, encoding="utf-8")
