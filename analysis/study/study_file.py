"""Study files, read strictly: the formulations, instances, methods and settings to run.

A study is a TOML file::

    name = "lp-solvers"
    title = "one line"
    formulations = ["alltoall.master"]
    instances = ["ring:{8,16}", "genkautz:n={16,32},d=4"]    # braces: every combination
    methods = ["highs-simplex", "@solvers"]                  # @solvers, @methods: all that take the formulation
    forms = ["cvxpy"]                                        # default: the formulation's preferred form
    seeds = 3                                                # 3 seeds hashed from the cell's name; or a list
    repetitions = 1
    tol = 1e-6                                               # or a list
    threads = 2
    exact = true                                             # also the optimum as a fraction; default: false
    plugins = ["mine.py"]                                    # files beside this one, or installed modules

    [limits]
    time_limit_s = 60.0
    memory_limit_gib = 4.0

    [settings]                                               # each a value or a list: a grid
    k = [2, 4]

    [[include]]                                              # more cells; missing keys are taken from above
    instances = ["petersen"]

    [[exclude]]                                              # patterns or lists of them; a rule that matches no
                                                             # cell is refused
    method = "clarabel"
    instance = "genkautz:*"
"""

from __future__ import annotations

import hashlib
import itertools
import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import msgspec

from opticoll.errors import BadFile, BadInput, SolverUnavailable, one_line, refuse
from opticoll.file_contents import read_bytes
from opticoll.instances.readers.reading import decode, names_file, pinned
from opticoll.instances.spec import expand
from opticoll.nearest_names import nearest
from opticoll.plugins import digests, load_plugin
from opticoll.solvers.process.memory import TooLarge
from opticoll.solvers.task import Task, digest

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Mapping

    from opticoll.formulations import Formulation
    from opticoll.instances import Instance

STUDIES = Path(__file__).resolve().parents[1] / "studies"

#: Largest study file [bytes].
MOST_FILE = 16 << 20

#: More cells than this are taken for a mistake.
MOST_CELLS = 100_000

