"""Arguments for flows between all ranks: lengths, and flows of one rank of each orbit of the symmetries."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import NoSolution
from opticoll.formulations.flows.flow_orbits import find
from opticoll.formulations.flows.symmetric_flow import SymmetricFlow
from opticoll.solvers.exact.arguments.argument import Argument, numbers, pairs_of, unequal, word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations.flows.flow_orbits import Orbits
    from opticoll.solvers.exact.arguments.argument import Document, Parts, Values
    from opticoll.solvers.exact.orbit_optimum import ExactPair
    from opticoll.solvers.methods.flows.orbit_lp import ReducedSolution
    from opticoll.types import Json

    Flows = dict[str, SymmetricFlow | NDArray[np.float64]]


def orbits_problem(data: Any) -> dict[str, Json]:
    """Problem of flows between all ranks, with the symmetries that are found."""
    return _stated(find(data))


def _stated(orbits: Orbits) -> dict[str, Any]:
    topology = orbits.data.topology
    return {
        "vertices": topology.n,
        "ranks": topology.terminals.tolist(),
        "arcs": pairs_of(topology.tail, topology.head.tolist(), numbers(orbits.data.capacity)),
        "symmetries": orbits.arc_images.tolist(),
    }


def near_optimum(orbits: Orbits, values: Values, duals: Values) -> ReducedSolution:
    """The unit flows of the representatives and the lengths in a run's values and duals."""
    from opticoll.solvers.methods.flows.orbit_lp import ReducedSolution
    from opticoll.solvers.task import Termination

    given, time = values[orbits.data.flow], 1.0 / float(np.asarray(values["F"]))
    own = isinstance(given, SymmetricFlow) and np.array_equal(given.arcs, orbits.arc_images)
    flows = given.entries if own and isinstance(given, SymmetricFlow) else orbits.averaged(np.asarray(given))
    near = ReducedSolution(Termination.TOLERANCE).with_flows(orbits, flows * time)
    return near.with_lengths(orbits, orbits.fold(np.abs(duals["capacity"])))


def stated_pair(orbits: Orbits, pair: ExactPair) -> tuple[dict[str, Json], dict[str, Json]]:
    """Solution and argument of a certificate."""
    flow = pair.flow
    ties: list[list[list[Any]]] = [[] for _ in orbits.representative]
    for arc, group, amount in zip(flow.tie.tolist(), flow.group.tolist(), flow.amount.tolist(), strict=True):
        if amount:
            ties[group].append([arc, word(Fraction(amount, flow.below))])
    flows = pairs_of(orbits.reduced.sources, flow.parent.T.tolist(), ties)
    return {"flows": flows}, {"lengths": pair.lengths[orbits.arc_orbit].tolist()}


def orbits_parts(data: Any, values: Values, duals: Values) -> Parts:
    """Flows of the representatives in fractions, and integer lengths.

    Raises
    ------
    NoSolution
        If there are no flows with lengths to start from.
    """
    orbits = find(data)
    solution, argument = stated_pair(orbits, _pair(orbits, values, duals))
    return solution, [argument]


def _pair(orbits: Orbits, values: Values, duals: Values) -> ExactPair:
    from opticoll.solvers.exact.orbit_optimum import exact_pair

    flows = values.get(orbits.data.flow)
    pair = None
    if flows is not None and float(np.asarray(values["F"])) > 0 and "capacity" in duals:
        pair = exact_pair(orbits, near_optimum(orbits, values, duals))
    if pair is None:
        msg = (
            "exact: the solve left no flows with arc lengths to start from; raise --time-limit or use another --method"
        )
        raise NoSolution(msg)
    return pair


def interval(data: Any, values: Values, duals: Values) -> tuple[Fraction, Fraction, Flows]:
    """The interval of T that flows and lengths near the given ones prove, checked in fractions, and these flows.

    Raises
    ------
    NoSolution
        As :func:`orbits_parts`.
    """
    from opticoll.solvers.exact.combinatorial_check import orbits as check
    from opticoll.solvers.exact.orbit_optimum import tree_flows

    orbits = find(data)
    pair = _pair(orbits, values, duals)
    solution, argument = stated_pair(orbits, pair)
    problem = _stated(orbits)
    _, high = check(problem, solution, None)
    low, _ = check(problem, None, argument)
    assert low is not None
    assert high is not None
    flows = orbits.settle((tree_flows(orbits, pair.flow) / pair.flow.below).astype(float)) / float(high)
    return low, high, {data.flow: orbits.symmetric(flows), "F": np.asarray(1.0 / float(high))}


def orbits_difference(data: Any, document: Document) -> str:
    """How a file's problem differs from the formulation's, apart from the symmetries, which any file may choose."""
    stated = document["problem"]
    wanted = orbits_problem(data) | {"symmetries": stated["symmetries"]}
    return unequal(wanted, stated)


ARGUMENT = Argument(
    "orbits",
    ("alltoall.master",),
    problem=orbits_problem,
    parts=orbits_parts,
    refuses=lambda data: not data.uniform or data.equality or not (data.capacity > 0).all(),
    difference=orbits_difference,
)
