"""The library gives what the commands give, changes nothing, and says what is wrong in one message."""

from __future__ import annotations

import gc
import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import yaml

import kpreempt
from kpreempt import Cluster, Gate, KpreemptError, Outcome, UsageError
from kpreempt.library.options import Request, fields_of
from kpreempt.library.requests import Check, Drain, Explain
from tests.fake_api import Answer, FakeApi, FakeCluster, good, objects_by_kind, refused
from tests.unit.cli.conftest import Kpreempt

DEMO = Path(__file__).parents[3] / "fixtures" / "demo"
API = DEMO / "api.yaml"
RECORDING = DEMO.parent / "recording"
MOVES = ("--ignore-daemonsets", "--force", "--delete-emptydir-data")
ALL_MOVE = {"ignore_daemonsets": True, "force": True, "delete_emptydir_data": True}
NOW = datetime(2026, 11, 21, 3, 12, tzinfo=UTC)
COMMANDS = ("--snapshot", str(DEMO / "cluster.yaml"), "--now", "2026-11-21T03:12:00Z", "-o", "json")


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster.load(DEMO / "cluster.yaml", now=NOW)


def pod(cpu: str, **spec: Any) -> dict[str, Any]:
    """A pod that asks for so much."""
    containers = [{"name": "main", "image": "web", "resources": {"requests": {"cpu": cpu}}}]
    metadata = {"name": "new", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def node(name: str) -> dict[str, Any]:
    """A node with room for ten pods."""
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}}


@pytest.mark.parametrize(
    ("arguments", "ask"),
    [
        pytest.param(["explain", "-f", str(API)], lambda cluster: cluster.explain(API), id="a manifest"),
        pytest.param(
            ["explain", "web-6d8f9b7c54-nk6q5", "-n", "shop"],
            lambda cluster: cluster.explain("shop/web-6d8f9b7c54-nk6q5"),
            id="a name",
        ),
        pytest.param(
            ["explain", "-f", str(API), "--replicas", "3", "--capacity"],
            lambda cluster: cluster.explain(API, replicas=3, capacity=True),
            id="replicas",
        ),
        pytest.param(
            ["explain", "-f", str(API), "--priority", "5", "--cordon", "node-b"],
            lambda cluster: cluster.cordon("node-b").explain(API, priority=5),
            id="what if",
        ),
        pytest.param(
            ["explain", "-f", str(API), "--add-node", "node-b=2"],
            lambda cluster: cluster.add_nodes("node-b", 2).explain(API),
            id="more nodes",
        ),
        pytest.param(
            ["pending", "--taint-node", "node-a=a=b:NoExecute", "--label-node", "node-a=c=d"],
            lambda cluster: cluster.edit_nodes(labels=["node-a=c=d"], taints=["node-a=a=b:NoExecute"]).pending(),
            id="edited nodes",
        ),
        pytest.param(["pending"], lambda cluster: cluster.pending(), id="pending"),
        pytest.param(["budgets", "-n", "shop"], lambda cluster: cluster.budgets(namespace="shop"), id="budgets"),
        pytest.param(["at-risk", "-A", "--limit", "3"], lambda cluster: cluster.at_risk(limit=3), id="at risk"),
        pytest.param(
            ["who-evicted", "web-6d8f9b7c54-nk6q5", "-n", "shop"],
            lambda cluster: cluster.who_evicted("shop/web-6d8f9b7c54-nk6q5"),
            id="who evicted a pod",
        ),
        pytest.param(["who-evicted", "-A"], lambda cluster: cluster.who_evicted(), id="evictions everywhere"),
        pytest.param(
            ["compare", "--algorithms", "auto,kube-1.33", "-f", str(API)],
            lambda cluster: cluster.compare(["auto", "kube-1.33"], API),
            id="compare",
        ),
    ],
)
def test_an_answer_is_the_document_of_the_command(
    kpreempt: Kpreempt, cluster: Cluster, arguments: list[str], ask: Any
) -> None:
    document = ask(cluster).to_dict()
    assert document == json.loads(kpreempt(*arguments, *COMMANDS).stdout)


