"""Commands other than those for models and results, and the option ``--plugin`` of every command.

sweep, compare, describe, schema, completion, lab, and ``new``, which writes an example plug-in and its test.
"""

from __future__ import annotations

import keyword
import os
import re
import string
import sys
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

import click

from opticoll.analysis.options import (
    FORMULATION,
    JSON,
    METHOD,
    SET,
    SOLVERS,
    STORE,
    complete_instances,
    complete_names,
    complete_studies,
    notify,
    refuse_unwritable,
    settings_of,
    writable_store,
)

if TYPE_CHECKING:
    from opticoll.analysis.study.running import Summary


@click.command()
@FORMULATION
@click.option(
    "--bound", required=True, metavar="NAME|FILE.py:FUNCTION", help="Bound of the formulation, or a Python function."
)
@click.option(
    "--over",
    multiple=True,
    required=True,
    metavar="SPEC",
    shell_complete=complete_instances,
    help="Instances with {braces}, or a population.",
)
@click.option("--on", default="objective", show_default=True, metavar="objective|T|METRIC", help="What is bounded.")
@click.option(
    "--sense", type=click.Choice(["lower", "upper"]), help="Sense of the bound (default: that of a relaxation)."
)
@METHOD
@SET
@click.option("--time-limit", type=float, metavar="S", help="Wall-clock limit of each case [s].")
@click.option(
    "--tol", type=float, default=1e-6, show_default=True, help="Relative tolerance of optima and of the comparison."
)
@click.option("--exact", is_flag=True, help="Also solve every case in rational arithmetic.")
@click.option("--keep-copies", is_flag=True, help="Also solve isomorphic copies.")
@click.option("--jobs", type=click.IntRange(min=1), help="Number of cases to run at a time, in local processes.")
@click.option("--dask", metavar="ADDRESS", help="Scheduler of a Dask cluster on which to run the cases.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Write a table, JSON and plots of the cases."
)
@STORE
@JSON
def sweep(
    formulation: str,
    bound: str,
    over: tuple[str, ...],
    on: str,
    sense: Literal["lower", "upper"] | None,
    method: str,
    settings: tuple[str, ...],
    time_limit: float | None,
    tol: float,
    exact: bool,
    keep_copies: bool,
    jobs: int | None,
    dask: str | None,
    out: Path | None,
    store_dir: str | None,
    as_json: bool,
) -> int:
    """Test a bound on the optimum of FORMULATION over many instances.

    The bound is one of the formulation (`opticoll describe FORMULATION` lists them) or a Python function of the
    instance. Violations, tightness and the smallest counterexample are printed. Isomorphic topologies are one case.
    Run the command again to resume after an interruption.

    \b
    opticoll sweep alltoall.master --bound moore --over "all-digraphs:n=5,d=2"
    opticoll sweep alltoall.master --bound my.py:cut --on T --over "ring:{3..9}" --over "genkautz:n={8..64},d=4"
    """  # noqa: D301  click's mark for a paragraph that keeps its lines
    from opticoll.analysis import present

    if jobs is not None and dask is not None:
        msg = "--jobs and --dask are mutually exclusive"
        raise click.UsageError(msg)
    if out is not None:
        refuse_unwritable(out / "sweep.json" if out.is_dir() else out)
    store = writable_store(store_dir)
    with present.diverted_stdout():
        from opticoll.analysis import sweep as bound_sweep

        result = bound_sweep.sweep(
            formulation, bound, list(over), on=on, sense=sense, settings=settings_of(settings), method=method,
            time_limit=time_limit, tol=tol, exact=exact, keep_copies=keep_copies, store=store, jobs=jobs, dask=dask,
        )  # fmt: skip
        files = [] if out is None else result.save(out)
    if as_json:
        present.emit_json(result)
    else:
        present.show_sweep(result)
    for file in files:
        click.echo(f"wrote {file}", err=True)
    for case in result.cases:
        if case.status == bound_sweep.Status.ERROR:
            notify(f"sweep: {result.bound} on {case.case}: {case.message}")
    if result.interrupted:
        rest = result.classes - len(result.cases)
        notify(f"interrupted with {rest} case{'s' * (rest != 1)} to go; run the same command again to resume")
        return 130
    return 1 if result.errors else 0


