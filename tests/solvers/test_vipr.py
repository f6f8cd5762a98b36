"""Certificates: the checker accepts what holds, and no false claim, whatever is changed in a file."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from slow_cases import marked

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.errors import BadFile, ModelError
from opticoll.solvers.exact import vipr_check, vipr_file
from opticoll.solvers.exact.exact_form import ExactAnswer, ExactForm, Leaf, Split, fault
from opticoll.solvers.exact.vipr_verify import OtherProblem, Unproven, verify

ALONE = Path(vipr_check.__file__)

#: Own examples of every kind of derivation, with what they prove (None: no solution).
EXAMPLES = {
    "round a cycle": (
        """% the largest stable set of a triangle
        VER 1.0 VAR 3 a b c INT 3 0 1 2 OBJ max 3 0 1 1 1 2 1 CON 6 3
        la G 0 1 0 1  lb G 0 1 1 1  lc G 0 1 2 1
        ab L 1 2 0 1 1 1  bc L 1 2 1 1 2 1  ca L 1 2 0 1 2 1
        RTP range 1 1 SOL 2 none 0 one 1 1 1
        DER 1 bound L 1 OBJ { rnd 3 3 1/2 4 1/2 5 1/2 } -1""",
        (1, 1),
    ),
    "split on a sum": (
        """VER 1.0 VAR 2 x y INT 2 0 1 OBJ min 0 CON 4 2
        lx G 0 1 0 1  uy L 9 1 1 1  low G 3 2 0 2 1 2  high L 3.0 2 0 2 1 2
        RTP infeas SOL 0 DER 5
        A4 L 1 2 0 1 1 1 { asm } 8     % one case
        D5 G 1 0 { lin 2 2 1 4 -2 } 8
        A6 G 2 2 0 1 1 1 { asm } 8
        D7 G 1 0 { lin 2 3 -1 6 2 } 8
        D8 G 1 0 { uns 5 4 7 6 } -1""",
        None,
    ),
    "cutoff at a solution": (
        """VER 1.0 VAR 2 x y INT 2 0 1 OBJ max 2 0 3 1 2 CON 4 3
        lx G 0 1 0 1  ly G 0 1 1 1  ux L 5 1 0 1  row L 3 2 0 2 1 2
        RTP range 3 3 SOL 1 best 1 0 1 DER 4
        C4 G 4 OBJ { sol } 7
        C5 L 1 2 0 1 1 1 { rnd 1 3 1/2 } 6
        C6 L 3 OBJ { lin 2 5 3 1 -1 } 7
        C7 G 1 0 { lin 2 4 1 6 -1 } -1""",
        (3, 3),
    ),
    "continuous, with an equation": (
        """VER 1.1 VAR 3 x y z INT 0 OBJ min 3 0 .5 1 1 2 2 CON 5 3
        lx G 0 1 0 1  ly G 0 1 1 1  lz G 0 1 2 1
        sum E 4 3 0 1 1 1 2 1  mix G -1 2 0 -1 1 1
        RTP range 11/4 2.75 SOL 1 best 2 0 5/2 1 1.5
        DER 1
        bound G 11/4 OBJ { lin 3 3 3/4 4 1/4 2 5/4 } 0""",
        (Fraction(11, 4), Fraction(11, 4)),
    ),
    "no solution of inequalities": (
        """VER 1.0 VAR 2 x y INT 0 OBJ min 1 0 1 CON 3 0
        a G 3 2 0 1 1 1  b L 1 2 0 1 1 -1  c L 3/4 1 1 1
        RTP infeas SOL 0 DER 2
        D3 G 2 1 1 2 { lin 2 0 1 1 -1 } 4
        D4 L -1/2 0 { lin 2 2 2 3 -1 } -1""",
        None,
    ),
    "a bound that is not the value": (
        """VER 1.0 VAR 2 x y INT 1 0 OBJ max 2 0 2 1 1 CON 4 2
        lx G 0 1 0 1  ly G 0 1 1 1  r L 7 2 0 2 1 2  s L 4 2 0 2 1 1
        RTP range 7/2 4 SOL 1 found 2 0 1 1 3/2
        DER 1 bound L 4 OBJ { lin 1 3 1 } -1""",
        (Fraction(7, 2), 4),
    ),
}
#: A combination that leaves a bound out, as version 1.1 of the format allows.
WEAK = """VER 1.1 VAR 2 x y INT 0 OBJ min 2 0 1 1 2 CON 2 1
    ly G 0 1 1 1  r G 3 2 0 1 1 1
    RTP range 3 3 SOL 1 best 1 0 3 DER 1
    D2 G 3 OBJ { lin weak { 0 } 1 1 1 } -1"""


def form_of(rows, sides, bounds, cost, sense="max", integer=None, offset=0) -> ExactForm:
    """A small problem from dense rows."""
    entries = [[(j, Fraction(a)) for j, a in enumerate(row) if a] for row in rows]
    ends = [
        [tuple(None if one[k] is None else Fraction(one[k]) for one in pairs) for k in (0, 1)]
        for pairs in (sides, bounds)
    ]
    return ExactForm(
        np.cumsum([0, *map(len, entries)]),
        np.array([j for row in entries for j, _ in row]),
        tuple(a for row in entries for _, a in row),
        *ends[0],
        *ends[1],
        tuple(map(Fraction, cost)),
        sense,
        np.array(integer or [False] * len(cost)),
        Fraction(offset),
    )


def branched(k: Fraction, offset: int = 0) -> tuple[ExactForm, ExactAnswer]:
    """Maximize 3k x + 2k y within 2 x + 2 y <= 3 over whole x <= 5 and y, by branching."""
    form = form_of([[2, 2]], [(None, 3)], [(0, 5), (0, None)], [3 * k, 2 * k], integer=[True, True], offset=offset)
    nodes = (
        Split(0, 0, 1, 2),
        Leaf({0: -k}),
        Split(0, 1, 3, 4),
        Split(1, 0, 5, 6),
        Leaf({0: Fraction(-1)}, farkas=True),
        Leaf({}),
        Leaf({0: -k * Fraction(3, 2)}),
    )
    return form, ExactAnswer("optimal", 3 * k + offset, (Fraction(1), Fraction(0)), nodes)


def linear() -> tuple[ExactForm, ExactAnswer]:
    form = form_of([[1, 2], [3, 1], [1, 1]], [(None, 4), (None, 6), (1, 5)], [(0, None), (0, 7)], [1, 1], offset="1/3")
    x = (Fraction(8, 5), Fraction(6, 5))
    return form, ExactAnswer("optimal", form.objective(x), x, (Leaf({0: Fraction(-2, 5), 1: Fraction(-1, 5)}),))


def empty() -> tuple[ExactForm, ExactAnswer]:
    """2 x = 1 over whole x; one part of the tree has crossed bounds and needs no multipliers."""
    form = form_of([[2]], [(1, 1)], [(0, 3)], [1], "min", [True])
    nodes = (
        Split(0, 0, 1, 2),
        Leaf({0: Fraction(1)}, True),
        Split(0, 5, 3, 4),
        Leaf({0: Fraction(-1)}, True),
        Leaf({}),
    )
    return form, ExactAnswer("infeasible", None, None, nodes)


def bounded() -> tuple[ExactForm, ExactAnswer]:
    """The problem of :func:`branched` with its optimum 3 and a tree that proves 4 only."""
    form, _ = branched(Fraction(1))
    nodes = (Split(0, 0, 1, 2), Leaf({0: Fraction(-1)}), Leaf({0: Fraction(-3, 2)}))
    return form, ExactAnswer("bounded", Fraction(3), (Fraction(1), Fraction(0)), nodes, bound=Fraction(4))


def equations(k: Fraction) -> tuple[ExactForm, ExactAnswer]:
    """Minimize 3k x + 5k y over whole x = 1 and y = 2: equations alone prove 13k, and the format rounds none."""
    form = form_of([[1, 0], [0, 1]], [(1, 1), (2, 2)], [(0, 3), (0, 3)], [3 * k, 5 * k], "min", [True, True])
    x = (Fraction(1), Fraction(2))
    return form, ExactAnswer("optimal", 13 * k, x, (Leaf({0: 3 * k, 1: 5 * k}),))


def nothing() -> tuple[ExactForm, ExactAnswer]:
    """Without an objective, no row is needed."""
    form = form_of([[1]], [(None, 1)], [(0, 3)], [0], "min", [True])
    return form, ExactAnswer("optimal", Fraction(0), (Fraction(1),), (Leaf({}),))


WRITTEN = {
    "bounded": bounded(),
    "linear": linear(),
    "branched": branched(Fraction(1)),
    "branched in halves": branched(Fraction(1, 2), 7),
    "empty": empty(),
}


def proven(path: Path, text: str, form: ExactForm | None = None):
    path.write_text(text, encoding="utf-8")
    try:
        return verify(path, form)
    except BadFile:
        return None


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_are_accepted(name, tmp_path):
    text, value = EXAMPLES[name]
    result = proven(tmp_path / "a.vipr", text)
    assert result is not None
    assert (None if result.infeasible else (result.low, result.high)) == value


#: Proofs without an inequality, of which more may be stated than is needed: an equation in place of an inequality.
EQUATIONS = {
    "equations": equations(Fraction(1)),
    "equations in tenths": equations(Fraction(1, 10)),
    "no objective": nothing(),
}


@pytest.mark.parametrize("name", [*WRITTEN, *EQUATIONS])
@pytest.mark.parametrize("ending", [".vipr", ".vipr.gz"])
def test_what_is_written_is_proven(name, ending, tmp_path):
    form, answer = (WRITTEN | EQUATIONS)[name]
    assert fault(form, answer) is None
    path = tmp_path / f"a{ending}"
    facts = vipr_file.write(path, form, answer, name)
    result = verify(path, form)
    assert (result.low, result.high) == (answer.objective, answer.proven)
    assert result.infeasible is (answer.status == "infeasible")
    assert (result.constraints, result.derivations) == (facts["constraints"], facts["derivations"])
    assert facts["bytes"] == path.stat().st_size


def test_combinations_without_all_multipliers_are_refused(tmp_path):
    path = tmp_path / "a.vipr"
    whole = WEAK.replace("weak { 0 } 1 1 1", "2 1 1 0 1")
    assert proven(path, whole) is not None
    for text in (WEAK, WEAK.replace("weak { 0 } 1 1 1", "incomplete 1")):
        path.write_text(text)
        with pytest.raises(Unproven, match="omits multipliers"):
            verify(path)


#: False or unproven claims whose derivations look right one by one.
UNSOUND = {
    "an upper end without a solution": """VER 1.0 VAR 1 x INT 0 OBJ min 1 0 1 CON 1 1 l G 1 1 0 1
        RTP range 1 1 SOL 0 DER 1 d G 1 OBJ { lin 1 0 1 } -1""",
    "cases around a half": """VER 1.0 VAR 1 x INT 1 0 OBJ min 1 0 1 CON 2 2 l G 1 1 0 1 u L 1 1 0 1
        RTP infeas SOL 0 DER 5
        A2 L 1/2 1 0 1 { asm } -1
        A3 G 3/2 1 0 1 { asm } -1
        D4 G 1/2 0 { lin 2 0 1 2 -1 } -1
        D5 G 1/2 0 { lin 2 1 -1 3 1 } -1
        D6 G 1 0 { uns 4 2 5 3 } -1""",
    "a continuous variable is rounded": """VER 1.0 VAR 1 x INT 0 OBJ min 1 0 1 CON 1 1 l G 1/2 1 0 1
        RTP range 1 1 SOL 1 s 1 0 1 DER 1 d G 1 OBJ { rnd 1 0 1 } -1""",
    "a bound beyond a cutoff": """VER 1.0 VAR 1 x INT 1 0 OBJ min 1 0 1 CON 2 2 l G 2 1 0 1 u L 9 1 0 1
        RTP range 5 9 SOL 1 s 1 0 2 DER 3
        C2 L 1 OBJ { sol } -1
        D3 G 1 0 { lin 2 2 -1 0 1 } -1
        D4 G 5 OBJ { lin 1 3 1 } -1""",
    "an assumption that stays": """VER 1.0 VAR 1 x INT 0 OBJ min 1 0 1 CON 1 1 l G 1 1 0 1
        RTP range 2 2 SOL 1 s 1 0 2 DER 2 A1 G 2 1 0 1 { asm } -1 D2 G 2 OBJ { lin 1 1 1 } -1""",
    "a constraint after its last use": """VER 1.0 VAR 1 x INT 0 OBJ min 1 0 1 CON 1 1 l G 1 1 0 1
        RTP range 1 1 SOL 1 s 1 0 1 DER 2 D1 G 1 1 0 1 { lin 1 0 1 } 1 D2 G 1 OBJ { lin 1 1 1 } -1""",
    "a multiplier of the wrong sign": """VER 1.0 VAR 1 x INT 0 OBJ max 1 0 1 CON 1 1 l G 1 1 0 1
        RTP range 1 1 SOL 1 s 1 0 1 DER 1 D1 L 1 OBJ { lin 1 0 1 } -1""",
}


@pytest.mark.parametrize("name", UNSOUND)
def test_unsound_proofs_are_refused(name, tmp_path):
    path = tmp_path / "a.vipr"
    path.write_text(UNSOUND[name])
    with pytest.raises(Unproven):
        verify(path)


# --- Mutations --------------------------------------------------------------------------------------------------------

#: Tokens whose mutation may leave a proof of the same or a weaker claim, and why.
HARMLESS = {
    "name": "names carry no meaning",
    "last use": "a later index, or -1, keeps a constraint longer than needed",
    "bounds": "the number of bound constraints is not used",
    "end": "a wider interval is a weaker claim",
    "solution": "another solution may be as good, or a further one is not needed",
    "solutions": "nothing needs a solution of a claim without a primal end",
    "version": "1.0 is a part of 1.1",
}
#: The same in proofs of several steps, of which one may prove more than the next ones need, or any absurdity, or round
#: (lin and rnd) what is whole already.
HARMLESS_IN_STEPS = {"derived sense", "derived right-hand side", "derived coefficient", "multiplier", "reason"}


def roles(words: list[str]) -> list[str]:
    """What every token of a certificate is."""
    results: list[str] = []

    def take(*names: str) -> None:
        results.extend(names)

    def vector(role: str) -> None:
        size = int(words[len(results)])
        take("size", *["index", role] * size)

    def constraint(derived: str = "") -> None:
        take("name", f"{derived}sense", f"{derived}right-hand side")
        if words[len(results)] == "OBJ":
            take("OBJ")
        else:
            vector(f"{derived}coefficient")

    def count(keyword: str, role: str = "count") -> int:
        assert words[len(results)] == keyword
        take("keyword", role)
        return int(words[len(results) - 1])

    take("keyword", "version")
    take(*["name"] * count("VAR"))
    take(*["index"] * count("INT"))
    take("keyword", "direction")
    vector("coefficient")
    constraints = count("CON")
    take("bounds")
    for _ in range(constraints):
        constraint()
    take("keyword", "claim")
    if words[len(results) - 1] == "range":
        take("end", "end")
    for _ in range(count("SOL", "solutions")):
        take("name")
        vector("solution")
    for _ in range(count("DER")):
        constraint("derived ")
        take("brace", "reason")
        kind = words[len(results) - 1]
        if kind in ("lin", "rnd"):
            vector("multiplier")
        take(*["index"] * (4 if kind == "uns" else 0), "brace", "last use")
    assert len(results) == len(words)
    return results


def mutations(word: str, role: str) -> list[str]:
    """Other tokens in the place of one; none and two tokens among them."""
    groups = [("L", "E", "G"), ("min", "max"), ("range", "infeas"), ("asm", "sol", "lin", "rnd", "uns"), ("1.0", "1.1")]
    for group in groups:
        if word in group and role not in ("solution", "end"):
            return [*(other for other in group if other != word), "", f"{word} {word}"]
    try:
        value = Fraction(word)
    except ValueError:
        return ["other"] if role == "name" else ["other", "", f"{word} {word}"]
    near = {value + 1, value - 1, -value, value / 2, Fraction(0)} - {value}
    return [str(one) for one in sorted(near)] + ["", "1e3"]


def texts() -> dict[str, tuple[str, ExactForm | None]]:
    result: dict[str, tuple[str, ExactForm | None]] = {name: (text, None) for name, (text, _) in EXAMPLES.items()}
    for name, (form, answer) in WRITTEN.items():
        result[name] = ("".join(vipr_file.lines(form, answer)), form)
    return result


def is_true(text: str) -> bool:
    """Whether a floating-point solver agrees with the claim of a file."""
    stated = vipr_check.Checker(io.StringIO(text))
    rows, low, high = [np.zeros(stated.size)], [-np.inf], [np.inf]
    for i in range(stated.first):
        sense, rhs, row, _ = stated.known[i]
        dense = np.zeros(stated.size)
        dense[list(row)] = [float(a) for a in row.values()]
        rows.append(dense)
        low.append(float(rhs) if sense >= 0 else -np.inf)
        high.append(float(rhs) if sense <= 0 else np.inf)
    sign = stated.sign
    cost = np.zeros(stated.size)
    cost[list(stated.objective)] = [sign * float(c) for c in stated.objective.values()]
    whole = np.isin(np.arange(stated.size), list(stated.integers)).astype(int)
    result = milp(
        cost, integrality=whole, bounds=Bounds(-1000, 1000), constraints=LinearConstraint(np.array(rows), low, high)
    )
    if stated.infeasible:
        return result.status == 2
    claim = (stated.low, stated.high)
    ends = [side * np.inf if end is None else float(end) for side, end in zip((-1, 1), claim, strict=True)]
    if result.status == 2:
        return ends[1 if sign > 0 else 0] in (np.inf, -np.inf)  # no solution is claimed
    return result.status == 0 and ends[0] - 1e-6 <= sign * result.fun <= ends[1] + 1e-6


@pytest.mark.parametrize("every", [5, marked(1, slow=True)])
@pytest.mark.parametrize("name", texts())
def test_mutations_are_refused_or_harmless(name, every, tmp_path):
    """Of the changes of a long file, every fifth, by turns of another kind."""
    text, form = texts()[name]
    answer = WRITTEN[name][1] if form is not None else None
    text = "".join(line.partition("%")[0] + "\n" for line in text.splitlines())
    words = text.split()
    path = tmp_path / "a.vipr"
    accepted: list[tuple[str, str, str]] = []
    tried, count = 0, 0
    for place, role in enumerate(roles(words)):
        for other in mutations(words[place], role):
            count += 1
            if count % (every if len(words) > 60 else 1):
                continue
            changed = " ".join([*words[:place], other, *words[place + 1 :]])
            tried += 1
            if proven(path, changed) is None:
                continue
            assert is_true(changed), (role, words[place], other)
            accepted.append((role, words[place], other))
            if answer is not None:  # the same problem: then the value of the formulation itself is proven
                try:
                    same = verify(path, form)
                except OtherProblem:
                    assert role not in ("end", "solution", "last use", "multiplier", "reason")
                    continue
                positive_multiple = role == "coefficient" and words[place - 3 : place - 1] == ["0", "1"]  # of x >= 0
                in_steps = len(answer.nodes) > 1 and role in HARMLESS_IN_STEPS
                assert positive_multiple or in_steps or role in HARMLESS, (role, words[place], other)
                assert answer.objective is None or (same.low or 0) <= answer.objective <= (same.high or 99)
    assert tried > 150 / every
    assert len(accepted) < tried / 5


# --- Problems, files and commands -------------------------------------------------------------------------------------


def test_the_problem_may_be_renamed_reordered_and_scaled(tmp_path):
    form, answer = WRITTEN["linear"]
    path = tmp_path / "a.vipr"
    same = """VER 1.0 VAR 2 x1 x0 INT 0 OBJ max 2 0 1 1 1 CON 6 0
        p L 4 2 0 2 1 1  q L 12 2 1 6 0 2  r L 5 2 0 1 1 1  s G 1/2 2 0 1/2 1 .5  t L 0 1 1 -1
        u E 0 0 RTP range 14/5 14/5 SOL 1 best 2 1 8/5 0 6/5 DER 1
        d L 14/5 OBJ { lin 2 0 2/5 1 1/10 } -1"""
    missing = "the bounds of variable x1"
    with pytest.raises(OtherProblem, match=missing):  # two bounds of x1 are left out
        path.write_text(same) and verify(path, form)
    both = same.replace("CON 6", "CON 8").replace("u E 0 0", "u E 0 0 v G 0 1 0 3 w L 7 1 0 1")
    result = proven(path, both, form)
    assert result is not None
    assert result.low == answer.objective == Fraction(14, 5) + Fraction(1, 3)  # with the constant of the form
    with pytest.raises(OtherProblem, match="no constraint like number 7"):
        path.write_text(both.replace("L 7 1 0 1", "L 8 1 0 1")) and verify(path, form)
    others = ({"integer": np.array([True, False])}, {"sense": "min"}, {"cost": (Fraction(1), Fraction(2))})
    path.write_text(both)
    for other in others:
        with pytest.raises(OtherProblem):
            verify(path, replace(form, **other))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("RTP range 1 1", "RTP range 1 1e999999999"),
        ("RTP range 1 1", "RTP range 1 1/0"),
        ("RTP range 1 1", "RTP range 1 nan"),
        ("RTP range 1 1", "RTP range 2 1"),
        ("RTP range 1 1", "RTP range 1 " + "9" * 200_000),
        ("DER 1", "DER 999999999999"),
        ("VAR 3", "VAR 999999999999999999999"),
        ("CON 6 3", "CON 6 7"),
        ("SOL 2", "SOL -2"),
        ("3 1/2 4 1/2", "3 1/2 3 1/2"),
        ("-1 end", "-1 more end"),
        ("INT 3 0 1 2", "INT 3 0 1 3"),
        ("1/2 5 1/2", "1/2 6 1/2"),
        ("VER 1.0", "VER 2.0"),
        ("bound L", "bound\x00 L \xff"),
    ],
)
def test_damaged_files_are_refused_in_one_line(old, new, tmp_path):
    text = EXAMPLES["round a cycle"][0] + (" end" if "end" in old else "")
    changed = text.replace(old, new).replace(" end", "")
    assert changed != text.replace(" end", "")
    path = tmp_path / "a.vipr"
    path.write_text(changed, encoding="utf-8")
    with pytest.raises(BadFile, match=r"^[^\n]{1,300}$"):
        verify(path)


def test_files_of_other_kinds_are_refused(tmp_path):
    text = EXAMPLES["round a cycle"][0].encode()
    packed = gzip.compress(text)
    kinds = {
        "empty.vipr": b"",
        "text.vipr.gz": text,
        "cut.vipr.gz": packed[:-20],
        "broken.vipr.gz": packed[:30] + packed[32:],
        "binary.vipr": bytes(range(256)) * 9,
        "packed.vipr": packed,
    }
    for name, content in kinds.items():
        (tmp_path / name).write_bytes(content)
    for path in [*tmp_path.iterdir(), tmp_path, tmp_path / "none.vipr"]:
        with pytest.raises(BadFile):
            verify(path)


def test_numbers_that_grow_in_sums_are_refused(tmp_path, monkeypatch):
    rows = " ".join(f"r{k} G 1 1 0 1/{10**9 + k}" for k in range(60))
    terms = " ".join(f"{k} 1/{10**30 + k}" for k in range(60))
    text = f"VER 1.0 VAR 1 x INT 0 OBJ min 1 0 1 CON 60 0 {rows} RTP range 0 inf SOL 0"
    text += f" DER 1 d G 0 OBJ {{ lin 60 {terms} }} -1"
    monkeypatch.setattr(vipr_check, "BITS", 4000)
    path = tmp_path / "a.vipr"
    path.write_text(text)
    with pytest.raises(Unproven, match="bits"):
        verify(path)


def test_an_answer_without_proof_is_not_written(tmp_path):
    form, answer = WRITTEN["linear"]
    for wrong in (
        ExactAnswer("unbounded", x=answer.x, ray=answer.x),
        ExactAnswer("optimal", answer.objective, answer.x),
        ExactAnswer("optimal", answer.objective, answer.x, (Leaf({0: Fraction(2)}),)),  # that side has no bound
    ):
        with pytest.raises(ModelError):
            vipr_file.write(tmp_path / "a.vipr", form, wrong)
    assert not list(tmp_path.iterdir())


def test_the_stand_alone_checker_is_short_and_needs_python_alone(tmp_path):
    assert len(ALONE.read_text(encoding="utf-8").splitlines()) <= 360
    copy = tmp_path / "vipr_check.py"
    copy.write_bytes(ALONE.read_bytes())
    form, answer = WRITTEN["branched"]
    vipr_file.write(tmp_path / "good.vipr.gz", form, answer)
    (tmp_path / "bad.vipr").write_text(EXAMPLES["round a cycle"][0].replace("1/2 5", "1/3 5"))

    def run(*names: str) -> tuple[int, str, str]:
        command = [sys.executable, "-I", "-S", str(copy), *names]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    assert run("good.vipr.gz") == (0, "proven: the optimal value is 3\n", "")
    for name in ("bad.vipr", "none.vipr"):
        status, out, err = run(name)
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert err.startswith("not proven: ")
    assert run()[0] == 1


@pytest.mark.parametrize("name", ["round a cycle", "continuous, with an equation"])
def test_a_claim_of_everything_proves_nothing(name, tmp_path):
    text, _ = EXAMPLES[name]
    at = text.index("RTP range")
    words = text[at:].split()
    text = text[:at] + text[at:].replace(" ".join(words[:4]), "RTP range -inf inf")
    path = tmp_path / "a.vipr"
    path.write_text(text)
    with pytest.raises(Unproven, match="says nothing about the optimal value"):
        verify(path)


def test_check_says_that_a_claim_of_everything_proves_nothing(tmp_path, capfd):
    path = tmp_path / "a.vipr"
    result = oc.solve("alltoall.all-reduce", "path:2", exact=True)
    result.save(path)
    lines = [("RTP range -inf inf" if line.startswith("RTP") else line) for line in path.read_text().splitlines()]
    path.write_text("\n".join(lines) + "\n")
    assert main(["check", "alltoall.all-reduce", "path:2", str(path)]) == 3
    shown = "".join(capfd.readouterr())
    assert "says nothing about the optimal value" in " ".join(shown.split())
    assert "verified yes" not in " ".join(shown.split())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_words_and_comments_may_lie_across_the_pieces_that_are_read(size, monkeypatch):
    monkeypatch.setattr(vipr_check, "PIECE", size)
    for text, value in EXAMPLES.values():
        checker = vipr_check.Checker(io.StringIO(text))
        assert (None if checker.infeasible else (checker.low, checker.high)) == value
        assert checker.line == text.count("\n") + 1
    for comment in ("%", "% CON 1", "%%\t%"):
        good = EXAMPLES["round a cycle"][0].replace("VER 1.0", f"VER {comment}\n 1.0 {comment}\n")
        vipr_check.Checker(io.StringIO(good))
        with pytest.raises(vipr_check.Malformed):
            vipr_check.Checker(io.StringIO(good.replace("DER 1", "DER% 1")))


HEAD = b"VER 1.0\nVAR 1\nx\nINT 0\nOBJ min\n1 0 1\nCON 1 1\nl0 G 0 1 0 1\nRTP range 0 0\n"


@pytest.mark.parametrize("fill", [b" ", *(pytest.param(fill, marks=pytest.mark.slow) for fill in (b"\n", b"%")), b"1"])
def test_a_small_file_that_unpacks_to_a_huge_one_is_refused_in_little_memory(fill, tmp_path):
    """100 MB of blanks, of a comment, or of one word, in 100 kB."""
    bomb = tmp_path / "bomb.vipr.gz"
    bomb.write_bytes(gzip.compress(HEAD) + 100 * gzip.compress(fill * 1_000_000))
    assert bomb.stat().st_size < 200_000
    tracemalloc.start()
    try:
        with pytest.raises(BadFile) as refused:
            verify(bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50_000_000
    measured = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run([sys.executable, *sys.argv[1:]], capture_output=True, text=True)\n"
        "print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, done.stderr)"
    )
    command = [sys.executable, "-c", measured, str(ALONE), str(bomb)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    status, peak_kb, *message = done.stdout.split()
    assert status == "1"
    assert int(peak_kb) < 150_000
    for words in (str(refused.value).split(), message):
        assert "unpacks" in words or "word" in words or "characters" in words, words
