# ruff: noqa: E501 - tables read better in rows
"""Documents of workloads as dumps of kpreempt's keep them: what a manifest is compared with, and nothing secret."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kpreempt.admission.defaults import with_defaults
from kpreempt.analysis.check.rollout.kept_documents import alike, kept, salt_for, salt_of
from tests.unit.analysis.rollout.changes import changed, plan_of, served, template, workload
from tests.unit.analysis.rollout.test_other_objects import rule, webhook
from tests.unit.analysis.rollout.test_other_objects import stored as stored_other

Document = dict[str, Any]
SECRETS = (
    "hunter2",
    "--token=t0ken",
    "/bin/login",
    "Bearer abc",
    "from-secret",
    "pull-me",
    "s3cr3t",
    "czNjcjN0",
    "note-to-self",
    "volume-key",
)
MAIN = "spec.template.spec.containers.0"
WHOLE = workload(
    template={
        "metadata": {"labels": {"app": "api"}, "annotations": {"note": "note-to-self"}},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "shop/api:1",
                    "resources": {"requests": {"cpu": "1"}},
                    "env": [
                        {"name": "PASSWORD", "value": "hunter2"},
                        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                        {"name": "EMPTY", "value": ""},
                    ],
                    "envFrom": [{"secretRef": {"name": "from-secret"}}],
                    "command": ["/bin/login"],
                    "args": ["--token=t0ken"],
                    "ports": [{"containerPort": 80}],
                    "livenessProbe": {
                        "httpGet": {"port": 80, "httpHeaders": [{"name": "Authorization", "value": "Bearer abc"}]}
                    },
                    "lifecycle": {"preStop": {"exec": {"command": ["s3cr3t"]}}},
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                }
            ],
            "imagePullSecrets": [{"name": "pull-me"}],
            "volumes": [
                {"name": "data", "csi": {"driver": "d", "volumeAttributes": {"key": "volume-key"}}},
                {"name": "scratch"},
            ],
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}],
        },
    },
    replicas=2,
)


def kept_one(document: Document) -> Document:
    return kept(document, salt_for([document]))


@pytest.mark.parametrize("is_applied", [False, True], ids=["by whomever", "by kubectl apply"])
def test_nothing_secret_is_kept(*, is_applied: bool) -> None:
    live = changed(served(WHOLE, applied=is_applied), "metadata.managedFields", [{"manager": "hunter2"}])
    live["status"] = {"replicas": 2, "conditions": [{"type": "Available", "status": "True", "message": "s3cr3t"}]}
    text = json.dumps(kept_one(live))
    assert [each for each in SECRETS if each in text] == []
    # What decides where pods can run is there.
    assert all(each in text for each in ("shop/api:1", "disk", "ssd", "NoSchedule", "Available", '"1"'))


@pytest.mark.parametrize(
    ("path", "value", "fields"),
    [
        pytest.param("metadata.name", "api", [], id="nothing"),
        pytest.param(f"{MAIN}.image", "shop/api:2", ["spec.template.spec.containers[0].image"], id="an image"),
        pytest.param(f"{MAIN}.env.0.value", "hunter3", ["spec.template.spec.containers[0].env"], id="a value of the environment"),
        pytest.param(f"{MAIN}.env.1.valueFrom.fieldRef.apiVersion", "v1", [], id="a default within the environment"),
        pytest.param(f"{MAIN}.env.2.value", ..., [], id="an empty value, as good as none"),
        pytest.param(f"{MAIN}.env", ..., ["spec.template.spec.containers[0].env"], id="no environment any more"),
        pytest.param(f"{MAIN}.args", ["--token=other"], ["spec.template.spec.containers[0].args"], id="arguments"),
        pytest.param(f"{MAIN}.command", ["/bin/other"], ["spec.template.spec.containers[0].command"], id="a command"),
        pytest.param(f"{MAIN}.imagePullPolicy", "IfNotPresent", [], id="a default"),
        pytest.param(f"{MAIN}.imagePullPolicy", "Always", ["spec.template.spec.containers[0].imagePullPolicy"], id="another policy"),
        pytest.param(f"{MAIN}.terminationMessagePath", "/dev/termination-log", [], id="a default that is a path"),
        pytest.param(f"{MAIN}.terminationMessagePath", "/log", ["spec.template.spec.containers[0].terminationMessagePath"], id="another path"),
        pytest.param(f"{MAIN}.livenessProbe.timeoutSeconds", 1, [], id="a default of a probe"),
        pytest.param(f"{MAIN}.livenessProbe.httpGet.path", "/healthz", ["spec.template.spec.containers[0].livenessProbe.httpGet.path"], id="a probe's path"),
        pytest.param(f"{MAIN}.resources.requests.cpu", "1000m", [], id="the same amount"),
        pytest.param(f"{MAIN}.resources.requests.cpu", "2", ["spec.template.spec.containers[0].resources.requests.cpu"], id="another amount"),
        pytest.param("spec.template.metadata.annotations.note", "other", ['spec.template.metadata.annotations.note'], id="an annotation"),
        pytest.param("spec.template.spec.imagePullSecrets", [{"name": "other"}], ["spec.template.spec.imagePullSecrets"], id="credentials for images"),
        pytest.param("spec.template.spec.volumes.0.csi.volumeAttributes.key", "other", ["spec.template.spec.volumes[0].csi.volumeAttributes"], id="a volume's attributes"),
        pytest.param("spec.template.spec.nodeSelector.disk", "hdd", ["spec.template.spec.nodeSelector.disk"], id="where it runs"),
        pytest.param("spec.replicas", 3, ["spec.replicas"], id="its size"),
        pytest.param("spec.strategy", {"type": "Recreate"}, ["spec.strategy.type"], id="how it is replaced"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_applied", [False, True], ids=["by whomever", "by kubectl apply"])
def test_a_change_is_found_in_what_is_kept(path: str, value: Any, fields: list[str], *, is_applied: bool) -> None:
    live = served(WHOLE, applied=is_applied)
    wanted = changed(WHOLE, path, value)
    (change,) = plan_of(wanted, kept_one(live)).changes
    assert change.fields == fields
    (whole,) = plan_of(wanted, live).changes
    assert (change.kind, change.replicas) == (whole.kind, whole.replicas)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"])
def test_each_kind_of_workload_is_compared(kind: str) -> None:
    secret = {"env": [{"name": "A", "value": "hunter2"}]}
    there = workload(kind, template=template(**secret))
    live = kept_one(served(there))
    assert "hunter2" not in json.dumps(live)
    same = plan_of(there, live)
    assert [each.kind.value for each in same.changes] == ["Unchanged"]
    assert same.assumptions == []
    other = plan_of(workload(kind, template=template(env=[{"name": "A", "value": "x"}])), live)
    assert [each.kind.value for each in other.changes] != ["Unchanged"]


def test_the_class_of_a_claim_is_kept_as_it_is() -> None:
    annotations = {"volume.beta.kubernetes.io/storage-class": "fast", "note": "note-to-self"}
    claims = [{"metadata": {"name": "data", "annotations": annotations}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    live = kept_one(served(workload("StatefulSet", volumeClaimTemplates=claims)))
    found = live["spec"]["volumeClaimTemplates"][0]["metadata"]["annotations"]
    assert found["volume.beta.kubernetes.io/storage-class"] == "fast"
    assert "note-to-self" not in found["note"]


def test_a_plain_pod_is_compared() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one", "namespace": "shop"},
        "spec": template(env=[{"name": "A", "value": "hunter2"}])["spec"],
    }
    live = kept_one(pod)
    assert "hunter2" not in json.dumps(live)
    assert [each.kind.value for each in plan_of(pod, live).changes] == ["Unchanged"]
    plan = plan_of(changed(pod, "spec.containers.0.env.0.value", "x"), live)
    assert [each.kind.value for each in plan.changes] == ["Rejected"]
    assert plan.rejections["Pod shop/one"].startswith("spec.containers[0].env: Forbidden: ")


def test_a_revision_of_the_past_is_found_among_the_replica_sets_of_a_dump() -> None:
    old = workload(template=template(args=["--old"]))
    new = workload(template=template(args=["--new"]))
    owner = {"kind": "Deployment", "name": "api", "apiVersion": "apps/v1", "controller": True, "uid": "uid-api"}
    past = workload("ReplicaSet", "api-1", template=old["spec"]["template"], replicas=0)
    past["metadata"]["ownerReferences"] = [owner]
    documents = [served(new), served(past)]
    salt = salt_for(documents)
    plan = plan_of(old, *(kept(each, salt) for each in documents))
    (planned,) = plan.workloads
    (replica_set,) = planned.replica_sets
    assert planned.after is not None
    after = alike(planned.after, replica_set)["spec"]["template"]
    assert after["spec"]["containers"][0]["args"] == replica_set["spec"]["template"]["spec"]["containers"][0]["args"]


def test_a_webhook_keeps_its_rules_but_not_its_address() -> None:
    hook = {"clientConfig": {"url": "https://u:hunter2@host/", "caBundle": "czNjcjN0"}}
    document = webhook(rule("", "pods"), **hook)
    live = kept_one(stored_other(document))
    assert [each for each in SECRETS if each in json.dumps(live)] == []
    assert [each.kind.value for each in plan_of([document], live).changes] == ["Unchanged"]
    other = webhook(rule("", "pods"), clientConfig={**hook["clientConfig"], "caBundle": "b3RoZXI="})
    plan = plan_of([other, workload()], live)
    assert [each.subject for each in plan.assumptions if each.subject.startswith("MutatingWebhook")] != []


def test_what_was_kept_stays_as_it_is() -> None:
    once = kept_one(served(WHOLE, applied=True))
    assert kept(once, "another salt") == once
    assert salt_of(once) == salt_of(alike(WHOLE, once))


def test_salts_differ_where_clusters_do() -> None:
    one, other = served(WHOLE), changed(served(WHOLE), "metadata.uid", "another")
    first, second = kept_one(one), kept_one(other)
    path = ("spec", "template", "spec", "containers")
    assert _at(first, *path)[0]["env"] != _at(second, *path)[0]["env"]
    assert kept_one(one) == first


def test_defaults_are_the_same_before_and_after() -> None:
    salt = "salt"
    assert with_defaults(kept(WHOLE, salt)) == kept(with_defaults(WHOLE), salt)


def _at(document: Document, *path: str) -> Any:
    for key in path:
        document = document[key]
    return document
