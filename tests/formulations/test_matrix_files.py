"""MPS and LP files are the programs that they state, or are refused with the line.

Random programs by four writers (:mod:`program_writers`) are read back; every construct that readers treat differently
has a case here. What CPLEX 22.2, Gurobi 13, SCIP 10, HiGHS 1.15, Xpress 9.9 and COPT 8 read was measured.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from case_families import each
from program_writers import WRITERS, outcomes, write
from slow_cases import marked

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.errors import BadFile
from opticoll.instances import MatrixProgram, parse
from opticoll.instances.readers import lp_reader, mps_reader
from opticoll.instances.readers.program_files import read_program

NAME = "matrix.program"

INF = float("inf")


@pytest.mark.parametrize(
    ("writer", "suffix"),
    [
        marked(writer, suffix, slow=(k % 2 == 0) == (suffix == ".lp"))  # both suffixes, and every writer
        for k, writer in enumerate(WRITERS)
        for suffix in (".mps", ".lp")
    ],
)
def test_random_programs_are_read_back(tmp_path, writer, suffix):
    write(writer, suffix, 0, 8, tmp_path)
    assert set(outcomes(writer, suffix, range(8), tmp_path)) == {"equal"}


MPS = """NAME t
ROWS
 N cost
 L c1
 G c2
 E c3
COLUMNS
 x cost 1 c1 1
 x c2 1
 y cost 2 c1 1
 y c3 1
RHS
 rhs c1 4 c2 1
 rhs c3 2
BOUNDS
 UP bnd x 3
ENDATA
"""
LP = """Minimize
 obj: 2 x + 3 y
Subject To
 c1: x + y >= 2
Bounds
 x <= 4
