"""The index of methods names the module of each; ``python tests/solvers/methods/test_methods_index.py`` writes it."""

from __future__ import annotations

import json
from importlib import import_module
from pkgutil import walk_packages

import opticoll.solvers.methods as room
from opticoll.solvers.methods import index


def defined():
    """Every method of the package, and the module that defines it below the package, sorted by name."""
    result = []
    for found in walk_packages(room.__path__, f"{room.__name__}."):
        module = import_module(found.name)
        for method in getattr(module, "METHODS", ()) or (getattr(module, "METHOD", None),):
            if method is not None:
                result.append((method, found.name.removeprefix(f"{room.__name__}.")))
    return sorted(result, key=lambda pair: str(pair[0].name))


def taking_over():
    """The methods that take over every formulation, by name."""
    pairs = sorted({(one.formulation, method.name) for method, _ in defined() for one in method.takes_over})
    return {formulation: tuple(name for one, name in pairs if one == formulation) for formulation, _ in pairs}


#: What to do about a difference.
REMEDY = "write it by: python tests/solvers/methods/test_methods_index.py"


def test_the_index_names_the_module_of_every_method():
    assert {method.name: module for method, module in defined()} == index.MODULES, REMEDY
    assert taking_over() == index.TAKING_OVER, REMEDY


def test_no_two_methods_have_one_name():
    names = [method.name for method, _ in defined()]
    assert len(names) == len(set(names))


def main() -> None:
    modules = {method.name: module for method, module in defined()}
    text = json.dumps({"modules": modules, "taking_over": taking_over()}, indent=2)
    index.FILE.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
