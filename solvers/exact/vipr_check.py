#!/usr/bin/env python3
"""Check the proof in a VIPR certificate: ``python3 vipr_check.py FILE.vipr[.gz]``.

The file states a mixed-integer linear program, a claim (the optimal value lies in an interval, or no point is
feasible), solutions, and derived constraints, of which the last one implies the claim. This program verifies them in
exact rational arithmetic. It stands alone: it needs only Python 3.9 or later. Names are not checked.

A derived constraint is accepted for one of these reasons.

asm   It is an assumption. What is derived from it carries the assumption, until uns removes it.
lin   A linear combination of earlier constraints dominates it: it has the same coefficients and a right-hand side at
      least as strong, or it is absurd, like 0 >= 1. All terms of the combination are >= or =, or all are <= or =.
rnd   As lin, with the right-hand side rounded: all coefficients are integers and belong to integer variables.
uns   Two earlier constraints dominate it: one holds if a x <= b, the other if a x >= b + 1. As a and b are integers,
      and a involves only integer variables, one of the two cases applies to every feasible point.
sol   It is a cutoff at a solution of the file, objective <= r (of a minimization). What is derived from it holds for
      the points within the cutoff. At all others the objective exceeds r, and the claim must allow that.

Derivations without all multipliers (lin weak, lin incomplete) are refused, and so is the claim that the optimal value
lies between -infinity and infinity, which needs no proof. The exit status is 0 for a proof, else 1.

Format: K. K. H. Cheung, A. Gleixner, D. E. Steffy, Verifying Integer Programming Results, IPCO 2017.
"""

from __future__ import annotations

import gzip
import os
import re
import sys
import zlib
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import NamedTuple, NoReturn, TextIO

DIGITS, BITS = 100_000, 4_000_000  # longest word [characters], largest number in a sum [bits]
PIECE, IDLE = 1 << 16, 1 << 24  # characters read at a time, and most of them without a word
LEAST, RATIO = 1 << 22, 50  # a compressed file may unpack to so many characters, or so many times its size
INDEX = re.compile(r"-?[0-9]{1,15}")
NUMBER = re.compile(r"([+-]?)([0-9]*)(?:/(0*[1-9][0-9]*)|\.([0-9]*))?")


class Refused(Exception): ...


class Malformed(Refused): ...


class Constraint(NamedTuple):
    """``sum of row[j] x[j]`` <= (sense -1), = (0) or >= (1) ``rhs``, under the assumptions with these indices."""

    sense: int
    rhs: Fraction
    row: dict[int, Fraction]
    assumed: frozenset[int] = frozenset()

    def absurd(self) -> bool:
        return not self.row and ((self.sense >= 0 and self.rhs > 0) or (self.sense <= 0 and self.rhs < 0))

    def dominates(self, other: Constraint) -> bool:
        if self.absurd():
            return True
        if self.row != other.row or self.sense not in (0, other.sense):
            return False
        return self.rhs == other.rhs if other.sense == 0 else self.rhs * other.sense >= other.rhs * other.sense


integer_of = lru_cache(1 << 16)(int)  # equal numbers share one object


def whole(digits: str) -> int:
    """Return the number of decimal digits; ``int`` refuses more than 4300 of them."""
    return int(digits or "0") if len(digits) <= 4000 else whole(digits[:-4000]) * 10**4000 + int(digits[-4000:])


@lru_cache(1 << 16)
def fraction_of(word: str) -> Fraction | None:
    """Return the number that a word states; None if it states none."""
    match = NUMBER.fullmatch(word)
    if match is None or not (match[2] or match[4]) or (match[3] and not match[2]):
        return None
    digits, decimals = match[2], match[4] or ""
    value = Fraction(whole(digits + decimals), whole(match[3]) if match[3] else 10 ** len(decimals))
    return -value if match[1] == "-" else value


