"""Descriptions of formulations, families, methods, solvers and studies: ``opticoll describe``."""

from __future__ import annotations

import inspect
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import NoneType
from typing import TYPE_CHECKING

import msgspec

from opticoll import plugins
from opticoll.analysis.bounds.instance_bounds import FLOW
from opticoll.analysis.catalog import ParameterRow, names, parameter_rows
from opticoll.analysis.problem.model_sizes import Sizes, example_sizes, model_sizes, solvers_for, takes
from opticoll.docstrings import about_parameters, without_sections
from opticoll.errors import BadInput, refuse
from opticoll.extensions import parts
from opticoll.formulations.model import forms_of, is_own, title_of
from opticoll.instances import Topology
from opticoll.nearest_names import nearest
from opticoll.plugin_faults import called
from opticoll.solvers.task import Fields, plain
from opticoll.types import Json

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.formulations import Formulation
    from opticoll.instances.spec import SpecPart


class Description(Fields, frozen=True, kw_only=True):
    """The description of a name.

    ``text`` is the docstring with the mathematics. ``methods`` and ``solvers`` are those that take a formulation,
    ``formulations`` those that a method or solver takes. ``sizes`` are the numbers of one instance. ``facts`` depend on
    the kind.
    """

    kind: str
    name: str
    title: str
    text: str = ""
    source: str | None = None
    example: str | None = None
    parameters: tuple[ParameterRow, ...] = ()
    forms: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    solvers: tuple[str, ...] = ()
    formulations: tuple[str, ...] = ()
    sizes: Sizes | None = None
    facts: Mapping[str, Json] = msgspec.field(default_factory=dict)


def describe(name: str, instance: str | None = None, settings: Mapping[str, object] | None = None) -> list[Description]:
    """Describe everything called ``name``.

    Parameters
    ----------
    name
        A formulation, instance family (or a spec of it), method, solver or study, or what an extension describes.
    instance
        For a formulation: an instance whose sizes and bounds are added; by default a small example.
    settings
        Parameters of the formulation on that instance.

    Raises
    ------
    BadInput
        For an unknown name, or sizes of something that is not a formulation.
    """
    either, remedy = (Description, NoneType), "a Description, or None"
    found = (called(of_kind, either, remedy, name) for of_kind in (*_KINDS, *parts("describe")))
    results: list[Description] = [one for one in found if one is not None]
    if not results:
        refuse("describe", f"unknown name {name!r}; {nearest(name, sorted({row['name'] for row in names()}))}")
    if instance is None and not settings:
        return results
    if results[0].kind != "formulation":
        refuse("describe", f"an instance and parameters are for formulations; {name!r} is a {results[0].kind}")
    from opticoll.formulations import formulation

    model = formulation(name)
    sizes = model_sizes(model, instance or model.example, settings or {})
    return [type(results[0])(**{**dict(results[0].items()), "sizes": sizes}), *results[1:]]


def _solved_by(takes: Sequence[type[Formulation]], method: str, item: object) -> str | None:
    """A command that solves one of the formulations by a method or solver; None if there is none."""
    if not takes:
        return None
    model = next((one for one in takes if plugins.file_of(one) is None), takes[0])
    options = plugins.options_for(model, item)
    return f"opticoll solve {model.name} '{model.example}' --method {method}{options}"


def _formulation(name: str) -> Description | None:
    from opticoll.formulations import Formulation, formulation
    from opticoll.formulations.registry import paper_of
    from opticoll.solvers.methods import methods_for

    try:
        model = formulation(name)
    except BadInput:
        return None
    example = f"opticoll solve {name} '{model.example}'{plugins.options_for(model)}"
    if model.example.startswith("mps:"):
        file = model.example.removeprefix("mps:")
        example = f"opticoll export {FLOW} {Formulation.example} --to {file} && opticoll solve {name} {model.example}"
    sizes = example_sizes(model)
    return Description(
        kind="formulation",
        name=name,
        title=title_of(model),
        text=(without_sections(inspect.cleandoc(model.__doc__ or "")) if is_own(model) else "")
        or _text(model, of_module=True),
        source=", ".join(filter(None, (paper_of(model), model.where))),
        example=example,
        parameters=tuple(parameter_rows(model.parameters)),
        forms=forms_of(model),
        methods=tuple(sorted(methods_for(model))),
        solvers=solvers_for(model),
        sizes=sizes,
        facts={
            "class": model.problem,
            "sense": model.sense,
            "needs": None if model._needs is None else model._needs.formulation,
        },
    )