End
"""
MARKED = ((" x cost", " M1 'MARKER' 'INTORG'\n x cost"), (" y cost", " M2 'MARKER' 'INTEND'\n y cost"))


def changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def mps(*pairs: tuple[str, str]) -> str:
    return changed(MPS, *pairs)


def lp(*pairs: tuple[str, str]) -> str:
    return changed(LP, *pairs)


def read(folder: Path, suffix: str, text: str) -> MatrixProgram:
    (folder / f"a{suffix}").write_text(text, encoding="utf-8", newline="")
    return read_program(folder / f"a{suffix}")


def facts(program: MatrixProgram) -> dict[str, object]:
    """What the cases below state: bounds, kinds and costs of columns, bounds of rows, sense and constant."""
    return {
        "sense": program.sense,
        "offset": program.offset,
        **{
            name: (lo, up) for name, lo, up in zip(program.row_names, program.row_lower, program.row_upper, strict=True)
        },
        **{
            name: (lo, up)
            for name, lo, up in zip(program.column_names, program.col_lower, program.col_upper, strict=True)
        },
        **{f"cost {name}": cost for name, cost in zip(program.column_names, program.cost, strict=True)},
        "integer": [name for name, whole in zip(program.column_names, program.integer, strict=True) if whole],
    }


UPPER = " UP bnd x 3"
READ_MPS = {
    "crlf, tabs, comments, blank lines": (
        MPS.replace(" x c2", "\tx\tc2").replace("RHS\n", "* ENDATA\n\n   \nRHS\n").replace("\n", "\r\n"),
        {"x": (0, 3)},
    ),
    "a byte order mark": ("\ufeff" + MPS, {"x": (0, 3)}),
    "lines after ENDATA": (MPS + "ROWS\n", {"x": (0, 3)}),
    "a comment after $": (mps((" x c2 1", " x c2 1 $ five")), {"x": (0, 3)}),
    "a name with $": (mps((" x c2 1", " x c2 1\n $z c2 1")), {"$z": (0, INF)}),
    "spellings of numbers": (
        mps(("c1 4", "c1 4.e+0"), (" UP bnd x 3", " UP bnd x +.3E1")),
        {"x": (0, 3), "c1": (-INF, 4)},
    ),
    "numbers as names": (mps((" x c", " 1 c"), (" x c", " 1 c"), ("bnd x", "bnd 1")), {"1": (0, 3)}),
    "no name of sets": (mps((" rhs c1", " c1"), (" rhs c3", " c3"), (" UP bnd", " UP")), {"x": (0, 3), "c3": (2, 2)}),
    "free without a set": (mps((UPPER, " FR x")), {"x": (-INF, INF)}),
    "a set of bounds named like a column": (mps((UPPER, " UP y x 3")), {"x": (0, 3), "y": (0, INF)}),
    "a set of sides named like a row": (mps((" rhs c1", " c2 c1"), (" rhs", " c2")), {"c1": (-INF, 4), "c2": (1, INF)}),
    "no RHS": (changed(MPS, ("RHS\n rhs c1 4 c2 1\n rhs c3 2\n", "")), {"c1": (-INF, 0), "c3": (0, 0)}),
    "the constant": (mps((" rhs c3 2", " rhs c3 2 cost 5")), {"offset": -5}),
    "a second N row": (mps((" N cost", " N cost\n N spare"), (" x c2 1", " x c2 1 spare 8")), {"cost x": 1}),
    "sides of a second N row": (
        mps((" N cost", " N cost\n N spare"), (" x c2 1", " x c2 1 spare 8"), ("c3 2", "c3 2 spare 7")),
        {"cost x": 1, "offset": 0, "c3": (2, 2)},
    ),
    "no N row": (mps((" N cost\n", ""), (" cost 1", ""), (" cost 2", "")), {"cost x": 0}),
    "OBJSENSE, one line": (mps(("NAME t", "NAME t\nOBJSENSE MAX")), {"sense": "max"}),
    "OBJSENSE, two lines": (mps(("NAME t", "NAME t\nOBJSENSE\n  MAXIMIZE")), {"sense": "max"}),
    "OBJSENSE, lower case": (mps(("NAME t", "NAME t\nOBJSENSE\n  max")), {"sense": "max"}),
    "MAX": (mps(("NAME t", "NAME t\nMAX")), {"sense": "max"}),
    "OBJSENSE before NAME": ("OBJSENSE MAX\n" + MPS, {"sense": "max"}),
    **{
        f"OBJNAME{way!r}": (
            mps(
                ("NAME t", f"NAME t{sense}\nOBJNAME{way}spare"),
                (" N cost", " N cost\n N spare"),
                ("c2 1", "c2 1 spare 8"),
            ),
            {"cost x": 8, "sense": "max" if sense else "min"},
        )
        for way, sense in ((" ", ""), ("\n  ", ""), (" ", "\nOBJSENSE MAX"))
    },
    **{
        f"a range of {value} on {row}": (mps(("BOUNDS", f"RANGES\n rng {row} {value}\nBOUNDS")), {row: ends})
        for row, value, ends in (
            ("c1", 5, (-1, 4)),
            ("c1", -5, (-1, 4)),
            ("c1", 0, (4, 4)),
            ("c2", 5, (1, 6)),
            ("c2", -5, (1, 6)),
            ("c3", 5, (2, 7)),
            ("c3", -5, (-3, 2)),
            ("c3", 0, (2, 2)),
        )
    },
    "a range of the objective": (mps(("BOUNDS", "RANGES\n rng cost 5\nBOUNDS")), {"c1": (-INF, 4)}),
    "negative upper, then lower": (mps((UPPER, " UP bnd x -3\n LO bnd x -5")), {"x": (-5, -3)}),
    "negative upper, then MI": (mps((UPPER, " UP bnd x -3\n MI bnd x")), {"x": (-INF, -3)}),
    "MI keeps the upper bound": (mps((UPPER, " MI bnd x")), {"x": (-INF, INF)}),
    "upper 0": (mps((UPPER, " UP bnd x 0")), {"x": (0, 0)}),
    "FX, PL and FR": (mps((UPPER, " FX bnd x 3\n FR bnd y")), {"x": (3, 3), "y": (-INF, INF)}),
    "BV": (mps((UPPER, " BV bnd x")), {"x": (0, 1), "integer": ["x"]}),
    "LI and UI": (mps((UPPER, " LI bnd x 2\n UI bnd x 4")), {"x": (2, 4), "integer": ["x"]}),
    "LI alone": (mps((UPPER, " LI bnd x 2")), {"x": (2, INF), "integer": ["x"]}),
    "infinities": (
        mps((UPPER, " UP bnd x 1e30\n LO bnd x -inf\n UP bnd y Infinity")),
        {"x": (-INF, INF), "y": (0, INF)},
    ),
    "a bound below 1e20": (mps((UPPER, " UP bnd x 9.9e19")), {"x": (0, 9.9e19)}),
    "an infinite side": (mps(("c1 4", "c1 1e30")), {"c1": (-INF, INF)}),
    "an integer column without bounds": (mps(*MARKED, (UPPER, " UP bnd y 3")), {"x": (0, 1), "integer": ["x"]}),
    "no BOUNDS": (mps(*MARKED, ("BOUNDS\n" + UPPER + "\n", "")), {"x": (0, 1), "integer": ["x"]}),
    "an integer column with a lower bound": (mps(*MARKED, (UPPER, " LO bnd x 0")), {"x": (0, INF), "integer": ["x"]}),
    "an integer column with PL": (mps(*MARKED, (UPPER, " PL bnd x")), {"x": (0, INF), "integer": ["x"]}),
    "no INTEND": (mps(MARKED[0]), {"y": (0, 1), "integer": ["x", "y"]}),
    "empty sections": (mps(("ENDATA", "SOS\nQUADOBJ\nENDATA")), {"x": (0, 3)}),
    "BOUNDS before RHS": (mps(("BOUNDS\n UP bnd x 3\n", ""), ("RHS\n", "BOUNDS\n UP bnd x 3\nRHS\n")), {"x": (0, 3)}),
}


@each("case", READ_MPS)
def test_mps_constructs_are_read_as_their_documents_say(tmp_path, case):
    text, expected = READ_MPS[case]
    got = facts(read(tmp_path, ".mps", text))
    assert {name: got[name] for name in expected} == expected


FIXED = """NAME          fixed
ROWS
 N  the cost
 L  row one
COLUMNS
    my x      the cost           1.0   row one            2.0
    y         row one            1.0
RHS
    a set     row one            4.0
BOUNDS
 UP a set     my x               3.0
