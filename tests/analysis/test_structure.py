"""The structure of the package: layers import downwards, papers do not import each other, names mean one thing."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("instances", "formulations", "solvers", "analysis")
PAPERS = {"alltoall", "lumorph", "optree", "sipml", "topoopt"}
#: File names that every paper's folder may have, with one meaning.
PER_PAPER = {"__init__", "claims", "figures"}
#: Folders whose files are named after what they define: the formulation, the method or the command of that name.
NAMED_AFTER = {
    "formulations": ("FORMULATION = ",),
    "analysis": ("@click.command", "@click.group(invoke"),
}
#: Rooms that register themselves (:mod:`opticoll.extensions`), and that nothing of the library imports or names.
EXTENSIONS = ("benchmark", "conjectures", "designs", "foreign_schedules", "ledger", "papers", "training")
#: File names that every extension may have, with one meaning.
PER_EXTENSION = {"extension", "descriptions", "report_section"}
#: What every registry is called, in the folder of what it registers.
REGISTRY = "registry"


@cache
def modules() -> dict[str, Path]:
    result = {}
    for layer in LAYERS:
        for path in sorted((ROOT / layer).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            result[".".join(("opticoll", *parts)).removesuffix(".__init__")] = path
    return result


@dataclass(frozen=True)
class Facts:
    """What the tests below ask about a file, which is parsed once.

    Attributes
    ----------
    imported
        What it imports from other modules of any package, anywhere but under TYPE_CHECKING, as ``(module, name)``.
    for_typing
        The same under TYPE_CHECKING.
    strings
        String constants that are no docstrings.
    classes
        Public classes.
    untyped
        Public functions, methods and fields whose annotations have a dict or mapping with values of Any.
    """

    imported: list[tuple[str, str]]
    for_typing: list[tuple[str, str]]
    strings: list[str]
    classes: list[str]
    untyped: list[str]


@cache
def facts(path: Path) -> Facts:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    typing_only = {
        id(inner)
        for node in nodes
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    named = {id(node): [(str(node.module), alias.name) for alias in node.names] for node in imports}
    return Facts(
        [one for node in imports if id(node) not in typing_only for one in named[id(node)]],
        [one for node in imports if id(node) in typing_only for one in named[id(node)]],
        [
            node.value
            for node in nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone
        ],
        [node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")],
        untyped(path.stem, tree),
    )


@cache
def all_imports(*, typing: bool = False) -> dict[str, set[str]]:
    known = modules()
    result = {}
    for name, path in known.items():
        pairs = [*facts(path).imported, *(facts(path).for_typing if typing else [])]
        named = {full if (full := f"{module}.{one}") in known else module for module, one in pairs}
        result[name] = named & set(known)
    return result


def test_layers_import_downwards_only():
    rank = {layer: place for place, layer in enumerate(LAYERS)}
    upward = [
        (name, other)
        for name, others in all_imports().items()
        for other in others
        if rank[other.split(".")[1]] > rank[name.split(".")[1]]
    ]
    assert not upward


def test_no_paper_imports_another():
    def paper(name: str) -> str | None:
        return next((part for part in name.split(".") if part in PAPERS), None)

    crossing = [
        (name, other)
        for name, others in all_imports().items()
        for other in others
        if paper(name) and paper(other) and paper(name) != paper(other)
    ]
    assert not crossing


def test_imports_are_acyclic():
    state: dict[str, int] = {}
    circles: list[list[str]] = []

    def visit(name: str, trail: list[str]) -> None:
        state[name] = 1
        for other in sorted(all_imports()[name]):
            if state.get(other) == 1:
                circles.append([*trail[trail.index(other) :], other] if other in trail else [name, other])
            elif other not in state:
                visit(other, [*trail, other])
        state[name] = 2

    for name in all_imports():
        if name not in state:
            visit(name, [name])
    assert not circles


def test_solvers_do_not_name_each_other_in_circles_for_typing():
    graph = nx.DiGraph((name, other) for name, others in all_imports(typing=True).items() for other in others)
    groups = [sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1]
    assert not [group for group in groups if any(name.startswith("opticoll.solvers.") for name in group)]


def of_an_extension(path: Path) -> bool:
    return path.relative_to(ROOT).parts[:2] in {("analysis", name) for name in EXTENSIONS}


def naming_an_extension(text: str) -> list[str]:
    """Names of modules of extensions, in imports, strings and docstrings alike."""
    rooms = "|".join(EXTENSIONS)
    named = re.findall(rf"opticoll\.analysis\.(?:{rooms})\b[\w.]*", text)
    return named + re.findall(rf"from opticoll\.analysis import [^\n]*\b(?:{rooms})\b", text)


def test_the_library_names_no_module_of_an_extension():
    stub = ROOT / "src/opticoll/extension_functions.pyi"
    library = [path for path in modules().values() if not of_an_extension(path)]
    ground = [path for path in (ROOT / "src/opticoll").glob("*.py*") if path != stub]
    assert len(library) > 300
    assert not {path: named for path in [*library, *ground] if (named := naming_an_extension(path.read_text("utf-8")))}


def test_a_name_of_an_extension_is_found():
    assert naming_an_extension("from opticoll.analysis.ledger.claim import Claim")
    assert naming_an_extension("from opticoll.analysis import benchmark as b")
    assert not naming_an_extension("from opticoll.analysis.bounds import bounds")


def test_every_extension_registers_itself():
    from opticoll.extensions import extensions, part

    assert [one.name for one in extensions()] == [f"opticoll.analysis.{name}" for name in EXTENSIONS]
    targets = {target for one in extensions() for target in one.functions}
    stub = (ROOT / "src/opticoll/extension_functions.pyi").read_text(encoding="utf-8")
    assert {f"{home}:{name}" for home, name in re.findall(r"from (\S+) import (\w+) as", stub)} == targets
    assert all(part(target) for target in targets)


def test_lines_of_the_library_and_of_all(capsys):
    """The sizes to which ``docs/design.md`` holds the package; run with ``-s``."""
    paths = [*modules().values(), *(ROOT / "src/opticoll").glob("*.py")]
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in paths}
    library = sum(count for path, count in lines.items() if "analysis" not in path.parts or not of_an_extension(path))
    with capsys.disabled():
        print(f"\nlines: library {library:,}, all {sum(lines.values()):,}")
    assert 0 < library < sum(lines.values())


STUDY = """
name = "two"
title = "Two rings"
formulations = ["alltoall.master"]
instances = ["ring:{3,4}"]
methods = ["highs"]
"""
WITHOUT_EXTENSIONS = """
import json, sys
from opticoll.analysis.cli.main import main
for command in ("solve alltoall.master ring:4 --store s", "bounds ring:4", "study two.toml --store s",
                "report --store s --out page", "list formulations --json"):
    assert main(command.split()) == 0, command