def _family(name: str) -> Description | None:
    """A family, population or modifier; for a complete spec, the family with facts about the instance."""
    from opticoll.instances import parse
    from opticoll.instances.spec import PARTS, load_families

    load_families()
    head = name.split(":", 1)[0].split("+", 1)[0]
    for kind, known in PARTS.items():
        one = known.get(name.removeprefix("+") if kind == "modifier" else head)
        if one is None:
            continue
        facts: dict[str, Json] = {}
        if name != head and kind == "family":
            instance = parse(name)
            facts = {"instance": instance.spec, "hash": instance.hash, "n": instance.n}
            if isinstance(instance, Topology):
                facts |= {
                    "arcs": instance.arcs,
                    "ranks": instance.num_ranks,
                    "diameter": instance.diameter,
                    "connected": instance.connected,
                    "largest out-degree": int(instance.out_degree.max(initial=0)),
                }
        return _of_part(kind, one, facts)
    return None


def _solving(family: str) -> str:
    """The first formulation whose example is of a family; a flow for families that none has for an example."""
    from opticoll.formulations import Formulation, formulations

    ours = (model for _, model in sorted(formulations().items()) if model.example != Formulation.example)
    return next((model.name for model in ours if model.example.startswith(f"{family}:")), FLOW)


def _of_part(kind: str, one: SpecPart, facts: dict[str, Json]) -> Description:
    function = one.function
    about = about_parameters(inspect.getdoc(function))
    parameters = list(inspect.signature(function).parameters.values())[1 if kind == "modifier" else 0 :]
    example = f"opticoll solve {_solving(one.name)} '{one.example}'"
    if one.name == "circuits":
        example = f"opticoll iteration vgg '{one.example}'"
    if kind == "population":
        example = f"opticoll sweep {FLOW} --bound distance --over '{one.example}'"
    return Description(
        kind=kind,
        name=one.name,
        title=one.summary,
        text=without_sections((inspect.getdoc(function) or "").partition("\n")[2]),
        source=one.source or None,
        example=example + plugins.options_for(function),
        parameters=tuple(
            ParameterRow(
                name=p.name,
                type=str(getattr(p.annotation, "__name__", p.annotation)).rpartition(".")[2],
                default=None if p.default is p.empty else plain(p.default),
                required=p.default is p.empty,
                help=about.get(p.name, ""),
            )
            for p in parameters
        ),
        facts=facts,
    )


def _method(name: str) -> Description | None:
    from opticoll.formulations import formulations
    from opticoll.solvers.methods import method_named

    method = method_named(name)
    if method is None:
        return None
    takes = [model for model in formulations().values() if method.applies(model)]
    does = method.run or method.reformulate or method.applies
    return Description(
        kind="method",
        name=name,
        title=method.title,
        text="\n\n".join([method.summary, _text(does)]),
        example=_solved_by(takes, name, does),
        parameters=tuple(parameter_rows(method.parameters)),
        formulations=tuple(model.name for model in takes),
    )


def _solver(name: str) -> Description | None:
    from opticoll.formulations import formulations
    from opticoll.solvers.adapters import adapters
    from opticoll.solvers.adapters.command_line import CommandLine, file_of
    from opticoll.solvers.process.isolation import probe

    adapter = adapters().get(name)
    if adapter is None:
        return None
    able = adapter.capabilities
    taken = [model for model in formulations().values() if takes(able, model)]
    licence = probe(name)
    example = _solved_by(taken, name, type(adapter))
    text = _text(type(adapter))
    if isinstance(adapter, CommandLine):
        command = adapter.configuration.command
        text = f"Runs a command, and reads the solution file that it writes:\n\n    {command}"
        if example is not None and (file := file_of(name)) is not None:
            example += f" --solver-config {shlex.quote(os.path.relpath(file))}"
    return Description(
        kind="solver",
        name=name,
        title=adapter.title,
        text=text,
        example=example,
        formulations=tuple(model.name for model in taken),
        facts={
            "algorithm": adapter.algorithm,
            "capabilities": asdict(able),
            "installed": adapter.installed(),
            "version": adapter.version(),
            "usable": licence.usable,
            "licence": licence.state,
            "install": adapter.install or f"pip install {adapter.distribution}",
        },
    )


def _study(name: str) -> Description | None:
    from opticoll.analysis.study.study_file import header, studies, tasks

    path = studies().get(name)
    if path is None:
        return None
    cells = tasks(path)
    return Description(
        kind="study",
        name=name,
        title=header(path)[1],
        text=path.read_text(encoding="utf-8"),
        example=f"opticoll study {name}",
        formulations=tuple(sorted({str(task.formulation) for task in cells})),
        methods=tuple(sorted({task.method for task in cells})),
        facts={"cells": len(cells), "instances": len({str(task.instance) for task in cells}), "file": str(path)},
    )


_KINDS = (_formulation, _family, _method, _solver, _study)


def _text(item: Callable[..., object], *, of_module: bool = False) -> str:
    """The docstring of a function or class without its sections; that of its module on request, or if it has none.

    The module of a plug-in comes first, as the file is usually about one thing.
    """
    of_file = inspect.cleandoc(sys.modules[item.__module__].__doc__ or "")
    if of_module or (of_file and plugins.file_of(item) is not None):
        return of_file
    return without_sections(inspect.cleandoc(item.__doc__ or "")) or of_file
