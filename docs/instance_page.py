"""The reference page of instances: what a bound function can read, from the classes themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any

from blocks import table

PAGE = "docs/reference/instances.md"
#: Instance of every class on which its attributes are shown.
EXAMPLES = (
    "genkautz:n=16,d=4",
    "lightpath:2x4",
    "wdm-ring:n=8,wavelengths=4",
    "servers:n=8,degree=2,traffic=dlrm",
    "tasks:moe,n=4,degree=2",
    "circuits:n=8,degree=2,rule=ocs-reconfig",
    "op-graph:model=transformer,layers=2,parts=4",
    "training:bert,gpus=256",
)
#: What names that every class has mean.
COMMON = {
    "n": "number of vertices, servers or columns",
    "spec": "the one-line spec that generates the instance",
    "family": "name of the family, also after modifiers; None for an instance of your own",
    "arguments": "",
    "parameters": "the same as pairs (name, value)",
    "hash": "",
}

INTRODUCTION = """# Instances

What an instance offers to a bound function, a formulation or a notebook. `oc.parse("genkautz:n=16,d=4")` returns one;
`opticoll sweep` and `BOUNDS` give one to every [bound function](../extend/bound.md). Instances never change.

```python
from fractions import Fraction

import opticoll as oc


@oc.bound_on("T")
def distance(instance: oc.Topology) -> Fraction:
    \"\"\"Lower bound on T: total hop distance of all pairs over total capacity.\"\"\"
    hops = instance.hops[:, instance.terminals]
    return Fraction(int(hops.sum())) / sum(map(Fraction, instance.capacity.tolist()))


graph = oc.parse("genkautz:n=16,d=4")
assert (graph.family, graph.arguments["d"]) == ("genkautz", 4)
assert distance(graph) == 7
```

Hop distances are floats that hold whole numbers, so that `inf` can mark a pair without a path; `Fraction(float)` and
`int(float)` are exact. A capacity such as 0.1 is the nearest float: `Fraction(repr(0.1))` is 1/10.

A function of `(instance, data)` also gets the object of the formulation, with its demand for example
(`data.demand_matrix` for the all-to-all formulations); [the page of the formulation](formulations.md) lists its
symbols.

## Every instance
"""

#: Words for annotations.
_TYPES = (
    (r"NDArray\[np\.float64\]|\bF64\b", "float array"),
    (r"NDArray\[np\.int64\]|\bI64\b", "int array"),
    (r"NDArray\[np\.bool_\]|\bMask\b", "bool array"),
    (r"tuple\[tuple\[str, Any\], \.\.\.\]", "tuple of pairs"),
    (r"tuple\[(\w+), \.\.\.\]", r"tuple of \1"),
    (r" \| None", " or None"),
)


def page() -> str:
    """Attributes of every class of instances with type, meaning and an example; arguments of every family."""
    from opticoll.instances import parse
    from opticoll.instances.topology import Instance

    first = parse(EXAMPLES[0])
    parts = [INTRODUCTION, *_table(Instance, COMMON, first, set()), ""]
    common = set(COMMON)
    shown: set[type] = set()
    for spec in EXAMPLES:
        instance = parse(spec)
        kind = type(instance)
        bases = [base for base in kind.__mro__[:0:-1] if base in shown]
        known = common | {name for base in bases for name in dict(_members(base))}
        summary = " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
        more = f" It has what every {bases[-1].__name__} has, and the following." if bases else ""
        parts += [f"## {kind.__name__}", "", f"{_plain(summary)}{more} The values are those of `{spec}`.", ""]
        parts += [*_table(kind, dict(_members(kind)), instance, known), ""]
        shown.add(kind)
    parts += _families()
    return "\n".join(parts)


def _members(kind: type) -> Iterator[tuple[str, str]]:
    """Public names of a class and their meanings: fields, properties, and methods that return something else."""
    from opticoll.docstrings import about_parameters

    about: dict[str, str] = {}
    for base in kind.__mro__[::-1]:
        for section in ("Parameters", "Attributes"):
            about |= about_parameters(inspect.getdoc(base) if base.__doc__ else "", section)
    if is_dataclass(kind):
        for field in fields(kind):
            yield field.name, about.get(field.name, "")
    for base in kind.__mro__[::-1]:
        for name, member in vars(base).items():
            described = isinstance(member, (property, cached_property)) or inspect.isfunction(member)
            if described and not name.startswith("_"):
                yield name, ""


def _table(kind: type, names: dict[str, str], instance: Any, known: set[str]) -> list[str]:
    rows = []
    for name, meaning in names.items():
        if name in known:
            continue
        member = inspect.getattr_static(kind, name, None)
        if inspect.isfunction(member):
            signature = inspect.signature(member)
            arguments = ", ".join(list(signature.parameters)[1:])
            shown, type_, here = f"{name}({arguments})", str(signature.return_annotation), ""
        else:
            shown, type_, here = name, _annotation(kind, name), _shown(getattr(instance, name))
        text = _plain(meaning or (inspect.getdoc(member) or "").split("\n\n")[0])
        rows.append((f"`{shown}`", _words(type_), text[:1].upper() + text[1:].rstrip("."), here))
    return table(("name", "type", "meaning", "here"), rows)


def _plain(text: str) -> str:
    """Text of a docstring in Markdown."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", " ".join(text.split()))
    return text.replace("``", "`").replace("|", "\\|")


def _annotation(kind: type, name: str) -> str:
    member = inspect.getattr_static(kind, name, None)
    function = getattr(member, "fget", None) or getattr(member, "func", None)
    if function is not None:
        return str(function.__annotations__.get("return", ""))
    found = next(base.__annotations__[name] for base in kind.__mro__ if name in vars(base).get("__annotations__", {}))
    return str(found)


def _words(annotation: str) -> str:
    for pattern, words in _TYPES:
        annotation = re.sub(pattern, words, annotation)
    return annotation.replace("|", "or")


def _shown(value: Any) -> str:
    """A value in a table: the shape of an array, the start of anything long."""
    if hasattr(value, "shape") and value.shape:
        return f"shape {'x'.join(map(str, value.shape))}"
    text = repr(str(value)) if isinstance(value, str) else str(value)
    return f"`{text if len(text) <= 40 else text[:36] + ' ...'}`"


def _families() -> list[str]:
    """Arguments of every family, which ``arguments`` holds, with types and defaults."""
    from opticoll.instances.spec import FAMILIES, load_families

    load_families()
    rows = []
    for name, family in sorted(FAMILIES.items()):
        if family.function.__module__.startswith("opticoll."):
            signature = inspect.signature(family.function)
            arguments = ", ".join(_argument(one) for one in signature.parameters.values())
            rows.append((f"`{name}`", signature.return_annotation, arguments))
    modified = "A modifier adds its own: `+fail=1,seed=2` adds `fail.links` and `fail.seed`, a second `fail#2.links`."
    heads = ("family", "class", "arguments")
    return ["## Arguments of the families", "", *table(heads, rows), "", modified, ""]


def _argument(parameter: inspect.Parameter) -> str:
    kind = str(parameter.annotation).replace(" | None", "")
    default = "" if parameter.default is parameter.empty else f" = {parameter.default}"
    return f"`{parameter.name}: {kind}{default}`"
