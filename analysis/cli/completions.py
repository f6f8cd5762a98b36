"""Completion of names in the shell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable


# completion of names: called by the shell while the user types --------------------------------------------------------


def complete_formulations(context: click.Context, parameter: click.Parameter, start: str) -> list[str]:
    """Names of formulations."""
    from opticoll.formulations import formulations

    return starting_with(formulations(), start)


def complete_instances(context: click.Context, parameter: click.Parameter, start: str) -> list[str]:
    """Names of families, for ``--over`` also of populations; after a colon, the family's example."""
    from opticoll.instances.spec import FAMILIES, POPULATIONS, load_families

    load_families()
    examples = {name: family.example for name, family in FAMILIES.items()}
    if parameter.name == "over":
        examples |= {name: population.example for name, population in POPULATIONS.items()}
    return starting_with(examples.values() if ":" in start else examples, start)


def complete_methods(context: click.Context, parameter: click.Parameter, start: str) -> list[str]:
    """Solvers, and the methods that take the formulation on the command line."""
    from opticoll.errors import BadInput
    from opticoll.formulations import formulation
    from opticoll.solvers.adapters import adapters
    from opticoll.solvers.methods import methods_for
    from opticoll.solvers.methods.index import MODULES

    try:
        methods = list(methods_for(formulation(_formulation_of(context))))
    except BadInput:
        methods = list(MODULES)
    return starting_with(["auto", *methods, *adapters()], start)


def complete_settings(context: click.Context, parameter: click.Parameter, start: str) -> list[str]:
    """Parameters of the formulation on the command line, with their choices."""
    from opticoll.errors import BadInput
    from opticoll.formulations import formulation

    try:
        known = formulation(_formulation_of(context)).parameters
    except BadInput:
        return []
    return starting_with([f"{p.name}={value}" for p in known for value in p.choices or ("",)], start)


def complete_studies(context: click.Context, parameter: click.Parameter, start: str) -> list[str]:
    """Names of studies, and TOML files."""
    from opticoll.analysis.study.study_file import studies

    return starting_with([*studies(), *map(str, Path().glob("*.toml"))], start)


def complete_names(context: click.Context, parameter: click.Parameter, start: str) -> list[str]:
    """Every name that ``describe`` knows."""
    from opticoll.analysis.catalog import names

    return starting_with({row["name"] for row in names()}, start)


def _formulation_of(context: click.Context) -> str:
    """The formulation typed so far; an option without its value leaves the arguments unparsed."""
    return str(context.params.get("formulation") or next(iter(context.args), ""))


def starting_with(names: Iterable[str], start: str) -> list[str]:
    """Those of ``names`` that begin with what was typed."""
    return sorted(name for name in names if name.startswith(start))
