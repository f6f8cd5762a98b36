"""Files that are written are read by others as the same program, and files by others as they read them.

``outside_readers.py`` reads them with each tool in a process of its own.
"""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import outside_readers
import pytest
import scipy.sparse as sp
from case_families import each
from program_writers import (
    WRITERS,
    Program,
    Row,
    canonical,
    odd_program,
    outcomes,
    program_in,
    standard_form,
    write,
)

from opticoll.analysis.cli.main import main
from opticoll.errors import BadInput
from opticoll.formulations.standard_form import StandardForm
from opticoll.instances.readers.program_files import read_program
from opticoll.solvers.export import export
from opticoll.solvers.program_writer import LONGEST, NEGATED, Suffix, plain_names, written

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opticoll.solvers.program_writer import WrittenProgram

INF = np.inf
#: Tools that read files, and the module or command that each needs.
READERS = {"highs": "highspy", "scip": "pyscipopt", "gurobi": "gurobipy", "glpk": "glpsol"}
#: Readers of the fuzz, as notes call them.
NAMED = {"highs": "HiGHS", "scip": "SCIP"}


def needs(reader: str) -> None:
    if find_spec(READERS[reader]) is None and shutil.which(READERS[reader]) is None:
        pytest.skip(f"{READERS[reader]} is not installed")


def plain(stated: dict[str, Any]) -> dict[str, Any]:
    """A canonical program without zeros of either sign, entries without sides, and signs of rows."""
    rows = []
    for entries, relation, side in stated["rows"]:
        if not entries:
            continue
        flip = 1.0 if entries[0][1] > 0 else -1.0
        way = relation if flip > 0 else {">=": "<=", "<=": ">="}[relation]
        rows.append((tuple((name, flip * value) for name, value in entries), way, flip * side + 0.0))
    columns = {
        name: (low + 0.0, high + 0.0, cost + 0.0, bool(whole))
        for name, ((low, high), cost, whole) in stated["columns"].items()
    }
    return {**stated, "offset": stated["offset"] + 0.0, "columns": columns, "rows": sorted(rows)}


def expected(program: Program, file: WrittenProgram) -> dict[str, Any]:
    """What must be read from the file: a minimization, with the names in the file."""
    flip = -1.0 if program.sense == "max" else 1.0
    names, cost = file.columns[: len(program.names)], [flip * value for value in program.cost]
    same = replace(program, sense="min", offset=flip * program.offset, names=names, cost=cost)
    return plain(canonical(same))


