"""``kpreempt volcano``, and ``kpreempt explain --algorithm volcano-1.8``: requests, options and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kpreempt.report.schema import verdict_schema
from tests.unit.report.test_formats import closed

Kpreempt = Callable[..., Any]

NOW = ["--now", "2026-11-21T03:12:00Z"]
CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "20"}, capacity: {cpu: "4", memory: 8Gi, pods: "20"}}
---
apiVersion: v1
kind: Namespace
metadata: {name: ml}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: nightly, namespace: ml, creationTimestamp: 2026-11-20T00:00:00Z}
spec: {minMember: 1, queue: default, minResources: {cpu: "1"}}
status: {phase: Running}
""" + "".join(
    f"""---
apiVersion: v1
kind: Pod
metadata:
  name: nightly-{index}
  namespace: ml
  uid: nightly-{index}
  annotations: {{scheduling.k8s.io/group-name: nightly}}
spec:
  schedulerName: volcano
  nodeName: n1
  containers: [{{name: c, image: i, resources: {{requests: {{cpu: "1", memory: 1Gi}}}}}}]
status: {{phase: Running}}
"""
    for index in range(3)
)
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: ml}
spec:
  minAvailable: 2
  schedulerName: volcano
  priorityClassName: urgent
  tasks:
  - name: worker
    replicas: 2
    template:
      spec:
        restartPolicy: Never
        priorityClassName: urgent
        containers: [{name: c, image: i, resources: {requests: {cpu: "1", memory: 1Gi}}}]