Name = Annotated[str, msgspec.Meta(min_length=1)]
Names = Annotated[list[Name], msgspec.Meta(min_length=1)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Seeds = (
    Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    | Annotated[list[Annotated[int, msgspec.Meta(ge=0)]], msgspec.Meta(min_length=1)]
)

_LIST, _NUMBER = "must be a list of strings that is not empty", "must be a number, not {value!r}"
_COUNT = "must be a whole number from 1, not {value!r}"
#: The axes of the cells: the type of each, and what a value of another type must be.
_AXES: dict[str, tuple[Any, str]] = {
    "formulations": (Names, _LIST),
    "instances": (Names, _LIST),
    "methods": (Names, _LIST),
    "forms": (Names, _LIST),
    "seeds": (Seeds, "must be a number of seeds from 1 or a list of seeds from 0, not {value!r}"),
    "repetitions": (Count, _COUNT),
    "tol": (float | Annotated[list[float], msgspec.Meta(min_length=1)], _NUMBER),
    "threads": (Count, _COUNT),
    "limits": (dict[str, Any], "must be a table [limits]"),
    "settings": (dict[str, Any], "must be a table [settings]"),
    "exact": (bool, "must be true or false, not {value!r}"),
}
#: The other fields of the file and of its tables, in the same way.
_FIELDS: dict[str, tuple[Any, str]] = {
    **_AXES,
    "name": (Name, "must be a string"),
    "title": (str, "must be a string"),
    "plugins": (Names, _LIST),
    "include": (list[dict[str, Any]], "must be tables [[include]]"),
    "exclude": (list[dict[str, Any]], "must be tables [[exclude]]"),
    "time_limit_s": (float, _NUMBER),
    "memory_limit_gib": (float, _NUMBER),
}
_LIMITS = {"time_limit_s", "memory_limit_gib"}
_RULE = {"formulation", "instance", "method", "form", "seed", "tol"}


class InstanceFacts(TypedDict, total=False):
    """The instance of a cell: its hash and size; nothing for one that cannot be built."""

    instance_hash: str
    n: int
    arcs: int | None


@dataclass(frozen=True)
class Cell:
    """One run of a study: its task, its resume key, and the reason why it cannot run here, if any.

    The task holds an instance from a file as it was when the study was read. ``planned`` means that the key is that of
    :func:`opticoll.solvers.resume_key.plan_key`, which the record of the run must have too.
    """

    task: Task
    key: str
    canonical: str = ""
    unavailable: str | None = None
    facts: InstanceFacts = field(default_factory=lambda: InstanceFacts())
    planned: bool = True

    @property
    def label(self) -> str:
        """The cell in one line."""
        task = self.task
        instance = task.instance if isinstance(task.instance, str) else task.instance.spec
        extra = "".join(f" {name}={value}" for name, value in task.settings.items())
        form = f" {task.form}" if task.form else ""
        repetition = f" repetition={task.repetition}" if task.repetition else ""
        return f"{task.formulation} {instance} {task.method}{form} seed={task.seed}{repetition}{extra}"


@dataclass(frozen=True)
class Study:
    """A named set of cells, all checked."""

    name: str
    title: str
    cells: tuple[Cell, ...]
    source: Path


def studies() -> dict[str, Path]:
    """Files of the studies that come with opticoll, by name."""
    return {path.stem: path for path in sorted(STUDIES.glob("*.toml"))}


def find(name: str) -> Path:
    """The file of a study: a path ending in ``.toml``, or the name of one that comes with opticoll.

    Raises
    ------
    BadInput
        If there is none.
    """
    if name.endswith(".toml"):
        if not Path(name).is_file():
            refuse(f"study {name}", "no such file")
        return Path(name)
    known = studies()
    if name not in known:
        near = "" if name == "list" else f"{nearest(name, known)}; "
        msg = f"no study {name!r}; {near}`opticoll list studies` lists them, or give a path that ends in .toml"
        raise BadInput(msg)
    return known[name]


def header(path: Path) -> tuple[str, str]:
    """Name and title of a study file."""
    table = _table(path)
    return _value(table, "name", str(path)), _value(table, "title", str(path), "")


def load(path: Path) -> Study:
    """Read a study file and check every cell.

    Raises
    ------
    BadFile
        If the file is not TOML, holds an unknown key or a value of the wrong kind.
    BadInput
        If a cell asks for something that does not exist or does not fit together.
    """
    where = f"study {path}"
    try:
        return _load(path, where)
    except BadInput as error:
        text = str(error)
        if text.startswith(where):
            raise
        msg = f"{where}: {text}"
        raise type(error)(msg) from error


def study_of(name: str, tasks: list[Task]) -> Study:
    """A study of the given tasks, each checked as :func:`load` does; equal tasks are one cell.

    Raises
    ------
    BadInput
        If a task asks for something that does not exist or does not fit together.
    """
    return Study(name, "", tuple(_cells(tasks, name)), Path(name))


def refuse_unavailable(study: Study) -> None:
    """Refuse a study none of whose cells can run.

    Raises
    ------
    SolverUnavailable
        With the reason of the first one.
    """
    if all(cell.unavailable is not None for cell in study.cells):
        raise SolverUnavailable(str(study.cells[0].unavailable))


def tasks(path: Path, *, grouped: bool = False) -> list[Task]:
    """Every task of a study file as written, without the checks of :func:`load`.

    With ``grouped``, a group of methods such as ``@solvers`` is one method, and no method is excluded.

    Raises
    ------
    BadFile
        If the file is not TOML, holds an unknown key or a value of the wrong kind.
    """
    return _read(path, f"study {path}", grouped=grouped)[2]


def _load(path: Path, where: str) -> Study:
    name, title, result = _read(path, where)
    return Study(name, title, tuple(_cells(result, where)), path)


def _read(path: Path, where: str, *, grouped: bool = False) -> tuple[str, str, list[Task]]:
    """Name, title and tasks."""
    table = _table(path)
    _check_keys(table, _FIELDS.keys() - _LIMITS, where)
    for place in _value(table, "plugins", where, []):
        load_plugin(path.parent / place if place.endswith(".py") else place)
    name, title = _value(table, "name", where), _value(table, "title", where, "")
    blocks: list[tuple[str, dict[str, Any]]] = []
    top = {key: value for key, value in table.items() if key in _AXES}
    if {"formulations", "instances", "methods"} <= set(top) or "include" not in table:
        blocks.append((where, top))
    for number, block in enumerate(_value(table, "include", where, []), 1):
        at = f"{where}, include {number}"
        _check_keys(block, _AXES.keys(), at)
        blocks.append((at, {**top, **block}))
    rules = _value(table, "exclude", where, [])
    for number, rule in enumerate(rules, 1):
        _check_keys(rule, _RULE, f"{where}, exclude {number}")
        if not rule:
            msg = f"{where}, exclude {number}: the rule is empty and would drop every cell; name what to drop"
            raise BadFile(msg)
    if grouped:
        rules = [rule for rule in rules if "method" not in rule]
    listed = (task for at, block in blocks for task in _tasks(block, at, grouped=grouped))
    return name, title, _excluded(list(itertools.islice(listed, MOST_CELLS + 1)), rules, where)


def _tasks(block: Mapping[str, Any], where: str, *, grouped: bool) -> Iterator[Task]:
    """Every combination of a block's axes; methods, seeds and repetitions vary fastest."""
    formulations = _value(block, "formulations", where)
    instances = [spec for text in _value(block, "instances", where) for spec in expand(text)]
    methods = _value(block, "methods", where)
    forms: list[str | None] = _value(block, "forms", where, [None])
    limits = _value(block, "limits", where, {})
    _check_keys(limits, _LIMITS, f"{where}, limits")
    shared = {key: _value(limits, key, f"{where}, limits") for key in limits}
    shared |= {key: _value(block, key, where) for key in ("threads", "exact") if key in block}
    tol = _value(block, "tol", where) if "tol" in block else []
    tols = [{"tol": one} for one in (tol if isinstance(tol, list) else [tol])] or [{}]
    seeds = _value(block, "seeds", where, [0])
    repetitions = _value(block, "repetitions", where, 1)
    grid = _grid(_value(block, "settings", where, {}), where)
    named = {one: methods if grouped else _methods(methods, one, where) for one in formulations}
    for formulation, instance in itertools.product(formulations, instances):
        for form, settings, accuracy in itertools.product(forms, grid, tols):
            for method in named[formulation]:
                for seed in _seeds(seeds, f"{formulation}|{instance}|{method}"):
                    for repetition in range(repetitions):
                        yield Task(
                            formulation,
                            instance,
                            method,
                            form,
                            settings,
                            seed=seed,
                            repetition=repetition,
                            **shared,
                            **accuracy,
                        )


def _methods(words: list[str], formulation: str, where: str) -> list[str]:
    """Method names, with ``@solvers`` and ``@methods`` expanded for this formulation."""
    names: list[str] = []
    for word in words:
        names.extend(_expanded(word, formulation, where) if word.startswith("@") else [word])
    return list(dict.fromkeys(names))


def _expanded(word: str, formulation: str, where: str) -> list[str]:
    from opticoll.analysis.problem.model_sizes import solvers_for
    from opticoll.formulations import formulation as find_formulation
    from opticoll.solvers.methods import methods_for

    model = find_formulation(formulation)
    if word == "@solvers":
        return list(solvers_for(model))
    if word == "@methods":
        return list(methods_for(model))
    msg = f"{where}: no group of methods {word!r}; {nearest(word, ['@solvers', '@methods'])}"
    raise BadFile(msg)


def _seeds(wanted: int | list[int], parts: str) -> list[int]:
    """The seeds listed, or that many seeds hashed from the cell's named parts, which are the same on every machine."""
    if isinstance(wanted, list):
        return wanted
    texts = (f"opticoll-seed|{parts}|{index}" for index in range(wanted))
    return [int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) >> 1 for text in texts]