def readings(reader: str, files: Iterable[Path]) -> dict[Path, Program | None]:
    """What a tool reads from files, in a process of its own; None where it refuses one."""
    command = [sys.executable, outside_readers.__file__, reader, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return {Path(path): None if "error" in stated else program_read(stated) for path, stated in found.items()}


def program_read(stated: dict[str, Any]) -> Program:
    names = list(stated["columns"])
    at = {name: j for j, name in enumerate(names)}
    rows = [
        Row(name, *ends(low, high), {at[column]: value for column, value in entries.items()})
        for name, (low, high, entries) in stated["rows"].items()
    ]
    values = list(stated["columns"].values())
    bounds, cost, integer = [ends(*value[:2]) for value in values], [v[2] for v in values], [v[3] for v in values]
    return Program(stated["sense"], stated["offset"], names, bounds, cost, integer, rows)


def ends(low: float, high: float) -> tuple[float, float]:
    return (-INF if low <= -1e20 else low), (INF if high >= 1e20 else high)


def write_odd_programs(suffix: Suffix, seeds: range, folder: Path) -> dict[Path, tuple[Program, WrittenProgram]]:
    """Files of random programs by our writer."""
    files = {}
    for seed in seeds:
        program = odd_program(seed)
        file = written(standard_form(program), suffix, program.names, [row.name for row in program.rows])
        path = folder / f"opticoll-{seed}{suffix}"
        file.write(path, "a program")
        files[path] = (program, file)
    return files


@pytest.mark.parametrize("suffix", get_args(Suffix))
@pytest.mark.parametrize("reader", READERS)
def test_tools_read_what_was_written(tmp_path, reader, suffix):
    needs(reader)
    files = write_odd_programs(suffix, range(40), tmp_path)
    for path, found in readings(reader, files).items():
        program, file = files[path]
        assert found is not None
        constant = tuple(file.columns[len(program.names) :])
        assert all(found.bounds[found.names.index(name)] == (1, 1) for name in constant)
        assert plain(canonical(found, constant)) == expected(program, file)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", get_args(Suffix))
def test_random_files_are_read_as_they_state_and_misreadings_of_others_are_noted(tmp_path, suffix):
    """Files by our writer and by others': what they state is what we read, and what HiGHS and SCIP read or refuse.

    What these two read otherwise is known: a note on the file names the tool.
    """
    files = list(write_odd_programs(suffix, range(200), tmp_path))
    for writer in WRITERS:
        write(writer, suffix, 1000, 200, tmp_path)
        assert set(outcomes(writer, suffix, range(1000, 1200), tmp_path)) == {"equal"}
        files += [tmp_path / f"{writer}-{seed}{suffix}" for seed in range(1000, 1200)]
    ours = {path: read_program(path) for path in files}
    for reader, name in NAMED.items():
        needs(reader)
        found = readings(reader, files)
        read = {path: program for path, program in found.items() if program is not None}
        differing = [
            path
            for path, program in read.items()
            if plain(canonical(program)) != plain(canonical(program_in(ours[path])))
        ]
        assert [path.read_text() for path in differing if name not in " ".join(ours[path].notes)] == []
        assert len(read) > 0.95 * len(files)
        assert len(differing) < 0.2 * len(files)


def numbers(seed: int) -> StandardForm:
    """A program of numbers with all digits."""
    rng = np.random.default_rng(seed)
    values = lambda *shape: rng.standard_normal(shape) * 10.0 ** rng.integers(-9, 9, shape)  # noqa: E731
    low, high = np.sort([values(6), values(6)], axis=0)
    col_low, col_high = np.sort([values(4), values(4)], axis=0)
    return StandardForm(sp.csc_array(values(6, 4)), low, high, col_low, col_high, values(4), "min")


@pytest.mark.parametrize("suffix", get_args(Suffix))
def test_no_digit_is_lost(tmp_path, suffix):
    for seed in range(30):
        form, path = numbers(seed), tmp_path / f"{seed}{suffix}"
        written(form, suffix).write(path, "digits")
        again = read_program(path)
        assert all("which is 0 for HiGHS 1.16 and SCIP 10" in note for note in again.notes)
        assert (again.cost.tolist(), again.col_lower.tolist()) == (form.cost.tolist(), form.col_lower.tolist())
        file = written(form, suffix)
        assert again.A.toarray().tolist() == form.A.toarray()[file.row].tolist()
        for i in range(6):
            assert again.row_lower[file.row == i].max() == form.row_lower[i]
            assert again.row_upper[file.row == i].min() == form.row_upper[i]


@pytest.mark.parametrize("suffix", get_args(Suffix))
def test_our_reader_reads_what_was_written_without_notes(tmp_path, suffix):
    for path, (program, file) in write_odd_programs(suffix, range(60), tmp_path).items():
        again = read_program(path)
        assert again.notes == ()
        assert list(again.column_names) == file.columns
        constant = tuple(file.columns[len(program.names) :])
        assert plain(canonical(program_in(again), constant)) == expected(program, file)


@pytest.mark.parametrize("suffix", get_args(Suffix))
def test_crossing_bounds_stay_infeasible(tmp_path, suffix):
    one = np.array([1.0])
    form = StandardForm(sp.csc_array([[1.0]]), 3 * one, 2 * one, 0 * one, -5 * one, one, "min")
    file = written(form, suffix)
    assert file.rows == ["r0", "r0_up", "x0_up"]
    file.write(tmp_path / f"a{suffix}", "infeasible")
    again = read_program(tmp_path / f"a{suffix}")
    assert (again.row_lower.tolist(), again.row_upper.tolist()) == ([3, -INF, -INF], [INF, 2, -5])
    assert (again.col_lower[0], again.col_upper[0]) == (0, INF)


@pytest.mark.parametrize("suffix", get_args(Suffix))
def test_a_program_without_rows_is_written(tmp_path, suffix):
    low, high = np.array([1.0, 0.0]), np.array([2.0, 5.0])
    form = StandardForm(sp.csc_array((0, 2)), np.zeros(0), np.zeros(0), low, high, np.array([3.0, -1.0]), "min")
    written(form, suffix).write(tmp_path / f"a{suffix}", "no rows")
    again = read_program(tmp_path / f"a{suffix}")
    assert not again.data.any()
    assert (again.row_lower <= 0).all()  # LP files have a row of zeros then
    assert (again.row_upper >= 0).all()
    assert (again.col_lower.tolist(), again.col_upper.tolist(), again.cost.tolist()) == ([1, 0], [2, 5], [3, -1])


def test_fractions_of_integer_bounds_are_rounded_inwards_exactly():
    one, low, high = np.ones(3), np.array([0.5, 1e-12, 0.2]), np.array([2.5, 3, 0.8])
    row = sp.csc_array(np.ones((1, 3)))
    form = StandardForm(row, np.zeros(1), np.ones(1), low, high, one, "min", integer=one > 0)
    file = written(form, ".mps")
    assert (file.form.col_lower.tolist(), file.form.col_upper.tolist()) == ([1, 1, 0.2], [2, 3, 0.8])
    assert "bounds of 2 integer columns are rounded inwards to integers" in file.notes


@each(
    ("name", "plainly"),
    [
        ("g[0,3]", "g_0_3"),
        ("e12", "x_e12"),
        ("3rd", "x_3rd"),
        ("Free", "x_Free"),
        ("INFlow", "x_INFlow"),
        ("st.", "x_st"),
        ("flow", "flow"),
        ("\u00fc", "x_"),
    ],
)
def test_names_are_made_readable(name, plainly):
    assert plain_names([name], "x") == [plainly]


def test_names_that_clash_or_are_long_get_their_position():
    assert plain_names(["x[0,1]", "x(0,1)"], "x") == ["x_0_1.0", "x_0_1.1"]
    assert [len(name) for name in plain_names(["y", "n" * 300], "x")] == [1, LONGEST - 12 + 2]


def test_the_command_says_what_the_file_holds(tmp_path, capsys):
    path = tmp_path / "a.lp"
    assert main(["export", "alltoall.master", "ring:4", "--to", str(path)]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"wrote {path}"
    assert f"note: {NEGATED}" in said
    assert f"\\ {NEGATED}\n" in path.read_text()
    with (tmp_path / "a.lp.names.csv").open(encoding="utf-8") as file:
        table = {row["name"]: row["name_in_file"] for row in csv.DictReader(file)}
    assert table["g[0,0]"] == "g_0_0"
    assert any("names.csv" in line for line in said)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "a.mps").mkdir()
    with pytest.raises(BadInput, match="cannot be written"):
        export("alltoall.master", "ring:4", tmp_path / "a.mps")


@pytest.mark.parametrize("suffix", get_args(Suffix))
@pytest.mark.parametrize("reader", READERS)
def test_a_program_without_rows_is_read_by_every_reader(tmp_path, reader, suffix):
    needs(reader)
    low, high, none = np.array([1.0, 2.0]), np.array([3.0, np.inf]), np.zeros(0)
    file = written(StandardForm(sp.csc_array((0, 2)), none, none, low, high, np.ones(2), "min"), suffix)
    path = tmp_path / f"rowless{suffix}"
    file.write(path, "a program")
    found = readings(reader, {path: (Program("min", 0.0, file.columns, [], [], [], []), file)})[path]
    assert found is not None
    assert [ends(*one) for one in found.bounds] == [(1, 3), (2, INF)]
