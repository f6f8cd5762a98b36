"""The installed package: one top-level name, and no clash with a user's own modules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ("src", "instances", "formulations", "solvers", "analysis", "pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel built from a copy of the sources, so nothing is left behind in the checkout."""
    copy = tmp_path_factory.mktemp("sources")
    for name in SHIPPED:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
            )
        else:
            shutil.copy(ROOT / name, copy / name)
    built = tmp_path_factory.mktemp("wheel")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(built))
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(copy)], check=True, capture_output=True)
    return next(built.glob("*.whl"))


def test_a_wheel_installs_opticoll_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"opticoll"}
    for layer in ("instances", "formulations", "solvers", "analysis"):
        for kind in ("py", "toml", "json", "csv"):
            stated = {f"opticoll/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / layer).rglob(f"*.{kind}")}
            assert not stated - set(names)
    for folder in ("templates", "report/templates"):
        assert any(name.startswith(f"opticoll/analysis/{folder}/") for name in names)


def test_all_public_names_load_beside_a_user_s_own_modules(wheel, tmp_path):
    site, current = tmp_path / "site", tmp_path / "here"
    zipfile.ZipFile(wheel).extractall(site)
    (current / "analysis").mkdir(parents=True)
    (current / "analysis" / "__init__.py").write_text("raise RuntimeError('mine')\n", encoding="utf-8")
    (current / "solvers.py").write_text("raise RuntimeError('mine')\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(site)}
    code = (
        "import opticoll as oc; print(oc.__file__); print([getattr(oc, name).__name__ for name in oc.__all__]); "
        "from opticoll.analysis.cli.main import main; "
        "raise SystemExit(main(['solve', 'alltoall.master', 'ring:4', '--json', '--no-store']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=current, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    place, names, record = done.stdout.splitlines()
    assert Path(place).parent.parent == site
    assert "'solve'" in names
    assert json.loads(record)["metrics"]["T"] == pytest.approx(2.0)
