"""Builds of one formulation compared as matrices, the cases on which they are compared, and mutations of builds.

What :func:`differences` compares, entry by named entry: columns with bounds, integrality and cost; rows with
coefficients and both sides; sense and constant of the objective. The order of rows and columns is free. A row may be
multiplied by -1, because CVXPY turns ``>=`` around and Pyomo does not; its scale may not differ, because duals would.
Numbers may differ by round-off (``TOLERANCE``, relative).
"""

from __future__ import annotations
import __future__

import ast
import inspect
import random
import sys
import textwrap
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from scipy.sparse import csc_array

from opticoll.formulations import formulation
from opticoll.formulations.model import read_parameters
from opticoll.instances import parse
from opticoll.solvers.methods import prepared

TOLERANCE = 1e-12
#: A sum that is required by a vertex that contributes nothing.
PARTIAL = Path(__file__).resolve().parent / "data" / "partial-sum.json"

#: Formulation: (instance, settings) of every comparison. Of the first case, which is small, the matrix is mutated.
CASES = {
    "alltoall.master": [
        ("path:3", {}),
        ("mesh:2x2", {}),
        ("hypercube:2+host=1.5", {}),
        ("dgx1", {}),
        ("ring:4", {"demand": "permutation:1"}),
        ("genkautz:n=5,d=2+scale=2.5", {"demand": "random:4"}),
    ],
    "alltoall.link-mcf": [
        ("path:3", {}),
        ("path:3", {"printed": "true"}),
        ("kautz:d=2,D=2", {}),
        ("star:4", {"printed": "true"}),
        ("ring:4+scale=0.3", {}),
        ("hypercube:2+host=1.5", {"printed": "true"}),
    ],
    "alltoall.child": [("path:3", {}), ("ring:4", {"source": "2"}), ("hypercube:2+host=1.5", {})],
    "alltoall.path-mcf": [
        ("ring:3", {}),
        ("ring:4", {"paths": "all"}),
        ("dgx1", {}),
        ("star:4", {"paths": "shortest"}),
        ("hypercube:3", {"paths": "k", "k": "3"}),
        ("ring:5+scale=2.5", {"paths": "all", "lmax": "3"}),
    ],
    "alltoall.sccl": [
        ("path:3", {}),
        ("ring:4,directed+scale=1.5", {"chunks": "2", "steps": "4"}),
        ("genkautz:n=5,d=2", {}),
        ("path:3", {"model": "sources", "chunks": "2"}),
        ("complete:3+scale=0.4", {"steps": "2"}),
    ],
    "alltoall.timestep-mcf": [
        ("path:3", {}),
        ("path:3", {"steps": "4", "aggregate": "source"}),
        ("ring:4,directed+scale=0.5", {}),
        ("hypercube:2+host=1.5", {"aggregate": "source"}),
        ("star:4", {"steps": "3"}),
        ("complete:3", {}),
        ("path:3+host=2", {"relays": "step"}),
        ("path:3+host=0.7,relay=nic", {"steps": "2"}),
    ],
    "alltoall.all-gather": [("path:3", {}), ("star:4", {}), ("hypercube:2+host=1.5", {}), ("ring:4+scale=3", {})],
    "alltoall.broadcast": [
        ("path:3", {}),
        ("star:4", {"root": "2"}),
        ("hypercube:2+host=1.5", {"root": "1"}),
        ("ring:4+scale=3", {}),
    ],
    "alltoall.reduce-scatter": [("path:3", {}), ("star:4", {}), ("hypercube:2+host=1.5", {}), ("ring:4+scale=3", {})],
    "alltoall.all-reduce": [("path:3", {}), ("star:4", {}), ("hypercube:2+host=1.5", {}), ("ring:4+scale=3", {})],
    "alltoall.min-congestion": [
        ("ring:3", {}),
        ("ring:4", {"paths": "all"}),
        ("dgx1", {"paths": "shortest"}),
        ("ring:3+scale=0.5", {}),
        ("ring:4", {"paths": "all", "kappa": "2"}),
        ("hypercube:3", {"kappa": "3"}),
    ],
    "alltoall.virtual-channels": [
        ("ring:4", {"layers": "2"}),
        ("complete:3", {}),
        ("ring:4", {"layers": "1"}),
        ("ring:5", {"layers": "3"}),
    ],
    "lumorph.min-overlap": [
        ("lightpath:2x2", {"seed": "2"}),
        ("ring:4,directed", {"circuits": "all"}),
        ("lightpath:2x3", {}),
        ("lightpath:2x2", {"model": "path", "circuits": "all"}),
        ("lightpath:2x4+fail=1,seed=0", {"model": "path", "k": "2", "circuits": "recursive-doubling:1"}),
    ],
    "lumorph.co-scheduling": [
        ("training:random,gpus=8,calls=6,seed=3", {}),
        ("training:random,gpus=6,calls=4,seed=1", {"algorithm": "ring"}),
    ],
    "lumorph.rounds": [
        ("lightpath:2x2,lasers=2", {}),
        ("lightpath:1x3,lasers=1", {"collective": "all-to-all"}),
        ("lightpath:1x3,lasers=2", {"collective": "all-reduce", "rmax": "3"}),
        ("lightpath:2x2,lasers=3", {"wavelengths": "fixed", "rmax": "2"}),
        ("lightpath:1x3,lasers=2", {"program": "coded", "rmax": "4", "rmin": "2"}),
        ("lightpath:2x2,lasers=1", {"program": "coded", "collective": "broadcast", "root": "2", "rmax": "3"}),
        ("lightpath:1x3,lasers=1", {"program": "printed", "rmax": "4", "rmin": "2"}),
        ("lightpath:1x3,lasers=1", {"program": "printed", "collective": "scatter", "rmax": "4", "rmin": "2"}),
    ],
    "lumorph.sum-rounds": [
        ("lightpath:1x2,lasers=1", {"rmax": "2"}),
        ("lightpath:1x3,lasers=2", {"collective": f"file:{PARTIAL}", "rmax": "2", "bounds": "false"}),
        ("lightpath:1x3,lasers=1", {"collective": "reduce-scatter", "rmax": "3"}),
    ],
    "optree.tree": [
        ("wdm-ring:n=4,wavelengths=2", {"depth": "2"}),
        ("wdm-ring:n=7,wavelengths=2", {}),
        ("wdm-line:n=6,wavelengths=1", {"depth": "1"}),
        ("wdm-ring:n=9,wavelengths=3", {"count": "printed"}),
    ],
    "optree.one-stage": [
        ("wdm-ring:n=3,wavelengths=2", {"colours": "2"}),
        ("wdm-line:n=4,wavelengths=1", {}),
        ("wdm-ring:n=4,wavelengths=1", {}),
        ("wdm-line:n=3,wavelengths=1", {"colours": "1"}),
    ],
    "sipml.ocs-circuits": [
        ("servers:n=3,degree=4,traffic=random,seed=1", {}),
        ("servers:n=3,degree=3,traffic=random,seed=2", {"model": "switches"}),
        ("servers:n=4,degree=7,traffic=alltoall", {"bandwidth": "1e9"}),
        ("servers:n=4,degree=3,traffic=alltoall", {}),
    ],
    "sipml.ring-wavelengths": [
        ("wdm-ring:n=3,wavelengths=3", {"traffic": "random"}),
        ("wdm-ring:n=3,wavelengths=2", {"model": "arcs"}),
        ("servers:n=6,degree=4,traffic=random,seed=1", {}),
        ("wdm-ring:n=5,wavelengths=4", {}),
        ("wdm-ring:n=4,wavelengths=3", {"model": "arcs", "traffic": "random", "seed": "3"}),
    ],
    "sipml.placement": [
        ("op-graph:model=chain,splits=1x3", {"k": "3", "degree": "2", "rule": "degree", "bandwidth": "1e9"}),
        ("op-graph:model=chain,splits=1x3", {"k": "3", "degree": "2"}),
        ("op-graph:model=chain,splits=1x2x2", {"k": "2"}),
        ("op-graph:model=chain,splits=1x2x2", {"k": "4", "degree": "3", "bandwidth": "1e9"}),
        ("op-graph:model=chain,splits=1x1", {"k": "1"}),
        (
            "op-graph:model=chain,splits=1x2x2",
            {"k": "3", "degree": "3", "bandwidth": "1e6", "memory": "2.7939677238464355e-09"},
        ),
    ],
    "topology.design": [
        ("servers:n=3,degree=2", {}),
        ("servers:n=4,degree=2", {"directed": "true"}),
        ("servers:n=5,degree=3", {}),
        ("servers:n=5,degree=3", {"rack": "2", "cables": "1", "uplinks": "2"}),
        ("servers:n=4,degree=2", {"rack": "2", "uplinks": "1", "directed": "true"}),
    ],
    "topology.sequence": [
        ("servers:n=3,degree=2", {"delay": "0.5", "configurations": "3", "charge": "changed", "overlap": "true"}),
        ("servers:n=3,degree=1", {"directed": "true"}),
        ("servers:n=4,degree=2", {"directed": "true", "relays": "step", "parallel": "1", "delay": "1"}),
        ("servers:n=4,degree=2", {"start": "ring:4", "delay": "0.25", "overlap": "true", "charge": "changed"}),
        ("servers:n=3,degree=3", {"demand": "permutation:1", "configurations": "0", "delay": "0.25"}),
        ("servers:n=4,degree=1", {"configurations": "3", "relays": "step", "delay": "0.125", "overlap": "true"}),
        ("servers:n=4,degree=1", {"configurations": "1", "directed": "true", "demand": "gravity:2"}),
        ("servers:n=3,degree=1", {"startup": "2ms", "delay": "1us", "shard": "1MB", "bandwidth": "8Gb/s"}),
        ("servers:n=5,degree=2", {"rack": "2", "cables": "1", "uplinks": "2", "startup": "0.5"}),
        ("servers:n=4,degree=1", {"rack": "2", "uplinks": "1", "directed": "true", "configurations": "3"}),
    ],
    "topology.matchings": [
        ("servers:n=3,degree=2", {"configurations": "2", "delay": "0.5"}),
        ("servers:n=3,degree=1", {"first": "false", "delay": "0.25", "demand": "gravity:1"}),
        ("servers:n=4,degree=3", {"demand": "permutation:2", "delay": "2"}),
        ("servers:n=4,degree=2", {"switches": "1", "configurations": "1", "first": "false", "demand": "permutation:0"}),
        ("servers:n=3,degree=1", {"switches": "2", "delay": "0"}),
    ],
    "topology.steps": [
        ("ring:3", {"algorithm": "ring", "delay": "0.5", "startup": "0.25"}),
        ("ring:4", {}),
        ("genkautz:n=5,d=2", {"algorithm": "shifts", "delay": "0.75", "reuse": "false"}),
        ("ring:6", {"algorithm": "retri", "between": "genkautz:n=6,d=2;complete:6", "ports": "1"}),
        ("ring:4,directed", {"algorithm": "bruck:2", "delay": "0"}),
    ],
    "topoopt.topology": [
        ("servers:n=3,degree=2,traffic=vgg", {}),
        ("servers:n=4,degree=2,traffic=dlrm", {"flows": "pair"}),
        ("servers:n=4,degree=2,traffic=alltoall", {"objective": "bandwidth-tax"}),
        ("servers:n=4,degree=3,traffic=dlrm", {"rings": "default"}),
        ("servers:n=4,degree=3,traffic=vgg", {"objective": "bandwidth-tax", "flows": "pair"}),
    ],
    "topoopt.routing": [("servers:n=3,degree=2,traffic=vgg", {}), ("servers:n=5,degree=2,traffic=dlrm", {})],
    "topoopt.strategy": [
        ("servers:n=4,degree=2,traffic=bert", {"memory": "20"}),
        ("servers:n=4,degree=2,traffic=bert", {}),
        ("servers:n=6,degree=3,traffic=dlrm", {"alpha": "1.5", "computing": "0.1"}),
        ("servers:n=16,degree=4,traffic=dlrm,section=5.6", {"operators": "measured"}),
    ],
}