@click.command()
@click.argument("sizes", nargs=-1, required=True, metavar="n=N degree=D")
@click.option("--directed", is_flag=True, help="Links may run one way only (default: every link runs both ways).")
@click.option("--search", is_flag=True, help="Run a new search instead of using the table of records.")
@click.option("--compare", "others", is_flag=True, help="Also solve well-known topologies of the same size and degree.")
@click.option("--failed-links", type=click.IntRange(0, 1), default=0, show_default=True,
              help="With 1, also compute the worst T after one link has failed.")  # fmt: skip
@click.option("--rack", type=click.IntRange(min=0), default=0, metavar="R", help="Nodes per rack (default: no racks).")
@click.option("--cables", type=click.IntRange(min=0), default=0, metavar="C",
              help="Maximum number of cables from one rack to another (default: any number).")  # fmt: skip
@click.option("--uplinks", type=click.IntRange(min=0), default=0, metavar="U",
              help="Maximum number of cables from a rack to all others (default: any number).")  # fmt: skip
@click.option("--starts", type=click.IntRange(min=1), default=8, show_default=True,
              help="Number of local searches per group, and of starts of the link exchange.")  # fmt: skip
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
    from opticoll.analysis import present

    given = dict(word.partition("=")[::2] for word in sizes)
    if (
        set(given) != {"n", "degree"}
        or len(sizes) != 2
        or not all(v.isdecimal() and len(v) < 9 for v in given.values())
    ):
        notify(f"design: cannot read {' '.join(sizes)[:60]!r}; write whole numbers, such as n=64 degree=4")
        return 2
    with present.diverted_stdout():
        from opticoll.analysis import design as topology_design

        result = topology_design.design(
            int(given["n"]), int(given["degree"]), directed=directed, table=not search, compare=others,
            failed_links=failed_links, starts=starts, time_limit=time_limit, seed=seed, rack=rack, cables=cables,
            uplinks=uplinks,
        )  # fmt: skip
    if as_json:
        present.emit_json(topology_design.as_json(result))
    else:
        present.show_design(result)
    return 0


@click.command()
@click.argument("model", metavar="bert|candle|dlrm|ncf|resnet50|vgg")
@click.argument("network", shell_complete=complete_instances)
@click.option("--link", metavar="RATE", help="Rate of a capacity of 1, or of an optical interface (default: 100Gb/s).")
@click.option("--servers", type=click.IntRange(min=2), help="Number of servers that train (default: all).")
@click.option("--section", type=click.Choice(["5.3", "5.4", "5.6"]), default="5.3", show_default=True,
              help="Section of the TopoOpt paper that sets the sizes.")  # fmt: skip
@click.option("--batch", type=click.IntRange(min=0), default=0, help="Samples per GPU (default: those of the section).")
@click.option("--overlap", type=click.Choice(["backward", "none"]), default="backward", show_default=True,
              help="Communicate while computing (backward), or only afterwards (none).")  # fmt: skip
@click.option("--routing", type=click.Choice(["auto", "single", "even", "k"]), default="auto", show_default=True,
              help="One shortest path, all evenly, or k paths; auto: even over switches, else single.")  # fmt: skip
@click.option("--paths", type=click.IntRange(min=1), default=4, show_default=True, help="Paths with --routing k.")
@click.option("--latency", type=float, default=1e-6, show_default=True, help="Latency of a hop [s].")
@click.option("--ring-factor", type=float, help="Bytes over each hop of a ring per byte reduced (default: 2(k-1)/k).")
@click.option("--check", is_flag=True, help="Record all rates and check the schedule.")
@JSON
def iteration(model: str, network: str, as_json: bool, **settings: Any) -> int:
    """Simulate a training iteration of MODEL over NETWORK at flow level.

    NETWORK is a topology, whose ranks are the servers, or circuits:n=..,degree=... The time is compared with lower
    bounds on every schedule.

    \b
    opticoll iteration dlrm "circuits:n=128,degree=4"
    opticoll iteration dlrm "fat-tree:k=8,capacity=4" --link 25Gb/s
    """  # noqa: D301  click's mark for a paragraph that keeps its lines
    from opticoll.analysis import present

    with present.diverted_stdout():
        from opticoll.analysis import iteration as iteration_times

        result = iteration_times.iteration(model, network, **settings)
    if as_json:
        present.emit_json(result)
    else:
        present.show_iteration(result)
    return 0


