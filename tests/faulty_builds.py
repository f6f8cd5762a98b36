"""A formulation whose build has a fault, in a module that workers find, too."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import opticoll as oc
from opticoll.errors import BadInput

#: The variable that names a file whose appearance ends endless builds.
OVER = "FAULTY_BUILDS_OVER"


class Faulty(oc.Formulation):
    """At most two of three; what the checker reads is kept by a build without fault."""

    name = "test.faulty"
    sense = "max"

    def __init__(self, instance: Any, *, fault: str = "none") -> None:
        self.instance, self.fault = instance, fault
        self.kept = (line for line in ()) if fault == "unsendable" else None
        self.most = None if fault == "none" else 2

    def pyomo(self) -> Any:
        import pyomo.core as pyo

        if self.fault == "input":
            msg = "the instance is too odd"
            raise BadInput(msg)
        if self.fault == "key":
            {}["lacking"]
        if self.fault == "memory":
            raise MemoryError
        held = []
        for _ in range(40 if self.fault == "large" else 0):
            held.append(b"x" * 2**24)
            time.sleep(0.05)
        while self.fault == "endless" and not Path(os.environ[OVER]).exists():
            pass
        self.most = 2
        model = pyo.ConcreteModel()
        model.x = pyo.Var(range(3), bounds=(0, 1))
        power = 2 if self.fault == "square" else 1
        model.most = pyo.Constraint(expr=sum(model.x[i] ** power for i in range(3)) <= 2)
        model.total = pyo.Objective(expr=sum(model.x.values()), sense=pyo.maximize)
        return model

    def residuals(self, values: Any) -> dict[str, Any]:
        return {"most": values["x"].sum() - self.most}

    def objective(self, values: Any) -> float:
        return float(values["x"].sum())