ENDATA
"""


def test_names_with_blanks_are_read_in_fixed_format(tmp_path):
    program = read(tmp_path, ".mps", FIXED)
    assert program.column_names == ("my x", "y")
    assert program.row_names == ("row one",)
    assert program.A.toarray().tolist() == [[2, 1]]
    assert (program.col_upper[0], program.row_upper[0], program.cost[0]) == (3, 4, 1)


ROW = " c1: x + y >= 2"
BOUND = " x <= 4"
READ_LP = {
    "crlf, tabs, comments, blank lines": (
        LP.replace("x + y", "x\t+ y \\ End\n").replace("Bounds", "\\ Bounds\n\n  \nBounds").replace("\n", "\r\n"),
        {"x": (0, 4), "c1": (2, INF)},
    ),
    "a byte order mark": ("\ufeff" + LP, {"cost x": 2}),
    "lines after End": (LP + "x\n", {"x": (0, 4)}),
    "names that begin with inf": (
        LP.replace("x", "inflow_1").replace("y", "info").replace("c1", "infeas"),
        {"cost inflow_1": 2, "cost info": 3, "inflow_1": (0, 4), "infeas": (2, INF)},
    ),
    "names that begin with infinity": (LP.replace("y", "INFY").replace("x", "Infinity_x"), {"cost Infinity_x": 2}),
    "names that begin with keywords": (
        LP.replace("x", "free_x").replace("y", "bounds_1").replace("c1", "st_1"),
        {"free_x": (0, 4), "st_1": (2, INF)},
    ),
    "a column named free": (LP.replace("x", "free"), {"free": (0, 4)}),
    "names with brackets": (LP.replace("x", "x[0,1]"), {"x[0,1]": (0, 4)}),
    "names with signs": (LP.replace("x", "x#1").replace("y", "y(1,2)!"), {"x#1": (0, 4), "cost y(1,2)!": 3}),
    "a row named like a column": (lp(("c1:", "x:")), {"cost x": 2}),
    "unnamed rows": (lp(("c1: ", "")), {"r0": (2, INF)}),
    "relations": (
        lp((ROW, " c1: x + y => 2\n c2: x =< 5\n c3: y < 3\n c4: x > 1")),
        {"c1": (2, INF), "c2": (-INF, 5), "c3": (-INF, 3), "c4": (1, INF)},
    ),
    "a row on several lines": (lp((ROW, " c1:\n 2\n x\n +\n y\n >=\n 2")), {"c1": (2, INF)}),
    "two rows on a line": (lp((ROW, ROW + " c2: x <= 5")), {"c2": (-INF, 5)}),
    "no blanks": (lp((ROW, " c1:x+y>=-2")), {"c1": (-2, INF)}),
    "signs": (lp((ROW, " c1: - x + -2 y - -3 z >= - 2")), {"c1": (-2, INF)}),
    "numbers": (lp((ROW, " c1: 1.e+5 x + .5 y + 2z + 3E-1 w >= 2e-3")), {"c1": (2e-3, INF)}),
    "a column twice in a row": (lp((ROW, " c1: x + y + x >= 2")), {"c1": (2, INF)}),
    "a column twice in the objective": (lp(("3 y", "3 y + x")), {"cost x": 3}),
    "an empty row": (lp((ROW, ROW + "\n c2: >= -2")), {"c2": (-2, INF)}),
    "a row of zeros": (lp((ROW, ROW + "\n c2: 0 x >= -2")), {"c2": (-2, INF)}),
    "a constant in the objective": (lp(("3 y", "3 y - 10")), {"offset": -10}),
    "only a constant": (lp(("2 x + 3 y", "10")), {"offset": 10, "cost x": 0}),
    "an empty objective": (lp(("2 x + 3 y", "")), {"offset": 0, "cost x": 0}),
    "an infinite side": (lp((ROW, ROW + "\n c2: x >= -infinity")), {"c2": (-INF, INF)}),
    "max, st": (lp(("Minimize", "MAX"), ("Subject To", "s.t.")), {"sense": "max"}),
    "everything on few lines": ("min obj: 2 x + 3 y subject to c1: x + y >= 2\nbounds x <= 4\nend\n", {"x": (0, 4)}),
    "no rows": ("max\n x\nbounds\n x <= 4\nend\n", {"sense": "max", "x": (0, 4)}),
    **{
        f"the bound {text}": (lp((BOUND, f" {text}")), {"x": ends})
        for text, ends in (
            ("x >= 1", (1, INF)),
            ("1 <= x <= 4", (1, 4)),
            ("4 >= x >= 1", (1, 4)),
            ("4 >= x", (0, 4)),
            ("x = 4", (4, 4)),
            ("4 = x", (4, 4)),
            ("x free", (-INF, INF)),
            ("x FREE", (-INF, INF)),
            ("-inf <= x <= +Infinity", (-INF, INF)),
            ("-inf <= x", (-INF, INF)),
            ("x >= - inf", (-INF, INF)),
            ("-9 <= x <= -4", (-9, -4)),
            ("x =< 4", (0, 4)),
            ("x >= -9\n x <= -4", (-9, -4)),
            ("x < 4", (0, 4)),
            ("-1e30 <= x <= 1e30", (-INF, INF)),
            ("x free\n x <= 4", (-INF, 4)),
            ("x <= 4\n x <= 3", (0, 3)),
        )
    },
    "general": (lp(("End", "General\n x y\nEnd")), {"x": (0, 4), "y": (0, INF), "integer": ["x", "y"]}),
    "binary": (lp((BOUND, " x >= 0"), ("End", "Binaries\n y\nEnd")), {"y": (0, 1), "integer": ["y"]}),
    "binary, fixed": (lp((BOUND, " x = 1"), ("End", "bin\n x\nEnd")), {"x": (1, 1), "integer": ["x"]}),
    "general and binary": (lp(("End", "gen\n y\nbin\n y\nEnd")), {"y": (0, 1), "integer": ["y"]}),
    "integer with bounds": (lp(("End", "Integer\n x\nEnd")), {"x": (0, 4), "integer": ["x"]}),
    "empty sections": (lp(("End", "General\nSemi-continuous\nSOS\nEnd")), {"x": (0, 4)}),
}


@each("case", READ_LP)
def test_lp_constructs_are_read_as_their_documents_say(tmp_path, case):
    text, expected = READ_LP[case]
    got = facts(read(tmp_path, ".lp", text))
    assert {name: got[name] for name in expected} == expected


REFUSED_MPS = {
    "1.5D2": (mps((" x c2 1", " x c2 1.5D2")), "line 9: '1.5D2': write exponents with e"),
    "0x10": (mps((" x c2 1", " x c2 0x10")), "line 9: 'x c2 0x10'"),
    "1_0": (mps((" x c2 1", " x c2 1_0")), "line 9: 'x c2 1_0'"),
    "inf as coefficient": (mps((" x c2 1", " x c2 inf")), "line 9: the coefficient inf of 'x'"),
    "nan as cost": (
        mps((" x cost 1", " x cost nan")),
        "line 8: 'x cost nan c1 1' is not a line of the section COLUMNS",
    ),
    "an entry twice": (
        mps((" x c2 1", " x c2 1 c1 3")),
        "line 9: a duplicate nonzero: column 'x' has two entries in row 'c1'",
    ),
    "a cost twice": (mps((" x c2 1", " x c2 1 cost 1")), "column 'x' has two entries in row 'cost'"),
    "a column in two places": (mps((" y c3 1", " y c3 1\n x c3 4")), "line 12: column 'x' occurs twice"),
    "a row twice": (mps((" E c3", " E c3\n L c1")), "line 7: a second row 'c1'"),
    "an unknown row": (mps((" x c2", " x c9")), "line 9: there is no row 'c9'"),
    "an unknown row in RHS": (mps((" rhs c3", " rhs c9")), "line 14: there is no row 'c9'"),
    "an unknown column": (mps((UPPER, " UP bnd z 3")), "line 16: there is no column 'z'"),
    "another type of row": (mps((" L c1", " LE c1")), "line 4: 'LE c1' is not a row"),
    "lower case": (MPS.lower(), "line 1: 'name' is not a section; write NAME"),
    "two sets of sides": (mps((" rhs c3", " other c3")), "line 14: section RHS has two sets, 'rhs' and 'other'"),
    "a set and none": (mps((" rhs c3", " c3")), "line 14: section RHS has two sets, 'rhs' and none"),
    "two sets of bounds": (
        mps((UPPER, UPPER + "\n UP b2 y 1")),
        "line 17: section BOUNDS has two sets, 'bnd' and 'b2'",
    ),
    "two sides": (
        mps((" rhs c3 2", " rhs c3 2\n rhs c3 9")),
        "line 15: the right-hand side of 'c3' is stated twice, as 2",
    ),
    "two ranges": (mps(("BOUNDS", "RANGES\n r c1 5\n r c1 1\nBOUNDS")), "line 17: the range of 'c1' is stated twice"),
    "two upper bounds": (
        mps((UPPER, UPPER + "\n UP bnd x 5")),
        "line 17: the upper bound of 'x' is stated twice, as 3 in line 16",
    ),
    "bounds after BV": (mps((UPPER, " BV bnd x\n UP bnd x 3")), "line 17: the upper bound of 'x' is stated twice"),
    "bounds after FR": (mps((UPPER, " FR bnd x\n LO bnd x 3")), "line 17: the lower bound of 'x' is stated twice"),
    "a negative upper bound": (
        mps((UPPER, " UP bnd x -3")),
        "line 16: column 'x' has a negative upper bound and no lower bound",
    ),
    "an impossible side": (
        mps(("c3 2", "c3 1e30")),
        "line 14: the right-hand side 1e+30 of 'c3' excludes every number",
    ),
    "an impossible bound": (mps((UPPER, " LO bnd x 1e30")), "line 16: the bound 1e+30 of 'x' excludes every number"),
    "semicontinuous": (mps((UPPER, " SC bnd x 3")), "line 16: column 'x' is semi-continuous"),
    "semi-integer": (mps((UPPER, " SI bnd x 3")), "line 16: column 'x' is semi-continuous"),
    "an unknown bound": (mps((UPPER, " XX bnd x 3")), "line 16: the bound 'XX' is unknown"),
    "a bound without a number": (mps((UPPER, " UP bnd x")), "line 16: 'UP bnd x' is not a line of the section BOUNDS"),
    "SOS": (
        mps(("ENDATA", "SOS\n S1 s1 1\n    x 1\nENDATA")),
        "line 18: section SOS: a linear program has no special ordered sets",
    ),
    "SOS markers": (mps((" x cost", " M1 'MARKER' 'SOSORG'\n x cost")), "line 8: special ordered sets"),
    "INDICATORS": (
        mps(("ENDATA", "INDICATORS\n IF c1 x 1\nENDATA")),
        "line 18: section INDICATORS: a linear program has no indicator",
    ),
    "QMATRIX": (
        mps(("ENDATA", "QMATRIX\n x x 1\nENDATA")),
        "line 18: section QMATRIX: a linear program has no quadratic",
    ),
    "QCMATRIX": (
        mps(("ENDATA", "QCMATRIX c1\n x x 1\nENDATA")),
        "line 18: section QCMATRIX: a linear program has no quadratic",
    ),
    "LAZYCONS": (
        mps(("COLUMNS", "LAZYCONS\n L c7\nCOLUMNS")),
        "line 8: section LAZYCONS: a linear program has no lazy",
    ),
    "another section": (mps(("ENDATA", "FOO\nENDATA")), "line 17: the section 'FOO' is unknown"),
    "a section twice": (mps(("ENDATA", "BOUNDS\n UP bnd y 7\nENDATA")), "line 17: a second section BOUNDS"),
    "RANGES before RHS": (mps(("RHS\n", "RANGES\n r c1 5\nRHS\n")), "line 14: section RHS comes after RANGES"),
    "two senses": (mps(("NAME t", "NAME t\nMAX\nOBJSENSE\n MIN")), "line 3: a second sense; line 2 states one"),
    "another sense": (mps(("NAME t", "NAME t\nOBJSENSE\n  up")), "line 3: 'up' is not a sense"),
    "OBJNAME of nothing": (mps(("NAME t", "NAME t\nOBJNAME\n  c1")), "line 2: OBJNAME: there is no row 'c1' of type N"),
    "no ENDATA": (mps(("ENDATA\n", "")), "no ENDATA line at the end"),
    "markers without quotes": (mps((" x cost", " M1 MARKER INTORG\n x cost")), "line 8: there is no row 'MARKER'"),
    "two INTORG": (
        mps(MARKED[0], (" y cost", " M2 'MARKER' 'INTORG'\n y cost")),
        "line 11: 'INTORG' where columns are already integer",
    ),
    "no UTF-8": (MPS.encode().replace(b"x", b"\xe4"), "line 8: is not UTF-8 text"),
}
REFUSED_LP = {
    "a constant in a row": (lp((ROW, " bal: x + y - 4 >= 0")), "line 4: row 'bal': the constant 4 stands left"),
    "a constant and a side": (lp((ROW, " c1: x + 1 + y >= 2")), "line 4: row 'c1': the constant 1 stands left"),
    "a column right": (lp((ROW, " c1: x >= y")), "line 4: row 'c1': 'y' stands right of >="),
    "a term right": (lp((ROW, " c1: x >= 2 y + 1")), "line 4: 'y' follows the right-hand side"),
    "a sum right": (lp((ROW, " c1: x >= 2 + 3")), "line 4: '+' follows the right-hand side"),
    "a row that begins with its side": (
        lp((ROW, " c1: 3 >= x + y")),
        "line 4: row 'c1' begins with a number",
    ),
    "a row with two ends": (lp((ROW, " c1: 1 <= x + y <= 4")), "line 4: row 'c1' begins with a number"),
    "two relations": (lp((ROW, " c1: x + y > = 4")), "line 4: row 'c1' has two relations"),
    "==": (lp((ROW, " c1: x + y == 4")), "line 4: '==' is not a relation"),
    "no relation": (lp((ROW, " c1: x + y\n c2: x >= 1")), "line 5: the row before 'c2' has no relation"),
    "no side": (lp((ROW, " c1: x + y >=")), "line 5: row 'c1' has no relation or no right-hand side"),
    "no operator": (lp((ROW, " c1: x y >= 2")), "line 4: no operator before 'y'"),
    "a coefficient after": (lp((ROW, " c1: x 2 + y >= 2")), "line 4: no operator before '2'"),
    "two coefficients": (lp((ROW, " c1: 2 3 x >= 2")), "line 4: no operator before '3'"),
    "a product": (lp((ROW, " c1: 2 * x >= 2")), "line 4: '*': a linear program has no products"),
    "a quotient": (lp((ROW, " c1: x / 2 >= 2")), "line 4: '/': a linear program has no quotients"),
    "a fraction": (lp((ROW, " c1: 1/2 x >= 2")), "line 4: '/': a linear program has no quotients"),
    "parentheses": (lp((ROW, " c1: 2 (x + y) >= 2")), "line 4: '(x': parentheses are part of a name"),
    "a power": (lp(("3 y", "3 y^2")), "line 2: '^': a linear program has no powers"),
    "a quadratic objective": (lp(("3 y", "[ y ^2 ] / 2")), "line 2: '[': a linear program has no quadratic terms"),
    "a quadratic row": (lp((ROW, " c1: x + [ x * y ] >= 2")), "line 4: '[': a linear program has no quadratic terms"),
    "an indicator": (lp((ROW, " c1: y = 1 -> x >= 2")), "line 4: '->': a linear program has no indicator rows"),
    "1.5D2": (lp((ROW, " c1: 1.5D2 x + y >= 2")), "line 4: '1.5D2': write exponents with e"),
    "a decimal comma": (lp((ROW, " c1: 2,5 x + y >= 2")), "line 4: no operator before 'x'"),
    "inf as a name": (LP.replace("x", "inf"), "line 2: 'inf' is a number for some readers"),
    "a keyword as a name": (LP.replace("y", "bounds"), "line 2: 'bounds' is reserved for a section"),
    "a sense as a name": (LP.replace("y", "max"), "line 2: 'max' is reserved"),
    "a constant within": (lp(("2 x", "2 x + 7")), "line 2: the constant 7 is not the last term of the objective"),
    "two objectives": (lp(("3 y", "3 y\n o2: x")), "line 3: a second objective, 'o2'"),
    "several objectives": (
        lp(("Minimize", "Minimize multi-objectives")),
        "line 1: a linear program has no several objectives",
    ),
    "minimise": (lp(("Minimize", "minimise")), "line 1: 'minimise' is not a sense"),
    "min:": (lp(("Minimize\n obj", "min")), "line 1: no colon may follow min"),
    "words first": ("Problem p\n" + LP, "line 1: 'Problem' is not a sense"),
    "a row twice": (lp((ROW, ROW + "\n c1: x <= 9")), "line 5: a second row 'c1'; line 4 has one"),
    "an impossible side": (
        lp((ROW, " c1: x >= inf")),
        "line 4: the right-hand side inf of 'c1' excludes every number",
    ),
    "an impossible bound": (lp((BOUND, " x >= inf")), "line 6: the bound inf of 'x' excludes every number"),
    "a named bound": (lp((BOUND, " b1: x <= 4")), "line 6: 'b1 : x <= 4' is not a bound"),
    "a bound with a coefficient": (lp((BOUND, " 2 x <= 4")), "line 6: '2 x <= 4' is not a bound"),
    "a bound on two lines": (lp((BOUND, " 1 <=\n x <= 4")), "line 6: '1 <=' is not a bound"),
    "a negative upper bound": (lp((BOUND, " x <= -4")), "line 6: column 'x' has a negative upper bound"),
    "free after a bound": (lp((BOUND, " x <= 4\n x free")), "line 7: 'x' is free and has a bound in line 6"),
    "nan": (lp((BOUND, " x <= nan")), "line 6: 'x <= nan' is not a bound"),
    "a binary column with bounds": (
        lp(("End", "Binary\n x\nEnd")),
        "line 8: 'x' is binary and has bounds outside [0, 1]",
    ),
    "an integer column without bounds": (lp(("End", "Integer\n y\nEnd")), "line 8: 'y' is Integer without bounds"),
    "Bounds last": (lp(("Bounds", "General\n x\nBounds")), "line 7: section Bounds comes after General"),
    "Bounds twice": (lp(("End", "Bounds\n y <= 4\nEnd")), "line 7: a second section Bounds"),
    "semi-continuous": (
        lp(("End", "Semi-continuous\n x\nEnd")),
        "line 8: section Semi-continuous: a linear program has no",
    ),
    "SOS": (
        lp(("End", "SOS\n s1: S1:: x:1 y:2\nEnd")),
        "line 8: section SOS: a linear program has no special ordered sets",
    ),
    "lazy constraints": (lp(("Bounds", "Lazy Constraints\n l: x <= 3\nBounds")), "line 5: section 'lazy constraints'"),
    "user cuts": (lp(("Bounds", "User Cuts\n l: x <= 3\nBounds")), "line 5: section 'user cuts'"),
    "general constraints": (
        lp(("End", "General Constraints\n g: x = MAX ( y , 3 )\nEnd")),
        "line 7: section 'general constraints'",
    ),
    "a piecewise linear objective": (lp(("End", "PWLObj\n x: (1,1)\nEnd")), "line 7: section 'pwlobj'"),
    "no End": (lp(("End\n", "")), "line 6: the file has no End at its end"),
    "a small coefficient": (lp((ROW, " c1: 1e-13 x + y >= 2")), "line 4: the coefficient 1e-13 of 'x'"),
}


@each(
    ("suffix", "case"),
    [*((".mps", case) for case in REFUSED_MPS), *((".lp", case) for case in REFUSED_LP)],
)
def test_what_cannot_be_read_is_refused_with_its_line(tmp_path, suffix, case):
    text, reason = {".mps": REFUSED_MPS, ".lp": REFUSED_LP}[suffix][case]
    file = tmp_path / f"a{suffix}"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadFile) as refused:
        read_program(file)
    assert reason in str(refused.value)


# What users see


def solved(capsys, spec: str) -> dict[str, object]:
    assert main(["solve", NAME, spec, "--no-store", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_second_free_row_and_its_side_change_nothing(tmp_path, capsys):
    text = (
        "NAME\nROWS\n N cost\n N spare\n L cap\nCOLUMNS\n p cost -1 cap 1\n q spare -5 cap 1\nRHS\n RHS cap 4 spare 7\n"
        "BOUNDS\n UP BND p 3\nENDATA\n"
    )
    (tmp_path / "a.mps").write_text(text, encoding="utf-8")
    record = solved(capsys, f"mps:{tmp_path / 'a.mps'}")
    assert (record["objective"], record["proof"]) == (-3, "optimal")


PULP = "*SENSE:Maximize\n" + MPS


def test_a_sense_in_a_comment_is_noted_and_a_stated_sense_is_taken(tmp_path, capsys):
    (tmp_path / "a.mps").write_text(PULP, encoding="utf-8")
    spec = f"mps:{tmp_path / 'a.mps'}"
    record = solved(capsys, spec)
    assert (record["sense"], record["objective"]) == ("min", 5)
    assert "note: line 1: a comment that says 'maximise'" in record["message"]
    assert "note: line 1" in str(oc.solve(NAME, spec).summary()["message"])
    for sense, best in (("max", 6), ("min", 5)):
        record = solved(capsys, f"{spec},sense={sense}")
        assert (record["sense"], record["objective"], record["message"]) == (sense, best, "")
        assert record["instance"] == f"{spec},sense={sense}"
    assert parse(f"{spec},sense=max").hash != parse(spec).hash
    assert parse(f"{spec},sense=min").hash == parse(spec).hash


def test_a_stated_sense_that_differs_from_the_file_is_noted(tmp_path, capsys):
    (tmp_path / "a.lp").write_text(LP, encoding="utf-8")
    spec = f"mps:{tmp_path / 'a.lp'}"
    record = solved(capsys, f"{spec},sense=min")
    assert (record["objective"], record["message"]) == (4, "")
    assert parse(f"{spec},sense=max").notes == ("the file states min; it is solved as max, as ,sense=max says",)
    assert main(["solve", NAME, f"{spec},sense=up", "--no-store"]) == 2
    assert "sense=up is unknown; write sense=min or sense=max" in capsys.readouterr().err


def test_a_maximum_of_nothing_is_read(tmp_path):
    """Gurobi writes no label; HiGHS then reads a minimum."""
    program = read(tmp_path, ".lp", "Maximize\n \nSubject To\n r: x + y <= 1\nEnd\n")
    assert (program.sense, program.cost.tolist()) == ("max", [0, 0])


def test_columns_that_only_bounds_name_are_noted(tmp_path):
    program = read(tmp_path, ".lp", lp((BOUND, " xx <= 4")))
    assert len(program.notes) == 1
    assert program.notes[0].startswith(
        "line 6: column 'xx', which occurs in no row and not in the objective, only in Bounds, and which CPLEX"
    )


#: Files that another program reads as another program, and what the note says; the rows of the table in the documents.
NOTED = {
    "OBJSENSE MAX": (".mps", mps(("NAME t", "NAME t\nOBJSENSE MAX")), "line 2: OBJSENSE and its word on one line"),
    "OBJSENSE MAXIMIZE": (".mps", mps(("NAME t", "NAME t\nOBJSENSE  MAXIMIZE")), "which HiGHS 1.16, CPLEX 22.2 and"),
    "MAX below": (
        ".mps",
        mps(("NAME t", "NAME t\nOBJSENSE\n MAX")),
        "line 2: a maximization, which PuLP 3.3 takes for",
    ),
    "BV": (".mps", mps((" UP bnd x 3", " BV bnd x")), "line 16: a bound BV, which PuLP 3.3 takes for a continuous"),
    "marked": (
        ".mps",
        mps((" y cost", " m 'MARKER' 'INTORG'\n y cost"), ("RHS\n", " m 'MARKER' 'INTEND'\nRHS\n")),
        "the integer column 'y' without bounds, 0 or 1, which has no upper bound for PuLP 3.3",
    ),
    "NAME": (".mps", mps((" y c", " NAME c")), "line 10: a column NAME, from which on HiGHS 1.16 reads no columns"),
    "small": (".mps", mps(("y c3 1", "y c3 1e-10")), "line 11: a coefficient of 1e-10, which is 0 for HiGHS 1.16 and"),
    "MAX": (".mps", mps(("NAME t", "NAME t\nMAX")), "line 2: a section MAX, which HiGHS"),
    "OBJNAME": (
        ".mps",
        mps(("NAME t", "NAME t\nOBJNAME\n spare"), (" N cost", " N cost\n N spare"), ("c2 1", "c2 1 spare 8")),
        "line 2: OBJNAME of another row than the first of type N, which is the objective for HiGHS 1.16 and Gurobi 13",
    ),
    "spare": (
        ".mps",
        mps((" N cost", " N cost\n N spare"), (" x c2 1", " x c2 1 spare 8"), ("c3 2", "c3 2 spare 7")),
        "line 15: a right-hand side of 'spare', a row of type N",
    ),
    "constant": (
        ".mps",
        mps(("c3 2", "c3 2 cost 5")),
        "line 14: a right-hand side of the objective, minus its constant",
    ),
    "integers": (".mps", mps(*MARKED, (UPPER, " LO bnd x 2")), "line 18: a lower bound of the integer column 'x'"),
    "lower last": (
        ".mps",
        mps(*MARKED, (UPPER, " UP bnd x 1\n LO bnd x 0")),
        "line 19: a lower bound of the integer column 'x' after its upper bound 1, which is infinite for SCIP 10",
    ),
    "upper 0": (".mps", mps((UPPER, " UP bnd x 0")), "line 16: an upper bound 0 of 'x', below which OMMX"),
    "sets": (".mps", mps((" rhs c1", " c1"), (" rhs c3", " c3")), "line 13: no name of a set in RHS"),
    "bounds": (
        ".mps",
        mps((" UP bnd", " UP")),
        "line 16: no name of a set in BOUNDS, without which Xpress 9.9 ignores BOUNDS and SCIP 10 takes",
    ),
    "like a row": (".mps", mps((" rhs c1", " c2 c1"), (" rhs", " c2")), "line 13: a set of RHS named like a row"),
    "like a column": (".mps", mps((UPPER, " UP y x 3")), "line 16: a set of BOUNDS named like a column"),
    "cost": (
        ".lp",
        lp(("3 y", "3 y - 10")),
        "the constant -10 of the objective, which Gurobi 13 takes for a column, and",
    ),
    "number first": (
        ".lp",
        lp((BOUND, " 2 <= x")),
        "line 6: the bound '2 <= x' with its column right, which MOSEK 11.2",
    ),
    "two bounds": (
        ".lp",
        lp((BOUND, " x <= 4\n x <= 3")),
        "line 7: the bound 3 of 'x' after 4 in line 6, which Gurobi 13 and SCIP 10 write for two columns of one name",
    ),
    "twice": (".lp", lp((ROW, " c1: x + y + x >= 2")), "line 4: 'x' twice in a row, of which SCIP 10 takes one term"),
    "twice in the cost": (".lp", lp(("3 y", "3 y + x")), "line 2: 'x' twice in the objective, of which HiGHS 1.15"),
    "=>": (".lp", lp((ROW, " c1: x + y => 2")), "line 4: the relation =>, which MOSEK 11.2 reads the other way round"),
    "2.x": (".lp", lp((ROW, " c1: 2.x + y >= 2")), "line 4: '2.x', a number and a name, for SCIP 10, Gurobi"),
    "2x": (".lp", lp((ROW, " c1: 2x + y >= 2")), "line 4: '2x', a number and a name, for Gurobi 13 and COPT 8"),
    "- -": (".lp", lp((ROW, " c1: x - -2 y >= 2")), "line 4: a second sign after a minus, of which CBC 2.10 and 2.935"),
    "two rows": (".lp", lp((ROW, ROW + " c2: x <= 5")), "line 4: a second row on the line, which MOSEK 11.2 and CPLEX"),
    "Integer": (".lp", lp(("End", "Integer\n x\nEnd")), "line 8: 'x' in the section Integer, which makes [0, 1]"),
}


@each("case", NOTED)
def test_what_another_program_reads_differently_is_noted_in_one_line(tmp_path, case):
    suffix, text, note = NOTED[case]
    notes = read(tmp_path, suffix, text).notes
    assert len(notes) == 1
    assert note in notes[0]
    assert "\n" not in notes[0]


@pytest.mark.parametrize(("suffix", "text"), [(".mps", MPS), (".lp", LP)])
def test_plain_files_have_no_notes(tmp_path, suffix, text):
    assert read(tmp_path, suffix, text).notes == ()


@pytest.mark.parametrize(
    ("sense", "suffix", "text", "reason"),
    [
        *(
            (sense, ".lp", lp((BOUND, " 5 <= x <= 4")), "column x: its lower bound 5 is above its upper bound 4")
            for sense in ("min", "max")
        ),
        (
            "min",
            ".lp",
            lp((BOUND, " 0.2 <= x <= 0.8"), ("End", "General\n x\nEnd")),
            "column x: no integer is between 0.2 and 0.8",
        ),
        ("max", ".lp", lp((ROW, ROW + "\n c2: 0 x >= 1")), "row c2: it is empty, and 0 is not in [1, inf]"),
        (
            "min",
            ".mps",
            mps((UPPER, UPPER + "\n LO bnd x 5")),
            "column x: its lower bound 5 is above its upper bound 3",
        ),
    ],
)
def test_a_column_or_row_that_proves_infeasibility_is_named(tmp_path, capsys, sense, suffix, text, reason):
    (tmp_path / f"a{suffix}").write_text(text, encoding="utf-8")
    spec = f"mps:{tmp_path / f'a{suffix}'},sense={sense}"
    assert main(["solve", NAME, spec, "--no-store", "--json"]) == 3
    output = capsys.readouterr()
    record = json.loads(output.out)
    assert (record["termination"], record["infeasible_by"]) == ("infeasible", reason.partition(":")[0])
    assert reason in output.err
    assert "only the solver claims" not in output.err


@pytest.mark.parametrize("suffix", [".mps.gz", ".lp.gz"])
def test_a_file_that_unpacks_to_very_much_is_refused_early(tmp_path, suffix):
    file = tmp_path / f"a{suffix}"
    with gzip.open(file, "wb", compresslevel=1) as stream:
        for _ in range(64):
            stream.write(b"\n" * (1 << 20))
    with pytest.raises(BadFile, match=r"has more than [0-9]{8} bytes after decompression"):
        read_program(file)


def test_a_compressed_file_may_have_several_members(tmp_path):
    half = len(MPS) // 2
    (tmp_path / "a.mps.gz").write_bytes(
        gzip.compress(MPS[:half].encode()) + gzip.compress(MPS[half:].encode()) + b"\0" * 9
    )
    assert read_program(tmp_path / "a.mps.gz") == read(tmp_path, ".mps", MPS)


def test_names_made_up_for_rows_do_not_clash(tmp_path):
    program = read(tmp_path, ".lp", lp((ROW, " x + y >= 2\n r0: x <= 9\n y <= 8")))
    assert program.row_names == ("r0_", "r0", "r2")


def test_readers_take_time_in_proportion_to_the_file():
    def work(count: int, read_one, text: bytes) -> int:
        calls = 0

        def count_calls(*_):
            nonlocal calls
            calls += 1

        sys.setprofile(count_calls)
        try:
            read_one(text, "a file")
        finally:
            sys.setprofile(None)
        return calls

    def mps_of(count: int) -> bytes:
        rows = "".join(f" L c{i}\n" for i in range(count))
        entries = "".join(f" x{i} cost 1 c{i} 1\n" for i in range(count))
        return f"NAME\nROWS\n N cost\n{rows}COLUMNS\n{entries}RHS\nENDATA\n".encode()

    def lp_of(count: int) -> bytes:
        terms = " + ".join(f"x{i}" for i in range(count))
        return f"min\n {terms}\nst\n c: {terms} >= 1\nend\n".encode()

    for make, read_one in ((mps_of, mps_reader.read_mps), (lp_of, lp_reader.read_lp)):
        read_one(make(10), "a file")  # imports
        small, large = (work(count, read_one, make(count)) for count in (500, 2000))
        assert large < 5 * small


def test_arrays_of_a_reading_are_those_of_the_file(tmp_path):
    program = read(tmp_path, ".mps", MPS)
    assert program.A.toarray().tolist() == [[1, 1], [1, 0], [0, 1]]
    assert program.indices.dtype == program.indptr.dtype == np.int64
