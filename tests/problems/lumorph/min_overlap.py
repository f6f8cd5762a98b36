"""Small problems of ``lumorph.min-overlap``."""

from __future__ import annotations

from typing import Any

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random, mesh


def draw(random: Random) -> Drawn:
    settings: dict[str, Any] = {
        "circuits": str(random.choice(["permutation", "all", "recursive-doubling:1", "recursive-doubling:2"])),
        "seed": int(random.integers(100)),
        "model": str(random.choice(["arc", "path"])),
    }
    if settings["model"] == "path":
        settings["paths"] = str(random.choice(["all", "shortest", "k", "disjoint"]))
    if settings["circuits"] != "permutation":
        del settings["seed"]
    return mesh(random, ("1x4", "2x2", "2x3", "2x4", "1x8")), settings


PROBLEMS = Problems(
    cases=[
        ("lightpath:2x2", {"seed": "2"}),
        ("ring:4,directed", {"circuits": "all"}),
        ("lightpath:2x3", {}),
        ("lightpath:2x2", {"model": "path", "circuits": "all"}),
        ("lightpath:2x4+fail=1,seed=0", {"model": "path", "k": "2", "circuits": "recursive-doubling:1"}),
        ("lightpath:2x1,waveguides=2,wafers=2,fibres=3", {"seed": "2"}),
        ("lightpath:2x2,waveguides=4,wafers=2,fibres=1", {"model": "path", "paths": "shortest", "circuits": "all"}),
    ],
    optimum=Optimum("lightpath:2x3", by="negotiated-rerouting"),
    draws=Draws(16, draw),
    kinds=[("lightpath:2x2", {}, ()), ("lightpath:2x2", {}, ("path_arcs",)), ("lightpath:2x2", {"model": "path"}, ())],
)
