"""Conjectures as an extension: closed forms fitted to exact optima."""

from opticoll.extensions import Extension

EXTENSION = Extension(
    "opticoll.analysis.conjectures",
    commands=("opticoll.analysis.conjectures.commands.conjecture:conjecture",),
    functions=(
        "opticoll.analysis.conjectures.conjecture:Conjecture",
        "opticoll.analysis.conjectures.conjecture:conjecture",
    ),
)