def bounded(value: Fraction) -> Fraction:
    """Return the number, or refuse one too large to be checked in reasonable time."""
    if value.numerator.bit_length() + value.denominator.bit_length() > BITS:
        raise Refused(f"a sum has more than {BITS} bits")
    return value


def add(row: dict[int, Fraction], factor: Fraction, con: Constraint, rhs: Fraction) -> Fraction:
    """Add a multiple of a constraint to a row in place, and return the new right-hand side."""
    for j, value in con.row.items():
        row[j] = bounded(row[j] + factor * value) if j in row else factor * value
    return bounded(rhs + factor * con.rhs)


def product(row: dict[int, Fraction], x: dict[int, Fraction]) -> Fraction:
    return bounded(sum((value * x[j] for j, value in row.items() if j in x), Fraction(0)))


class Checker:
    """A certificate, verified while it is read."""

    def __init__(self, stream: TextIO, most: float = float("inf")) -> None:
        self.line, self.held, self.most = 1, "", most
        self.words = self.split(stream)
        self.stated()
        self.conclude(self.derived())

    def stated(self) -> None:
        """Read problem, claim and solutions."""
        for wanted in (("VER",), ("1.0", "1.1"), ("VAR",)):
            self.expect(*wanted)
        self.size = self.index()
        self.names = [self.next() for _ in range(self.size)]
        self.expect("INT")
        self.integers = {self.index(self.size) for _ in range(self.index())}
        self.expect("OBJ")
        self.sign = 1 if self.expect("min", "max") == "min" else -1
        self.objective = self.vector()
        self.expect("CON")
        self.first = self.index()
        bounds = self.index(self.first + 1)
        self.known = {}  # all constraints that may still be used, by index
        for i in range(self.first):
            self.known[i] = self.constraint()
            if i < bounds and len(self.known[i].row) > 1:
                self.malformed("a constraint that is counted as a bound has several variables")
        self.expect("RTP")
        self.infeasible = self.expect("infeas", "range") == "infeas"
        self.low = None if self.infeasible or self.skip("-inf") else self.number()
        self.high = None if self.infeasible or self.skip("inf") else self.number()
        if self.low is None and self.high is None and not self.infeasible:
            self.refuse("the claim, from -infinity to infinity, says nothing about the optimal value")
        if self.low is not None and self.high is not None and self.low > self.high:
            self.refuse("the interval of the claim is empty")
        self.expect("SOL")
        self.best: Fraction | None = None  # value of the best solution, as if minimized
        self.solutions = self.index()
        for _ in range(self.solutions):
            self.solution()

    def derived(self) -> Constraint:
        self.expect("DER")
        self.cutoffs: dict[int, Fraction] = {}  # smallest value, as if minimized, of the points outside a cutoff
        expiring: dict[int, list[int]] = {}
        last = Constraint(0, Fraction(0), {})
        self.derivations = self.index()
        for self.at in range(self.first, self.first + self.derivations):
            last = self.known[self.at] = self.derivation()
            last_use = self.index(start=-1)
            expiring.setdefault(max(last_use, self.at) if last_use >= 0 else -1, []).append(self.at)
            for i in expiring.pop(self.at, ()):
                del self.known[i]
        if self.peek():
            self.malformed("the file continues after the last derivation")
        return last

    def split(self, stream: TextIO) -> Iterator[str]:
        rest, comment, idle, total = "", False, 0, 0
        while piece := stream.read(PIECE):
            idle, total = idle + len(piece), total + len(piece)
            if total > self.most or idle > IDLE:
                self.malformed(f"it unpacks to more than {self.most} characters, or has {IDLE} without a word")
            lines = (rest + piece).split("\n")
            for k, text in enumerate(lines):
                if k:
                    self.line, comment = self.line + 1, False
                words = [] if comment else re.findall(r"\S+", text, re.ASCII)
                goes_on = k == len(lines) - 1 and words and not re.fullmatch(r"\s", text[-1], re.ASCII)
                rest = words.pop() if goes_on else ""
                for word in words:
                    comment = word.startswith("%")
                    if comment:
                        break
                    idle = 0
                    yield word
                comment = comment or rest.startswith("%")
            rest = "" if comment else rest
            if len(rest) > DIGITS:
                self.malformed(f"a word has more than {DIGITS} characters")
        if rest:
            yield rest

    def refuse(self, message: str) -> NoReturn:
        raise Refused(f"line {self.line}: {message}")

    def malformed(self, message: str) -> NoReturn:
        raise Malformed(f"line {self.line}: {message}")

    def peek(self) -> str:
        """Return the next word without consuming it; empty at the end of the file."""
        self.held = self.held or next(self.words, "")
        return self.held

    def next(self) -> str:
        word, self.held = self.peek(), ""
        if not word or len(word) > DIGITS:
            self.malformed("the file ends too early" if not word else f"a word has more than {DIGITS} characters")
        return word

    def skip(self, word: str) -> bool:
        return self.peek() == word and bool(self.next())

    def expect(self, *wanted: str) -> str:
        word = self.next()
        return word if word in wanted else self.malformed(f"{' or '.join(wanted)} expected, not {word[:40]!r}")

    def index(self, end: int = 10**15, start: int = 0) -> int:
        word = self.next()
        if not INDEX.fullmatch(word) or not start <= int(word) < end:
            self.malformed(f"index from {start} to {end - 1} expected, not {word[:40]!r}")
        return integer_of(word)

    def number(self) -> Fraction:
        word = self.next()
        value = fraction_of(word) if len(word) < 32 else fraction_of.__wrapped__(word)
        return self.malformed(f"rational number expected, not {word[:40]!r}") if value is None else value

    def vector(self) -> dict[int, Fraction]:
        values: dict[int, Fraction] = {}
        for _ in range(self.index()):
            j = self.index(self.size)
            if j in values:
                self.malformed(f"variable {j} occurs twice")
            values[j] = self.number()
        return {j: value for j, value in values.items() if value}

    def constraint(self) -> Constraint:
        self.next()
        sense = {"L": -1, "E": 0, "G": 1}[self.expect("L", "E", "G")]
        return Constraint(sense, self.number(), self.objective if self.skip("OBJ") else self.vector())

    def solution(self) -> None:
        self.next()
        x = self.vector()
        if any(j in self.integers and value.denominator > 1 for j, value in x.items()):
            self.refuse("the solution has a fractional value of an integer variable")
        for i, con in self.known.items():
            excess = product(con.row, x) - con.rhs
            if (con.sense <= 0 and excess > 0) or (con.sense >= 0 and excess < 0):
                self.refuse(f"the solution violates constraint {i}")
        value = self.sign * product(self.objective, x)
        self.best = value if self.best is None else min(value, self.best)

    def conclude(self, last: Constraint) -> None:
        dual, primal = (self.low, self.high) if self.sign > 0 else (self.high, self.low)
        if primal is not None and (self.best is None or self.best > self.sign * primal):
            self.refuse("no solution has the objective value that is claimed, or a better one")
        if dual is None and not self.infeasible:
            return
        goal = Constraint(self.sign, dual or Fraction(0), self.objective)
        if not (last.absurd() if self.infeasible else last.dominates(goal)):
            self.refuse("the last derived constraint does not imply the claim")
        for i in last.assumed:
            if self.infeasible or i not in self.cutoffs or self.cutoffs[i] < self.sign * goal.rhs:
                self.refuse(f"the last derived constraint depends on the assumption {i}")

    def earlier(self) -> tuple[int, Constraint]:
        i = self.index(self.at)
        return (i, self.known[i]) if i in self.known else self.refuse(f"constraint {i} is used after its last use")

    def derivation(self) -> Constraint:
        stated = self.constraint()
        self.expect("{")
        kind = self.expect("asm", "lin", "rnd", "uns", "sol")
        if kind == "sol":
            self.cutoffs[self.at] = self.cutoff(stated)
        combined = kind in ("lin", "rnd")
        assumed = self.combination(stated, kind) if combined else self.unsplit(stated) if kind == "uns" else {self.at}
        self.expect("}")
        return stated._replace(assumed=frozenset(assumed))

    def integral(self, row: dict[int, Fraction]) -> bool:
        return all(j in self.integers and value.denominator == 1 for j, value in row.items())

    def cutoff(self, stated: Constraint) -> Fraction:
        if stated.row != self.objective or stated.sense != -self.sign:
            self.refuse("a cutoff bounds the objective from the wrong side")
        whole, rhs = self.integral(self.objective), self.sign * stated.rhs
        if self.best is None or self.best > rhs + whole:
            self.refuse("no solution reaches the cutoff")
        return Fraction(floor(rhs) + 1) if whole else rhs

    def combination(self, stated: Constraint, kind: str) -> set[int]:
        if self.peek() in ("weak", "incomplete"):
            self.refuse("the derivation omits multipliers; complete the file first")
        row: dict[int, Fraction] = {}
        assumed: set[int] = set()
        rhs, senses, used = Fraction(0), {0}, set()
        for _ in range(self.index()):
            i, con = self.earlier()
            factor = self.number()
            if i in used:
                self.refuse(f"constraint {i} is used twice")
            used.add(i)
            senses.add(con.sense * ((factor > 0) - (factor < 0)))
            rhs = add(row, factor, con, rhs)
            assumed |= con.assumed
        if len(senses) == 3:
            self.refuse("<= and >= are added")
        sense = sum(senses)
        row = {j: value for j, value in row.items() if value}
        if kind == "rnd":
            if sense == 0 or not self.integral(row):
                self.refuse("the combination cannot be rounded")
            rhs = Fraction(ceil(rhs) if sense > 0 else floor(rhs))
        if not Constraint(sense, rhs, row).dominates(stated):
            self.refuse("the combination does not imply the constraint")
        return assumed

    def unsplit(self, stated: Constraint) -> set[int]:
        assumed: set[int] = set()
        cases = []
        for _ in range(2):
            i, con = self.earlier()
            half, case = self.earlier()
            if not con.dominates(stated):
                self.refuse(f"constraint {i} does not imply the constraint")
            assumed |= con.assumed - {half}
            cases.append(case)
        low, high = sorted(cases, key=lambda case: case.sense)
        split = (low.sense, high.sense) == (-1, 1) and low.row == high.row and self.integral(low.row)
        if not split or low.rhs.denominator > 1 or high.rhs != low.rhs + 1:
            self.refuse("the two cases do not cover all feasible points")
        return assumed


def checked(path: str) -> Checker:
    """Verify the certificate in a file; raises Refused or OSError."""
    try:
        packed = path.lower().endswith(".gz")
        with (gzip.open if packed else open)(path, "rt", encoding="utf-8", newline="\n") as stream:
            return Checker(stream, max(LEAST, RATIO * os.path.getsize(path)) if packed else float("inf"))
    except (UnicodeDecodeError, EOFError, zlib.error) as error:
        raise Malformed(f"this is not a text file: {error}") from None


def check(path: str) -> str:
    """Verify the certificate in a file and return what it proves; raises Refused or OSError."""
    done = checked(path)
    low, high = ("infinity" if bound is None else bound for bound in (done.low, done.high))
    claim = f"the optimal value is {low}" if low == high else f"the optimal value is between {low} and {high}"
    return "no point is feasible" if done.infeasible else claim


if __name__ == "__main__":
    getattr(sys, "set_int_max_str_digits", int)(0)  # to print; words are limited to DIGITS
    try:
        print("proven:", check(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__))
    except (Refused, OSError) as problem:
        print("not proven:", problem, file=sys.stderr)
        sys.exit(1)
