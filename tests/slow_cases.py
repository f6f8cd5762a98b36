"""Cases of which only some are tested quickly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet


def marked(*values: Any, slow: bool, **words: Any) -> ParameterSet:
    """A case of ``pytest.mark.parametrize``, marked as slow or not; ``words`` as for ``pytest.param``."""
    return pytest.param(*values, marks=[pytest.mark.slow] * slow, **words)
