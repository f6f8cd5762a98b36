"""One-line instance specs ``family:arguments+modifier=arguments``: registry, parser, canonical form, and products.

A family or a modifier is a decorated function whose signature defines its arguments: integers, floats, booleans,
strings and sizes (``3x4``), positional or ``key=value``. The bare name of a boolean argument sets it
(``ring:8,directed``). In studies and sweeps ``ring:{4,8}`` stands for ``ring:4`` and ``ring:8``, and a population such
as ``all-digraphs:n=5,d=2`` for all its members; see :func:`expand`.
"""

from __future__ import annotations

import inspect
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, TypeVar

from opticoll import plugins
from opticoll.arguments import read_text
from opticoll.errors import BadInput, BadSpec, refuse
from opticoll.nearest_names import nearest
from opticoll.plugin_faults import called

if TYPE_CHECKING:
    from fractions import Fraction

    from opticoll.instances.topology import I64, Instance, Topology
    from opticoll.types import Json

    #: A generator of instances, a function of a population, and a change of a topology, with their arguments.
    Build = TypeVar("Build", bound=Callable[..., Instance])
    Members = TypeVar("Members", bound=Callable[..., list[str]])
    Apply = TypeVar("Apply", bound=Callable[..., Topology])


def modules_of(package: str) -> list[str]:
    """Dotted names of the modules directly inside ``package``, sorted; only the package itself is imported."""
    return [f"{package}.{module.name}" for module in iter_modules(import_module(package).__path__) if not module.ispkg]


def contributed(modules: Iterable[str], name: str) -> Iterator[Any]:
    """Objects that ``modules`` define under ``name``, in order.

    A tuple or list contributes its items; a module without the name contributes nothing.
    """
    for module in modules:
        value = getattr(import_module(module), name, None)
        if isinstance(value, (tuple, list)):
            yield from value
        elif value is not None:
            yield value


class Dimensions(tuple[int, ...]):
    """A tuple of sizes, printed as ``3x4``."""

    __slots__ = ()

    @classmethod
    def read(cls, text: str) -> Dimensions:
        """Sizes that are written ``3x4``.

        Raises
        ------
        ValueError
            For anything else.
        """
        if not re.fullmatch(r"\d{1,9}(x\d{1,9})*", text, re.ASCII):
            raise ValueError(text)
        return cls(map(int, text.split("x")))

    def __str__(self) -> str:
        return "x".join(map(str, self))


@dataclass(frozen=True)
class SpecPart:
    """What a name in a spec stands for: a family, a modifier or a population (see the functions that register them)."""

    name: str
    function: Callable[..., Any]
    example: str
    summary: str
    source: str = ""
    rest: bool = False
    automorphisms: Callable[..., Iterable[I64]] | None = None
    closed_form: Callable[..., Fraction | None] | None = None

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """What the function takes, by name."""
        return inspect.signature(self.function).parameters


#: Modules of families in which a name is sought first: all others, some of which import much, only if it is in none.
_FIRST = ("rings_and_grids", "modifiers", "low_diameter", "regular_graphs", "pods")
FAMILIES: dict[str, SpecPart] = {}
POPULATIONS: dict[str, SpecPart] = {}
MODIFIERS: dict[str, SpecPart] = {}
#: All registries by what they hold.
_RETURN = "oc.Topology(n, tail, head, capacity)"
PARTS = {"family": FAMILIES, "modifier": MODIFIERS, "population": POPULATIONS}


def family(
    name: str,
    *,
    example: str,
    source: str,
    rest: bool = False,
    automorphisms: Callable[..., Iterable[I64]] | None = None,
    closed_form: Callable[..., Fraction | None] | None = None,
) -> Callable[[Build], Build]:
    """Register a generator under ``name``; the first line of its docstring becomes the summary.

    Parameters
    ----------
    name, example, source
        Name in specs, a spec that parses, and the publication that defines the family.
    rest
        Whether to pass everything after the colon as one string (file names).
    automorphisms
        Called with the generator's arguments by keyword; yields permutations of the ``n`` vertices, shape ``(n,)``,
        that are expected to be automorphisms. They are proposals: :mod:`opticoll.instances.symmetry` verifies each.
    closed_form
        Called with the generator's arguments by keyword; returns the minimum time T of the uniform all-to-all (one
        shard per ordered pair, links of capacity 1) as an exact fraction, or None where no formula applies.

    Raises
    ------
    BadInput
        If the name is in use, an argument has no annotation or one of an unsupported type, or ``automorphisms`` or
        ``closed_form`` does not take all arguments.
    """

    def register(build: Build) -> Build:
        _check_definition(f"family {name!r}", name, build, FAMILIES)
        for role, function in (("automorphisms", automorphisms), ("closed_form", closed_form)):
            if function is not None:
                _check_takes(f"family {name!r}: {role}", function, inspect.signature(build).parameters)
        FAMILIES[name] = SpecPart(name, build, example, _first_line(build), source, rest, automorphisms, closed_form)
        return build

    return register