import opticoll
assert not hasattr(opticoll, "figure"), "an extension's function"
"""


def test_the_library_works_without_the_extensions(tmp_path):
    from opticoll.formulations import formulations

    ignored = shutil.ignore_patterns("*.nb[ci]", "*.gz")  # with the bytecode, which saves compiling it again
    for layer in LAYERS:
        shutil.copytree(ROOT / layer, tmp_path / layer, ignore=ignored)
    shutil.copytree(ROOT / "src", tmp_path / "src", symlinks=True, ignore=ignored)
    for name in EXTENSIONS:
        shutil.rmtree(tmp_path / "analysis" / name)
    (tmp_path / "two.toml").write_text(STUDY, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTENSIONS],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {row["name"] for row in json.loads(done.stdout[done.stdout.rindex("\n[") :])} == set(formulations())
    assert (tmp_path / "page" / "index.html").is_file()


def named_after_its_content(path: Path) -> bool:
    """Whether a file is a formulation, a method or a command, whose name users know."""
    marks = NAMED_AFTER.get(path.relative_to(ROOT).parts[0], ())
    text = path.read_text(encoding="utf-8")
    return any(re.search(rf"^{re.escape(mark)}", text, re.M) for mark in marks)


#: Folders of tests that mirror no room: data that tests read.
TEST_DATA = {"data", "ledgers", "problems"}


def test_no_room_is_empty_and_tests_mirror_the_rooms():
    rooms = {name.rpartition(".")[0] for name, path in modules().items() if path.stem != "__init__"}
    empty = [name for name, path in modules().items() if path.stem == "__init__" and name not in rooms]
    assert not [name for name in empty if not any(room.startswith(f"{name}.") for room in rooms)]
    tested = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    assert not [str(one) for one in tested if one.parts and one.parts[0] not in TEST_DATA and not (ROOT / one).is_dir()]


def test_a_file_name_means_one_thing_within_a_layer():
    places = defaultdict(list)
    for path in modules().values():
        if (
            path.stem in {*PER_PAPER, *PER_EXTENSION, REGISTRY}
            or path.stem.endswith("_claims")
            or named_after_its_content(path)
        ):
            continue
        layer = path.relative_to(ROOT).parts[0]
        places[layer, path.stem].append(path.relative_to(ROOT).as_posix())
    assert not {stem: paths for stem, paths in places.items() if len(paths) > 1}


def test_formulations_methods_and_commands_are_named_after_their_files():
    from opticoll.analysis.cli.main import cli
    from opticoll.formulations import formulations
    from opticoll.solvers.methods.registry import package_names

    stems = defaultdict(set)
    for path in filter(named_after_its_content, modules().values()):
        stems[path.relative_to(ROOT).parts[0]].add(path.stem.replace("_", "-"))
    assert stems["formulations"] == {name.partition(".")[2] for name in formulations()}
    assert stems["solvers"] <= package_names()
    assert stems["analysis"] == set(cli.deferred)


def test_a_class_name_means_one_thing():
    places = defaultdict(list)
    for path in modules().values():
        if path.stem.endswith("_check"):  # these stand alone, and are printed for others to run
            continue
        for name in facts(path).classes:
            places[name].append(path.relative_to(ROOT).as_posix())
    assert not {name: paths for name, paths in places.items() if len(paths) > 1}


#: Messages between our own processes, and the tests of an adapter that are made of them; no interface.
INTERNAL = ("solvers.process", "solvers.contract", "solvers.plan", "solvers.procedure")


def untyped(name: str, tree: ast.Module) -> list[str]:
    """Public functions, methods and fields of a module whose annotations have a dict or mapping with values of Any."""
    results = []

    def loose(annotation: ast.expr | None) -> bool:
        return annotation is not None and any(
            isinstance(node, ast.Subscript)
            and ast.unparse(node.value).rpartition(".")[2] in {"dict", "Dict", "Mapping", "MutableMapping"}
            and ast.unparse(node.slice).endswith("Any)")
            for node in ast.walk(annotation)
        )

    def visit(body: list[ast.stmt], where: str) -> None:
        for node in body:
            if isinstance(node, ast.If):
                visit([*node.body, *node.orelse], where)
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                visit(node.body, f"{where}.{node.name}")
            elif isinstance(node, ast.FunctionDef) and (
                node.name == "__init__" or (not node.name.startswith("_") and not node.name.endswith("in_worker"))
            ):
                taken = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.kwarg]
                if any(loose(one) for one in [node.returns, *(arg.annotation for arg in taken if arg is not None)]):
                    results.append(f"{where}.{node.name}")
            elif (
                isinstance(node, ast.AnnAssign)
                and loose(node.annotation)
                and not ast.unparse(node.target).startswith("_")
            ):
                results.append(f"{where}.{ast.unparse(node.target)}")

    visit(tree.body, name)
    return results


def test_no_public_signature_has_a_dictionary_of_anything():
    assert not [
        (name, one)
        for name, path in modules().items()
        if not name.removeprefix("opticoll.").startswith(INTERNAL)
        for one in facts(path).untyped
    ]


def test_an_untyped_dictionary_is_detected():
    source = "def f(x: int, *, y: dict[str, Any] | None = None): ...\nclass A:\n    b: list[Mapping[str, Any]]\n"
    assert untyped("m", ast.parse(source)) == ["m.f", "m.A.b"]
    assert not untyped(
        "m", ast.parse("def f(x: dict[str, int]) -> Mapping[str, object]: ...\ndef _g(x: dict[str, Any]): ...")
    )


#: Files of the solvers that may name formulations: each serves those that it names.
SERVING = ("solvers/methods/", "solvers/exact/", "solvers/schedules/")
#: What solvers need more memory for was measured by formulation.
MEASURED = "solvers/process/memory.py"


def naming(names: set[str], texts: list[str]) -> set[str]:
    """The formulations that strings name, alone or with settings behind; sentences with a name in them do not count."""
    return {text.partition(" ")[0] for text in texts if re.fullmatch(r"[\w.-]+( [\w.-]+=\S*)*", text)} & names


def test_a_formulation_is_named_in_its_own_file_and_in_files_above_that_serve_it():
    from opticoll.formulations import formulations

    known = set(formulations())
    homes = {f"formulations/{name.replace('.', '/').replace('-', '_')}.py": name for name in known}
    for path in modules().values():
        place = path.relative_to(ROOT).as_posix()
        named = naming(known, facts(path).strings)
        if place.startswith("formulations/"):
            assert named <= {homes.get(place)}, place
        elif place.startswith("instances/") or (
            place.startswith("solvers/") and not place.startswith(SERVING) and place != MEASURED
        ):
            assert not named, place


def test_names_are_found_in_strings():
    known = {"alltoall.master"}
    assert naming(known, ["alltoall.master"]) == naming(known, ["alltoall.master printed=true"]) == known
    assert not naming(known, ["use alltoall.master", "alltoall.master-child", "alltoall.masters"])


def test_the_registry_of_methods_names_none():
    from opticoll.formulations import formulations

    for place in ("solvers/methods/registry.py", "solvers/methods/method.py"):
        assert not naming(set(formulations()), facts(ROOT / place).strings)


def test_no_layer_names_a_module_above_it_by_string():
    for path in modules().values():
        layer = path.relative_to(ROOT).parts[0]
        above = "|".join(LAYERS[LAYERS.index(layer) + 1 :])
        if above:
            upward = [text for text in facts(path).strings if re.match(rf"opticoll\.({above})\b", text)]
            assert not upward, path
