"""Arguments for whole chunks in steps: prices of arcs, and whole rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opticoll.solvers.exact.arguments.argument import Argument, numbers, pairs_of, word
from opticoll.solvers.exact.exact_form import Leaf

if TYPE_CHECKING:
    from opticoll.instances import Topology
    from opticoll.solvers.exact.arguments.argument import Parts, Values
    from opticoll.solvers.exact.exact_form import ExactAnswer, ExactForm
    from opticoll.types import Json


def steps_problem(data: Any) -> dict[str, Json]:
    """Problem of whole chunks in steps."""
    topology = data.flow.topology
    ends = [(s, t) for s in range(topology.n) for t in range(topology.n) if s != t]
    return {
        "arcs": pairs_of(topology.tail, topology.head.tolist(), numbers(topology.capacity)),
        "pairs": [[s, t, data.chunks] for s, t in ends],
        "steps": data.flow.steps,
    }


def steps_parts(data: Any, values: Values, _duals: object) -> Parts:
    """Chunks in steps, with prices that are the arcs' multipliers in the flow problem, or 1."""
    from opticoll.formulations.alltoall.sccl import ways

    n, topology = data.flow.topology.n, data.flow.topology
    taken = [
        [s * (n - 1) + t - (t > s), [int(a) for a in arcs], [int(k) for k in steps]]
        for s, t, arcs, steps in ways(data, values)
    ]
    form, answer = exact_flow(topology)
    leaf = answer.nodes[0]
    assert isinstance(leaf, Leaf)
    rows = form.rows["capacity"].index.tolist()
    results = [[a, word(abs(leaf.y[i]))] for a, i in enumerate(rows) if leaf.y.get(i)]
    prices = [results, [[a, 1] for a in range(topology.arcs)]]
    return {"ways": taken}, [{"prices": some} for some in prices if some]


def exact_flow(topology: Topology) -> tuple[ExactForm, ExactAnswer]:
    """The all-to-all flow of a topology by source, solved exactly, and its program."""
    from opticoll.formulations.alltoall.master import Master
    from opticoll.solvers.exact.prove import exact_problem, solve_apart

    form = exact_problem(Master.prepare(topology, {}))
    return form, solve_apart(form)


ARGUMENT = Argument("steps", ("alltoall.sccl",), problem=steps_problem, parts=steps_parts)