"""
# With overcommit nothing more would be let in: the cluster is full but for one CPU.
PREEMPT = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: nodeorder}]
"""
EXPLAIN = ["explain", "--algorithm", "volcano-1.8"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a cluster, a job and a configuration, in which the program runs."""
    for name, text in (("cluster.yaml", CLUSTER), ("job.yaml", JOB), ("preempt.conf", PREEMPT)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def gang(kpreempt: Kpreempt, *arguments: str) -> dict[str, Any]:
    """What becomes of the job, as data."""
    run = kpreempt(*EXPLAIN, "-f", "job.yaml", "--snapshot", "cluster.yaml", *NOW, *arguments, "-o", "json")
    assert run.returncode == 0, run.stderr
    document: dict[str, Any] = json.loads(run.stdout)
    return document


@pytest.mark.usefixtures("folder")
class TestAJobThatIsSubmitted:
    def test_is_let_in_by_one_session_and_placed_with_its_pods_by_the_next(self, kpreempt: Kpreempt) -> None:
        answer = gang(kpreempt, "--scheduler-config", "preempt.conf")
        first, second = answer["sessions"]
        assert first["actions"][0]["enqueued"] == ["ml/train-new"]
        assert first["opening"]["jobs"]["ml/train-new"]["tasks"] == {}
        assert second["opening"]["jobs"]["ml/train-new"]["tasks"] == {"Pending": 2}

    def test_takes_a_victim_and_is_bound_once_that_is_gone(self, kpreempt: Kpreempt) -> None:
        answer = gang(kpreempt, "--scheduler-config", "preempt.conf")
        assert answer["outcome"] == "Pipelined"
        assert [(victim["task"], victim["job"], victim["queue"]) for victim in answer["victims"]] == [
            ("ml/nightly-1", "ml/nightly", "default")
        ]
        assert answer["boundInNextSession"] == 2

    def test_evicts_no_pod_under_the_default_configuration(self, kpreempt: Kpreempt) -> None:
        answer = gang(kpreempt)
        assert (answer["outcome"], answer["victims"]) == ("NotEnqueued", [])
        assert answer["reason"] == "overcommit"

    def test_is_kept_out_by_a_queue_that_may_hold_no_more(self, kpreempt: Kpreempt, folder: Path) -> None:
        queue = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: default}\nspec: {weight: 1,"
        (folder / "queue.yaml").write_text(queue + ' capability: {cpu: "2"}}\n', encoding="utf-8")
        conf = 'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: gang}, {name: proportion}]}]\n'
        (folder / "proportion.conf").write_text(conf, encoding="utf-8")
        answer = gang(kpreempt, "-f", "queue.yaml", "--scheduler-config", "proportion.conf")
        assert (answer["outcome"], answer["reason"]) == ("NotEnqueued", "proportion")

    def test_lacks_what_the_nearest_node_has_too_little_of(self, kpreempt: Kpreempt, folder: Path) -> None:
        conf = 'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]\n'
        (folder / "allocate.conf").write_text(conf, encoding="utf-8")
        answer = gang(kpreempt, "--scheduler-config", "allocate.conf")
        assert (answer["outcome"], answer["missing"], answer["missingOn"]) == ("NotPlaced", {"cpu": 1000}, "n1")

    def test_is_refused_as_the_webhook_refuses_it(self, kpreempt: Kpreempt, folder: Path) -> None:
        (folder / "job.yaml").write_text(JOB.replace("minAvailable: 2", "minAvailable: 5"), encoding="utf-8")
        answer = gang(kpreempt)
        assert (answer["outcome"], answer["sessions"]) == ("Rejected", [])
        assert "minAvailable" in answer["reason"]

    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            pytest.param([], 12, id="kept out"),
            pytest.param(["--scheduler-config", "preempt.conf"], 10, id="by eviction"),
            pytest.param(["--scheduler-config", "preempt.conf", "--without", "pod/ml/nightly-1"], 0, id="lands"),
            pytest.param(["--scheduler-config", "preempt.conf", "--runs", "20"], 13, id="victims up to chance"),
        ],
    )
    def test_ends_with_the_code_of_its_outcome(self, kpreempt: Kpreempt, arguments: list[str], code: int) -> None:
        requested = [*EXPLAIN, "-f", "job.yaml", "--snapshot", "cluster.yaml", *NOW, "--exit-code", *arguments]
        assert kpreempt(*requested).returncode == code

    def test_is_a_deployment_as_well_which_shares_one_group(self, kpreempt: Kpreempt, folder: Path) -> None:
        container = "{name: c, image: i, resources: {requests: {cpu: 100m}}}"
        (folder / "web.yaml").write_text(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: ml}\nspec:\n  replicas: 3\n"
            "  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n"
            f"    spec: {{containers: [{container}]}}\n",
            encoding="utf-8",
        )
        requested = [*EXPLAIN, "-f", "web.yaml", "--snapshot", "cluster.yaml", *NOW, "-o", "json"]
        answer = json.loads(kpreempt(*requested).stdout)
        assert (answer["outcome"], len(answer["tasks"]), answer["minAvailable"]) == ("Bound", 3, 1)
        assert any("default-scheduler" in each["message"] for each in answer["assumptions"])

    def test_may_be_several_that_are_answered_together(self, kpreempt: Kpreempt, folder: Path) -> None:
        (folder / "both.yaml").write_text(JOB + "---" + JOB.replace("name: train", "name: tune"), encoding="utf-8")
        requested = [*EXPLAIN, "-f", "both.yaml", "--snapshot", "cluster.yaml", *NOW]
        answer = json.loads(kpreempt(*requested, "-o", "json").stdout)
        assert [item["origin"] for item in answer["items"]] == ["Job ml/train", "Job ml/tune"]
        picked = json.loads(kpreempt(*requested, "--select", "vcjob/tune", "-o", "json").stdout)
        assert picked["origin"] == "Job ml/tune"


@pytest.mark.usefixtures("folder")
class TestASession:
    def test_has_every_format_and_the_schema_describes_it(self, kpreempt: Kpreempt) -> None:
        requested = ["volcano", "--snapshot", "cluster.yaml", *NOW, "--runs", "3"]
        document = json.loads(kpreempt(*requested, "-o", "json").stdout)
        jsonschema.Draft202012Validator(closed(verdict_schema())).validate(document)
        assert document["kind"] == "VolcanoSession"
        for format_name in ("text", "yaml", "jsonl", "name", "markdown"):
            run = kpreempt(*requested, "-o", format_name)
            assert (run.returncode, run.stderr) == (0, "")

    def test_has_the_actions_that_are_tried(self, kpreempt: Kpreempt) -> None:
        requested = ["volcano", "--snapshot", "cluster.yaml", *NOW, "--actions", "enqueue, reclaim", "-o", "json"]
        assert json.loads(kpreempt(*requested).stdout)["session"]["configuredActions"] == ["enqueue", "reclaim"]

    def test_is_the_same_for_the_same_seed(self, kpreempt: Kpreempt) -> None:
        requested = [
            *EXPLAIN,
            "-f",
            "job.yaml",
            "--snapshot",
            "cluster.yaml",
            *NOW,
            "--scheduler-config",
            "preempt.conf",
        ]
        runs = [*requested, "--runs", "20", "-o", "json"]
        first, again = (json.loads(kpreempt(*runs, "--seed", "4").stdout)["sample"] for _ in range(2))
        assert first == again
        assert set(first["evicted"]) == {"ml/nightly-0", "ml/nightly-1", "ml/nightly-2"}
        assert sum(outcome["times"] for outcome in first["outcomes"]) == 20

    def test_is_configured_by_the_config_map_that_volcano_reads(self, kpreempt: Kpreempt, folder: Path) -> None:
        document = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"volcano-scheduler.conf": PREEMPT}}
        (folder / "map.yaml").write_text(json.dumps(document), encoding="utf-8")
        requested = ["volcano", "--snapshot", "cluster.yaml", *NOW, "-o", "json", "--scheduler-config"]
        assert kpreempt(*requested, "map.yaml").stdout == kpreempt(*requested, "preempt.conf").stdout

    def test_counts_a_plugin_that_is_left_out_as_an_assumption(self, kpreempt: Kpreempt, folder: Path) -> None:
        (folder / "sla.conf").write_text(PREEMPT.replace("name: drf", "name: sla"), encoding="utf-8")
        requested = ["volcano", "--snapshot", "cluster.yaml", *NOW, "--scheduler-config", "sla.conf"]
        assert "sla" in kpreempt(*requested).stdout
        assert kpreempt(*requested, "--strict").returncode == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param(
            ["volcano", "--actions", "enqueue, elect"],
            3,
            "--actions: failed to find Action  elect",
            id="no such action",
        ),
        pytest.param(["volcano", "--actions", "shuffle"], 3, "shuffle is not modeled", id="an action left out"),
        pytest.param(
            ["volcano", "--scheduler-config", "no-key.yaml"],
            3,
            "no-key.yaml: data: the ConfigMap has no volcano-scheduler.conf",
            id="a ConfigMap without it",
        ),
        pytest.param(
            ["volcano", "--scheduler-config", "tiers.conf"], 3, "tiers.conf: tiers: expected a list", id="bad tiers"
        ),
        pytest.param(
            ["volcano", "--scheduler-config", "conflict.conf"],
            3,
            "proportion and drf with hierarchy enabled conflicts",
            id="plugins that exclude each other",
        ),
        pytest.param(
            [*EXPLAIN, "-f", "job.yaml", "--priority", "5"], 2, "--priority does not apply to", id="a priority"
        ),
        pytest.param([*EXPLAIN, "-f", "job.yaml", "--node", "n1"], 2, "--node does not apply to", id="a node"),
        pytest.param([*EXPLAIN, "-f", "queue.yaml"], 3, "contains no job, pod group or pod", id="no job"),
        pytest.param(["explain", "-f", "job.yaml", "--actions", "preempt"], 2, "needs --algorithm volcano", id="kube"),
        pytest.param(["pending", "--algorithm", "volcano-1.8"], 2, "runs whole sessions", id="pending"),
    ],
)
def test_a_mistake_ends_in_one_message(
    kpreempt: Kpreempt, folder: Path, arguments: list[str], code: int, message: str
) -> None:
    files = {
        "no-key.yaml": "kind: ConfigMap\ndata: {}\n",
        "tiers.conf": 'actions: "enqueue"\ntiers: 5\n',
        "conflict.conf": 'actions: "enqueue"\n'
        "tiers: [{plugins: [{name: drf, enableHierarchy: true}, {name: proportion}]}]\n",
        "queue.yaml": "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    run = kpreempt(*arguments, "--snapshot", "cluster.yaml", *NOW)
    assert (run.returncode, run.stdout) == (code, "")
    assert message in run.stderr
    assert "Traceback" not in run.stderr


def test_volcano_stands_next_to_the_schedulers_of_kubernetes(kpreempt: Kpreempt, folder: Path) -> None:
    (folder / "pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: ml}\nspec:\n  priorityClassName: urgent\n"
        "  containers: [{name: c, image: i, resources: {requests: {cpu: '2'}}}]\n",
        encoding="utf-8",
    )
    requested = ["compare", "--algorithms", "kube-1.36,volcano-1.8@preempt.conf", "-f", "pod.yaml"]
    answer = json.loads(kpreempt(*requested, "--snapshot", "cluster.yaml", *NOW, "-o", "json").stdout)
    kube, volcano = answer["items"][0]["decisions"]
    assert (kube["outcome"], volcano["outcome"]) == ("Preempts", "Preempts")
    assert kube["nodes"] == volcano["nodes"] == ["n1"]
