"""Names for model files."""

from __future__ import annotations

import re


def plain_names(names: list[str], letter: str) -> list[str]:
    """Make names that MPS and LP readers accept: no blanks or brackets, unique, not a number or a keyword."""
    plain = [re.sub(r"[^A-Za-z0-9_.]+", "_", name).strip("_.") for name in names]
    plain = [name if re.match(r"[A-DF-Za-df-z_]", name) else f"{letter}_{name}" for name in plain]
    if len(set(plain)) < len(plain):
        plain = [f"{name}.{position}" for position, name in enumerate(plain)]
    return plain
