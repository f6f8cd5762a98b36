"""Small problems of ``topoopt.circuits``."""

from __future__ import annotations

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random

from opticoll.instances import parse


def draw(random: Random) -> Drawn:
    n, degree = int(random.integers(2, 4)), int(random.integers(1, 3))
    transfers, seed = int(random.integers(1, 4)), int(random.integers(1000))
    settings = {"intervals": int(random.integers(2, 4)), "configurations": int(random.integers(1, 3))}
    if settings["configurations"] == 2:
        settings["delay"] = int(random.integers(3))
    return parse(f"tasks:random,n={n},degree={degree},transfers={transfers},seed={seed}"), settings


PROBLEMS = Problems(
    cases=[
        ("tasks:random,n=3,degree=1,transfers=3,seed=2", {}),
        ("tasks:random,n=3,degree=2,transfers=5,seed=1", {"configurations": "2", "delay": "1"}),
        ("tasks:moe,n=3,degree=1,seed=1", {"intervals": "3", "bandwidth": "25e9"}),
        ("tasks:random,n=2,degree=1,transfers=1", {}),
        ("tasks:dlrm,n=2,degree=1,overlap=none", {}),
    ],
    # by hand: 2 ms, 4096 * 8 / 2 * 7168 bytes at 12.5 GB/s, 1 ms, and twice as many bytes
    optimum=Optimum("tasks:moe,n=2,degree=1", by=31.185723),
    draws=Draws(12, draw),
)
