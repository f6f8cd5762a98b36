"""Parts of NumPy that SciPy imports and hardly anybody uses: they are loaded when something of them is used.

SciPy copies all names of NumPy, its modules included (``scipy._lib.array_api_compat.numpy``). These two take a quarter
of the time of importing SciPy, which every command and every worker does.
"""

from __future__ import annotations

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec

#: They import the tools of compilers and of unit tests.
SELDOM_USED = ("numpy.f2py", "numpy.testing")


def defer(*names: str) -> None:
    """Put modules in place that load themselves when an attribute of theirs is first used, unless they are loaded."""
    for name in names:
        spec = None if name in sys.modules else find_spec(name)
        if spec is None or spec.loader is None:
            continue
        spec.loader = loader = LazyLoader(spec.loader)
        sys.modules[name] = module = module_from_spec(spec)
        loader.exec_module(module)
        parent, _, part = name.rpartition(".")
        setattr(sys.modules[parent], part, module)