def population(name: str, *, example: str, source: str) -> Callable[[Members], Members]:
    """Register a population under ``name``: a function of the spec's arguments that returns the members' specs.

    No two members may be isomorphic.
    """

    def register(members: Members) -> Members:
        POPULATIONS[name] = SpecPart(name, members, example, _first_line(members), source)
        return members

    return register


def modifier(name: str, *, example: str) -> Callable[[Apply], Apply]:
    """Register a modifier under ``name``: a function of a topology and the spec's arguments."""

    def register(apply: Apply) -> Apply:
        _check_definition(f"modifier {name!r}", name, apply, MODIFIERS, skip=1)
        MODIFIERS[name] = SpecPart(name, apply, example, _first_line(apply))
        return apply

    return register


def _number_or_part(text: str) -> int | str:
    """A whole number; or the name of a part, with its kind before a colon."""
    return text if re.fullmatch(r"[a-z]+:\S+", text) else int(read_text(text, int))


#: Types of arguments by the names in annotations, how each is read, and what it is called in messages.
_KINDS: dict[str, tuple[Any, str]] = {
    "int": (int, "a whole number of at most 18 digits"),
    "float": (float, "a finite number"),
    "bool": (bool, "true or false"),
    "str": (str, "a string"),
    "Dimensions": (Dimensions.read, "sizes such as 3x4"),
    "int | str": (_number_or_part, "a whole number, or a part such as switch:0.5"),
}


def _check_definition(
    where: str, name: str, function: Callable[..., Any], known: Mapping[str, SpecPart], skip: int = 0
) -> None:
    """Refuse a name that is already in use, and arguments that a spec cannot express."""
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        refuse(where, "a name consists of lower-case letters, digits and '-', and begins with a letter")
    if name in known:
        other = known[name].function
        if other.__module__ != function.__module__ and _file(other) != _file(function):
            refuse(where, f"the name is already used in {_file(other)}; choose another name")
    for parameter in list(inspect.signature(function).parameters.values())[skip:]:
        if _kind(parameter) not in _KINDS or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            refuse(where, f"argument {parameter.name!r} must be annotated as one of {', '.join(_KINDS)}")


def _check_takes(where: str, function: Callable[..., Any], names: Iterable[str]) -> None:
    """Refuse anything that cannot be called with all arguments of a family by keyword."""
    try:
        inspect.signature(function).bind(**dict.fromkeys(names))
    except (TypeError, ValueError) as error:
        given = ", ".join(names)
        msg = f"{where} must be a function of all arguments of the family, called by name: {given} ({error})"
        raise BadInput(msg) from error


def _file(function: Callable[..., Any]) -> str:
    return function.__code__.co_filename


def registered_by(module: str) -> list[tuple[dict[str, SpecPart], str]]:
    """Families and modifiers that a module has registered, each as its registry and name."""
    registries = (FAMILIES, MODIFIERS)
    return [(known, name) for known in registries for name, one in known.items() if one.function.__module__ == module]


def forget(module: str) -> None:
    """Remove the families and modifiers that a module has registered."""
    for registry, name in registered_by(module):
        del registry[name]


def modules_behind(spec: str) -> set[str]:
    """Modules that define the family and the modifiers of a canonical spec."""
    name, _, rest = spec.partition(":")
    name, *early = name.split("+")
    changes = [*early, *(key for key, _ in _split_modifiers(rest)[1])]
    families = {FAMILIES[name].function.__module__} if name in FAMILIES else set()
    return families | {MODIFIERS[key].function.__module__ for key in changes if key in MODIFIERS}


def _first_line(function: Callable[..., Any]) -> str:
    return (inspect.getdoc(function) or "").split("\n", 1)[0].rstrip(".")


