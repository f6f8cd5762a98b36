"""Sizes of models that are known before their data are made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opticoll.types import Settings


class ForeseenSize(ABC):
    """A formulation whose data alone may exceed the memory."""

    @staticmethod
    @abstractmethod
    def early_estimate(instance: object, parameters: Settings) -> dict[str, int] | None:
        """At most what ``estimate`` returns, before ``prepare``; None if the instance alone does not tell."""


def foreseen(formulation: object, instance: object, parameters: Settings) -> dict[str, int] | None:
    """The early estimate of a formulation or its class; None if it has none."""
    kind = formulation if isinstance(formulation, type) else type(formulation)
    return kind.early_estimate(instance, parameters) if issubclass(kind, ForeseenSize) else None
