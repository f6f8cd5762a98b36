"""What editors and notebooks show: completion and signatures, read by Jedi as JupyterLab does."""

from __future__ import annotations

import pydoc
from pathlib import Path

import jedi
import pytest
from case_families import each

import opticoll as oc

HERE = jedi.InterpreterEnvironment()  # no process of its own
START = "import opticoll as oc\n"
#: Modules of the package, which ``oc.`` offers in an editor; a notebook, which asks ``dir``, does not.
MODULES = {path.stem for path in Path(oc.__file__).parent.iterdir() if not path.stem.startswith("__")}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    """A cache of its own: two processes that share Jedi's read what the other is writing."""
    before, jedi.settings.cache_directory = jedi.settings.cache_directory, str(tmp_path_factory.mktemp("jedi"))
    yield
    jedi.settings.cache_directory = before


def shown(code):
    """Signatures in an editor and in a notebook, where ``oc`` is a module in memory."""
    yield from jedi.Script(START + code, environment=HERE).get_signatures()
    yield from jedi.Interpreter(code, [{"oc": oc}]).get_signatures()


def test_editors_and_notebooks_offer_the_public_names_alone():
    offered = jedi.Script(START + "oc.", environment=HERE).complete()
    editor = {one.name for one in offered if not one.name.startswith("_")}
    notebook = {one.name for one in jedi.Interpreter("oc.", [{"oc": oc}]).complete() if not one.name.startswith("_")}
    assert editor - MODULES == set(oc.__all__)
    assert notebook == set(oc.__all__)


@each("name", [name for name in oc.__all__ if name[0].islower()])
def test_every_function_has_its_signature_and_its_docstring(name):
    signatures = list(shown(f"oc.{name}("))
    assert len(signatures) == 2
    for signature in signatures:
        assert signature.name == name
        assert signature.to_string().startswith(f"{name}(")
        assert len(signature.docstring(raw=True)) > 40


@pytest.mark.parametrize(
    ("call", "units"),
    [
        ("oc.solve(", ["time_limit: Seconds | None", "memory_limit: Gibibytes | None", "shard: DataSize | None"]),
        ("oc.model('alltoall.master', 'ring:4').solve(", ["time_limit: Seconds | None", "shard: DataSize | None"]),
        ("oc.study(", ["time_limit: Seconds | None", "memory_limit: Gibibytes | None"]),
        ("oc.topology(", ["unit: Rate | None"]),
        ("oc.reconfigure(", ["delay: Delay", "shard: DataSize", "bandwidth: Rate"]),
        ("oc.iteration(", ["link: Rate | None", "latency: Seconds"]),
    ],
)
def test_signatures_show_units(call, units):
    signatures = list(shown(call))
    assert len(signatures) == 2
    for signature in signatures:
        for unit in units:
            assert unit in signature.to_string().replace("'", "")  # a module in memory quotes its annotations


@each("name", dir(oc))
def test_every_public_name_has_help(name):
    assert pydoc.render_doc(getattr(oc, name))


def test_the_package_has_help():
    assert "best_sequence" in pydoc.render_doc(oc)