@cache
def problem_of(name, spec, settings=()):
    """A formulation on an instance; what it needs of another comes from its default method."""
    model, instance = formulation(name), parse(spec)
    needed = None
    if model.needs is not None:
        needed = {"alltoall.master": fluid, "alltoall.min-congestion": first_paths}[model.needs](instance)
    return prepared(model, instance, read_parameters(model.parameters, dict(settings), name), needed)


def fluid(instance):
    """Any flow that a child LP can split: half of every arc's capacity for every source."""
    return {"g": np.repeat(instance.capacity[:, None] / 2, instance.ranks, axis=1)}


def first_paths(instance):
    """The first path of every pair."""
    paths = formulation("alltoall.min-congestion").prepare(instance, {}).paths
    x = np.zeros(paths.paths)
    x[paths.first[:-1]] = 1.0
    return {"x": x}


def builds(name, spec, settings):
    """A fresh model of every form."""
    problem = problem_of(name, spec, tuple(settings.items()))
    return {form: problem.build(form) for form in problem.forms}


def normal(form):
    """Columns and rows by name, rows with their first coefficient, in the order of names, positive."""
    names = form.column_names()
    ends = np.stack([form.col_lower, form.col_upper, np.asarray(form.integer, dtype=float), form.cost], axis=1)
    columns = dict(zip(names, ends, strict=True))
    order = np.argsort(names)
    dense = form.A.toarray()[:, order]
    rows = {}
    for i, name in enumerate(form.row_names()):
        entries = np.flatnonzero(dense[i])
        sign = np.sign(dense[i][entries[0]]) if entries.size else 1.0
        low, high = sorted([sign * form.row_lower[i], sign * form.row_upper[i]])
        rows[name] = {names[order[j]]: sign * dense[i][j] for j in entries} | {"lower": low, "upper": high}
    return columns, rows


