"""Random networks in every format, written without opticoll, are read as they are: names, directions, capacities."""

from __future__ import annotations

from pathlib import Path

import pytest
from network_files import FORMATS
from saved_networks import arcs, read

from opticoll.instances.readers.files import FORMATS as READ

#: Formats whose networks do not have names or capacities of their own, with tests beside their readers.
ELSEWHERE = {"nccl", "nvidia", "graph6", "anynet", "slurm"}


@pytest.mark.parametrize("name", FORMATS)
def test_random_networks_are_read_as_they_were_written(name: str, tmp_path: Path) -> None:
    form = FORMATS[name]
    for seed in range(25):
        network = form.draw(seed)
        topology = read(tmp_path, form.write(network), form.suffix, form.options)
        assert arcs(topology) == network.arcs()
        assert name == "edges" or sorted(topology.labels) == sorted(network.names)  # a list has no other vertices


def test_every_format_is_written() -> None:
    assert {name.partition("-")[0] for name in FORMATS} | ELSEWHERE == {name.partition("-")[0] for name in READ}
