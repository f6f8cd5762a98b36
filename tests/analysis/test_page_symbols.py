"""Every symbol in the mathematics of a formulation's page is defined there, once, and with a unit."""

from __future__ import annotations

import re

import pytest
from builds import problem_of
from case_families import each
from cases import CASES
from formulation_pages import PAGES, lacking, sections

GREEK = re.compile(
    r"\\(?:alpha|beta|gamma|delta|(?:var)?epsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi|omega"
    r"|Gamma|Delta|Theta|Lambda|Sigma|Phi|Psi|Omega|ell)"
)
DECORATIONS = ("bar", "hat", "tilde", "mathcal")
SIGNS = {"+", "-", "0", "*", "\\prime"}
#: What a formula is made of besides letters; a subscript of these alone is part of a name, as in R_max.
TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[a-zA-Z]|[_^{}]|\d+|\S")
INLINE, DISPLAY = re.compile(r"(?<!\$)\$([^$]+)\$(?!\$)"), re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
#: Relations: what stands before one in a table's cell is defined by the row.
RELATION = re.compile(r"\\in(?![a-z])|\\subseteq|=|\\ge|\\le(?![a-z])|<|>|\\approx|\\ne")


#: Pages that lack nothing; test_formulation_pages says what others lack.
NAMES = sorted(page.stem for page in PAGES.glob("*.md") if not lacking(page.stem))


def rows(section):
    """The header and the rows of the first table of a section, as cells."""
    lines = [line for line in section.splitlines() if line.startswith("|")]
    table = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return table[0], table[2:]


def group(tokens, at):
    """The tokens of the argument that begins at ``at``, and where it ends."""
    if at < len(tokens) and tokens[at] == "{":
        depth, end = 1, at + 1
        while depth:
            depth += (tokens[end] == "{") - (tokens[end] == "}")
            end += 1
        return tokens[at + 1 : end - 1], end
    return tokens[at : at + 1], at + 1


def tokens_of(formula):
    formula = re.sub(r"\\(text|texttt|mathbb|begin|end|operatorname)\s*\{[^}]*\}", r"\\word ", formula)
    formula = re.sub(r"\\mathrm\s*\{([^}]*)\}", lambda match: f"\\named{match[1]} ", formula)
    return TOKEN.findall(formula)


def parsed(tokens):
    """Names of the symbols of a formula, and those of the indices in their subscripts and exponents.

    A decoration, a superscript sign, and a subscript without letters of its own belong to the name.
    """
    names, indices, at = set(), set(), 0
    while at < len(tokens):
        token, at = tokens[at], at + 1
        if token[1:] in DECORATIONS:
            inner, at = group(tokens, at)
            name = f"{token[1:]} {''.join(inner)}"
        elif token.startswith("\\named"):
            name = token.removeprefix("\\named")
        elif GREEK.fullmatch(token) or re.fullmatch("[a-zA-Z]", token):
            name = token
        else:
            continue
        while at < len(tokens) and tokens[at] in "_^":
            kind, (inner, end) = tokens[at], group(tokens, at + 1)
            own = set().union(*parsed(inner))
            label = "".join(inner)
            if kind == "_" and not own and not re.search(r"\d", label):
                name += "_" + label
            elif kind == "^" and label in SIGNS:
                name += "^" + label
            indices |= own
            at = end
        names.add(name)
    return names, indices


def symbols(formula):
    """Names of all symbols in a formula, indices among them."""
    return set().union(*parsed(tokens_of(formula)))


def defined_by(cell):
    """Symbols that a cell defines: quantities, or members before a relation; and the sets of which they are members.

    In ``low <= x <= high`` the middle is defined. Components in brackets only name the parts of a member.
    """
    things, sets = set(), set()
    for formula in INLINE.findall(cell):
        first, *others = RELATION.split(formula)
        middle = len(others) == 2 and formula.count("\\le") == 2
        things |= parsed(tokens_of(re.sub(r"(\\\{|\().*", "", others[0] if middle else first)))[0]
        member = re.split(r"\\in(?![a-z])|\\subseteq", formula)[1:]
        if member and not re.search(r"\\\{|\\mathbb|\d", member[0]):
            sets |= parsed(tokens_of(member[0]))[0]
    return things, sets - things


def stated_equal(cell):
    """Symbols that the formulas "x = ..." of a meaning define."""
    heads = [formula.split("=")[0] for formula in INLINE.findall(cell) if "=" in formula]
    return set().union(set(), *(parsed(tokens_of(head))[0] for head in heads if "_" in head))


