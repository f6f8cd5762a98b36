"""Studies from Python: by name, or by their parts in memory."""

import pickle

import pytest
from case_families import each

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.analysis.study.study_table import COLUMNS


def test_a_study_by_its_parts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = oc.study(["alltoall.master", "alltoall.link-mcf"], ["ring:{4,5}", "path:3"], ["highs", "scip"])
    assert len(table) == 12
    assert tuple(table.columns) == COLUMNS
    assert len(COLUMNS) <= 20
    assert set(table["proof"]) == {"optimal"}
    assert table["T"].tolist()[:2] == pytest.approx([2.0, 2.0])
    assert "ring:4" in table.to_latex()
    assert not list(tmp_path.iterdir())  # nothing is kept


def test_a_store_resumes_it(tmp_path):
    first = oc.study("alltoall.master", "ring:4", store=tmp_path)
    again = oc.study("alltoall.master", "ring:4", store=tmp_path, columns=["T", "finished"])
    assert again["T"].tolist() == first["T"].tolist()
    assert len(oc.study("alltoall.master", "ring:4", store=tmp_path, columns="all")) == 1


def test_instances_may_be_objects_and_settings_apply(tmp_path):
    net = oc.topology({("a", "b"): 1.0, ("b", "a"): 2.0})
    table = oc.study("alltoall.master", net, demand="permutation:1", columns=["instance", "T", "settings"])
    assert table["T"].tolist() == [1.0]
    assert "permutation:1" in str(table["settings"].tolist())


def test_refusals(tmp_path):
    with pytest.raises(oc.BadInput, match="no instances; write for example"):
        oc.study(["alltoall.master"])
    with pytest.raises(oc.BadInput, match="states its methods, limits and settings"):
        oc.study("smoke", time_limit=1)
    with pytest.raises(oc.BadInput, match="no column 'TT'; did you mean 'T'"):
        oc.study("alltoall.master", "ring:4", columns=["TT"])
    with pytest.raises(oc.BadInput, match="at least one"):
        oc.study("alltoall.master", [])


@each(
    ("ask", "command", "python", "line"),
    [
        (
            lambda: oc.sweep("alltoall.master", "moore", "ring:4", tol=0),
            ["sweep", "alltoall.master", "--bound", "moore", "--over", "ring:4", "--tol", "0"],
            "tol=0: floats are compared with a tolerance; to compare fractions, add exact=True",
            "--tol 0: floats are compared with a tolerance; to compare fractions, add --exact",
        ),
        (
            lambda: oc.sweep("alltoall.master", "nope.py:f", "ring:4"),
            ["sweep", "alltoall.master", "--bound", "nope.py:f", "--over", "ring:4"],
            "bound='nope.py:f': plug-in nope.py",
            "--bound nope.py:f: plug-in nope.py",
        ),
        (
            lambda: oc.conjecture("alltoall.master", ["ring:{3..4}"], variable="m"),
            ["conjecture", "alltoall.master", "--over", "ring:{3..4}", "--in", "m"],
            "variable='m': the instances have no parameter",
            "--in m: the instances have no parameter",
        ),
        (
            lambda: oc.solve("topology.sequence", "servers:n=4,degree=2,traffic=alltoall", delay="10us"),
            ["solve", "topology.sequence", "servers:n=4,degree=2,traffic=alltoall", "--set", "delay=10us"],
            "or add shard='64MB' and bandwidth='100Gb/s'",
            "or add --shard 64MB and --set bandwidth=100Gb/s",
        ),
    ],
)
def test_an_error_names_arguments_in_the_words_of_the_door(ask, command, python, line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(oc.BadInput) as refused:
        ask()
    assert python in str(refused.value)
    assert python in str(pickle.loads(pickle.dumps(refused.value)))  # noqa: S301 - made here
    assert main(command) == 2
    assert line in capsys.readouterr().err
