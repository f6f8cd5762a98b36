"""Units of results: shards, bytes and seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from opticoll.analysis.plots.style import label
from opticoll.errors import BadInput, refuse
from opticoll.formulations.matrix.stated_model import StatedProgram
from opticoll.formulations.model import counts_shards
from opticoll.formulations.variables import BANDWIDTHS, SHARDS, TIME
from opticoll.instances import Topology
from opticoll.instances.demands import counts_bytes
from opticoll.instances.quantities import parse_rate, parse_size
from opticoll.instances.readers.objects import as_instance

if TYPE_CHECKING:
    from opticoll.formulations import Formulation
    from opticoll.instances import Instance
    from opticoll.solvers.run import Run
    from opticoll.solvers.task import Record, Task
    from opticoll.types import DataSize


@dataclass(frozen=True)
class Scale:
    """Bytes of a shard, and bits per second of a capacity of 1; each None if unknown."""

    shard: float | None = None
    rate: float | None = None

    @classmethod
    def of(
        cls, model: type[Formulation], instance: Instance, shard: str | float | None, bandwidth: object = None
    ) -> Scale:
        """The scale of a formulation on an instance, for shards of a given size.

        ``bandwidth`` is the parameter of that name, of formulations whose instances have no unit of capacity.

        Raises
        ------
        BadInput
            If the formulation has no shards, or the capacities have no unit.
        """
        if isinstance(instance, StatedProgram) and instance.origin is not None and instance.origin_instance is not None:
            model, instance = type(instance.origin), instance.origin_instance
        stated = str(bandwidth) if bandwidth and counts_shards(model) else None
        unit = instance.capacity_unit if isinstance(instance, Topology) else stated
        rate = None if unit is None else parse_rate(unit)
        if shard is None:
            return cls(None, rate)
        size = parse_size(shard, "shard")
        if not counts_shards(model):
            refuse("shard", f"{model.name} has no shards, its sizes are those of the instance; omit it")
        if rate is None:
            spec = label(instance.spec, 60)
            own = instance.spec.startswith("custom:")
            remedy = "oc.topology(..., unit='100Gb/s')" if own else f"{spec}+unit=100Gb/s"
            if any(parameter.name == "bandwidth" for parameter in model.parameters):
                msg = f"shard: {model.name} needs the bandwidth of a circuit; add"
                raise BadInput(msg, remedy={"bandwidth": "100Gb/s"})
            refuse("shard", f"the capacities of {spec} have no unit; give one: {remedy}")
        return cls(size, rate)

    @property
    def seconds(self) -> float | None:
        """Time to send one shard over a link of capacity 1 [s]."""
        return None if self.shard is None or self.rate is None else 8.0 * self.shard / self.rate

    def converted(self, unit: str) -> tuple[str, float] | None:
        """The absolute unit for a relative one, and the factor; None if there is none."""
        rate = None if self.rate is None else self.rate / 1e9
        inverse = None if self.seconds is None else 1.0 / self.seconds
        known = {
            BANDWIDTHS: ("Gb/s", rate),
            SHARDS: ("bytes", self.shard),
            TIME: ("s", self.seconds),
            f"{BANDWIDTHS} / shard": ("1/s", inverse),
        }
        name, factor = known.get(unit, ("", None))
        return None if factor is None else (name, factor)

    def beside(self, value: float | None, unit: str) -> str:
        """A value in its absolute unit, to be written behind the relative one; empty if there is none."""
        known = self.converted(unit)
        return "" if known is None or value is None else f" = {value * known[1]:.6g} {known[0]}"


def shard_of(task: Task, model: type[Formulation], shard: DataSize | None) -> str | float | None:
    """The size of a shard: as given, or one byte where the demand counts bytes and the capacities have a unit.

    Raises
    ------
    BadInput
        If the demand counts bytes and another size is given.
    """
    demand = task.settings.get("demand")
    if not isinstance(demand, str) or not counts_shards(model) or not counts_bytes(demand):
        return shard
    if shard is None:
        unit = getattr(as_instance(task.instance), "capacity_unit", None)
        return None if unit is None else "1B"
    if parse_size(shard, "shard") != 1:
        refuse("shard", f"the demand is in bytes, so that a shard is one byte, not {shard}; omit it, or give shards")
    return shard


def timed(run: Run, scale: Scale) -> Record:
    """The record of a run with ``T_s``, its time in seconds, in the metrics where that is defined."""
    metrics = run.record.metrics or {}
    time = metrics.get("T", metrics.get("T_steps"))
    if scale.seconds is None or not isinstance(time, (int, float)):
        return run.record
    return msgspec.structs.replace(run.record, metrics={**metrics, "T_s": time * scale.seconds})
