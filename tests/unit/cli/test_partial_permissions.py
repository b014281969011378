"""Users who may read one namespace, or no nodes: what commands answer, and that nothing else is claimed."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kpreempt.cli.extensions import Extensions
from kpreempt.cli.on_call import pending
from kpreempt.cli.requests import PendingRequest
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.live.flags import ConnectionFlags
from kpreempt.snapshot.recording.recorder import Recorder, Watched, WatchReport
from tests.fake_api import VIEW, Answer, FakeApi, ReceivedRequest, Rights
from tests.golden.cases import NOW
from tests.golden.permissions import NAMESPACE, cluster_for

POD = "web-7d9c5b-hw6rx"
IN_SHOP = ("-n", NAMESPACE)
Kpreempt = Callable[..., Any]


@pytest.fixture
def edit() -> Iterator[FakeApi]:
    with FakeApi(cluster_for("edit")) as api:
        yield api


@pytest.fixture
def view() -> Iterator[FakeApi]:
    with FakeApi(cluster_for("view")) as api:
        yield api


def answer(kpreempt: Kpreempt, api: FakeApi, *words: str) -> dict[str, Any]:
    run = kpreempt(*words, "--server", api.url, "--now", NOW, "-o", "json")
    assert run.stdout, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def test_a_pod_gets_no_verdict_but_what_its_namespace_says(kpreempt: Kpreempt, edit: FakeApi) -> None:
    verdict = answer(kpreempt, edit, "explain", POD, *IN_SHOP)
    assert verdict["outcome"] == "Uncertain"
    assert not {"message", "reason", "filter", "remedies", "eligibility"} & verdict.keys()
    known = verdict["known"]
    assert known["message"].startswith("0/2 nodes are available: 1 Insufficient cpu")
    assert [each["topic"] for each in known["scheduling"]["reasons"]] == ["InsufficientResource", "UntoleratedTaint"]
    assert known["owner"]["missingPods"][0]["reason"] == "FailedCreate"
    assert (known["owner"]["desired"], known["owner"]["pods"], known["owner"]["ready"]) == (4, 3, 2)
    assert known["quotas"][0]["used"] == {"pods": "3", "requests.cpu": "3"}
    assert known["quotas"][0]["rejects"].startswith("exceeded quota: compute")
    assert known["budgets"] == [
        {"budget": "shop/web", "disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 4}
    ]
    assert {each["subject"] for each in verdict["assumptions"] if each["kind"] == "Unreadable"} == {"Node", "Pod"}


def test_what_may_not_be_read_in_the_namespace_either_is_unknown(kpreempt: Kpreempt, edit: FakeApi) -> None:
    there = VIEW - {"poddisruptionbudgets", "resourcequotas"}
    cluster = cluster_for("edit")
    cluster.special = Rights(namespace=NAMESPACE, there=there)
    with FakeApi(cluster) as api:
        run = kpreempt("explain", POD, *IN_SHOP, "--server", api.url, "--now", NOW)
        audit = kpreempt("budgets", *IN_SHOP, "--server", api.url, "--now", NOW)
    assert "QUOTAS        unknown: the input has no ResourceQuotas" in run.stdout
    assert "PDBS          unknown: the input has no PDBs" in run.stdout
    assert audit.stdout.startswith("Findings unknown: PodDisruptionBudgets were not read.")
    assert "poddisruptionbudgets.policy (cluster-wide)" in " ".join(audit.stdout.split())


@pytest.mark.parametrize("command", ["pending", "budgets", "queue"])
def test_a_question_about_all_namespaces_is_answered_for_the_only_one(
    kpreempt: Kpreempt, command: str, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    with FakeApi(cluster_for("edit")) as api:
        context = {"cluster": "c", "namespace": NAMESPACE}
        config = {
            "clusters": [{"name": "c", "cluster": {"server": api.url}}],
            "contexts": [{"name": "c", "context": context}],
            "current-context": "c",
        }
        kubeconfig.write_text(json.dumps(config), encoding="utf-8")
        run = kpreempt(command, "--kubeconfig", str(kubeconfig), "--now", NOW)
    assert run.returncode == 0
    text = " ".join(run.stdout.split())
    assert "Missing permission: list nodes, pods (cluster-wide)" in text
    # Whatever concerns other namespaces is not claimed.
    assert "rejected by" not in text
    assert "0 pods" not in text


def test_the_namespace_of_a_manifest_or_target_is_the_one_that_is_read(
    kpreempt: Kpreempt, edit: FakeApi, tmp_path: Path
) -> None:
    manifest = tmp_path / "pod.json"
    container = {"name": "c", "image": "x"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new", "namespace": NAMESPACE}}
    manifest.write_text(json.dumps({**pod, "spec": {"containers": [container]}}), encoding="utf-8")
    for words in (
        ("explain", "-f", str(manifest)),
        ("explain", f"{NAMESPACE}/{POD}"),
        ("who-evicted", "shop/worker-0"),
    ):
        assert kpreempt(*words, "--server", edit.url, "--now", NOW).returncode == 0


def test_a_preemptor_that_may_not_be_read_is_not_called_deleted(kpreempt: Kpreempt, edit: FakeApi) -> None:
    found = answer(kpreempt, edit, "who-evicted", "worker-0", *IN_SHOP)
    assert found["items"][0]["preemption"]["preemptor"]["phase"] == "NotRead"


def test_short_answers_claim_nothing_about_nodes_either(kpreempt: Kpreempt, view: FakeApi, tmp_path: Path) -> None:
    flags = (*IN_SHOP, "--server", view.url, "--now", NOW)
    brief = kpreempt("explain", "deploy/web", "--brief", *flags).stdout
    assert brief.startswith("No verdict on Deployment shop/web: nodes cannot be listed (403). Missing permission: list")
    wide = kpreempt("explain", "deploy/web", "-o", "wide", *flags).stdout
    assert wide.splitlines()[1].endswith("nodes cannot be listed (403)")
    assert kpreempt("explain", POD, "-o", "name", *flags).stdout == ""
    line = json.dumps({"name": "a", "pod": {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}}})
    decided = json.loads(kpreempt("batch", "--server", view.url, stdin=line).stdout)["verdict"]
    assert (decided["outcome"], decided.get("message", "")) == ("Uncertain", "")


def test_what_an_autoscaler_reported_about_the_pod_is_known(kpreempt: Kpreempt) -> None:
    cluster = cluster_for("edit")
    report = {
        "metadata": {"name": "web.2", "namespace": NAMESPACE},
        "involvedObject": {"kind": "Pod", "namespace": NAMESPACE, "name": POD, "uid": "web-3"},
        "reason": "NotTriggerScaleUp",
        "type": "Normal",
        "message": "pod didn't trigger scale-up: 1 max node group size reached",
        "source": {"component": "cluster-autoscaler"},
        "reportingComponent": "cluster-autoscaler",
        "lastTimestamp": "2026-11-21T03:11:00Z",
    }
    cluster.objects = {**cluster.objects, "Event": [*cluster.objects["Event"], report]}
    with FakeApi(cluster) as api:
        run = kpreempt("explain", POD, *IN_SHOP, "--server", api.url, "--now", NOW)
    assert "max node group size reached" in " ".join(run.stdout.split())


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("volcano",), id="volcano"),
        pytest.param(("drain", "node-1"), id="drain"),
        pytest.param(("compare", "--algorithms", "kube-1.35,kube-1.36"), id="compare"),
        pytest.param(("explain", POD, *IN_SHOP, "--node", "node-1"), id="explain of a node"),
        pytest.param(("explain", POD, *IN_SHOP, "--aftermath"), id="aftermath"),
        pytest.param(("verify", "--for", "1s"), id="verify"),
    ],
)
def test_what_needs_nodes_ends_in_one_message_that_names_the_permission(
    kpreempt: Kpreempt, view: FakeApi, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = kpreempt(*words, "--server", view.url)
    assert (run.returncode, run.stdout) == (3, "")
    message, hint = run.complaint.splitlines()
    assert message.endswith("nodes cannot be listed (403). Missing permission: list nodes (cluster-wide).")
    assert "deploy/cluster-role.yaml" in hint


@pytest.mark.parametrize("role", ["edit", "view"])
@pytest.mark.parametrize(
    "words",
    [("explain", POD), ("pending",), ("budgets",), ("who-evicted", "worker-0"), ("at-risk",)],
    ids=lambda each: each[0],
)
def test_a_snapshot_says_the_same_as_the_cluster(
    kpreempt: Kpreempt, tmp_path: Path, role: str, words: tuple[str, ...]
) -> None:
    dump = tmp_path / "cluster.json"
    with FakeApi(cluster_for(role)) as api:
        flags = (*IN_SHOP, "--now", NOW, "-v")
        live = kpreempt(*words, "--server", api.url, *flags).stdout
        config = tmp_path / "kubeconfig"
        config.write_text(
            json.dumps(
                {
                    "clusters": [{"name": "c", "cluster": {"server": api.url}}],
                    "contexts": [{"name": "c", "context": {"cluster": "c", "namespace": NAMESPACE}}],
                    "current-context": "c",
                }
            ),
            encoding="utf-8",
        )
        written = kpreempt("snapshot", "--to", str(dump), "--kubeconfig", str(config))
        redacted = kpreempt(
            "snapshot", "--redact", "--to", str(tmp_path / "redacted.json"), "--kubeconfig", str(config)
        )
    assert "Missing permission: list nodes" in written.stderr
    of_dump = kpreempt(*words, "--snapshot", str(dump), *flags).stdout
    assert _without_age(of_dump) == _without_age(live)
    assert redacted.returncode == 0
    assert f'"{NAMESPACE}"' not in (tmp_path / "redacted.json").read_text(encoding="utf-8")


def _without_age(text: str) -> str:
    """The text without the time and age of the data."""
    return "\n".join(line for line in text.splitlines() if "kube-1.36" not in line)


def test_a_watch_does_not_repeat_denied_requests(edit: FakeApi, tmp_path: Path) -> None:
    polls = iter(range(2))

    def wait(_: float) -> None:
        if next(polls, None) is None:
            raise KeyboardInterrupt

    request = PendingRequest(
        connection=ConnectionFlags(server=edit.url), namespace=NAMESPACE, watch=True, jobs=1, now=NOW,
        input_limits=InputLimits(), extensions=Extensions(), outputs=[f"json={tmp_path / 'answer.json'}"],
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        pending(request, wait=wait)
    paths = Counter(each.path for each in edit.requested)
    assert paths["/api/v1/namespaces/shop/pods"] == 3
    assert (paths["/api/v1/pods"], paths["/api/v1/nodes"]) == (1, 1)


def test_a_pod_that_only_some_pods_are_known_to_compete_with_has_no_certain_outcome(
    kpreempt: Kpreempt, tmp_path: Path
) -> None:
    cluster = cluster_for("edit")
    cluster.special = Rights(["nodes", "priorityclasses"], namespace=NAMESPACE, there=VIEW)
    manifest = tmp_path / "pod.json"
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new", "namespace": NAMESPACE}}
    manifest.write_text(json.dumps({**pod, "spec": {"containers": [container]}}), encoding="utf-8")
    with FakeApi(cluster) as api:
        # It would fit if only the pods of its namespace existed.
        run = kpreempt("explain", "-f", str(manifest), "--server", api.url, "--now", NOW, "--exit-code")
        checked = kpreempt("check", "-f", str(manifest), "--server", api.url, "--now", NOW, "-o", "json")
        drained = kpreempt("drain", "node-1", "--server", api.url, *IN_SHOP)
    assert run.returncode == 13
    assert "is uncertain" in run.stdout
    assert checked.returncode == 1
    assert json.loads(checked.stdout)["simulation"]["end"] == "NotSimulated"
    assert drained.returncode in (2, 3)


@pytest.mark.parametrize(
    ("role", "missing", "only"),
    [("view", "list nodes", ""), ("edit", "list nodes, pods", "Only namespace shop is recorded.")],
)
def test_what_may_be_read_is_recorded_and_answers_what_needs_no_nodes(
    kpreempt: Kpreempt, role: str, missing: str, only: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, folder = cluster_for(role), str(tmp_path / "recording")
    (worker,) = (each for each in cluster.objects["Pod"] if each["metadata"]["name"] == "web-7d9c5b-4xq7f")
    rights, started, take = cluster.special, list[int](), Recorder.take

    def special(requested: ReceivedRequest) -> Answer | None:
        if requested.query.get("watch") and requested.path.endswith("/pods") and not started:
            started.append(cluster.change("DELETED", "Pod", worker))
        return rights(requested)

    def take_and_end(self: Recorder, reported: WatchReport) -> None:
        take(self, reported)
        if isinstance(reported.news, Watched):
            signal.raise_signal(signal.SIGINT)

    cluster.special = special
    monkeypatch.setattr(Recorder, "take", take_and_end)
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.default_int_handler)
    with FakeApi(cluster) as api:
        config = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "namespace": NAMESPACE}}],
            "clusters": [{"name": "c", "cluster": {"server": api.url}}],
        }
        (tmp_path / "kubeconfig").write_text(json.dumps(config), encoding="utf-8")
        run = kpreempt("record", "--to", folder, "--kubeconfig", str(tmp_path / "kubeconfig"))
        watched = [each.path for each in api.requested if each.query.get("watch")]
    assert run.returncode == 0, run.stderr
    assert "1 change: Pod 1" in run.stderr
    # At the beginning and at the end.
    assert run.stderr.count(f"Missing permission: {missing}, ") == 2
    assert run.stderr.count("verify, and commands with --at, can't predict from it.") == 2
    assert only in run.stderr
    assert not any(path.endswith("/nodes") for path in watched)
    assert all(path.endswith("/namespaces/shop/pods") is (role == "edit") for path in watched if path.endswith("/pods"))

    history = kpreempt("history", "web-7d9c5b-4xq7f", *IN_SHOP, "--snapshot", folder)
    assert (history.returncode, "deleted" in history.stdout) == (0, True), history.stderr
    assert ("Missing permission: list pods" in " ".join(history.stdout.split())) is (role == "edit")
    assert kpreempt("who-evicted", "worker-0", *IN_SHOP, "--snapshot", folder).returncode == 0
    for words in (("verify", folder), ("drain", "node-1", "--snapshot", folder)):
        ended = kpreempt(*words)
        assert (ended.returncode, ended.stdout) == (3, "")
        assert f"Missing permission: {missing} (cluster-wide)." in ended.complaint
    node = kpreempt("history", "node/missing", "--snapshot", folder)
    assert "has no nodes missing: Nodes cannot be listed (403)" in node.complaint
