"""Independent measurements that several claims share: optima of LPs, certified flows, populations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.ledger.tolerances import SAME
from opticoll.instances import Topology, parse
from opticoll.instances.families.regular_graphs import all_digraphs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64, Mask
    from opticoll.solvers.task import Record


#: Number of vertices of the largest graphs in :func:`regular_digraphs`.
LARGEST_ENUMERATED = 6


def scipy_program(form: StandardForm) -> tuple[dict[str, object], Mask, Mask]:
    """A linear program as arguments of SciPy's ``linprog``, and its rows with only an upper or only a lower bound."""
    from scipy.sparse import vstack

    equal = form.row_lower == form.row_upper
    above, below = ~equal & np.isfinite(form.row_upper), ~equal & np.isfinite(form.row_lower)
    rows = form.A.tocsr()
    arguments: dict[str, object] = {
        "c": -form.cost if form.sense == "max" else form.cost,
        "A_ub": vstack([rows[above], -rows[below]]),
        "b_ub": np.concatenate([form.row_upper[above], -form.row_lower[below]]),
        "A_eq": rows[equal],
        "b_eq": form.row_upper[equal],
        "bounds": np.column_stack([form.col_lower, form.col_upper]),
    }
    return arguments, above, below


def linear_optimum(form: StandardForm) -> tuple[float, F64, F64]:
    """Solve a linear program with SciPy in this process; returns optimum, primal solution and row duals.

    The duals, ``(rows,)``, belong to the minimisation; they are nonpositive on rows with only an upper bound.

    Raises
    ------
    ArithmeticError
        If there is no optimum.
    """
    from scipy.optimize import linprog

    program, above, below = scipy_program(form)
    result = linprog(**program, method="highs")
    if result.status != 0:
        msg = f"a linear program of {form.A.shape[1]} columns has no optimum: {result.message}"
        raise ArithmeticError(msg)
    duals = np.zeros(above.size)
    duals[form.row_lower == form.row_upper] = result.eqlin.marginals
    duals[above] += result.ineqlin.marginals[: above.sum()]
    duals[below] -= result.ineqlin.marginals[above.sum() :]
    return form.objective(result.x), result.x, duals


def certified_optimum(
    form: StandardForm,
    what: str,
    bound: Callable[[F64], float],
    residuals: Callable[..., Mapping[str, float]] | None = None,
) -> float:
    """The optimum of a flow program, certified: the flow is checked, and arc lengths prove its optimality.

    Parameters
    ----------
    form
        The program, with a block of rows ``capacity``.
    what
        Its name in words.
    bound
        The upper bound that arc lengths ``(m,)`` give.
    residuals
        The violations of a solution; None if it is not checked.

    Raises
    ------
    ArithmeticError
        If the flow or the bound disagrees with the solver.
    """
    value, x, duals = linear_optimum(form)
    above = bound(np.maximum(-form.rows["capacity"].gather(duals), 0.0))
    worst = max(residuals(form.values(x)).values()) if residuals else 0.0
    if worst > SAME or abs(above / value - 1) > SAME:
        msg = f"{what}: {value} is not certified (bound {above}, worst violation {worst:.2g})"
        raise ArithmeticError(msg)
    return value


def certified_flow(topology: Topology) -> float:
    """The all-to-all flow F of the master LP, as :func:`certified_optimum`."""
    from opticoll.formulations.alltoall.master import Master
    from opticoll.solvers.compile.compilation import compile_model

    data = Master.prepare(topology)
    form = compile_model(data.matrix())
    return certified_optimum(
        form,
        f"F of {topology.spec}",
        data.flow.length_bound,
        data.residuals,
    )


def seconds_of(record: Record) -> float:
    """Time of a run from building the model to verifying the solution [s]."""
    return sum(float(record["time"][f"{part}_s"] or 0.0) for part in ("build", "compile", "solve", "verify"))


def interval_of_mean(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and half its 95 % interval by Student's t."""
    from scipy.stats import t

    sample = np.asarray(values, dtype=float)
    half = float(t.ppf(0.975, sample.size - 1)) * float(sample.std(ddof=1)) / sample.size**0.5
    return float(sample.mean()), half


def regular_digraphs() -> Iterator[Topology]:
    """Every connected d-regular digraph without loops and parallel arcs on 3 to 6 vertices, up to isomorphism."""
    for n in range(3, LARGEST_ENUMERATED + 1):
        for d in range(1, n):
            yield from (parse(spec) for spec in all_digraphs(n, d))


#: Regular graphs, in addition to those of :func:`regular_digraphs`.
REGULAR = (
    *(f"ring:{n}" for n in range(3, 17)),
    *(f"ring:{n},directed" for n in range(3, 17)),
    *(f"complete:{n}" for n in range(3, 10)),
    *(f"hypercube:{d}" for d in (2, 3, 4)),
    *(f"bipartite:{k}x{k}" for k in range(2, 6)),
    *(f"torus:{shape}" for shape in ("3x3", "3x4", "4x4", "4x5", "5x5")),
    *(f"circulant:n={n},offsets=1x{k}" for n in range(6, 16) for k in range(2, (n + 1) // 2)),
    *(f"kautz:d={d},D={D}" for d, D in ((2, 2), (2, 3), (3, 2))),
    *(f"genkautz:n={n},d=2" for n in range(6, 31, 3)),
    *(f"genkautz:n={n},d=3" for n in range(8, 25, 4)),
    *(f"genkautz:n={n},d=4" for n in range(10, 26, 5)),
    *(f"random-regular:n={n},d=3,seed={s}" for n in (8, 12, 16, 20) for s in range(1, 6)),
    *(f"xpander:n={n},d=3,seed={s}" for n in (8, 12, 16, 20) for s in (1, 2)),
    *(f"sp-expander:n={n},d=3,seed=1" for n in (8, 12, 16)),
    "petersen",
    "twisted-hypercube:3",
)
#: Irregular graphs, some with disabled links.
IRREGULAR = (
    *(f"path:{n}" for n in range(2, 9)),
    *(f"star:{n}" for n in range(4, 9)),
    *(f"mesh:{shape}" for shape in ("2x3", "2x4", "3x3", "3x4", "4x4")),
    *(f"torus:4x4+fail={k},seed={s}" for k in (1, 2, 3) for s in (0, 1)),
    *(f"genkautz:n=12,d=3+fail={k},seed=0" for k in (1, 2)),
    "bipartite:2x3",
    "debruijn:d=2,D=3",
    "dgx1",
)
