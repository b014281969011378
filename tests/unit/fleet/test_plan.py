from __future__ import annotations

from pathlib import Path

import pytest

from kpreempt.errors import KpreemptError
from kpreempt.fleet import plan as plans
from kpreempt.fleet.plan import PlanOverrides, make_plan

FIXTURES = Path(__file__).parents[3] / "fixtures"
API = FIXTURES / "demo" / "api.yaml"
CLUSTERS = '[clusters]\nsnapshots = ["a.json"]\n'


def written(folder: Path, text: str) -> str:
    path = folder / "sweep.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_ladders_ask_once_for_each_of_their_values(tmp_path: Path) -> None:
    (tmp_path / "api.yaml").write_bytes(API.read_bytes())
    text = f'{CLUSTERS}[[query]]\nid = "api"\nmanifest = "api.yaml"\npriority = [0, 10]\nreplicas = [1, 3]\n'
    plan = make_plan(written(tmp_path, text), PlanOverrides())
    assert [each.id for each in plan.queries] == [
        "api[priority=0,replicas=1]",
        "api[priority=0,replicas=3]",
        "api[priority=10,replicas=1]",
        "api[priority=10,replicas=3]",
    ]
    assert {each.manifests[0]["kind"] for each in plan.queries} == {"Deployment"} or plan.queries[0].manifests
    assert plan.queries[2].says == {"priority": 10, "replicas": 1}


def test_options_count_before_the_file_and_add_queries(tmp_path: Path) -> None:
    path = written(tmp_path, f'algorithms = ["kube-1.30"]\n{CLUSTERS}[[query]]\nkind = "pending"\n')
    given = PlanOverrides(
        snapshots=["b"], algorithms=["auto"], manifests=[str(API)], priorities=[1, 2], kinds=["budgets"]
    )
    plan = make_plan(path, given)
    assert plan.snapshots == ("b",)
    assert plan.algorithms == ("auto",)
    assert [each.id for each in plan.queries] == ["pending", "api[priority=1]", "api[priority=2]", "budgets"]


def test_the_digest_covers_the_queries_but_not_the_clusters(tmp_path: Path) -> None:
    def digest(text: str, **given: object) -> str:
        return make_plan(written(tmp_path, text), PlanOverrides(**given)).digest  # type: ignore[arg-type]

    pending = f'{CLUSTERS}[[query]]\nkind = "pending"\n'
    assert digest(pending) == digest(pending, snapshots=["other"])
    assert digest(pending) != digest(pending, algorithms=["kube-1.29"])
    assert digest(pending) != digest(pending.replace("pending", "budgets"))
    assert digest(pending) != digest(f"max-unpacked = '2Gi'\n{pending}")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        pytest.param("clusers = 1", "clusers: unknown key", "clusters", id="a key of the file"),
        pytest.param(f"{CLUSTERS}snapshot = 1", "clusters.snapshot: unknown key", "snapshots", id="of a table"),
        pytest.param("[[query]]\nkind = 'pendin'", "query[1].kind: unknown", "pending", id="kind"),
        pytest.param(
            "[[query]]\nkind = 'pending'\npriority = 1",
            "query[1].priority: unknown key",
            "",
            id="not its key",
        ),
        pytest.param("[[query]]\nkind = 'explain'", "expected a manifest or a pod", "", id="nothing to explain"),
        pytest.param("[[query]]\npod = 'a'\npriority = 'x'", "'x' is not a number", "", id="type"),
        pytest.param("[[query]]\npod = 'a'\npriority = true", "'True' is not a number", "", id="true is no number"),
        pytest.param("[[query]]\npod = 'a'\npriority = [1, 1]", "duplicate value", "", id="ladder"),
        pytest.param("[[query]]\npod = 'a'\npriority = []", "empty list", "", id="empty ladder"),
        pytest.param("[[query]]\npod = 'a'\n[[query]]\npod = 'b'", "duplicate id 'explain'", "", id="ids"),
        pytest.param("query = 1", "query: expected tables", "[[query]]", id="no tables"),
        pytest.param("algorithms = ['kube-9.99']", "kube-9.99", "", id="algorithm"),
        pytest.param("now = 'soon'", "now: is not a time with a time zone", "", id="time"),
        pytest.param("now = 2026-11-21T03:12:00", "now: is not a time with a time zone", "", id="time without a zone"),
        pytest.param("max-unpacked = 'much'", "is not a size", "", id="size"),
        pytest.param("[clusters", "invalid TOML", "", id="broken"),
        pytest.param("a = " + "[" * 3000, "invalid TOML", "", id="deep"),
    ],
)
def test_a_wrong_plan_is_one_message_that_names_the_key(tmp_path: Path, text: str, message: str, hint: str) -> None:
    if "[[query]]" not in text and text.startswith(("alg", "now", "max")):
        text += '\n[[query]]\nkind = "pending"\n'
    with pytest.raises(KpreemptError) as raised:
        make_plan(written(tmp_path, text), PlanOverrides(snapshots=["x"]))
    assert message in raised.value.message
    assert hint in raised.value.hint
    assert "\n" not in raised.value.message


def test_too_many_queries_are_rejected_before_they_are_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MAX_QUERIES", 100)
    many = list(range(10_000))
    text = f"[[query]]\npod = 'a'\npriority = {many}\nreplicas = {many[1:]}\n"
    with pytest.raises(KpreemptError, match="more than 100 queries"):
        make_plan(written(tmp_path, text), PlanOverrides(snapshots=["x"]))


def test_a_plan_without_queries_or_clusters_says_how_to_specify_them() -> None:
    with pytest.raises(KpreemptError, match="has no queries"):
        make_plan("", PlanOverrides(snapshots=["x"]))
    with pytest.raises(KpreemptError, match="has no clusters"):
        make_plan("", PlanOverrides(kinds=["pending"]))
