"""A solution of the master LP on orbits, with the bounds that it proves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.instances.topology import F64
    from opticoll.solvers.methods.flows.flow_orbits import Orbits


@dataclass
class ReducedSolution:
    """Unit flows of the representatives, arc lengths, and the bounds on T* that they prove.

    ``flows``, ``(m, |R|)``, are settled; without them ``upper`` is infinite, and without ``lengths``, ``(m,)``,
    ``lower`` is 0.
    """

    termination: Termination
    flows: F64 | None = None
    lengths: F64 | None = None
    upper: float = np.inf
    lower: float = 0.0
    algorithm: str = ""
    version: str | None = None
    columns: int = 0
    message: str = ""

    @property
    def gap(self) -> float:
        """Relative gap between the bounds."""
        return self.upper / self.lower - 1.0 if self.lower > 0 else np.inf

    def with_flows(self, orbits: Orbits, flows: F64) -> ReducedSolution:
        """With exact flows in the proportions of approximate ones, ``(m, |R|)``, if their loads are smaller."""
        from opticoll.formulations.flows.single_source import unit_flow

        reduced = orbits.reduced
        exact = unit_flow(reduced.topology, reduced.sources, reduced.demand / orbits.weight, np.maximum(flows, 0.0))
        if exact is None:
            return self
        exact = orbits.settle(exact)
        upper = float((orbits.fold(exact @ orbits.weight) / reduced.capacity).max())
        return replace(self, flows=exact, upper=upper) if upper < self.upper else self

    def with_lengths(self, orbits: Orbits, lengths: F64) -> ReducedSolution:
        """With other lengths, ``(m,)``, if they prove more."""
        bound = orbits.reduced.length_bound(lengths)
        better = np.isfinite(bound) and bound > 0 and 1.0 / bound > self.lower
        return replace(self, lengths=lengths, lower=1.0 / bound) if better else self