OUTAGE = DEMO.parent / "check" / "outage"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("arguments", "gate", "options"),
    [
        pytest.param((), None, {}, id="by default"),
        pytest.param(
            ("--max-victims", "0", "--seed", "3", "--runs", "2"),
            {"rules": {"max-victims": 0}},
            {"seed": 3, "runs": 2},
            id="a rule",
        ),
        pytest.param(
            ("--max-pending", "off", "--severity", "max-victims=warn"),
            {"rules": {"max-pending": None}, "severity": {"max-victims": "warn"}},
            {},
            id="severities",
        ),
        pytest.param(("--worst-case", "--max-runs", "5"), None, {"worst_case": True, "max_runs": 5}, id="all choices"),
        pytest.param(("--applied-by", "helm"), None, {"applied_by": "helm"}, id="a tool that applies it"),
        pytest.param(("--applied-by", "none"), None, {"applied_by": "none"}, id="a tool that is not known"),
        pytest.param(("--delete", "deploy/nobody"), None, {"delete": ["deploy/nobody"]}, id="a deletion of nothing"),
    ],
)
def test_a_check_is_the_document_of_the_command(
    kpreempt: Kpreempt, tmp_path: Path, arguments: tuple[str, ...], gate: dict[str, Any] | None, options: Any
) -> None:
    paths = ("-f", str(OUTAGE / "rollout.yaml"), "--snapshot", str(OUTAGE / "cluster.yaml"))
    ran = kpreempt("check", *paths, *arguments, "--now", "2026-11-21T03:12:00Z", "-o", "json")
    cluster = Cluster.load(OUTAGE / "cluster.yaml", now=NOW)
    requested = kpreempt_gate(gate)
    if ran.returncode > 1:
        with pytest.raises(KpreemptError):
            cluster.check(OUTAGE / "rollout.yaml", gate=requested, **options)
        return
    answer = cluster.check(OUTAGE / "rollout.yaml", gate=requested, **options)
    assert answer.to_dict() == json.loads(ran.stdout)
    assert answer.passed == (ran.returncode == 0)


def kpreempt_gate(requested: dict[str, Any] | None) -> Gate | None:
    """The gate of these words."""
    return None if requested is None else Gate(**requested)


@pytest.mark.parametrize(
    ("arguments", "nodes", "options"),
    [
        pytest.param(["node-a"], "node-a", {}, id="refused"),
        pytest.param(["node-a", "node-b", *MOVES], ["node-a", "node-b"], ALL_MOVE, id="two nodes"),
        pytest.param(["--remove", "node-a"], ["node-a"], {"remove": True}, id="whether it can go"),
        pytest.param(["--one-by-one", "node-b", *MOVES], ["node-b"], {"one_by_one": True, **ALL_MOVE}, id="an upgrade"),
    ],
)
def test_a_drain_is_the_document_of_the_command(
    kpreempt: Kpreempt, cluster: Cluster, arguments: list[str], nodes: Any, options: Any
) -> None:
    ran = kpreempt("drain", *arguments, *COMMANDS)
    answer = cluster.drain(nodes, **options)
    assert answer.to_dict() == json.loads(ran.stdout)
    assert answer.passed == (ran.returncode == 0)


def test_nothing_is_read_that_no_gate_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kpreempt.toml").write_text("[check]\nmax-victims = 0\n")
    monkeypatch.chdir(tmp_path)
    cluster = Cluster.load(OUTAGE / "cluster.yaml", now=NOW)
    found, named = (
        cluster.check(OUTAGE / "rollout.yaml", gate=gate).to_dict()["gate"].get("config", "")
        for gate in (None, Gate(config="kpreempt.toml"))
    )
    assert (found, named) == ("", "kpreempt.toml")


def test_what_if_ignored_of_a_change_is_a_warning(cluster: Cluster) -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    with pytest.warns(UserWarning, match="ignored 1 ConfigMap"):
        cluster.check([pod("1"), settings])


def test_what_ifs_leave_the_cluster_as_it_is(cluster: Cluster) -> None:
    before = cluster.snapshot
    budget = before.pod_disruption_budgets[0]
    others = [
        cluster.with_objects(pod("1")),
        cluster.without(f"pod/{before.pods[0].key}"),
        cluster.cordon(before.nodes[0].name),
        cluster.with_allowed_disruptions(budget.key, 7),
        cluster.add_nodes(node("n"), 2),
        cluster.remove_nodes(before.nodes[0].name),
        cluster.with_scheduler("kube-1.33"),
    ]
    assert all(each is not cluster for each in others)
    assert cluster.snapshot is before
    assert len(others[0].snapshot.pods) == len(before.pods) + 1
    assert len(others[4].snapshot.nodes) == len(before.nodes) + 2


