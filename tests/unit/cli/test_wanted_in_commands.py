"""What a scheduler's plugins want reaches the scheduler, whichever command asks it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kpreempt.cli.extensions import Extensions
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.extra_fields import ExtraFields, ObjectKind
from kpreempt.model.meta import LAST_APPLIED
from kpreempt.model.pod import Pod, annotations_of
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from tests.rollouts import Document, nodes, running, workload

QUOTA = ObjectKind("ElasticQuota", "scheduling.x-k8s.io", "v1alpha1")
EVERYTHING = ExtraFields((QUOTA,), pod_annotations=True, pod_conditions=True)
NOW = ["--now", "2026-11-21T12:00:00Z"]
# Stands for a password in the manifest that kubectl notes.
SECRET = "s3cr3t-marker"
WEB = workload("Deployment", "web", replicas=1)

Kpreempt = Callable[..., Any]


class SchedulerInputs:
    """What the scheduler got: clusters, and the annotations of the explained pods by name."""

    def __init__(self) -> None:
        self.clusters: list[ClusterSnapshot] = []
        self.pods: dict[str, Mapping[str, str]] = {}

    @property
    def quotas(self) -> set[str]:
        return {each["metadata"]["name"] for cluster in self.clusters for each in cluster.documents.get(QUOTA.key, [])}


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SchedulerInputs:
    """A scheduler whose plugins want quotas and annotations, on ``cluster.json`` of the folder that is entered."""
    seen = SchedulerInputs()
    prepare, decide = KubeScheduler.prepare, KubeScheduler.decide

    def prepared(self: KubeScheduler, cluster: ClusterSnapshot, **options: Any) -> Any:
        seen.clusters.append(cluster)
        return prepare(self, cluster, **options)

    def decided(self: KubeScheduler, prepared: Any, pod: Pod, **options: Any) -> Any:
        seen.pods[pod.metadata.name] = annotations_of(pod)
        return decide(self, prepared, pod, **options)

    want(monkeypatch, lambda _: EVERYTHING)
    # What --plugin names is wanted of the cluster below all lines.
    monkeypatch.setattr(Extensions, "extra_fields", EVERYTHING)
    monkeypatch.setattr(KubeScheduler, "prepare", prepared)
    monkeypatch.setattr(KubeScheduler, "decide", decided)
    monkeypatch.chdir(tmp_path)
    waits = pod("waits", rack="r2")
    # The queue asks about those that were tried.
    waits["status"] = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    others = [*running(WEB, ["n1"]), pod("runs", "n1"), quota("q"), budget("web", {"app": "web"})]
    written("cluster.json", *nodes(1, "4"), waits, *others)
    return seen


def want(monkeypatch: pytest.MonkeyPatch, extra_fields: Callable[[KubeScheduler], ExtraFields]) -> None:
    """Have every scheduler want something, as if it had plugins that do."""
    make = KubeScheduler.__init__

    def made(self: KubeScheduler, *args: Any, **options: Any) -> None:
        make(self, *args, **options)
        self.extra_fields = extra_fields(self)

    monkeypatch.setattr(KubeScheduler, "__init__", made)


def written(path: str, *documents: Document) -> None:
    Path(path).write_text("\n---\n".join(map(json.dumps, documents)) + "\n", encoding="utf-8")


def quota(name: str) -> Document:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": metadata}


def pod(name: str, node: str = "", rack: str = "r1") -> Document:
    spec = {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m"}}}], "priority": 5}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "annotations": {"example.com/rack": rack, LAST_APPLIED: SECRET},
        },
        "spec": {**spec, **({"nodeName": node} if node else {})},
    }


def budget(name: str, labels: dict[str, str]) -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": labels}},
    }


def rack(name: str) -> dict[str, str]:
    return {"example.com/rack": name}


SNAPSHOT = ["--snapshot", "cluster.json", *NOW]


@pytest.mark.parametrize(
    ("arguments", "name", "expected"),
    [
        pytest.param(["explain", "pod/waits", "-n", "shop"], "waits", rack("r2"), id="a pod of the cluster"),
        pytest.param(["explain", "pod/runs", "-n", "shop"], "runs", rack("r1"), id="one that runs"),
        pytest.param(
            ["explain", "pod/waits", "-n", "shop", "--set", r"metadata.annotations.example\.com/rack=r9"],
            *("waits", rack("r9")),
            id="one with another annotation",
        ),
        pytest.param(
            ["explain", "pod/waits", "-n", "shop", "--priority", "9"], "waits", rack("r2"), id="one that is changed"
        ),
        pytest.param(["explain", "-f", "pod.json"], "mine", rack("r3"), id="one of a manifest"),
        pytest.param(["explain", "-f", "template.json"], "made-new", rack("r4"), id="one of a template"),
        pytest.param(["pending"], "waits", rack("r2"), id="pending ones"),
        pytest.param(["queue"], "waits", rack("r2"), id="those in the queue"),
        pytest.param(
            ["compare", "--algorithms", "kube-1.18,kube-1.36", "-f", "pod.json"], "mine", rack("r3"), id="compared"
        ),
        pytest.param(
            ["compare", "--algorithms", "kube-1.18,kube-1.36"], "waits", rack("r2"), id="compared pending ones"
        ),
        pytest.param(["check", "-f", "template.json"], "made-new-1", rack("r4"), id="one that a controller makes"),
        pytest.param(["check", "-f", "pod.json"], "mine", rack("r3"), id="a plain one of a change"),
    ],
)
def test_the_scheduler_sees_quotas_and_annotations(
    kpreempt: Kpreempt, seen: SchedulerInputs, arguments: list[str], name: str, expected: dict[str, str]
) -> None:
    written("pod.json", pod("mine", rack="r3"))
    template = workload("Deployment", "made", cpu="100m", replicas=1)
    template["spec"]["template"]["metadata"]["annotations"] = rack("r4")
    written("template.json", template)
    run = kpreempt(*arguments, *SNAPSHOT, "--assume-none", "quota", "-o", "json")
    assert run.returncode == 0, run.stderr
    assert seen.pods[name] == expected
    assert seen.quotas == {"q"}
    assert SECRET not in run.stdout + run.stderr


@pytest.mark.parametrize("command", ["at-risk", "budgets"])
def test_commands_that_ask_about_no_pod_of_the_input_read_quotas_too(
    kpreempt: Kpreempt, seen: SchedulerInputs, command: str
) -> None:
    arguments = ["-A"] if command == "at-risk" else []
    run = kpreempt(command, *arguments, *SNAPSHOT)
    assert run.returncode == 0, run.stderr
    assert seen.quotas == {"q"}


@pytest.mark.parametrize("base", [[], ["--snapshot", "cluster.json"]], ids=["on its own", "on a snapshot"])
@pytest.mark.parametrize("command", ["batch", "compare"])
def test_lines_bring_their_own(kpreempt: Kpreempt, seen: SchedulerInputs, command: str, base: list[str]) -> None:
    line = {"name": "x", "objects": [*nodes(1, "4"), quota("own")], "pod": pod("asked", rack="r5")}
    Path("lines.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    way = ["batch", "lines.jsonl"]
    if command == "compare":
        way = ["compare", "--algorithms", "kube-1.18,kube-1.36", "--batch", "lines.jsonl"]
    run = kpreempt(*way, *base, *NOW)
    assert run.returncode == 0, run.stderr
    assert seen.pods["asked"] == rack("r5")
    assert seen.quotas == ({"q", "own"} if base else {"own"})
    assert SECRET not in run.stdout + run.stderr


def test_a_line_whose_plugins_want_more_than_was_read_says_so(
    kpreempt: Kpreempt, seen: SchedulerInputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a line's own configuration has the plugin: the snapshot was read before."""

    def extra_fields(self: KubeScheduler) -> ExtraFields:
        names = self.scheduler_names
        return EVERYTHING if "other" in names else ExtraFields()

    want(monkeypatch, extra_fields)
    monkeypatch.setattr(Extensions, "extra_fields", ExtraFields())
    config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    config += "profiles:\n- schedulerName: other\n"
    lines = [{"name": "plain", "pod": pod("a")}, {"name": "more", "pod": pod("b"), "config": config}]
    Path("lines.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
    run = kpreempt("batch", "lines.jsonl", *SNAPSHOT)
    plain, more = (json.loads(line)["verdict"].get("assumptions", []) for line in run.stdout.splitlines())
    requested = "not read, because the cluster was read before this line's configuration was known"
    message = f"{requested}; plugins and extenders don't see it"
    assert [(each["subject"], each["field"], each["message"]) for each in more if each not in plain] == [
        (QUOTA.key, "snapshot", message),
        ("Pod", "metadata.annotations", message),
        ("Pod", "status.conditions", message),
    ]


def test_a_dump_of_our_own_neither_has_them_nor_leaks_them(kpreempt: Kpreempt, seen: SchedulerInputs) -> None:
    written("pod.json", pod("mine", rack="r3"))
    for options in ([], ["--redact"]):
        run = kpreempt("snapshot", "--to", "dump.json", "--snapshot", "cluster.json", "-f", "pod.json", *options)
        assert run.returncode == 0, run.stderr
        dump = Path("dump.json").read_text(encoding="utf-8")
        # Of a pod that a manifest may be compared with the keys stay, with digests of what they say.
        keys = ["example.com/rack"] if options else []
        assert not [word for word in (SECRET, *keys, "r3", "everything") if word in dump]
    kpreempt("snapshot", "--to", "dump.json", "--snapshot", "cluster.json")
    run = kpreempt("explain", "pod/waits", "-n", "shop", "--snapshot", "dump.json", *NOW, "-o", "json")
    reported = [each["subject"] for each in json.loads(run.stdout)["assumptions"]]
    # Of pods there are annotations and conditions.
    assert [QUOTA.key, "Pod", "Pod"] == [each for each in reported if each in (QUOTA.key, "Pod")]


def test_a_bad_annotation_is_one_message_that_names_the_file(kpreempt: Kpreempt, seen: SchedulerInputs) -> None:
    bad = pod("bad")
    bad["metadata"]["annotations"]["n"] = 3
    written("pod.json", bad)
    run = kpreempt("explain", "-f", "pod.json", *SNAPSHOT)
    assert run.returncode == 1
    words = "cannot unmarshal number into Go struct field ObjectMeta.metadata.annotations.n of type string"
    assert f"pod.json:1: {words}." in " ".join(run.stdout.split())
    assert SECRET not in run.stdout + run.stderr
