"""Proven optima for the claims of the all-to-all paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.ledger.sweeps import SAME, linear_optimum
from opticoll.formulations.alltoall import path_mcf
from opticoll.formulations.flows import flow_bounds as bounds
from opticoll.instances import parse

if TYPE_CHECKING:
    from opticoll.analysis.ledger.claim import Laboratory
    from opticoll.instances import Topology

MASTER = "alltoall.master"
#: Gap to which optima on more than 200 vertices are proven.
LARGE = 1e-4


def optimal_time(laboratory: Laboratory, spec: str) -> float:
    """The proven optimal T of an all-to-all, to a gap of :data:`LARGE` above 200 vertices."""
    tol = LARGE if parse(spec).n > 200 else 1e-6
    return 1 / float(laboratory.proven(MASTER, spec, tol=tol, time_limit_s=600.0)["objective"])


def corollary_3(n: int, degree: int) -> float:
    """Corollary 3: T >= sum_k k n_k / d."""
    return bounds.moore_depth_sum(n - 1, degree) / degree


def rounded(values: dict[str, float]) -> dict[str, float]:
    """Values rounded to three decimals."""
    return {name: round(value, 3) for name, value in values.items()}


def path_optimum(topology: Topology, **rule: Any) -> float:
    """F over a path set, solved with SciPy and certified by the dual arc lengths."""
    from opticoll.solvers.compile import compile_model

    data = path_mcf.prepare(topology, rule)
    form = compile_model(path_mcf.build_matrix(data))
    value, x, duals = linear_optimum(form)
    above = path_mcf.length_bound(data, np.maximum(-form.rows["capacity"].gather(duals), 0.0))
    worst = max(path_mcf.residuals(data, form.values(x)).values())
    if worst > SAME or abs(above / value - 1) > SAME:
        msg = f"path MCF on {topology.spec}: {value} is not certified (bound {above}, worst violation {worst:.2g})"
        raise ArithmeticError(msg)
    return value