@click.command()
@click.argument("name", shell_complete=complete_names)
@click.option(
    "--instance",
    metavar="SPEC",
    shell_complete=complete_instances,
    help="Instance for the sizes and bounds of a formulation.",
)
@SET
@SOLVERS
@JSON
def describe(name: str, instance: str | None, settings: tuple[str, ...], as_json: bool) -> int:
    """Describe a formulation, family, method, solver, study or claim.

    For a formulation: its mathematics, parameters, forms, methods, and its size and bounds on a small instance or on
    --instance. A spec such as `genkautz:n=16,d=4` describes the family and the instance. --json prints a list with one
    object per meaning of NAME.
    """
    from opticoll.analysis import present

    with present.diverted_stdout():
        from opticoll.analysis import describe as reference

        result = reference.describe(name, instance, settings_of(settings))
    if as_json:
        present.emit_json(result)
    else:
        for one in result:
            present.show_description(one)
    return 0


@click.command()
@click.argument("command", nargs=-1)
def schema(command: tuple[str, ...]) -> int:
    """Print the JSON Schema of what a command prints with --json.

    COMMAND is solve, check, study, compare, results, bounds, claims, describe, sweep, iteration, list, or `list KIND`.
    Without it, print one object with all schemas.
    """
    from opticoll.analysis import json_outputs, present

    if command:
        present.emit_json(json_outputs.schema(" ".join(command)))
    else:
        present.emit_json({name: json_outputs.schema(name) for name in json_outputs.outputs()})
    return 0


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print a script that completes commands, options and names in a shell.

    \b
    eval "$(opticoll completion bash)"     in ~/.bashrc
    eval "$(opticoll completion zsh)"      in ~/.zshrc
    opticoll completion fish > ~/.config/fish/completions/opticoll.fish
    """  # noqa: D301  click's mark for a paragraph that keeps its lines
    from click.shell_completion import get_completion_class

    known = get_completion_class(shell)
    assert known is not None
    click.echo(known(click.get_current_context().find_root().command, {}, "opticoll", "_OPTICOLL_COMPLETE").source())
    return 0


@click.command()
@click.argument("study", shell_complete=complete_studies)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write a page with figures and tables.")
@click.option("--time", "clock", type=click.Choice(["solver", "solve", "total"]), help="Which time to compare.")
@click.option("--accuracy", type=float, metavar="X", help="KKT residual (or gap) at which an LP counts as solved.")
@SOLVERS
@STORE
@JSON
def compare(
    study: str, out: Path | None, clock: Any, accuracy: float | None, store_dir: str | None, as_json: bool
) -> int:
    """Compare the contestants of a study that has been run.

    STUDY is a name or TOML file. A contestant is a method with its options. Nothing is run: `opticoll study STUDY` does
    that. With --out, the page has performance profiles, times with their spread, gaps over time and wrong answers.
    """
    from opticoll.analysis import present

    with present.diverted_stdout():
        from opticoll.analysis.benchmark import study_comparison
        from opticoll.analysis.store import Store
        from opticoll.analysis.study.study_file import find, load

        made = study_comparison.compare(load(find(study)), Store(store_dir), clock=clock, accuracy=accuracy)
        page = None if out is None else study_comparison.write_page(made, out)
    if as_json:
        present.emit_json({**made.document(), "page": None if page is None else str(page)})
    else:
        present.show_comparison(made)
        if page is not None:
            click.echo(f"wrote {page}", err=True)
    return 0


@click.command()
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def lab(arguments: tuple[str, ...]) -> int:
    """Open JupyterLab on the notebooks.

    ARGUMENTS after -- are passed on to JupyterLab.
    """
    import subprocess
    from importlib.util import find_spec

    from opticoll.analysis import CHECKOUT

    folder = next((f for f in (CHECKOUT / "notebooks", Path("notebooks")) if f.is_dir()), None)
    if folder is None:
        msg = f"lab: no folder notebooks in {CHECKOUT} or here; run the command from a checkout of opticoll"
        raise click.UsageError(msg)
    if find_spec("jupyterlab") is None:
        msg = "lab: the package jupyterlab is not installed; pip install jupyterlab"
        raise click.UsageError(msg)
    return subprocess.run([sys.executable, "-m", "jupyterlab", str(folder), *arguments], check=False).returncode


@click.command()
@click.argument("study", shell_complete=complete_studies)
@click.option("--jobs", type=click.IntRange(min=1), help="Number of cells to run at a time, in local processes.")
@click.option("--dask", metavar="ADDRESS", help="Scheduler of a Dask cluster on which to run the cells.")
@SOLVERS
@STORE
@JSON
def study(study: str, jobs: int | None, dask: str | None, store_dir: str | None, as_json: bool) -> int:
    """Run a study, by name or TOML file.

    Cells that have an answer in the store (a verified value, or a proof of infeasibility) are skipped. Run the command
    again to resume after an interruption. Exit status: 0 if no cell failed; 1 if some failed or were not run; 3 if no
    cell has an answer (4 if all lack their solver); 130 after Ctrl-C.
    """
    from opticoll.analysis import present
    from opticoll.analysis.study import running

    if jobs is not None and dask is not None:
        msg = "--jobs and --dask are mutually exclusive"
        raise click.UsageError(msg)
    store = writable_store(store_dir)
    with present.diverted_stdout():
        summary = running.run(study, store, jobs, dask)
    if as_json:
        present.emit_json(running.as_json(summary))
    else:
        present.show_summary(summary)
    if summary.interrupted:
        rest = len(summary.study.cells) - len(summary.results)
        notify(f"interrupted with {rest} cell{'s' * (rest != 1)} to go; run `opticoll study {study}` again to resume")
        return 130
    return _without_answer(summary)


def _without_answer(summary: Summary) -> int:
    """Report on stderr how many cells of a study have no answer; return the exit status.

    0 if no cell failed, 1 if some failed or were not run, 3 if no cell has an answer (4 if all lack their solver).
    """
    cells, failed, unavailable = len(summary.study.cells), summary.count("failed"), summary.count("unavailable")
    if failed + unavailable:
        reasons = [f"{failed} failed"] if failed else []
        reasons += [f"{unavailable} without a usable solver"] if unavailable else []
        again = "; run the study again to retry them" if failed else ""
        notify(
            f"study {summary.study.name}: {failed + unavailable} of {cells} cells have no answer "
            f"({', '.join(reasons)}){again}"
        )
    if 0 < failed + unavailable == cells:
        return 3 if failed else 4
    return 0 if summary.complete and not failed else 1


COMMANDS = (compare, completion, describe, design, iteration, lab, schema, study, sweep)


# Plug-ins ------------------------------------------------------------------------------------------------------

#: Kinds of examples that `opticoll new` writes; their templates are package data.
KINDS = ("formulation", "family", "solver", "method", "claim", "bound")
_TEMPLATES = Path(__file__).parent / "templates"
_WITHOUT = ("lab", "new")


def _load(context: click.Context, parameter: click.Parameter, places: tuple[str, ...]) -> None:
    """Load plug-ins, including those of the environment, before anything else is read."""
    if places or os.environ.get("OPTICOLL_PLUGINS"):
        from opticoll.analysis import present
        from opticoll.instances.plugins import load_configured, load_plugin

        skipped = (Exception,) if context.resilient_parsing else ()  # completion goes on without those that fail
        with suppress(*skipped), present.diverted_stdout():
            if not context.resilient_parsing:
                load_configured()
            for place in places:
                load_plugin(place)


PLUGIN = click.option(
    "--plugin",
    multiple=True,
    metavar="FILE.py",
    expose_value=False,
    is_eager=True,
    callback=_load,
    help="Plug-in with formulations, families, solvers, ... of your own: a file or an installed module; repeatable.",
)


class Commands(click.Group):
    """Commands that take plug-ins, and end on Ctrl-C without printing an empty line."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, with the option ``--plugin``."""
        super().add_command(cmd if cmd.name in _WITHOUT else PLUGIN(cmd), name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort from None


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="DIR",
    help="Folder (default: the current one).",
)
def new(kind: str, name: str, folder: Path) -> int:
    """Write an example plug-in of your own, and its test.

    KIND is a formulation, family, solver, method, claim or bound. NAME.py is a small working example to change;
    test_NAME.py is its test for pytest. Use it with `--plugin NAME.py`.
    """
    for path in write_example(kind, name, folder):
        click.echo(f"wrote {path}", err=True)
    stem = name.replace("-", "_")
    file, test = (quote(str(folder / path)) for path in (f"{stem}.py", f"test_{stem}.py"))
    use = _USES[kind].format(name=stem.replace("_", "-") if kind == "family" else name, file=file)
    click.echo(f"test it: pytest {test}\nuse it:  opticoll {use}", err=True)
    return 0