def differences(first, second):
    """What differs between two compiled models, in words; nothing if they are one matrix."""
    return list(each_difference(first, second))


def each_difference(first, second):
    """One difference between two compiled models after the other, the cheapest to find first."""
    if (first.sense, len(set(first.column_names()))) != (second.sense, len(set(second.column_names()))):
        yield "sense or number of columns"
    if not np.isclose(first.offset, second.offset, rtol=TOLERANCE, atol=0):
        yield f"constant of the objective: {first.offset!r}, {second.offset!r}"
    for ours, theirs in ((first.columns, second.columns), (first.rows, second.rows)):
        shapes = [(name, ours[name].shape, theirs[name].shape) for name in ours.keys() & theirs.keys()]
        yield from (f"shape of {name}: {ours}, {theirs}" for name, ours, theirs in shapes if ours != theirs)
    (columns, rows), (other_columns, other_rows) = normal(first), normal(second)
    if len(columns) < first.A.shape[1] or len(rows) < first.A.shape[0]:
        yield "two rows or columns of one name"
    for kind, ours, theirs in (("column", columns, other_columns), ("row", rows, other_rows)):
        yield from (f"{kind} {name}: only in one" for name in sorted(ours.keys() ^ theirs.keys()))
        for name in ours.keys() & theirs.keys():
            if not same(ours[name], theirs[name]):
                yield f"{kind} {name}: {ours[name]}, {theirs[name]}"