def _arguments(parameters: Mapping[str, inspect.Parameter], text: str, where: str) -> dict[str, Any]:
    """Parse ``text`` into typed values for the parameters of a signature."""
    names = list(parameters)
    values: dict[str, Any] = {}
    position = 0
    for raw in text.split(",") if text else []:
        item = raw.strip()
        key, has_value, value = item.partition("=")
        if not item:
            refuse(where, "an argument is empty; separate arguments with single commas", BadSpec)
        if has_value:
            name = key.strip()
            if name not in parameters:
                load_families()  # the modifiers
                hint = f"write +{name}={value} behind the arguments" if name in MODIFIERS else nearest(name, names)
                refuse(where, f"unknown argument {name!r}; {hint}", BadSpec)
        elif item in parameters and _kind(parameters[item]) == "bool":
            name, value = item, "true"
        else:
            while position < len(names) and names[position] in values:
                position += 1
            if position == len(names):
                refuse(where, f"too many arguments at {item!r}; known arguments: {', '.join(names) or 'none'}", BadSpec)
            name, value = names[position], item
        if name in values:
            refuse(where, f"argument {name!r} is given twice; write it once", BadSpec)
        values[name] = _typed(parameters[name], value.strip(), f"{where}: argument {name!r}")
    missing = [p.name for p in parameters.values() if p.default is p.empty and p.name not in values]
    if missing:
        refuse(where, f"argument {missing[0]!r} is missing; write {missing[0]}=VALUE", BadSpec)
    return values


