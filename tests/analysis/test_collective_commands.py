"""Schedules of collectives from the shell: written, checked, and refused in one line."""

from __future__ import annotations

import json

import pytest

from opticoll.analysis.cli.main import main


def output_of(capfd, *arguments, status=0):
    assert main([*arguments]) == status
    captured = capfd.readouterr()
    assert captured.err.count("\n") == (1 if status else 0)
    return captured.out


SWITCHED = ["hypercube:2+host=1.5", "--set", "lasers=2", "--set", "waveguides=2", "--set", "collective=reduce-scatter"]


@pytest.mark.parametrize(
    ("arguments", "endings"),
    [
        (["alltoall.all-reduce", "dgx1"], ("json", "xml")),
        (["alltoall.broadcast", "ring:4", "--set", "root=2"], ("json",)),
        (["lumorph.rounds", *SWITCHED], ("json",)),
        (["optree.tree", "wdm-ring:n=6,wavelengths=2"], ("json",)),
        *(
            pytest.param(arguments, endings, marks=pytest.mark.slow)
            for arguments, endings in (
                (["alltoall.all-gather", "ring:4"], ("json", "xml")),
                (["alltoall.reduce-scatter", "ring:4"], ("json", "xml")),
                (["alltoall.all-reduce", "nvswitch:boxes=2,gpus=2"], ("json",)),
                (["lumorph.rounds", "lightpath:2x2,lasers=2", "--set", "collective=all-reduce"], ("json",)),
                (["optree.one-stage", "wdm-line:n=4,wavelengths=2"], ("json",)),
            )
        ),
    ],
)
def test_every_collective_is_written_and_checked(arguments, endings, tmp_path, capfd):
    for ending in endings:
        path = tmp_path / f"plan.{ending}"
        record = json.loads(output_of(capfd, "solve", *arguments, "--no-store", "--json", "--schedule", str(path)))
        assert record["schedule"]["delivers"], record["schedule"]
        result = json.loads(output_of(capfd, "check", *arguments[:2], str(path), *arguments[2:], "--json"))
        assert result["verified"], result
        if arguments[0].startswith("alltoall"):
            assert result["metrics"]["T_bound"] <= result["objective"] * (1 + 1e-9)
        else:
            document = json.loads(path.read_text())
            document["rounds"][0]["transfers"].pop()
            path.write_text(json.dumps(document))
            assert main(["check", *arguments[:2], str(path), *arguments[2:]]) == 3
            assert capfd.readouterr().err.count("\n") == 1


def test_loss_of_a_program_is_that_of_its_simulated_time(tmp_path, capfd):
    path = tmp_path / "sums.xml"
    arguments = ["solve", "alltoall.reduce-scatter", "nvswitch:boxes=2,gpus=3", "--no-store", "--schedule", str(path)]
    facts = json.loads(output_of(capfd, *arguments, "--json"))["schedule"]
    above = facts["simulated_time"] / facts["fluid_time"] - 1
    assert above > 0.01
    assert facts["time"] != pytest.approx(facts["simulated_time"])  # programs have no synchronous steps
    output = output_of(capfd, *arguments)
    assert f"{100 * above:.3g} %   (simulated time above the flow's)" in output
    assert f"{100 * facts['loss']:.3g} %" not in output


@pytest.mark.parametrize(
    "rounds",
    [
        5,
        [{}],
        [{"circuits": [[[0, 3], 0]], "transfers": []}],
        [{"circuits": [], "transfers": [[0, 1, 0, "move"]]}],
        [{"circuits": [[[0, 1], -1]], "transfers": []}],
        [],
    ],
)
def test_malformed_rounds_are_refused(rounds, tmp_path, capfd):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"format": "opticoll-schedule/1", "kind": "rounds", "rounds": rounds}))
    output_of(capfd, "check", "lumorph.rounds", "lightpath:2x2,lasers=2", str(path), status=2)


def test_rounds_for_another_collective_are_refused(tmp_path, capfd):
    path = tmp_path / "x.json"
    arguments = ["lumorph.rounds", "lightpath:1x3,lasers=2"]
    output_of(capfd, "solve", *arguments, "--no-store", "--schedule", str(path))
    document = json.loads(path.read_text())
    for change, status in (
        ({"collective": "allgather", "chunks": 1}, 0),
        ({"collective": "all-to-all"}, 2),
        ({"chunks": 2}, 2),
        ({"root": 1}, 2),
    ):
        path.write_text(json.dumps({**document, **change}))
        output_of(capfd, "check", *arguments, str(path), status=status)
