"""Problems of the cases, their builds, and mutations of builds and of compiled models."""

from __future__ import annotations
import __future__

import ast
import inspect
import random
import sys
import textwrap
from dataclasses import replace
from functools import cache

import numpy as np
from cases import CASES, PROBLEMS
from scipy.sparse import csc_array

from opticoll.formulations import formulation
from opticoll.formulations.model import build_model, forms_of
from opticoll.formulations.parameters import read_parameters
from opticoll.instances import parse
from opticoll.solvers.methods import prepared
from opticoll.solvers.plan import shared_parameters


@cache
def problem_of(name, spec, settings=()):
    """A formulation on an instance."""
    model, instance = formulation(name), parse(spec)
    parameters = read_parameters(model.parameters, dict(settings), name)
    return prepared(model, instance, parameters, needed_of(model, instance, parameters))


def needed_of(model, instance, parameters):
    """A solution that a formulation takes its data from, if it does."""
    return model._needs and PROBLEMS[model.name].needed(instance, shared_parameters(model, parameters))


def builds(name, spec, settings):
    """A fresh model of every form."""
    problem = problem_of(name, spec, tuple(settings.items()))
    return {form: build_model(problem, form) for form in forms_of(problem)}


def mutated_matrices(form):
    """What is wrong, and the compiled model with it, for every block of rows and columns in turn."""

    def entry(vector, at, value):
        wrong = np.array(vector)
        wrong[at] = value
        return wrong

    dense = form.A.toarray()
    for name, block in form.rows.items():
        positions = block.index[block.index >= 0]
        if not positions.size:
            continue
        i = int(positions[positions.size // 2])
        kept = np.arange(dense.shape[0]) != i
        rows = {
            key: replace(other, index=np.where(other.index == i, -1, other.index - (other.index > i)))
            for key, other in form.rows.items()
        }
        without = {"row_lower": form.row_lower[kept], "row_upper": form.row_upper[kept], "rows": rows}
        yield f"a row of {name} dropped", replace(form, A=form.A[kept], **without)
        j, empty = int(np.flatnonzero(dense[i])[0]), np.flatnonzero(dense[i] == 0)
        moved = dense.copy()
        moved[i, j] *= 1 + 1e-9
        yield f"a coefficient of {name}", replace(form, A=csc_array(moved))
        if empty.size:
            moved = dense.copy()
            moved[i, j], moved[i, empty[0]] = 0.0, dense[i, j]
            yield f"an index of {name}", replace(form, A=csc_array(moved))
        low, high = form.row_lower[i], form.row_upper[i]
        swapped = (-np.inf, high) if low == high else (high, np.inf) if low == -np.inf else (-np.inf, low)
        for what, (lower, upper) in (("sense", swapped), ("right-hand side", (low + 1, high + 1))):
            sides = {"row_lower": entry(form.row_lower, i, lower), "row_upper": entry(form.row_upper, i, upper)}
            yield f"the {what} of {name}", replace(form, **sides)
    for name, block in form.columns.items():
        positions = block.index[block.index >= 0]
        if positions.size:
            j = int(positions[positions.size // 2])
            yield f"the lower bound of {name}", replace(form, col_lower=entry(form.col_lower, j, -7.0))
            yield f"the upper bound of {name}", replace(form, col_upper=entry(form.col_upper, j, 7.5))
            yield f"the domain of {name}", replace(form, integer=entry(form.integer, j, not form.integer[j]))
            yield f"the cost of {name}", replace(form, cost=entry(form.cost, j, form.cost[j] * (1 + 1e-9) or 1e-9))
    yield "the sense of the objective", replace(form, sense="min" if form.sense == "max" else "max")
    yield "the constant of the objective", replace(form, offset=form.offset * (1 + 1e-9) or 1e-9)


#: Functions that both builds of a formulation may call: names of indices, and refusals of what is too large.
SHARED = {
    "arc_names",
    "named_paths",
    "pair_names",
    "vertex_names",
    "_refuse_large",
    "estimate",
}


def builds_of(name):
    """The functions that build a formulation, by form: methods of its class."""
    model = formulation(name)
    return {form: getattr(model, form) for form in forms_of(model)}


def code_of(build):
    """The functions of :mod:`opticoll.formulations` that a build runs, itself included, without ``SHARED``.

    Nor those that only refuse a model, whose names begin with ``refuse_``.
    Properties of the problem are its data, which the builds share.
    """
    trees, left = {}, [build]
    while left:
        function = left.pop()
        if function not in trees:
            trees[function], called = _read(function)
            left += called
    return trees


@cache
def _read(function):
    """The syntax tree of a function, and the functions of :mod:`opticoll.formulations` that it names."""
    tree, called = ast.parse(textwrap.dedent(inspect.getsource(function))), []
    for node in ast.walk(tree):
        target = None
        if isinstance(node, ast.Name):
            target = function.__globals__.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            target = getattr(function.__globals__.get(node.value.id), node.attr, None)
        known = inspect.isfunction(target) and target.__module__.startswith("opticoll.formulations.")
        if known and target.__name__ not in SHARED and not target.__name__.startswith("refuse_"):
            called.append(target)
    return tree, called


COMPARISONS = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
    ast.Lt: ast.GtE,
    ast.Gt: ast.LtE,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
SUMS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.MatMult: ast.Sub}


class Flip(ast.NodeTransformer):
    """Change the n-th comparison, sum, difference, product or number of a function; ``changed`` says what."""

    def __init__(self, number):
        self.left, self.changed = number, None

    def _turn(self, node):
        self.left -= 1
        if self.left == -1:
            self.changed = ast.unparse(node)
            return True
        return False

    def visit_Compare(self, node):
        self.generic_visit(node)
        if self._turn(node):
            node.ops[0] = COMPARISONS[type(node.ops[0])]()
        return node

    def visit_keyword(self, node):  # zip(..., strict=True)
        return node if node.arg == "strict" else self.generic_visit(node)

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if type(node.op) in SUMS and self._turn(node):
            node.op = SUMS[type(node.op)]()
        return node

    def visit_Constant(self, node):
        if isinstance(node.value, int) and self._turn(node):
            node.value = not node.value if isinstance(node.value, bool) else node.value + 1
        return node


def users():
    """The formulations and forms whose builds run a function, for every such function."""
    using = {}
    for name in CASES:
        for form, build in builds_of(name).items():
            for function in code_of(build):
                using.setdefault(function, []).append((name, form))
    return using


def mutations(function, most=None):
    """One change in the source of a function after the other, in force until the next: what changed, and the function.

    The changed function stands in place of the right one in all modules of :mod:`opticoll.formulations`. Of more than
    ``most`` possible changes, that many are drawn, the same ones in every run.
    """
    source = textwrap.dedent(inspect.getsource(function))
    none = Flip(sys.maxsize)
    none.visit(ast.parse(source))
    numbers = range(sys.maxsize - none.left)
    if most is not None and len(numbers) > most:
        numbers = random.Random(function.__qualname__).sample(numbers, most)
    modules = [module for name, module in sys.modules.items() if name.startswith("opticoll.formulations")]
    places = [(module, key) for module in modules for key, value in vars(module).items() if value is function]
    for number in numbers:
        flip = Flip(number)
        tree = flip.visit(ast.parse(source))
        scope = {}
        flags = __future__.annotations.compiler_flag
        exec(compile(tree, function.__module__, "exec", flags), function.__globals__, scope)
        changed = scope[function.__name__]
        try:
            for module, key in places:
                setattr(module, key, changed)
            yield flip.changed, changed
        finally:
            for module, key in places:
                setattr(module, key, function)