def same(ours, theirs):
    """Whether two columns or rows are equal up to round-off."""
    if isinstance(ours, dict):
        if ours == theirs or ours.keys() != theirs.keys():
            return ours == theirs
        ours, theirs = (np.array([part[key] for key in ours]) for part in (ours, theirs))
    return np.array_equal(ours, theirs) or bool(np.isclose(ours, theirs, rtol=TOLERANCE, atol=0).all())


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
    "group_names",
    "named_paths",
    "pair_names",
    "vertex_names",
    "_refuse_large",
    "estimate",
    "chord_count",
}


def forms_of(name):
    """The functions that build a formulation, by form: methods of its class."""
    model = formulation(name)
    return {form: getattr(model, form) for form in model.forms}


def code_of(build):
    """The functions of :mod:`opticoll.formulations` that a build runs, itself included, without ``SHARED``.

    Properties of the problem are its data, which the builds share.
    """
    trees, left = {}, [build]
    while left:
        function = left.pop()
        if function in trees:
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        trees[function] = tree
        for node in ast.walk(tree):
            target = None
            if isinstance(node, ast.Name):
                target = function.__globals__.get(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                target = getattr(function.__globals__.get(node.value.id), node.attr, None)
            known = inspect.isfunction(target) and target.__module__.startswith("opticoll.formulations.")
            if known and target.__name__ not in SHARED:
                left.append(target)
    return trees


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
        for form, build in forms_of(name).items():
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
    for number in numbers:
        flip = Flip(number)
        tree = flip.visit(ast.parse(source))
        scope = {}
        flags = __future__.annotations.compiler_flag
        exec(compile(ast.fix_missing_locations(tree), function.__module__, "exec", flags), function.__globals__, scope)
        changed = scope[function.__name__]
        modules = [module for name, module in sys.modules.items() if name.startswith("opticoll.formulations")]
        places = [(module, key) for module in modules for key, value in vars(module).items() if value is function]
        try:
            for module, key in places:
                setattr(module, key, changed)
            yield flip.changed, changed
        finally:
            for module, key in places:
                setattr(module, key, function)
