"""What a worker makes of a cluster, without Dask."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kpreempt.errors import KpreemptError
from kpreempt.fleet import work
from kpreempt.fleet.plan import KINDS, Kind, Plan, PlanOverrides, make_plan
from kpreempt.fleet.rows import TABLES
from kpreempt.fleet.sources import Target
from kpreempt.fleet.work import Done, sweep_cluster

FIXTURES = Path(__file__).parents[3] / "fixtures"
DEMO = Target("demo", str(FIXTURES / "demo" / "cluster.yaml"))
API = str(FIXTURES / "demo" / "api.yaml")


def plan_of(**given: Any) -> Plan:
    return make_plan("", PlanOverrides(snapshots=["x"], **given))


def rows(done: Done, table: str) -> list[dict[str, Any]]:
    return pq.read_table(io.BytesIO(done.files[table])).to_pylist()  # type: ignore[no-any-return]


def test_every_query_is_answered_once_by_each_algorithm() -> None:
    plan = plan_of(
        manifests=[API], priorities=[0, 1000], kinds=["pending", "budgets"], algorithms=["auto", "kube-1.29"]
    )
    done = sweep_cluster(DEMO, plan, plan.digest, 0)
    answered = {(each["query"], each["algorithm"]) for each in rows(done, "verdicts")}
    assert answered == {(query.id, name) for query in plan.queries for name in plan.algorithms}
    assert (done.answers, done.failures) == (8, 0)
    assert {each["decided_by"] for each in rows(done, "verdicts")} == {"kube-1.36", "kube-1.29"}


def test_the_rows_say_what_the_library_answers() -> None:
    from kpreempt import Cluster

    plan = plan_of(manifests=[API])
    done = sweep_cluster(DEMO, plan, plan.digest, 0)
    verdict = Cluster.load(DEMO.place).explain(Path(API))
    (row,) = rows(done, "verdicts")
    assert (row["outcome"], row["pod"]) == (verdict.outcome, f"{verdict.pod.namespace}/{verdict.pod.name}")
    victims = [(each["node"], each["victim"]) for each in rows(done, "victims")]
    assert victims == [(node, each.pod) for node, listed in verdict.victims.items() for each in listed]
    assert [each["node"] for each in rows(done, "nodes")] == verdict.nominated_nodes
    assert len(rows(done, "assumptions")) == len(verdict.assumptions)
    assert rows(done, "clusters")[0]["nodes"] == 8


def test_an_answer_with_an_assumption_that_matters_is_not_certain(tmp_path: Path) -> None:
    plan = plan_of(manifests=[API])
    known = {each["certain"] for each in rows(sweep_cluster(DEMO, plan, plan.digest, 0), "verdicts")}
    plan = plan_of(manifests=[API], algorithms=["kube-1.29"])
    done = sweep_cluster(DEMO, plan, plan.digest, 0)
    (assumption,) = rows(done, "assumptions")
    assert assumption["message"] == "v1.36.3, but the simulated scheduler is 1.29"
    assert known == {True}
    assert {each["certain"] for each in rows(done, "verdicts")} == {False}
    assert done.uncertain == 1


def test_one_pod_that_is_not_there_is_a_failure_and_the_others_go_on(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text('[[query]]\nid = "a"\npod = "shop/nobody"\n[[query]]\nkind = "budgets"\n', encoding="utf-8")
    plan = make_plan(str(path), PlanOverrides(snapshots=["x"]))
    done = sweep_cluster(DEMO, plan, plan.digest, 0)
    (failure,) = rows(done, "failures")
    assert (failure["query"], failure["reason"]) == ("a", "NotFound")
    assert [each["query"] for each in rows(done, "verdicts")] == ["budgets"]
    assert not done.has_failed


@pytest.mark.parametrize(
    ("content", "message"), [(b"\x1f\x8bgarbage", "ends early"), (b"{", ""), (b"\x28\xb5\x2f\xfd", "ends early")]
)
def test_a_bad_snapshot_is_one_row(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    plan = plan_of(kinds=["pending"])
    done = sweep_cluster(Target("bad", str(path)), plan, plan.digest, 0)
    (failure,) = rows(done, "failures")
    assert (failure["cluster"], failure["query"], failure["reason"]) == ("bad", "", "Input")
    assert message in failure["message"]
    assert not rows(done, "verdicts")
    assert done.has_failed


def test_a_snapshot_that_is_too_big_for_a_worker_is_reported_before_it_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def load(*_paths: str, **_options: object) -> None:
        raise AssertionError("it is loaded")

    plan = plan_of(kinds=["pending"])
    monkeypatch.setattr(work.Cluster, "load", load)
    done = sweep_cluster(DEMO, plan, plan.digest, 100 << 20)
    (failure,) = rows(done, "failures")
    assert failure["reason"] == "TooBig"
    assert failure["message"].startswith("too big: needs about 1")
    assert "a worker has 100 MiB" in failure["message"]


def test_a_bug_is_reported_by_its_place_and_never_by_what_the_input_held(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_given: object) -> None:
        raise ValueError("secret")

    monkeypatch.setitem(KINDS, "pending", Kind(fails, {}))  # type: ignore[arg-type]
    plan = plan_of(kinds=["pending"])
    done = sweep_cluster(DEMO, plan, plan.digest, 0)
    (failure,) = rows(done, "failures")
    assert failure["reason"] == "Bug"
    assert "secret" not in str(rows(done, "failures"))
    assert done.bugs == 1


def test_equal_work_gives_equal_bytes_and_files_of_all_tables() -> None:
    plan = plan_of(manifests=[API], kinds=["budgets"])
    first, second = (sweep_cluster(DEMO, plan, plan.digest, 0) for _ in range(2))
    assert first.files == second.files
    assert first.files.keys() == TABLES.keys()


def test_replicas_that_find_no_node_make_the_outcome_worse(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f'[[query]]\nmanifest = "{API}"\nreplicas = [1, 200]\ncapacity = true\n', encoding="utf-8")
    plan = make_plan(str(path), PlanOverrides(snapshots=["x"]))
    one, many = rows(sweep_cluster(DEMO, plan, plan.digest, 0), "verdicts")
    assert (one["replicas"], many["replicas"]) == (1, 200)
    assert many["placed"] < 200
    assert many["worst_outcome"] == "Unschedulable"
    assert many["capacity"] is not None


GATED = """
[[query]]
kind = "check"
manifest = "{manifest}"
rules = {{ max-pending = "off" }}
[[query]]
kind = "drain"
nodes = ["node-a"]
ignore-daemonsets = true
force = true
rules = {{ max-victims = 0 }}
"""


def test_checks_and_drains_are_what_the_library_answers(tmp_path: Path) -> None:
    from kpreempt import Cluster, Gate

    path = tmp_path / "plan.toml"
    path.write_text(GATED.format(manifest=API), encoding="utf-8")
    plan = make_plan(str(path), PlanOverrides(snapshots=["x"]))
    done = sweep_cluster(DEMO, plan, plan.digest, 0)
    assert not rows(done, "failures")
    cluster = Cluster.load(DEMO.place)
    answers = {
        "check": cluster.check(Path(API), gate=Gate(rules={"max-pending": None})),
        "drain": cluster.drain("node-a", ignore_daemonsets=True, force=True, gate=Gate(rules={"max-victims": 0})),
    }
    for row in rows(done, "verdicts"):
        answer = answers[row["query"]]
        assert (row["outcome"] != "error") == answer.passed
        assert (row["victims"], row["message"]) == (answer.evictions.max, answer.summary)
    victims = [(each["query"], each["victim"]) for each in rows(done, "victims")]
    assert victims == [(name, each.pod) for name, answer in answers.items() for each in answer.simulation.displaced]
    assert victims


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param('kind = "drain"', "one of nodes, selector, pool", id="no nodes"),
        pytest.param('kind = "drain"\nnodes = "a"', "list", id="no list"),
        pytest.param('kind = "drain"\nnodes = ["a"]\nrules = { max = 1 }', "unknown rule", id="no rule"),
        pytest.param('kind = "drain"\nnodes = ["a"]\nrules = 1', "a table", id="no table"),
        pytest.param('kind = "check"', "a manifest", id="no manifest"),
    ],
)
def test_a_plan_that_asks_for_no_drain_or_check_is_refused(tmp_path: Path, words: str, message: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f"[[query]]\n{words}\n", encoding="utf-8")
    with pytest.raises(KpreemptError, match=message):
        make_plan(str(path), PlanOverrides(snapshots=["x"]))
