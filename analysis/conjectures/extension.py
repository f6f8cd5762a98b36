"""Conjectures as an extension: closed forms fitted to exact optima."""

from opticoll.extensions import Extension

EXTENSION = Extension(
    "opticoll.analysis.conjectures",
    commands={
        "conjecture": (
            "opticoll.analysis.conjectures.commands.conjecture:conjecture",
            "Fit closed forms to exact optima.",
        ),
    },
    functions=(
        "opticoll.analysis.conjectures.conjecture:Conjecture",
        "opticoll.analysis.conjectures.conjecture:conjecture",
    ),
)
