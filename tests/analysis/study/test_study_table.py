"""Studies from Python: by name, or by their parts in memory."""

import pytest

import opticoll as oc
from opticoll.analysis.python_words import in_python
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


def test_messages_are_in_the_words_of_python():
    assert in_python("use --set paths=all without lmax") == "use paths='all' without lmax"
    assert in_python("use --method highs or scip, or --time-limit 5") == "use method='highs' or scip, or time_limit=5"
    assert in_python("omit --sense; name them (--in), or --tol 0") == "omit sense; name them (variables), or tol=0"
    assert in_python("add --shard SIZE and --set bandwidth=RATE") == "add shard='SIZE' and bandwidth='RATE'"
    assert in_python("override it with --memory-limit GIB") == "override it with memory_limit=GIB"
    assert in_python("see `opticoll solve x --exact`, or --exact") == "see `opticoll solve x --exact`, or exact=True"
    assert in_python("error: unknown option --other") == "error: unknown option --other"
    with pytest.raises(oc.BadInput) as refused:
        oc.solve("topology.sequence", "servers:n=4,degree=2,traffic=alltoall", delay="10us")
    assert "--" not in str(refused.value)
    assert "bandwidth=" in str(refused.value)


def test_a_shard_gives_seconds(tmp_path):
    table = oc.study("alltoall.master", ["ring:4+unit=100Gb/s"], shard="1MB")
    assert list(table.columns).index("T_s") == list(table.columns).index("T") + 1
    known = oc.solve("alltoall.master", "ring:4+unit=100Gb/s", shard="1MB")
    assert table["T_s"].iloc[0] == pytest.approx(known.metrics["T_s"])
    with pytest.raises(oc.BadInput, match="the capacities of ring:4 have no unit"):
        oc.study("alltoall.master", ["ring:4"], shard="1MB")
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\nformulations = ["alltoall.master"]\ninstances = ["ring:4+unit=100Gb/s"]\n'
        'methods = ["highs"]\nshard = "2MB"\n'
    )
    again = oc.study(path, store=tmp_path / "store")
    assert again["T_s"].iloc[0] == pytest.approx(2 * table["T_s"].iloc[0])