def _kind(parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return text.removesuffix(" | None").rpartition(".")[2]


def _typed(parameter: inspect.Parameter, text: str, where: str) -> Any:
    kind, described = _KINDS[_kind(parameter)]
    try:
        value = read_text(text, kind)
        if isinstance(value, float) and math.isinf(value):
            raise ValueError(text)
    except ValueError:
        span = re.fullmatch(r"(\d+)\.\.(\d+)", text, re.ASCII) if kind is int else None
        hint = "" if span is None else f"; a range, where one is taken, is written {{{text}}}"
        msg = f"{where} must be {described}, not {text!r}{hint}"
        raise BadSpec(msg) from None
    return value


def _printed(parameters: Mapping[str, inspect.Parameter], values: dict[str, Any]) -> str:
    """Values in canonical form: a single required first argument without its key, others as key=value, no defaults."""
    parts = []
    required = [p for p in parameters.values() if p.default is p.empty]
    for parameter in parameters.values():
        if parameter.name not in values:
            continue
        value = values[parameter.name]
        if parameter.default is not parameter.empty and value == parameter.default:
            continue
        if _kind(parameter) == "bool" and value:
            parts.append(parameter.name)
        elif _kind(parameter) == "bool":
            parts.append(f"{parameter.name}=false")
        elif len(required) == 1 and parameter is required[0] and not parts and _leads(parameters, parameter):
            parts.append(_text(value))
        else:
            parts.append(f"{parameter.name}={_text(value)}")
    return ",".join(parts)


def _complete(parameters: Mapping[str, inspect.Parameter], values: dict[str, Any]) -> dict[str, Any]:
    """Values of all parameters, with defaults for those not given."""
    return {name: values.get(name, p.default) for name, p in parameters.items()}


def _leads(parameters: Mapping[str, inspect.Parameter], parameter: inspect.Parameter) -> bool:
    return next(iter(parameters)) == parameter.name


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


@cache
def load_families() -> None:
    """Import every module of :mod:`opticoll.instances.families`, which fills the registry."""
    for module in modules_of("opticoll.instances.families"):
        import_module(module)


def is_spec(text: str) -> bool:
    """Whether a text begins with the name of a family; it may still have wrong arguments."""
    return _named_in(FAMILIES, family_name(text)) is not None


def family_name(spec: str) -> str:
    """The name with which a spec begins, before arguments and modifiers."""
    return re.split("[:+]", spec, maxsplit=1)[0]


def family_of(instance: Instance) -> tuple[SpecPart, dict[str, Json]] | None:
    """Family named by the spec of ``instance``, and its recorded arguments.

    Modifiers are ignored: the caller must check whether the instance is still the one that the family generates.

    Returns
    -------
    family, arguments
        None if the spec names no family, or an argument is not recorded.
    """
    known = _named_in(FAMILIES, family_name(instance.spec))
    recorded = dict(instance.parameters)
    names = known.parameters if known else {}
    if known is None or not recorded.keys() >= names.keys():
        return None
    return known, {name: recorded[name] for name in names}


def _named_in(registry: dict[str, SpecPart], name: str) -> SpecPart | None:
    """Look up an entry of a registry, loading what may define it in turn, plug-ins last; None if there is none."""
    for module in _FIRST:
        if name in registry:
            return registry[name]
        import_module(f"opticoll.instances.families.{module}")
    if name not in registry:
        load_families()
    if name not in registry:
        plugins.load_installed()
        plugins.load_known()
    return registry.get(name)


def parse(spec: str) -> Any:
    """Build the instance that a spec describes.

    The spec of the result is canonical: arguments in the order of the family, without defaults.

    Returns
    -------
    Instance
        A :class:`~opticoll.instances.topology.Topology` or a subclass of it; for the family ``servers`` a
        :class:`~opticoll.instances.servers.ServerPool`, which has no arcs. Type checkers see Any: the spec decides.

    Raises
    ------
    BadSpec
        For an unknown family, modifier or argument, or a value of the wrong type.
    BadInput
        For arguments out of range (n=0, an impossible degree, …).
    BadFile
        For a file that cannot be read.
    """
    from opticoll.instances.topology import Instance, Topology

    if not isinstance(spec, str):
        msg = f"instance: needs a spec such as 'ring:8', not {type(spec).__name__}; read objects by oc.topology"
        raise BadSpec(msg)
    if len(spec) > 4096:
        refuse("instance spec", f"{len(spec)} characters exceed the limit of 4096; write a shorter spec", BadSpec)
    head, colon, rest = spec.strip().partition(":")
    name, plus, tail = head.partition("+")
    if plus:  # a family without arguments, followed by modifiers
        rest, name = f"+{tail}{colon}{rest}", name.strip()
    known = _family_of(spec, name, rest)
    base, changes = _split_modifiers(rest)
    parameters = known.parameters
    if known.rest:
        values = {next(iter(parameters)): base}
        canonical = f"{name}:{base}"
    else:
        values = _arguments(parameters, base, f"instance {spec!r}")
        text = _printed(parameters, values)
        canonical = f"{name}:{text}" if text else name
    instance = _named(called(known.function, Instance, _RETURN, **values), canonical, _complete(parameters, values))
    for key, text in changes:
        change = _named_in(MODIFIERS, key)
        if change is None:
            refuse(f"instance {spec!r}", f"unknown modifier {key!r}; {nearest(key, MODIFIERS)}", BadSpec)
        if not isinstance(instance, Topology):
            refuse(f"instance {spec!r}", f"modifier {key!r} needs arcs, and {name!r} has no arcs; omit it")
        wanted = dict(list(change.parameters.items())[1:])
        settings = _arguments(wanted, text, f"instance {spec!r}, modifier {key!r}")
        printed = _printed(wanted, settings)
        canonical = f"{canonical}+{key}={printed}" if printed else f"{canonical}+{key}"
        complete = _complete(wanted, settings)
        earlier = dict(instance.parameters)
        times = sum(k.partition(".")[0].partition("#")[0] == key for k in earlier) // max(len(complete), 1)
        prefix = key if not times else f"{key}#{times + 1}"  # +fail=1+fail=2: record both
        merged = {**earlier, **{f"{prefix}.{k}": v for k, v in complete.items()}}
        instance = _named(called(change.function, Topology, _RETURN, instance, **settings), canonical, merged)
    return instance


def _family_of(spec: str, name: str, rest: str) -> SpecPart:
    """The family that a spec names; refuse a spec of several instances, and one that names none."""
    known: SpecPart | None = _named_in(FAMILIES, name)
    if known is None and name == "custom":
        msg = (
            f"instance {spec!r}: names a topology made in Python, which a spec cannot rebuild; write it with "
            "oc.save_topology(topology, 'net.json') and give file:net.json"
        )
        raise BadSpec(msg)
    if known is not None and not known.rest and re.search(r"\{[^{}]+\}", rest):
        msg = (
            f"instance {spec!r}: braces stand for several instances; give one, or use them in `opticoll sweep`, "
            "`opticoll conjecture`, a study or `opticoll bounds`"
        )
        raise BadSpec(msg)
    if name in POPULATIONS:
        msg = (
            f"instance {spec!r}: {name} is a set of instances; use it in `opticoll sweep`, a study or `opticoll bounds`"
        )
        raise BadSpec(msg)
    if known is None:
        remedy = nearest(name, [*FAMILIES, *POPULATIONS])
        path = re.split(r",\w+=|\+", spec.strip(), maxsplit=1)[0]
        if Path(path).is_file():
            program = re.search(r"\.(mps|lp)(\.gz)?$", path, re.IGNORECASE)
            remedy = f"{path} is a file: write {'mps' if program else 'file'}:{spec.strip()}"
        refuse(f"instance {spec!r}", f"unknown family {name!r}; {remedy}", BadSpec)
    return known


def _split_modifiers(text: str) -> tuple[str, list[tuple[str, str]]]:
    """``8,directed+fail=3,seed=0+host=2.0`` -> ``8,directed`` and the modifiers with their arguments."""
    pieces = re.split(r"\+(?=[a-z][a-z-]*(?:=|\+|$))", text)
    changes = []
    for piece in pieces[1:]:
        key, _, value = piece.partition("=")
        changes.append((key, value))
    return pieces[0], changes


def _named(made: Instance, spec: str, values: dict[str, Any]) -> Instance:
    instance = made.renamed(spec, values)
    instance._put(family=family_name(spec), _parsed=spec)
    return instance


def is_as_parsed(instance: Instance) -> bool:
    """Whether an instance is the one that its spec describes."""
    return instance._parsed == instance.spec or bool(parse(instance.spec) == instance)


#: Maximum number of specs in one product.
MOST = 10_000

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(\d{1,9}))?")


