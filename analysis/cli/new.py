"""The command ``new``, which writes an example plug-in and its test."""

from __future__ import annotations

import keyword
import os
import re
import string
import sys
from contextlib import suppress
from pathlib import Path
from shlex import quote

import click

from opticoll.errors import refuse
from opticoll.extensions import shipped

# Plug-ins ------------------------------------------------------------------------------------------------------

_TEMPLATES = Path(__file__).parents[1] / "templates"
#: Kinds of examples that `opticoll new` writes, with the command that uses one; their templates are package data.
USES = {
    "formulation": "solve own.{name} hypercube:3 --plugin {file}",
    "family": "solve alltoall.master {name}:4 --plugin {file}",
    "solver": "solve alltoall.master ring:6 --method {name} --plugin {file}",
    "method": "solve alltoall.master ring:6 --method {name} --plugin {file}",
    "bound": "bounds ring:6 --plugin {file}",
    **{kind: use for one in shipped() for kind, use in one.examples.items()},
}


@click.command()
@click.argument("kind", metavar="KIND", type=click.Choice(list(USES)))
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
    use = USES[kind].format(name=stem.replace("_", "-") if kind == "family" else name, file=file)
    click.echo(f"test it: pytest {test}\nuse it:  opticoll {use}", err=True)
    return 0


def write_example(kind: str, name: str, folder: Path) -> list[Path]:
    """Write the example of a kind under a name, and its test; write nothing if one of the files exists.

    Raises
    ------
    BadInput
        If the name cannot be used, or the files cannot be written.
    """
    _refuse_name(name)
    stem = name.replace("-", "_")
    parts = re.split("[-_]", name)
    words = {"name": name, "stem": stem, "dashed": "-".join(parts), "title": " ".join(parts).capitalize()}
    words["class_name"] = "".join(part.capitalize() for part in parts)
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        refuse("new", f"the folder {folder} does not exist or cannot be written; create it first")
    place = next((one.templates[0] for one in shipped() if kind in one.examples), _TEMPLATES)
    templates = {
        folder / f"{stem}.py": place / f"{kind}.txt",
        folder / f"test_{stem}.py": place / f"test_{kind}.txt",
    }
    for path in templates:
        if path.exists():
            refuse("new", f"{path} already exists; choose another name or --dir")
    for path, template in templates.items():
        text = string.Template(template.read_text(encoding="utf-8")).substitute(words)
        path.write_text(text, encoding="utf-8")
    return list(templates)


def _refuse_name(name: str) -> None:
    """Refuse a name that is not a valid module name, or would hide another module."""
    from importlib.util import find_spec

    stem = name.replace("-", "_")
    if keyword.iskeyword(stem) or keyword.iskeyword(stem.capitalize()):
        refuse("new", f"{name!r} cannot be used: it is a keyword of Python; choose another name")
    if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name):
        refuse("new", f"{name!r} cannot be used; write lower-case letters, digits, '-' and '_', such as my-broadcast")
    hidden = stem in sys.stdlib_module_names
    with suppress(ImportError, ValueError):
        module = find_spec(stem)
        hidden |= module is not None and Path(str(module.origin)).resolve() != Path(f"{stem}.py").resolve()
    if hidden:
        refuse("new", f"a file {stem}.py would hide the installed module {stem!r}; choose another name")