def test_a_scheduler_can_be_chosen(cluster: Cluster) -> None:
    explained = cluster.with_scheduler("kube-1.29").explain(API)
    assert explained.algorithm == "kube-1.29"
    with pytest.raises(KpreemptError, match="unknown algorithm"):
        cluster.with_scheduler("kube-9.9")


def test_objects_are_taken_as_plain_data_as_files_and_as_the_client_has_them(cluster: Cluster) -> None:
    from kubernetes.client import V1Container, V1ObjectMeta, V1Pod, V1PodSpec, V1ResourceRequirements

    container = V1Container(name="main", image="web", resources=V1ResourceRequirements(requests={"cpu": "1"}))
    of_client = V1Pod(
        api_version="v1",
        kind="Pod",
        metadata=V1ObjectMeta(name="new", namespace="shop"),
        spec=V1PodSpec(containers=[container]),
    )
    assert cluster.explain(of_client).to_dict() == cluster.explain(pod("1")).to_dict()
    documents = list(yaml.safe_load_all((DEMO / "cluster.yaml").read_text(encoding="utf-8")))
    assert Cluster.of(documents, now=NOW).explain(API).outcome == cluster.explain(API).outcome


def test_whether_a_pod_can_be_scheduled(cluster: Cluster) -> None:
    assert cluster.can_schedule_pod(pod("10m"))
    assert not cluster.can_schedule_pod(pod("500"))
    verdict = cluster.explain(API)
    assert verdict.outcome == Outcome.PREEMPTS
    assert not cluster.can_schedule_pod(API), "an eviction comes first"
    fits = {each.name: cluster.can_schedule_pod(pod("10m"), each.name) for each in cluster.snapshot.nodes}
    assert set(fits.values()) == {True, False}


def test_a_cluster_of_a_node_alone_has_room_for_what_fits_it() -> None:
    """No node is of a zone here."""
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    assert Cluster.of(node("n")).can_schedule_pod(pod("1"))
    assert not Cluster.of(node("n")).can_schedule_pod(pod("1", topologySpreadConstraints=[spread]))


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        pytest.param(lambda cluster: cluster.explain("no/where"), "where", id="no such pod"),
        pytest.param(lambda cluster: cluster.explain(7), "int", id="no manifest"),
        pytest.param(
            lambda cluster: cluster.explain({"kind": "Pod"}), "not a Kubernetes object", id="not a Kubernetes object"
        ),
        pytest.param(lambda cluster: cluster.explain([pod("1"), pod("2")]), "2 pods", id="two pods"),
        pytest.param(lambda cluster: cluster.compare(["auto"]), "two or more schedulers", id="one algorithm"),
        pytest.param(lambda cluster: cluster.pending(selector="a b"), "selector", id="no selector"),
        pytest.param(lambda cluster: cluster.explain(API).render("pdf"), "pdf", id="no format"),
        pytest.param(lambda _cluster: Cluster.load("/nonexistent/file"), "nonexistent", id="no file"),
        pytest.param(lambda cluster: cluster.check(), "no manifests", id="no manifests"),
        pytest.param(lambda cluster: cluster.check(API, prune=True), "prune", id="nothing to prune by"),
        pytest.param(lambda cluster: cluster.check(API, gate=Gate(rules={"max": 1})), "unknown rule", id="no rule"),
        pytest.param(lambda cluster: cluster.drain("node-z"), "node-z", id="no such node"),
        pytest.param(lambda cluster: cluster.drain(), "no nodes", id="no node"),
        pytest.param(lambda cluster: cluster.drain("node-a", forced=True), "forced", id="no such option"),
        pytest.param(lambda _cluster: Cluster.load(), "no snapshot", id="nothing"),
        pytest.param(lambda _cluster: Cluster.load("-"), "standard input", id="standard input"),
        pytest.param(lambda _cluster: Cluster.of(pod("1"), now=datetime(2026, 1, 1)), "zone", id="no zone"),  # noqa: DTZ001
    ],
)
def test_what_is_wrong_is_one_message(cluster: Cluster, ask: Any, words: str) -> None:
    with pytest.raises(KpreemptError, match=words) as raised:
        ask(cluster)
    assert "\n" not in raised.value.message