def _grid(settings: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """Every combination of the settings."""
    choices = []
    for name, value in settings.items():
        values = value if isinstance(value, list) else [value]
        if not values or not all(isinstance(v, (str, int, float, bool)) for v in values):
            refuse(where, f"setting {name!r} must be a string, number or boolean, or a list of them", BadFile)
        choices.append([(name, v) for v in values])
    return [dict(pairs) for pairs in itertools.product(*choices)]


def _excluded(tasks: list[Task], rules: list[dict[str, Any]], where: str) -> list[Task]:
    if len(tasks) > MOST_CELLS:
        refuse(where, f"has more than {MOST_CELLS} cells; split it", BadFile)
    for number, rule in enumerate(rules, 1):
        kept = [task for task in tasks if not all(_matches(task, key, rule[key]) for key in rule)]
        if len(kept) == len(tasks):
            refuse(f"{where}, exclude {number}", "the rule matches no cell; correct its pattern or remove it", BadFile)
        tasks = kept
    if not tasks:
        refuse(where, "has no cells; give formulations, instances and methods", BadFile)
    return tasks


def _matches(task: Task, key: str, pattern: Any) -> bool:
    if isinstance(pattern, list):
        return any(_matches(task, key, one) for one in pattern)
    value = getattr(task, key)
    if isinstance(pattern, str) and value is not None:
        return fnmatchcase(str(value), pattern)
    return not isinstance(pattern, bool) and bool(value == pattern)


def _cells(tasks: list[Task], where: str) -> Iterator[Cell]:
    """Check every task as the runner would, and give it its resume key; equal cells are kept once."""
    from opticoll.instances import parse
    from opticoll.solvers.plan import make_plan, rehearse_options
    from opticoll.solvers.resume_key import plan_key

    instances: dict[str, Instance] = {}
    seen: set[str] = set()
    recent: dict[Hashable, Formulation] = {}
    for task in tasks:
        spec = task.instance if isinstance(task.instance, str) else task.instance.spec
        try:
            if not isinstance(task.instance, str):
                instance = task.instance
            else:
                instance = instances[spec] = instances[spec] if spec in instances else parse(spec)
            facts: InstanceFacts = {
                "instance_hash": instance.hash,
                "n": instance.n,
                "arcs": getattr(instance, "arcs", None),
            }
            unavailable, planned = None, True
            if names_file(spec):
                task = msgspec.structs.replace(task, instance=instance)
            try:
                plan = make_plan(task, instance=instance, recent=recent)
                rehearse_options(plan)
                key = plan_key(task, plan)
            except SolverUnavailable as error:
                unavailable, planned, key = str(error), False, unplanned_key(task, instance)
            except TooLarge:  # unknown here: it is checked where it runs
                planned, key = False, unplanned_key(task, instance)
        except BadInput as error:
            msg = f"{where}: cell {task.formulation} {spec} {task.method}: {error}"
            raise type(error)(msg) from error
        if key not in seen:
            seen.add(key)
            yield Cell(task, key, instance.spec, unavailable, facts, planned)


def unplanned_key(task: Task, instance: Instance) -> str:
    """A key for a cell whose solver or memory is missing: a digest of the task, since no plan can be made.

    Files that settings name enter it with their present content. The version of a solver that is missing here is
    unknown; those that opticoll requires, and so are the same on every machine of a study, enter it.
    """
    from opticoll.package_code import digest as code_digest
    from opticoll.solvers.adapters.interface import distribution_version
    from opticoll.solvers.resume_key import ALWAYS_USED, EXACT_USED

    parts = {name: getattr(task, name) for name in task.__struct_fields__ if name != "instance"}
    parts |= {"plugins": known} if (known := digests()) else {}
    parts["settings"] = {name: pinned(str(value)) for name, value in task.settings.items()}
    versions = {name: distribution_version(name) for name in (*ALWAYS_USED, *EXACT_USED)}
    return digest({**parts, "instance": instance._contents_and_names, "code": code_digest(), "solvers": versions})


# reading TOML, strictly ---------------------------------------------------------------------------------------


def _table(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(
            decode(read_bytes(path, MOST_FILE, "name a study file", f"study {path}"), path, "save it as UTF-8")
        )
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, UnicodeDecodeError
        msg = f"study {path}: is not TOML: {one_line(error, 200)}"
        raise BadFile(msg) from error


def _check_keys(table: Mapping[str, Any], keys: Collection[str], where: str) -> None:
    for key in table:
        if key not in keys:
            refuse(where, f"no key {key!r}; {nearest(key, sorted(keys))}", BadFile)


def _value(table: Mapping[str, Any], key: str, where: str, default: Any = None) -> Any:
    """The value of a field, of its type; the default, if there is one, for a field that is missing."""
    kind, must = _FIELDS[key]
    remedy = f'; write {key} = ["..."]' if must is _LIST else ""
    if key not in table:
        if default is not None:
            return default
        refuse(where, f"{key} is missing{remedy}", BadFile)
    try:
        return msgspec.convert(table[key], kind)
    except msgspec.ValidationError:
        msg = f"{where}: {key} {must.format(value=table[key])}{remedy}"
        raise BadFile(msg) from None
