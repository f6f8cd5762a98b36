"""Natural readings of the OpTree paper's claims, fixed before measuring.

The paper rounds Theorem 2's root in two ways: its figure 4 has the nearest integers 6, 6, 7, 8, and Table I the ceiling
7. The readings follow each place's own numbers.
"""

from __future__ import annotations

from opticoll.analysis.ledger.verdict import natural_reading

#: Rules for Theorem 2's root, for S(k), and for percentages.
NEAREST, CEILING = "nearest integer", "ceiling"
TABLE_RULE = "depth by ceiling, steps rounded up, truncated to two digits"
THEOREM_2 = natural_reading(
    "the depth of Theorem 2: the root rounded to the nearest integer",
    "The proof of Theorem 2 calls it the integer rounding operation, and section IV-B has the nearest integers 6, 6, 7 "
    "and 8.",
    {"rule for the depth": NEAREST, "rounding of the root": NEAREST, "fractional steps": "rounded up"},
)
TABLE_I = natural_reading(
    "the convention of Table I: depth ceil(k*) = 7, ceil(S) = 70 whole steps, percentages truncated",
    "Table I prints depth 7 and 70 whole steps for 1024 nodes, the first point of figure 5. The abstract of the 2024 "
    "journal version prints 72.97, 93.15 and 86.32 % there: 1 - 70/259, 1 - 70/1023 and 1 - 70/512, truncated. The "
    "averages are of a simulator, so that a point of difference counts as agreement.",
    {"depth": CEILING, "within 1 point, as for a simulation": TABLE_RULE},
)
INTEGER_TREES = natural_reading(
    "trees whose nodes have whole numbers of children",
    "Section III-B: in an m-ary tree each node has no more than m children; the steps are counted as in Table I.",
    {"integer radices, one per stage": "wavelengths by Lemma 1 as restored; the theorem's steps rounded up"},
)
EQUAL_MEAN = natural_reading(
    "the mean of the two averages of section IV-C",
    "Section V calls the numbers averages, and section IV-C has two averages for each algorithm.",
    {"weight of the two figures": "equal"},
)
REAL_STEPS = natural_reading(
    "steps as real numbers",
    "Theorem 2 differentiates the formula, so that steps and m are real; for odd m Lemma 1 itself rounds down.",
    {"steps": "fractional steps, m even"},
)
