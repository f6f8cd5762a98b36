"""Schedules of other tools as an extension: formats of schedule files, which ``opticoll check`` executes."""

from opticoll.extensions import Extension

EXTENSION = Extension(
    "opticoll.analysis.foreign_schedules",
    schedules=(
        "opticoll.analysis.foreign_schedules.teccl:FORMAT",
        "opticoll.analysis.foreign_schedules.msccl_tools:FORMAT",
        "opticoll.analysis.foreign_schedules.forestcoll:FORMAT",
    ),
)