def bound_by_operators(formula):
    """Symbols in the subscripts of sums and other operators, which bind them."""
    found = set()
    for operator in re.finditer(r"\\(?:sum|max|min|bigcup|prod)_", formula):
        inner, _ = group(tokens_of(formula[operator.end() :]), 0)
        found |= set().union(*parsed(inner))
    return found


def in_prose(text):
    """Symbols in the inline formulas of a text."""
    return set().union(set(), *(symbols(formula) for formula in INLINE.findall(text)))


def problems(text):
    """Symbols that are used and not defined, and those that two rows define."""
    part = sections(text)
    seen, sets, twice, known = set(), set(), set(), set()
    for title in ("Sets and data", "Variables"):
        header, table = rows(part[title])
        for row in table:
            things, named = defined_by(row[header.index("Symbol")])
            things |= stated_equal(row[header.index("Meaning")])
            twice |= things & (seen | sets) | named & seen
            seen, sets = seen | things, sets | named
        known |= in_prose(part[title])
    used = set()
    for title in ("Objective", "Constraints"):
        prose = DISPLAY.sub("", part[title])
        known |= in_prose(prose)
        for indices in re.findall(r"^`\w+\[([^]`]*)\]`", prose, re.MULTILINE):
            known |= symbols(indices)
        for formula in DISPLAY.findall(part[title]):
            known |= bound_by_operators(formula)
            used |= symbols(formula)
    return used - known, twice


def quantities(text):
    """Rows without a unit that define no member of a set, no range and no choice: (symbol, meaning) each."""
    found = []
    for title in ("Sets and data", "Variables"):
        header, table = rows(sections(text)[title])
        for row in table:
            symbol = row[header.index("Symbol")]
            index = re.search(r"\\in(?![a-z])|\\subseteq|\\dots|\\ne", symbol) or re.fullmatch(r"\$[a-z]\$", symbol)
            rack = row[header.index("Meaning")].startswith("racks ")
            if not row[header.index("Unit")] and not index and not rack:
                found.append(symbol)
    return found


@pytest.fixture(params=NAMES)
def text(request):
    return (PAGES / f"{request.param}.md").read_text(encoding="utf-8")


def test_every_symbol_of_the_model_is_defined_once(text):
    assert problems(text) == (set(), set())


def test_tables_have_units_and_shapes(text):
    part = sections(text)
    assert rows(part["Sets and data"])[0] == ["Symbol", "Meaning", "Unit", "Shape"]
    assert rows(part["Variables"])[0] == ["Name", "Symbol", "Meaning", "Unit", "Shape"]
    for title in ("Sets and data", "Variables"):
        header, table = rows(part[title])
        assert {len(row) for row in table} == {len(header)}
    assert quantities(text) == []


@each("name", sorted(set(NAMES) & set(CASES)))
def test_units_are_those_that_the_code_declares(name):
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    header, table = rows(sections(text)["Variables"])
    stated = {word: row[header.index("Unit")] for row in table for word in re.findall(r"`(\w+)", row[0])}
    declared = {}
    for spec, settings in CASES[name]:
        declared |= problem_of(name, spec, tuple(settings.items())).arrays(()) or {}
    wrong = {
        variable: (array.unit, stated[variable])
        for variable, array in declared.items()
        if array.unit and variable in stated and array.unit != stated[variable]
    }
    assert {what for what in wrong if "$" not in wrong[what][1]} == set()


SAMPLE = r"""
## Sets and data

| Symbol | Meaning | Unit | Shape |
|---|---|---|---|
| $p = (i, j) \in P$ | pairs | | $\lvert P\rvert$ |
| $V_p > 0$ | traffic; $v_p = V_p / \max V$ | bytes | $(\lvert P\rvert,)$ |
| $R_{\max}$ | rounds | rounds | scalar |

## Variables

| Name | Symbol | Meaning | Unit | Shape |
|---|---|---|---|---|
| `t` | $0 \le t \le 1$ | time | s | scalar |

## Objective

$$
\min\; R_{\max} t
$$

## Constraints

`row[p]`: a row.

$$
\sum_{p \text{ from } i} v_p \le t \qquad p \in P
$$

## Bounds
"""


def test_the_parser_notices_what_is_missing_or_doubled():
    assert problems(SAMPLE) == (set(), set())
    assert problems(SAMPLE.replace("v_p \\le t", "v_p x_q \\le t"))[0] == {"x", "q"}
    assert problems(SAMPLE.replace("R_{\\max} t", "R t"))[0] == {"R"}
    assert problems(SAMPLE.replace("$R_{\\max}$ | rounds", "$v \\in V_d$ | walks"))[1] == {"V", "v"}
    assert quantities(SAMPLE) == []
    assert quantities(SAMPLE.replace("| bytes |", "| |")) == ["$V_p > 0$"]