WIDGET = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w", "namespace": "shop"},
    "spec": {"size": 3},
}


@pytest.mark.parametrize(
    ("there", "is_certain"),
    [
        pytest.param(good(WIDGET), True, id="as it was"),
        pytest.param(good({**WIDGET, "spec": {"size": 4}}), False, id="another"),
        pytest.param(refused(403, "no"), False, id="not to be read"),
    ],
)
def test_what_no_snapshot_has_is_requested_from_a_live_cluster(there: Answer, is_certain: bool) -> None:
    others = {
        "/apis": good({"groups": [{"name": "example.com", "versions": [{"groupVersion": "example.com/v1"}]}]}),
        "/apis/example.com/v1": good({"resources": [{"name": "widgets", "kind": "Widget", "namespaced": True}]}),
        "/apis/example.com/v1/namespaces/shop/widgets/w": there,
    }
    objects = objects_by_kind(yaml.safe_load((DEMO / "cluster.yaml").read_text(encoding="utf-8"))["items"])
    with FakeApi(FakeCluster(objects, special=lambda requested: others.get(requested.path))) as fake:
        found = Cluster.fetch(server=fake.url, kubeconfig=os.devnull, now=NOW).check(WIDGET)
    reported = [each for each in found.assumptions if "Widget" in str(each)]
    assert (reported == []) == is_certain
    assert "dump" not in str(reported)


def test_a_notebook_shows_the_page_in_a_frame_that_runs_nothing(cluster: Cluster) -> None:
    shown = cluster.explain(API)._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert 'sandbox=""' in shown
    assert "<script" not in shown
    assert cluster.budgets()._repr_html_().startswith("<pre>")


def test_threads_may_ask_the_same_cluster(cluster: Cluster) -> None:
    expected = cluster.explain(API).to_dict()
    with ThreadPoolExecutor(8) as pool:
        assert all(found == expected for found in pool.map(lambda _: cluster.explain(API).to_dict(), range(24)))


def test_every_public_name_is_there() -> None:
    for name in kpreempt.__all__:
        assert getattr(kpreempt, name)
    with pytest.raises(AttributeError):
        kpreempt.nothing  # noqa: B018


def test_the_garbage_collector_is_left_as_it_was() -> None:
    """Whoever uses a library has garbage of his own."""
    frozen = gc.get_freeze_count()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: Cluster.load(DEMO / "cluster.yaml"), range(8)))
    assert gc.isenabled()
    assert gc.get_freeze_count() <= frozen, "what a process froze before may go meanwhile, and nothing comes"


def test_a_change_is_checked_against_a_moment_of_a_recording() -> None:
    found = Cluster.load(RECORDING, at="2026-11-21T03:00:32Z").check(API, gate=Gate())
    assert [each.object for each in found.changes] == ["Deployment shop/api"]
    assert found.at == datetime(2026, 11, 21, 3, 0, 32, tzinfo=UTC)


@pytest.mark.parametrize(
    ("method", "kind", "own"),
    [
        (Cluster.explain, Explain, {"self", "pod"}),
        (Cluster.explain_all, Explain, {"self", "pods"}),
        (Cluster.check, Check, {"self", "manifests", "base", "gate"}),
        (Cluster.drain, Drain, {"self", "nodes", "gate"}),
    ],
)
def test_a_method_takes_the_options_of_its_request(method: Any, kind: type[Request], own: set[str]) -> None:
    shown = signature(method).parameters
    assert set(shown) == own | set(fields_of(kind))
    assert all(shown[name].default == getattr(kind, name) for name in set(fields_of(kind)) - own)


def test_an_unknown_option_is_named(cluster: Cluster) -> None:
    with pytest.raises(UsageError) as raised:
        cluster.explain(API, replica=3)
    assert (raised.value.message, raised.value.hint) == ("explain has no option replica", "replicas")