def expand(text: str) -> list[str]:
    """Expand ``text`` into the specs that it stands for, in order.

    ``{a,b,c}`` stands for each of its items, ``{4..16}`` and ``{4..16..4}`` for the numbers of a range, both ends
    included; several braces stand for every combination, the last varying fastest. A population stands for its
    members; modifiers after it apply to each.

    Raises
    ------
    BadSpec
        For unbalanced or empty braces, for too many combinations, or for invalid arguments of a population.
    BadInput
        For a population that is empty or too large.
    """
    pieces = _BRACES.split(text)
    if any(brace in piece for piece in pieces[::2] for brace in "{}"):
        refuse(f"instance {text!r}", "unbalanced braces; write for example ring:{4,8,16}", BadSpec)
    choices = [[piece] if i % 2 == 0 else _words(piece, text) for i, piece in enumerate(pieces)]
    count = 1
    for words in choices:
        count *= len(words)
    _check_count(text, count)
    specs = [spec for words in itertools.product(*choices) for spec in _members("".join(words))]
    _check_count(text, len(specs))
    return specs


def is_population(text: str) -> bool:
    """Whether ``text`` stands for the members of one population as they are, without braces or modifiers."""
    return text.strip().partition(":")[0] in POPULATIONS and not set("{+") & set(text)


def _check_count(text: str, count: int) -> None:
    if count > MOST:
        msg = f"instance {text!r}: stands for {count} instances, more than the limit of {MOST}; use smaller lists"
        raise BadSpec(msg)


def _members(spec: str) -> list[str]:
    """Members of a population, each with the modifiers of the spec; for a family, the spec itself."""
    name, _, rest = spec.strip().partition(":")
    if not name.startswith("all-"):  # do not import families just to expand braces
        return [spec]
    load_families()
    known = POPULATIONS.get(name)
    if known is None:
        return [spec]
    base, changes = _split_modifiers(rest)
    values = _arguments(known.parameters, base, f"instance {spec!r}")
    return [
        member + "".join(f"+{key}={text}" if text else f"+{key}" for key, text in changes)
        for member in known.function(**values)
    ]


def _words(inside: str, text: str) -> list[str]:
    if match := _RANGE.fullmatch(inside.strip()):
        first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
        if step and (last - first) // step >= MOST:
            refuse(f"instance {text!r}", f"{{{inside}}} has more than {MOST} numbers; use a smaller range", BadSpec)
        if step == 0 or last < first:
            msg = (
                f"instance {text!r}: {{{inside}}} is not a valid range; write {{FIRST..LAST..STEP}} with FIRST <= LAST"
            )
            raise BadSpec(msg)
        return [str(number) for number in range(first, last + 1, step)]
    words = [word.strip() for word in inside.split(",")]
    if not all(words):
        refuse(f"instance {text!r}", f"{{{inside}}} contains an empty item; write for example {{4,8,16}}", BadSpec)
    return words
