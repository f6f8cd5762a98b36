"""What a wrong word on the command line probably meant, in the words of the commands."""

from __future__ import annotations

from difflib import get_close_matches

import click

from opticoll.nearest_names import nearest

#: Words of other programs for options, where a command has the option.
_OPTIONS = {
    **dict.fromkeys(("--solver", "--algorithm", "--backend", "--engine", "-m", "-s"), "--method"),
    **dict.fromkeys(("--timeout", "--time", "--max-time", "--limit", "--timelimit", "-t"), "--time-limit"),
    **dict.fromkeys(("--memory", "--mem", "--max-memory"), "--memory-limit"),
    **dict.fromkeys(("--tolerance", "--eps", "--epsilon", "--precision", "--gap", "--mip-gap"), "--tol"),
    **dict.fromkeys(("--verbose", "--debug", "--progress", "-v"), "--log"),
    **dict.fromkeys(("--parallel", "--workers", "--processes", "--cores", "-j", "-n"), "--jobs"),
    **dict.fromkeys(("--param", "--parameter", "--params", "--option", "--arg", "-p", "-D"), "--set"),
    **dict.fromkeys(("--dry-run", "--no-save", "--nostore"), "--no-store"),
    **dict.fromkeys(("--db", "--database", "--results", "--results-dir"), "--store"),
    **dict.fromkeys(("--explain", "--bottleneck", "--reason"), "--why"),
    **dict.fromkeys(("--model", "--layer"), "--form"),
    **dict.fromkeys(("--traffic", "--matrix", "--tm"), "--demand"),
}
#: Options for a file to write, the likeliest first.
_WRITTEN = ("--out", "--to", "--solution", "--schedule", "--csv")
#: Words of other programs for commands.
_COMMANDS = {
    **dict.fromkeys(("run", "optimize", "optimise", "opt"), "solve"),
    **dict.fromkeys(("plot", "draw", "figures"), "figure"),
    **dict.fromkeys(("verify", "validate", "test"), "check"),
    **dict.fromkeys(("show", "query", "sql", "store", "runs"), "results"),
    **dict.fromkeys(("info", "doc", "docs", "man", "explain"), "describe"),
    **dict.fromkeys(("ls", "formulations", "instances", "solvers", "methods", "studies", "figures"), "list"),
    **dict.fromkeys(("notebook", "notebooks", "jupyter"), "lab"),
    **dict.fromkeys(("write", "save", "mps"), "export"),
    **dict.fromkeys(("batch", "experiment", "experiments"), "study"),
    **dict.fromkeys(("bound", "lower-bound"), "bounds"),
    **dict.fromkeys(("claim", "papers", "ledger"), "claims"),
    "version": "--version",
}


def explained(error: click.UsageError) -> str:
    """The message of an error, with what was probably meant."""
    message = error.format_message().rstrip(".")
    command = None if error.ctx is None else error.ctx.command
    if command is None:
        return message
    if isinstance(error, click.NoSuchOption):
        hint = _for_option(error.option_name, command)
        return f"No such option {error.option_name!r}; {hint}" if hint else message
    if isinstance(command, click.Group) and message.startswith("No such command"):
        word = message.split("'")[1]
        return f"No such command {word!r}; {_for_command(word, command)}"
    if message.startswith("Got unexpected extra argument"):
        extra = message.partition("(")[2].rstrip(")")
        if "=" in extra and "--set" in _options(command):
            return f"{message}; write --set {extra}"
        if _expanded(extra, str(error.ctx.params.get("instance") if error.ctx else None)):
            several = "several instances are for `opticoll sweep`, a study or `opticoll bounds`"
            return f"{message}; quote braces, as in 'ring:{{4,8}}'; {several}"
        takes = " ".join(one.make_metavar(error.ctx) for one in command.params if isinstance(one, click.Argument))  # type: ignore[arg-type]
        return f"{message}; this command takes {takes or 'none'}"
    return message


def _expanded(extra: str, instance: str) -> bool:
    """Whether further words are specs of the family of the first, as a shell makes them of ``ring:{3..8}``."""
    from opticoll.instances.spec import family_name, is_spec

    return is_spec(instance) and all(family_name(word) == family_name(instance) for word in extra.split())


def _options(command: click.Command) -> list[str]:
    return [word for one in command.params if isinstance(one, click.Option) for word in one.opts]


def _having(option: str, group: click.Group) -> str:
    """The commands that have an option, in words, or nothing."""
    return ", ".join(sorted(name for name, one in group.commands.items() if option in _options(one)))


def _for_option(word: str, command: click.Command) -> str | None:
    own = _options(command)
    meant = _OPTIONS.get(word)
    if meant in own:
        return f"write {meant}"
    of_instance = _of_instance(word.lstrip("-"), command)
    if of_instance is not None and word not in own:
        return of_instance
    plain = f"{word.lstrip('-')}="
    if any(plain in (one.metavar or "") for one in command.params if isinstance(one, click.Argument)):
        return f"write {plain}VALUE"
    if isinstance(command, click.Group):
        having = _having(meant or word, command)
        return f"{meant or word} is an option of {having}: write it after that word" if having else None
    if word in ("--output", "--out", "--file", "--save", "-o", "-f"):
        written = [option for option in _WRITTEN if option in own]
        return f"files are written by {', '.join(written)}" if written else None
    if word == "--format" and "--json" in own:
        return "write --json"
    if "--set" in own and not get_close_matches(word, own, cutoff=0.85):
        name = word.lstrip("-").replace("-", "_")
        return f"a parameter of the model or method is written --set {name}=VALUE"
    return None


def _of_instance(name: str, command: click.Command) -> str | None:
    """How the instance of a command states a property: an option of its file, or a modifier; None for others."""
    from opticoll.formulations import formulations
    from opticoll.instances.spec import MODIFIERS, load_families
    from opticoll.solvers.plan import OF_TOPOLOGY

    if not any(one.name == "instance" for one in command.params):
        return None
    load_families()
    spec = OF_TOPOLOGY.get("unit" if name == "bandwidth" else name) or f"INSTANCE+{name}=VALUE" * (name in MODIFIERS)
    parameters = {one.name for model in formulations().values() for one in model.parameters}
    other = f", or --set {name}=VALUE if the formulation has this parameter" if name in parameters else ""
    return f"the instance states it: {spec}{other}" if spec else None


def _for_command(word: str, group: click.Group) -> str:
    if word == "help":
        return "write --help, alone or behind a command, as in `opticoll solve --help`"
    having = _having(f"--{word}", group)
    if word in _COMMANDS and _COMMANDS[word].lstrip("-") in {*group.commands, word}:
        return f"write `opticoll {_COMMANDS[word]}`"
    if having:
        return f"--{word} is an option of {having}"
    return nearest(word, list(group.commands))
