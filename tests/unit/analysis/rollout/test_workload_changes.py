# ruff: noqa: E501 - tables read better in rows
"""What a manifest does to a workload: nothing, unless applying it would change something."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from kpreempt.admission.defaults import with_defaults
from kpreempt.analysis.check.rollout.apply import LAST_APPLIED
from kpreempt.verdict.check import ChangeKind
from tests.unit.analysis.rollout.changes import assumed, changed, cluster_of, plan_of, served, template, workload

ROOT = Path(__file__).parents[4]
MAIN = "spec.template.spec.containers.0"
KINDS = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob"]

RICH = workload(
    template={
        "metadata": {"labels": {"app": "api"}, "annotations": {"note": "1"}},
        "spec": {
            "serviceAccountName": "api",
            "priorityClassName": "high",
            "nodeSelector": {"disk": "ssd"},
            "containers": [
                {
                    "name": "main",
                    "image": "shop/api:1",
                    "command": ["/api"],
                    "env": [
                        {"name": "A", "value": "1"},
                        {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                        {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                    ],
                    "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
                    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1024Mi"}},
                    "livenessProbe": {"httpGet": {"port": 80}, "initialDelaySeconds": 0},
                    "readinessProbe": {"grpc": {"port": 81}},
                    "lifecycle": {"preStop": {"httpGet": {"port": "http", "path": "/end"}}},
                    "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": False}],
                },
                {"name": "side", "image": "shop/side"},
            ],
            "initContainers": [{"name": "init", "image": "shop/init:latest"}],
            "volumes": [
                {"name": "data"},
                {"name": "config", "configMap": {"name": "c"}},
                {"name": "host", "hostPath": {"path": "/x"}},
                {
                    "name": "all",
                    "projected": {
                        "sources": [
                            {"serviceAccountToken": {"path": "t"}},
                            {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                        ]
                    },
                },
                {"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}},
            ],
            "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "value": "x", "effect": "NoSchedule"}],
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
            ],
            "imagePullSecrets": [{"name": "registry"}],
            "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["db"]}],
            "affinity": {"nodeAffinity": {}},
            "hostNetwork": False,
        },
    }
)
SPEC = "spec.template.spec"
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


@pytest.mark.parametrize("applied", [True, False], ids=["applied before", "by someone else"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_there_already_is_not_touched(kind: str, applied: bool) -> None:
    document = workload(kind)
    plan = plan_of(document, served(document, applied=applied))
    assert [each.kind for each in plan.changes] == [ChangeKind.UNCHANGED]
    assert (plan.workloads, plan.pods, plan.assumptions) == ([], [], [])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("spec.replicas", 1, id="a default that is written out"),
        pytest.param(f"{SPEC}.containers.0.resources.requests.cpu", "1000m", id="an amount in other words"),
        pytest.param(f"{SPEC}.containers.0.resources.requests.cpu", 1, id="an amount as a number"),
        pytest.param(f"{SPEC}.containers.0.resources.requests.cpu", "999.9999m", id="an amount that is rounded up"),
        pytest.param(f"{SPEC}.volumes.4.emptyDir.sizeLimit", "1024Mi", id="a size in other words"),
        pytest.param(f"{SPEC}.hostNetwork", ..., id="a field that is left out instead of false"),
        pytest.param(f"{SPEC}.hostNetwork", None, id="a field that is null instead of false"),
        pytest.param(f"{SPEC}.hostIPC", False, id="a false that the server does not keep"),
        pytest.param(f"{SPEC}.containers.0.args", [], id="an empty list that the server does not keep"),
        pytest.param(f"{SPEC}.containers.1.resources", {}, id="resources without any"),
        pytest.param(f"{SPEC}.containers.1.terminationMessagePath", "/dev/termination-log", id="a container's default"),
        pytest.param(f"{SPEC}.containers.0.ports.0.protocol", "TCP", id="a port's protocol"),
        pytest.param(f"{SPEC}.serviceAccount", "api", id="the account in its older field as well"),
        pytest.param(f"{SPEC}.containers.0.env.0", {"value": "1", "name": "A"}, id="keys in another order"),
        pytest.param("status", {"replicas": 3}, id="a status, which a manifest has no say in"),
        pytest.param("metadata.creationTimestamp", None, id="what kubectl create --dry-run leaves"),
        pytest.param("spec.template.metadata.creationTimestamp", None, id="and in the template"),
        pytest.param("spec.strategy", {}, id="an empty strategy"),
        pytest.param("spec.minReadySeconds", 0, id="a number of seconds that is zero"),
    ],
)
def test_other_words_for_the_same_are_no_change(path: str, value: Any) -> None:
    live = served(RICH, applied=True)
    plan = plan_of(changed(RICH, path, value) if value is not ... or "hostNetwork" in path else RICH, live)
    assert [(each.kind, each.fields) for each in plan.changes] == [(ChangeKind.UNCHANGED, [])]


@pytest.mark.parametrize("applied", [True, False], ids=["applied before", "by someone else"])
@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        pytest.param(f"{SPEC}.containers.0.image", "shop/api:2", "containers[0].image", id="an image"),
        pytest.param(f"{SPEC}.containers.0.env.0.value", "2", "containers[0].env[0].value", id="a variable"),
        pytest.param(f"{SPEC}.containers.0.env.1.valueFrom.fieldRef.fieldPath", "metadata.uid", "containers[0].env[1].valueFrom.fieldRef.fieldPath", id="where a variable is from"),
        pytest.param(f"{SPEC}.containers.0.command", ["/api", "-v"], "containers[0].command", id="a command"),
        pytest.param(f"{SPEC}.containers.0.ports.1.protocol", "SCTP", "containers[0].ports[1]", id="the protocol of a port, which tells it from others"),
        pytest.param(f"{SPEC}.containers.0.resources.requests.cpu", "1001m", "containers[0].resources.requests.cpu", id="an amount"),
        pytest.param(f"{SPEC}.containers.0.resources.limits", {}, "containers[0].resources.limits.memory", id="a limit that is gone"),
        pytest.param(f"{SPEC}.containers.0.livenessProbe", ..., "containers[0].livenessProbe", id="a probe that is gone"),
        pytest.param(f"{SPEC}.containers.0.volumeMounts.0.readOnly", True, "containers[0].volumeMounts[0].readOnly", id="a mount"),
        pytest.param(f"{SPEC}.containers.0.securityContext", {"privileged": False}, "containers[0].securityContext", id="a false that is not the same as nothing"),
        pytest.param(f"{SPEC}.containers.1", {"name": "other", "image": "shop/side"}, "containers[1]", id="another container"),
        pytest.param(f"{SPEC}.initContainers", ..., "initContainers", id="a container that is gone"),
        pytest.param(f"{SPEC}.volumes.1.configMap.name", "d", "volumes[1].configMap.name", id="another ConfigMap"),
        pytest.param(f"{SPEC}.volumes.0", {"name": "data", "secret": {"secretName": "s"}}, "volumes[0].secret", id="another volume of the name"),
        pytest.param(f"{SPEC}.tolerations.0.key", "c", "tolerations", id="a toleration"),
        pytest.param(f"{SPEC}.topologySpreadConstraints.1.maxSkew", 2, "topologySpreadConstraints[1].maxSkew", id="one of two constraints with one key"),
        pytest.param(f"{SPEC}.nodeSelector.disk", "", 'nodeSelector.disk', id="an empty value of a label"),
        pytest.param(f"{SPEC}.priorityClassName", "low", "priorityClassName", id="a priority class"),
        pytest.param(f"{SPEC}.terminationGracePeriodSeconds", 0, "terminationGracePeriodSeconds", id="no period of grace"),
        pytest.param(f"{SPEC}.affinity", {}, "affinity.nodeAffinity", id="an affinity"),
        pytest.param(f"{SPEC}.hostAliases.0.hostnames", ["db", "db2"], "hostAliases[0].hostnames", id="names of a host"),
    ],
)  # fmt: skip
def test_a_change_of_the_template_is_seen(path: str, value: Any, field: str, applied: bool) -> None:
    plan = plan_of(changed(RICH, path, value), served(RICH, applied=applied))
    (change,) = plan.changes
    assert (change.kind, change.fields[0]) == (ChangeKind.ROLLED, f"spec.template.spec.{field}")
    (planned,) = plan.workloads
    assert not planned.is_same_template
    assert planned.after is not None


def test_containers_in_another_order_are_another_template() -> None:
    containers = RICH["spec"]["template"]["spec"]["containers"]
    plan = plan_of(changed(RICH, f"{SPEC}.containers", containers[::-1]), served(RICH, applied=True))
    assert [each.fields for each in plan.changes] == [["spec.template.spec.containers"]]


@pytest.mark.parametrize(
    ("applied", "path", "value", "kind"),
    [
        pytest.param(True, f"{SPEC}.dnsConfig", {"nameservers": ["10.0.0.1"]}, ChangeKind.UNCHANGED, id="another's field stays where what was applied is known"),
        pytest.param(False, f"{SPEC}.dnsConfig", {"nameservers": ["10.0.0.1"]}, ChangeKind.ROLLED, id="and is taken to go where that is not known"),
        pytest.param(True, f"{SPEC}.terminationGracePeriodSeconds", 5, ChangeKind.UNCHANGED, id="so does another value than the default"),
        pytest.param(False, f"{SPEC}.terminationGracePeriodSeconds", 5, ChangeKind.ROLLED, id="which is taken to go, too"),
        pytest.param(True, "spec.template.metadata.annotations", {"kubectl.kubernetes.io/restartedAt": "now"}, ChangeKind.UNCHANGED, id="a restart"),
        pytest.param(False, "spec.template.metadata.annotations", {"kubectl.kubernetes.io/restartedAt": "now"}, ChangeKind.UNCHANGED, id="a restart is no change wherever it is from"),
        pytest.param(False, "spec.template.metadata.labels", {"app": "api", "by": "x"}, ChangeKind.ROLLED, id="but a label is"),
        pytest.param(True, f"{MAIN}.env", [{"name": "X", "value": "1"}], ChangeKind.UNCHANGED, id="another's variable stays"),
        pytest.param(False, f"{MAIN}.env", [{"name": "X", "value": "1"}], ChangeKind.ROLLED, id="another's variable is taken to go"),
        pytest.param(False, "spec.revisionHistoryLimit", 3, ChangeKind.UNCHANGED, id="outside of the template nothing goes"),
        pytest.param(False, "spec.replicas", 7, ChangeKind.UNCHANGED, id="least of all the size"),
    ],
)  # fmt: skip
def test_what_only_the_cluster_has(applied: bool, path: str, value: Any, kind: ChangeKind) -> None:
    document = workload()
    plan = plan_of(document, changed(served(document, applied=applied), path, value))
    assert [each.kind for each in plan.changes] == [kind]


def test_a_variable_that_was_applied_and_is_gone_from_the_manifest_goes() -> None:
    before = workload(template=template(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]))
    live = served(before, applied=True)
    live["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": "C", "value": "3"})
    plan = plan_of(changed(before, f"{MAIN}.env", [{"name": "A", "value": "1"}]), live)
    (planned,) = plan.workloads
    assert planned.change.fields == ["spec.template.spec.containers[0].env"]
    assert planned.after is not None
    env = planned.after["spec"]["template"]["spec"]["containers"][0]["env"]
    assert [each["name"] for each in env] == ["A", "C"]


def test_a_field_that_was_applied_and_is_gone_is_the_default_again() -> None:
    before = workload(minReadySeconds=10, replicas=4, strategy={"type": "Recreate"})
    plan = plan_of(workload(), served(before, applied=True))
    (planned,) = plan.workloads
    assert (planned.change.kind, planned.change.replicas) == (ChangeKind.SCALED, 1)
    assert planned.after is not None
    assert planned.after["spec"]["strategy"]["type"] == "RollingUpdate"
    assert "minReadySeconds" not in planned.after["spec"]


def test_what_was_applied_is_not_trusted_where_it_cannot_be_read() -> None:
    live = served(workload(), applied=True)
    for text in ("{", "[]", "null", "[" * 5000):
        annotations = live["metadata"]["annotations"]
        annotations.update(dict.fromkeys(annotations, text))
        plan = plan_of(workload(), changed(live, f"{SPEC}.dnsPolicy", "Default"))
        assert [each.fields for each in plan.changes] == [["spec.template.spec.dnsPolicy"]]


@pytest.mark.parametrize(
    ("kind", "path", "value", "expected", "replicas"),
    [
        pytest.param("Deployment", "spec.replicas", 5, ChangeKind.SCALED, (5, 3), id="a size"),
        pytest.param("StatefulSet", "spec.replicas", 0, ChangeKind.SCALED, (0, 3), id="down to nothing"),
        pytest.param("Deployment", "spec.replicas", ..., ChangeKind.UNCHANGED, (3, 3), id="a size that the manifest leaves open"),
        pytest.param("Deployment", "spec.minReadySeconds", 5, ChangeKind.UPDATED, (3, 3), id="time to be ready"),
        pytest.param("Deployment", "spec.strategy", {"type": "Recreate"}, ChangeKind.UPDATED, (3, 3), id="a strategy"),
        pytest.param("Deployment", "metadata.labels", {"team": "a"}, ChangeKind.UPDATED, (3, 3), id="a label"),
        pytest.param("Deployment", f"{MAIN}.image", "x:2", ChangeKind.ROLLED, (3, 3), id="a template"),
        pytest.param("StatefulSet", f"{MAIN}.image", "x:2", ChangeKind.ROLLED, (3, 3), id="a template of a set"),
        pytest.param("ReplicaSet", f"{MAIN}.image", "x:2", ChangeKind.UPDATED, (3, 3), id="a template that only new pods have"),
        pytest.param("ReplicationController", f"{MAIN}.image", "x:2", ChangeKind.UPDATED, (3, 3), id="and another such"),
    ],
)  # fmt: skip
def test_the_kind_of_a_change(
    kind: str, path: str, value: Any, expected: ChangeKind, replicas: tuple[int, int]
) -> None:
    document = workload(kind, replicas=3)
    live = served(document)
    plan = plan_of(changed(document, path, value), live)
    (change,) = plan.changes
    assert (change.kind, (change.replicas, change.replicas_before)) == (expected, replicas)
    assert len(plan.workloads) == (expected is not ChangeKind.UNCHANGED)
    assert all(each.before == live for each in plan.workloads)


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        pytest.param(workload(paused=True), ChangeKind.UPDATED, id="a Deployment that is paused"),
        pytest.param(workload("DaemonSet", updateStrategy={"type": "OnDelete"}), ChangeKind.UPDATED, id="a DaemonSet that waits for deletions"),
        pytest.param(workload("DaemonSet"), ChangeKind.ROLLED, id="a DaemonSet that rolls"),
        pytest.param(workload("StatefulSet", updateStrategy={"type": "OnDelete"}), ChangeKind.UPDATED, id="a StatefulSet that waits for deletions"),
    ],
)  # fmt: skip
def test_pods_stay_where_nothing_replaces_them(document: dict[str, Any], kind: ChangeKind) -> None:
    plan = plan_of(changed(document, f"{MAIN}.image", "x:2"), served(document))
    assert [each.kind for each in plan.changes] == [kind]
    assert [each.is_same_template for each in plan.workloads] == [False]


def test_a_new_workload_has_the_defaults_that_controllers_read() -> None:
    plan = plan_of([workload(), workload("StatefulSet"), workload("DaemonSet"), workload("Job")])
    assert [(each.kind, each.strategy, each.replicas) for each in plan.changes] == [
        (ChangeKind.CREATED, "RollingUpdate", 1),
        (ChangeKind.CREATED, "RollingUpdate", 1),
        (ChangeKind.CREATED, "RollingUpdate", None),
        (ChangeKind.CREATED, "", 1),
    ]
    specs = [each.after["spec"] for each in plan.workloads if each.after is not None]
    assert specs[0]["strategy"]["rollingUpdate"] == {"maxUnavailable": "25%", "maxSurge": "25%"}
    assert (specs[1]["updateStrategy"]["rollingUpdate"], specs[1]["podManagementPolicy"]) == (
        {"partition": 0},
        "OrderedReady",
    )
    assert specs[2]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}
    assert [specs[3][key] for key in ("completions", "parallelism", "backoffLimit")] == [1, 1, 6]
    assert all(each.before is None for each in plan.workloads)


def test_where_the_snapshot_does_not_say_what_a_workload_was_it_is_taken_to_roll() -> None:
    document = workload(replicas=3)
    plan = plan_of(workload(), served(document), has_documents=False)
    assert [(each.kind, each.fields, each.replicas) for each in plan.changes] == [
        (ChangeKind.ROLLED, ["spec.template"], 3)
    ]
    assert [(each.subject, each.field) for each in plan.assumptions] == [("Deployment shop/api", "spec.template")]


def test_replica_sets_of_a_deployment_come_with_it_whole_or_as_they_are_known() -> None:
    document = workload()
    mine = served(workload("ReplicaSet", "api-1"))
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api", "uid": "u", "controller": True}
    mine["metadata"]["ownerReferences"] = [owner]
    other = served(workload("ReplicaSet", "api-2"))
    elsewhere = copy.deepcopy(mine)
    elsewhere["metadata"] |= {"namespace": "other"}
    for has_documents in (True, False):
        plan = plan_of(
            changed(document, f"{MAIN}.image", "x:2"),
            *(served(document), mine, other, elsewhere),
            has_documents=has_documents,
        )
        (planned,) = plan.workloads
        assert [each["metadata"]["name"] for each in planned.replica_sets] == ["api-1"]
        assert ("template" in planned.replica_sets[0]["spec"]) is has_documents


def running_job(document: dict[str, Any]) -> dict[str, Any]:
    """A Job with what the server adds to it."""
    live = served(document)
    uid = live["metadata"]["uid"]
    live["spec"]["template"]["metadata"]["labels"] |= {
        "job-name": "api",
        "controller-uid": uid,
        "batch.kubernetes.io/job-name": "api",
        "batch.kubernetes.io/controller-uid": uid,
    }
    live["spec"]["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    return {**live, "status": {"active": 1}}


REDUCED = "without what the server adds"


@pytest.mark.parametrize("made", [running_job, served], ids=["complete", REDUCED])
@pytest.mark.parametrize(
    ("kind", "path", "value", "reason"),
    [
        pytest.param("Job", f"{MAIN}.image", "x:2", "spec.template: Invalid value: …: field is immutable", id="the template of a Job"),
        pytest.param("Job", "spec.completions", 3, "spec.completions: Invalid value: 3: field is immutable", id="how often a Job must succeed"),
        pytest.param("StatefulSet", "spec.volumeClaimTemplates.0.spec.accessModes", ["ReadWriteMany"], "spec.volumeClaimTemplates: Forbidden: updates to statefulset spec for fields other than", id="the claims of a StatefulSet"),
        pytest.param("Deployment", "spec.selector", {"matchLabels": {"app": "api", "v": "2"}}, 'spec.selector: Invalid value: {"matchLabels": {"app": "api", "v": "2"}}: field is immutable', id="a selector"),
    ],
)  # fmt: skip
def test_a_field_that_cannot_be_changed_is_a_rejection(
    kind: str, path: str, value: Any, reason: str, made: Any
) -> None:
    document = changed(workload(kind), "spec.template.metadata.labels.v", "2")
    if kind == "StatefulSet":
        document["spec"]["volumeClaimTemplates"] = [CLAIM]
    live = made(document) if kind == "Job" else served(document)
    plan = plan_of(changed(document, path, value), live)
    assert [(each.kind, each.line) for each in plan.changes] == [(ChangeKind.REJECTED, 1)]
    start, _, end = reason.partition("…")
    found = plan.rejections[f"{kind} shop/api"]
    assert found.startswith(start)
    assert end in found
    assert plan.workloads == []


@pytest.mark.parametrize("made", [running_job, served], ids=["complete", REDUCED])
def test_labels_that_the_server_puts_on_a_job_are_no_change(made: Any) -> None:
    document = workload("Job")
    live = made(document)
    assert [each.kind for each in plan_of(document, live).changes] == [ChangeKind.UNCHANGED]
    scaled = plan_of(changed(document, "spec.parallelism", 2), live)
    assert [(each.kind, each.replicas) for each in scaled.changes] == [(ChangeKind.SCALED, 2)]


def test_claims_of_a_stateful_set_as_the_server_has_them_are_no_change() -> None:
    document = workload("StatefulSet", volumeClaimTemplates=[CLAIM])
    live = served(document)
    live["spec"]["volumeClaimTemplates"][0] |= {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "status": {"phase": "Pending"},
    }
    assert [each.kind for each in plan_of(document, live).changes] == [ChangeKind.UNCHANGED]


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        pytest.param(None, workload("CronJob"), ["api-new"], id="new"),
        pytest.param(None, workload("CronJob", suspend=True), [], id="new and suspended"),
        pytest.param(workload("CronJob"), workload("CronJob"), [], id="as it was"),
        pytest.param(workload("CronJob"), workload("CronJob", template=template(image="x:2")), ["api-new"], id="with another template"),
        pytest.param(workload("CronJob", suspend=True), workload("CronJob", suspend=False), ["api-new"], id="resumed"),
    ],
)  # fmt: skip
def test_a_cron_job_runs_once(before: dict[str, Any] | None, after: dict[str, Any], names: list[str]) -> None:
    plan = plan_of(after, *([served(before)] if before else []))
    assert [(each.kind, each.name) for each in plan.workloads] == [("Job", name) for name in names]
    for each in plan.workloads:
        assert each.after is not None
        owner = each.after["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["name"], each.after["spec"]["backoffLimit"]) == ("CronJob", "api", 6)


def test_the_input_stays_as_it_is() -> None:
    document, live = workload(replicas=2, template=RICH["spec"]["template"]), served(RICH, applied=True)
    kept = copy.deepcopy((document, live))
    plan_of(document, live)
    assert (document, live) == kept


def test_secret_values_are_in_no_change() -> None:
    before = workload(template=template(env=[{"name": "TOKEN", "value": "s3cret-1"}]))
    after = workload(template=template(env=[{"name": "TOKEN", "value": "s3cret-2"}]))
    plan = plan_of(after, served(before, applied=True))
    assert plan.changes[0].fields == ["spec.template.spec.containers[0].env[0].value"]
    assert "s3cret" not in f"{plan.changes}{plan.assumptions}{plan.notes}"


def test_a_workload_of_another_group_is_another_thing() -> None:
    document = {**workload("Job"), "apiVersion": "example.com/v1"}
    plan = plan_of(document, served(workload("Job")))
    assert (plan.changes, plan.workloads) == ([], [])
    assert [(each.subject, each.field) for each in assumed(plan)] == [("Job.example.com", "list")]


def test_the_cluster_keeps_its_workloads_for_the_play() -> None:
    live = served(workload())
    plan = plan_of(changed(workload(), "spec.replicas", 3), live)
    assert plan.cluster == cluster_of(live)


RECORDED = [json.loads(line) for line in (ROOT / "fixtures/defaults/workloads.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("applied", [True, False], ids=["applied before", "by someone else"])
@pytest.mark.parametrize(
    "recorded", RECORDED, ids=[f"{i}-{each['manifest']['kind']}" for i, each in enumerate(RECORDED)]
)
def test_what_the_real_server_made_of_a_manifest_is_no_change(recorded: dict[str, Any], applied: bool) -> None:
    manifest, live = (_accepted(recorded[each]) for each in ("manifest", "served"))
    if applied:
        live["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(manifest)}
    plan = plan_of(manifest, live)
    assert [(each.kind, each.fields) for each in plan.changes] == [(ChangeKind.UNCHANGED, [])]
    ours, theirs = with_defaults(manifest)["spec"], _defaults(recorded)
    assert {key: ours.get(key) for key in theirs} == theirs


def _accepted(document: dict[str, Any]) -> dict[str, Any]:
    """A copy that validation accepts, too: the recorded Jobs only went through the API server's defaults."""
    path = {"Job": SPEC, "CronJob": f"spec.jobTemplate.{SPEC}"}.get(document["kind"])
    return changed(document, f"{path}.restartPolicy", "Never") if path else copy.deepcopy(document)


def _defaults(recorded: dict[str, Any]) -> dict[str, Any]:
    """The fields of the spec that the server filled in itself."""
    written, there = recorded["manifest"]["spec"], recorded["served"]["spec"]
    return {key: value for key, value in there.items() if key not in written and value not in (None, {}, [], "")}