_USES = {
    "formulation": "solve own.{name} hypercube:3 --plugin {file}",
    "family": "solve alltoall.master {name}:4 --plugin {file}",
    "solver": "solve alltoall.master ring:6 --method {name} --plugin {file}",
    "method": "solve alltoall.master ring:6 --method {name} --plugin {file}",
    "claim": "claims own.{name} --plugin {file}",
    "bound": "bounds ring:6 --plugin {file}",
}


def write_example(kind: str, name: str, folder: Path) -> list[Path]:
    """Write the example of a kind under a name, and its test; write nothing if one of the files exists.

    Raises
    ------
    BadInput
        If the name cannot be used or is taken, or the files cannot be written.
    """
    from opticoll.errors import BadInput

    _refuse_name(name)
    if _taken(kind, name):
        msg = f"new: the {kind} name {name!r} is already used by opticoll; choose another name"
        raise BadInput(msg)
    stem = name.replace("-", "_")
    parts = re.split("[-_]", name)
    words = {"name": name, "stem": stem, "dashed": "-".join(parts), "title": " ".join(parts).capitalize()}
    words["class_name"] = "".join(part.capitalize() for part in parts)
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        msg = f"new: the folder {folder} does not exist or cannot be written; create it first"
        raise BadInput(msg)
    templates = {
        folder / f"{stem}.py": _TEMPLATES / f"{kind}.txt",
        folder / f"test_{stem}.py": _TEMPLATES / f"test_{kind}.txt",
    }
    for path in templates:
        if path.exists():
            msg = f"new: {path} already exists; choose another name or --dir"
            raise BadInput(msg)
    for path, template in templates.items():
        text = string.Template(template.read_text(encoding="utf-8")).substitute(words)
        path.write_text(text, encoding="utf-8")
    return list(templates)


