"""The papers as an extension: their figures, redrawn, and the schedules that one of them proposes."""

from opticoll.extensions import Extension

EXTENSION = Extension(
    "opticoll.analysis.papers",
    commands=("opticoll.analysis.papers.commands.figure:figure",),
    functions=("opticoll.analysis.papers.figure:figure",),
    lists={"figures": ("opticoll.analysis.papers.descriptions:listed", ("name", "where", "title", "study"))},
    describe=("opticoll.analysis.papers.descriptions:describe",),
    facts=("opticoll.analysis.papers.descriptions:proposed_schedules",),
    outputs={
        "figure": "opticoll.analysis.papers.figure:FigureOutput",
        "list figures": "opticoll.analysis.papers.descriptions:FigureRow[]",
    },
    sections=("opticoll.analysis.papers.report_section:section",),
)