def _taken(kind: str, name: str) -> bool:
    """Whether opticoll itself uses the name; those of formulations and claims begin with ``own.`` and are free."""
    dashed = name.replace("_", "-")
    if kind in {"method", "solver"}:
        from opticoll.solvers.methods import own_names

        return name in own_names()
    if kind == "family":
        from opticoll.instances.spec import FAMILIES, POPULATIONS, load_families

        load_families()
        return dashed in FAMILIES or dashed in POPULATIONS
    if kind == "bound":  # the example bounds the all-to-all
        from opticoll.analysis.describe import bounds

        return dashed in {row["name"] for row in bounds("ring:6")}
    return False


def _refuse_name(name: str) -> None:
    """Refuse a name that is not a valid module name, or would hide another module."""
    from importlib.util import find_spec

    from opticoll.errors import BadInput

    stem = name.replace("-", "_")
    if keyword.iskeyword(stem):
        msg = f"new: {name!r} cannot be used: it is a keyword of Python; choose another name"
        raise BadInput(msg)
    if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name):
        msg = f"new: {name!r} cannot be used; write lower-case letters, digits, '-' and '_', such as my-broadcast"
        raise BadInput(msg)
    hidden = stem in sys.stdlib_module_names
    with suppress(ImportError, ValueError):
        module = find_spec(stem)
        hidden |= module is not None and Path(str(module.origin)).resolve() != Path(f"{stem}.py").resolve()
    if hidden:
        msg = f"new: a file {stem}.py would hide the installed module {stem!r}; choose another name"
        raise BadInput(msg)
