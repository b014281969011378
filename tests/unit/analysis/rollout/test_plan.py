# ruff: noqa: E501 - tables read better in rows
"""What a change does to all that has no pods, which objects go, and what is said of the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kpreempt.analysis.check.rollout.apply import LAST_APPLIED
from kpreempt.analysis.check.rollout.cluster_documents import (
    ALWAYS_RECORDED,
    LiveDocuments,
    NeededObjects,
)
from kpreempt.analysis.check.rollout.kinds import CLUSTER_KINDS
from kpreempt.analysis.check.rollout.plan import MAX_NEW_PODS, ManifestDocument
from kpreempt.errors import InputError, KpreemptError, NotFoundError, UsageError
from kpreempt.model.kinds import AUTOSCALER_KINDS, KINDS
from kpreempt.snapshot.collect import KeepDocument
from kpreempt.verdict import AssumptionKind
from kpreempt.verdict.check import ChangeKind
from tests.unit.analysis.rollout.changes import assumed, changed, cluster_of, plan_of, served, template, workload

Document = dict[str, Any]


CLAIM: Document = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def make(kind: str, name: str, api_version: str = "v1", namespace: str = "shop", **parts: Any) -> Document:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **parts.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def pod(name: str, *, ready: bool = True, owner: Document | None = None, **parts: Any) -> Document:
    metadata: Document = {"labels": {"app": "api"}, **({"ownerReferences": [owner]} if owner else {})}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
    spec = {"containers": [{"name": "main", "image": "x:1"}], **parts}
    return make("Pod", name, metadata=metadata, spec=spec, status=status)


def budget(**spec: Any) -> Document:
    return make("PodDisruptionBudget", "api", "policy/v1", spec={"selector": {"matchLabels": {"app": "api"}}, **spec})


def high(value: int = 1000, **fields: Any) -> Document:
    return make("PriorityClass", "high", "scheduling.k8s.io/v1", "", value=value, **fields)


def kinds_of(plan: Any) -> list[tuple[str, str]]:
    return [(each.object, each.kind.value) for each in plan.changes]


def test_the_kinds_are_those_of_snapshots_but_those_of_autoscalers() -> None:
    # What its controller makes of a change is not known: to a check it is a custom resource as any other.
    assert {*KINDS} - {*CLUSTER_KINDS} == {*AUTOSCALER_KINDS}


def test_changes_come_in_the_order_of_the_input_and_deletions_after_them() -> None:
    there = served(workload(name="there"))
    plan = plan_of(
        [high(), workload(name="b"), make("ConfigMap", "c"), workload(name="there"), budget(), workload(name="a")],
        *(there, served(workload(name="old"))),
        deleted=["deployment/old"],
    )
    assert kinds_of(plan) == [
        ("PriorityClass high", "Created"),
        ("Deployment shop/b", "Created"),
        ("Deployment shop/there", "Unchanged"),
        ("PodDisruptionBudget shop/api", "Created"),
        ("Deployment shop/a", "Created"),
        ("Deployment shop/old", "Deleted"),
    ]
    assert [each.name for each in plan.workloads] == ["b", "a", "old"]
    assert [each.line for each in plan.changes] == [1, 11, 31, 41, 51, 0]
    assert plan.notes == ["ignored 1 ConfigMap (not relevant to scheduling)"]


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        pytest.param({"minAvailable": 1}, (1, 2, 1), id="fewer have to stay"),
        pytest.param({"minAvailable": 2}, (0, 2, 2), id="more have to stay"),
        pytest.param({"maxUnavailable": 1}, (0, 2, 2), id="the other way round, and what it said before is gone"),
    ],
)
def test_a_budget_with_other_terms_gets_another_status_at_once(spec: Document, status: tuple[int, int, int]) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "api", "uid": "uid-api", "controller": True}
    before = {**budget(minAvailable=0), "status": {"disruptionsAllowed": 9, "currentHealthy": 9}}
    before["metadata"]["generation"] = 4
    replica_set = served(workload("ReplicaSet", replicas=3))
    plan = plan_of(budget(**spec), before, replica_set, pod("a", owner=owner), pod("b", owner=owner))
    (found,) = plan.cluster.pod_disruption_budgets
    assert found.status is not None
    known = found.status
    assert (known.disruptions_allowed, known.current_healthy, known.desired_healthy) == status
    assert (found.metadata.generation, known.observed_generation) == (5, 5)
    assert found.spec.min_available == spec.get("minAvailable")
    assert kinds_of(plan) == [("PodDisruptionBudget shop/api", "Updated")]


def test_a_budget_as_it_was_keeps_its_status() -> None:
    before = {**budget(minAvailable=1), "status": {"disruptionsAllowed": 9}}
    plan = plan_of(budget(minAvailable=1), before, pod("a"))
    assert kinds_of(plan) == [("PodDisruptionBudget shop/api", "Unchanged")]
    assert plan.cluster == cluster_of(before, pod("a"))


def test_a_budget_over_pods_whose_owner_is_not_known_says_so() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gone", "uid": "u", "controller": True}
    plan = plan_of(budget(maxUnavailable=1), pod("a", owner=owner))
    assert [(each.subject, each.field) for each in plan.assumptions] == [("PodDisruptionBudget shop/api", "status")]


@pytest.mark.parametrize(
    ("before", "after", "kind", "fields"),
    [
        pytest.param(high(preemptionPolicy="PreemptLowerPriority"), high(), "Unchanged", [], id="a default that the server filled in"),
        pytest.param(high(description="a"), high(description="b"), "Unchanged", [], id="another description"),
        pytest.param(high(globalDefault=True), high(), "Updated", ["globalDefault"], id="a class that is no default any more"),
        pytest.param(make("Namespace", "shop", namespace="", metadata={"labels": {"kubernetes.io/metadata.name": "shop"}}), make("Namespace", "shop", namespace=""), "Unchanged", [], id="a namespace with the server's label"),
        pytest.param(make("Namespace", "shop", namespace=""), make("Namespace", "shop", namespace="", metadata={"labels": {"a": "b"}}), "Updated", ["metadata.labels.a"], id="a label of a namespace"),
        pytest.param(make("LimitRange", "l", spec={"limits": [{"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}]}), make("LimitRange", "l", spec={"limits": [{"type": "Container", "max": {"cpu": "1000m"}}]}), "Unchanged", [], id="bounds that have become defaults"),
        pytest.param(make("LimitRange", "l", spec={"limits": [{"type": "Container", "max": {"cpu": "1"}}]}), make("LimitRange", "l", spec={"limits": [{"type": "Container", "max": {"cpu": "2"}}]}), "Updated", ["spec.limits"], id="other bounds"),
        pytest.param(make("PersistentVolumeClaim", "c", spec={"volumeName": "v", "storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}, status={"phase": "Bound"}), make("PersistentVolumeClaim", "c", spec={"resources": {"requests": {"storage": "1024Mi"}}}), "Unchanged", [], id="a claim that is bound by now"),
        pytest.param(make("Service", "s", spec={"selector": {"app": "a"}}), make("Service", "s", spec={"selector": {"app": "b"}}), "Updated", ["spec.selector.app"], id="another selector"),
        pytest.param(make("Service", "s", spec={"selector": {"app": "a", "v": "1"}}), make("Service", "s", spec={"selector": {"app": "a"}}), "Updated", ["spec.selector.v"], id="a wider selector"),
        pytest.param(make("Node", "n", namespace="", status={"allocatable": {"cpu": "4"}}), make("Node", "n", namespace="", spec={"unschedulable": True}, status={}), "Updated", ["spec.unschedulable"], id="a node that is cordoned, whose status no manifest changes"),
    ],
)  # fmt: skip
def test_other_objects(before: Document, after: Document, kind: str, fields: list[str]) -> None:
    plan = plan_of(after, before)
    assert [(each.kind.value, each.fields) for each in plan.changes] == [(kind, fields)]
    field = CLUSTER_KINDS[after["kind"]].field
    there = getattr(cluster_of(before), field)
    assert (getattr(plan.cluster, field) == there) is (kind == "Unchanged")


def test_a_value_that_cannot_be_changed_is_a_rejection() -> None:
    plan = plan_of(high(5), high(7))
    assert kinds_of(plan) == [("PriorityClass high", "Rejected")]
    assert plan.rejections == {"PriorityClass high": "value: Forbidden: may not be changed in an update."}
    assert [each.value for each in plan.cluster.priority_classes] == [7]


def test_a_new_claim_is_as_the_server_stores_it() -> None:
    default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    storage_class = make("StorageClass", "fast", "storage.k8s.io/v1", "", metadata=default, provisioner="d")
    plan = plan_of(make("PersistentVolumeClaim", "c", spec=CLAIM), storage_class)
    (claim,) = plan.cluster.persistent_volume_claims
    assert (claim.spec.storage_class_name, claim.status.phase) == ("fast", "Pending")


OF_NOTHING: Document = {"maxReplicas": 1, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Thing", "name": "t"}}


@pytest.mark.parametrize(
    ("document", "subject"),
    [
        pytest.param(make("Kafka", "k", "kafka.strimzi.io/v1", spec={"kafka": {"replicas": 3}}), "Kafka.kafka.strimzi.io", id="a custom resource"),
        pytest.param(make("Service", "k", "serving.knative.dev/v1"), "Service.serving.knative.dev", id="one that is called as one of Kubernetes' own"),
        pytest.param(make("HorizontalPodAutoscaler", "h", "autoscaling/v2", spec=OF_NOTHING), "HorizontalPodAutoscaler shop/h", id="an autoscaler of nothing"),
        pytest.param(make("Rollout", "r", "argoproj.io/v1alpha1", spec={"template": template()}), "Rollout.argoproj.io", id="a controller that is not known"),
        pytest.param(make("Kustomization", "k", "kustomize.config.k8s.io/v1beta1"), "Kustomization shop/k", id="what is not built yet"),
    ],
)  # fmt: skip
def test_what_is_not_modeled_is_an_assumption(document: Document, subject: str) -> None:
    assert [each.subject for each in assumed(plan_of(document))] == [subject]


def test_what_has_no_name_is_no_mistake_where_it_means_nothing() -> None:
    nameless = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": ["a.yaml"]}
    chart = {"apiVersion": "example.com/v1", "kind": "Thing", "spec": deep(2000)}
    plan = plan_of([nameless, chart, nameless])
    assert [each.subject for each in assumed(plan)] == ["Kustomization shop/without a name", "Thing.example.com"]


def test_what_makes_no_pods_for_sure_is_passed_over() -> None:
    issuer = {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "c"}}
    plan = plan_of([issuer, make("NetworkPolicy", "n", "networking.k8s.io/v1"), make("ConfigMap", "c")])
    assert assumed(plan) == []
    assert plan.notes == ["ignored 1 Certificate, 1 NetworkPolicy, 1 ConfigMap (not relevant to scheduling)"]


def test_of_the_same_object_twice_the_later_counts() -> None:
    plan = plan_of([workload(replicas=1), workload(name="b"), workload(replicas=3)])
    assert [(each.object, each.replicas) for each in plan.changes] == [
        ("Deployment shop/b", 1),
        ("Deployment shop/api", 3),
    ]
    assert plan.duplicates == {
        "Deployment shop/api": "change.yaml:1 is superseded by change.yaml:21;"
        " the effect of the earlier document is not simulated"
    }


def annotated(document: Document, key: str, value: str) -> Document:
    return changed(document, "metadata.annotations", {key: value})


ONE, TWO = workload(template=template(image="one")), workload(template=template(image="two"))
OLD_VERSION = {**ONE, "apiVersion": "extensions/v1beta1"}
OTHER_GROUP = {**ONE, "apiVersion": "example.com/v1"}
SCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "api", "namespace": "shop"},
    "spec": {"maxReplicas": 9, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}},
}


@pytest.mark.parametrize(
    ("documents", "live", "is_duplicate"),
    [
        pytest.param([ONE, TWO], [], True, id="different documents of a new object"),
        pytest.param([OLD_VERSION, TWO], [], True, id="in different versions of the API"),
        pytest.param([ONE, TWO], [TWO], True, id="the earlier one differs from the cluster"),
        pytest.param([ONE, TWO], [ONE], False, id="the earlier one is as the cluster has it"),
        pytest.param([ONE, TWO, ONE], [ONE], True, id="one in the middle differs"),
        pytest.param([ONE, ONE], [], False, id="alike"),
        pytest.param([OLD_VERSION, ONE], [], False, id="alike in different versions"),
        pytest.param([annotated(ONE, "note", "a"), ONE], [], False, id="alike except for annotations"),
        pytest.param([changed(ONE, "metadata.labels", {"a": "b"}), ONE], [], True, id="with other labels"),
        pytest.param([OTHER_GROUP, ONE], [], False, id="of different groups"),
        pytest.param([workload(namespace="a"), workload(namespace="b", replicas=2)], [], False, id="in different namespaces"),
        pytest.param([workload(namespace=""), workload(replicas=2)], [], True, id="in one namespace, said or not"),
        pytest.param([high(value=1), high(value=2)], [], True, id="of a kind without pods"),
        pytest.param([make("ConfigMap", "c", data={"a": "1"}), make("ConfigMap", "c", data={"a": "2"})], [], False, id="of a kind that no pod depends on"),
        pytest.param([make("Widget", "w", "example.com/v1", spec=1), make("Widget", "w", "example.com/v1")], [], True, id="of a kind whose controller is not known"),
        pytest.param([workload(replicas=0), workload()], [workload(replicas=3), SCALER], True, id="one sets an autoscaled size"),
    ],
)  # fmt: skip
def test_documents_of_one_object_that_differ_are_duplicates(
    documents: list[Document], live: list[Document], *, is_duplicate: bool
) -> None:
    plan = plan_of(documents, *(served(each) if each["kind"] == "Deployment" else each for each in live))
    assert bool(plan.duplicates) is is_duplicate


def test_documents_that_change_nothing_in_between_are_mentioned() -> None:
    plan = plan_of([ONE, ONE])
    assert [(each.subject, each.message, each.kind) for each in plan.assumptions] == [
        (
            "Deployment shop/api",
            "duplicate: change.yaml:1 is superseded by change.yaml:11; both documents have the same effect",
            AssumptionKind.INFORMATIONAL,
        )
    ]


def test_a_kind_of_another_group_is_another_object() -> None:
    plan = plan_of([TWO, OTHER_GROUP], served(ONE))
    assert [(each.object, each.kind) for each in plan.changes] == [("Deployment shop/api", ChangeKind.ROLLED)]


def test_no_drawn_name_is_that_of_another_object() -> None:
    drawn = [{**ONE, "metadata": {"generateName": "api-"}} for _ in range(2)]
    plan = plan_of([*drawn, workload(name="api-new"), workload(name="api-new-2")])
    assert len({each.object for each in plan.changes}) == 4
    assert plan.duplicates == {}


def test_objects_without_a_namespace_are_in_the_one_that_is_meant_and_others_where_they_say() -> None:
    plan = plan_of([workload(namespace=""), workload(namespace="other"), high()], namespace="mine")
    assert [each.object for each in plan.changes] == [
        "Deployment mine/api",
        "Deployment other/api",
        "PriorityClass high",
    ]
    (first, _) = plan.workloads
    assert first.after is not None
    assert (first.namespace, first.after["metadata"]["namespace"]) == ("mine", "mine")


def test_objects_whose_names_the_server_makes_up_are_new_each_time() -> None:
    document = workload("Job")
    document["metadata"] = {"generateName": "load-", "namespace": "shop"}
    plan = plan_of([document, document], served(workload("Job", "load-new")))
    assert [each.object for each in plan.changes] == ["Job shop/load-new", "Job shop/load-new-2"]


def test_a_plain_pod_is_made_kept_or_replaced() -> None:
    live = pod("a", nodeName="n1", serviceAccountName="default", tolerations=[{"key": "t", "operator": "Exists"}])
    written = make(
        "Pod", "a", spec={"containers": [{"name": "main", "image": "x:1"}]}, metadata={"labels": {"app": "api"}}
    )
    assert [each.document["metadata"]["name"] for each in plan_of(written).pods] == ["a"]
    plan = plan_of(written, live)
    assert (kinds_of(plan), plan.pods, plan.deleted_pods) == ([("Pod shop/a", "Unchanged")], [], [])
    plan = plan_of(changed(written, "spec.containers.0.image", "x:2"), live)
    assert (kinds_of(plan), plan.pods, plan.deleted_pods) == ([("Pod shop/a", "Updated")], [], [])
    plan = plan_of(changed(written, "metadata.labels.app", "web"), live)
    assert [each.metadata.labels for each in plan.cluster.pods] == [{"app": "web"}]
    plan = plan_of(changed(written, "spec.nodeSelector", {"disk": "ssd"}), live)
    assert (kinds_of(plan), plan.pods, plan.deleted_pods) == ([("Pod shop/a", "Rejected")], [], [])
    assert plan.rejections["Pod shop/a"].startswith("spec.nodeSelector: Forbidden: pod updates may not change fields")
    plan = plan_of(written, live, has_documents=False)
    assert (kinds_of(plan), plan.deleted_pods) == ([("Pod shop/a", "Rolled")], ["shop/a"])


@pytest.mark.parametrize("amount", ["2", "1"], ids=["from the limit", "from the containers"])
def test_requests_of_a_whole_pod_that_the_server_fills_in_are_no_change(amount: str) -> None:
    own = {"requests": {"cpu": amount}} if amount == "1" else {}
    containers = [{"name": "main", "image": "x:1", "resources": own}]
    limits = {"limits": {"cpu": "2"}}
    written = make("Pod", "a", spec={"containers": containers, "resources": limits})
    last = changed(written, "spec.resources", {**limits, "requests": {"cpu": amount}})
    live = changed(last, "metadata.annotations", {LAST_APPLIED: json.dumps(last)})
    assert kinds_of(plan_of(written, live)) == [("Pod shop/a", "Unchanged")]
    other = changed(written, "spec.resources.limits.cpu", "3")
    assert kinds_of(plan_of(other, live)) == [("Pod shop/a", "Rejected")]


_TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"matchLabelKeys": "x"}}}
_CONSTRAINT = {
    **{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
    "labelSelector": {"matchLabels": {"app": "api"}},
}


@pytest.mark.parametrize(
    ("field", "sent", "kept"),
    [
        pytest.param("resources", {"requests": {"cpu": "1"}}, None, id="of the whole pod"),
        pytest.param(
            "affinity",
            {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**_TERM, "matchLabelKeys": ["a"]}]}},
            {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]}},
            id="keys of affinity",
        ),
        pytest.param(
            "topologySpreadConstraints",
            [{**_CONSTRAINT, "matchLabelKeys": ["a"]}],
            [_CONSTRAINT],
            id="keys of constraints",
        ),
    ],
)
def test_a_field_that_the_server_dropped_before_is_no_change(field: str, sent: Any, kept: Any) -> None:
    path = f"spec.template.spec.{field}"
    manifest = changed(workload(replicas=2), path, sent)
    live = changed(served(manifest, applied=True), path, ... if kept is None else kept)
    assert kinds_of(plan_of(manifest, live)) == [("Deployment shop/api", "Unchanged")]
    first = changed(live, "metadata.annotations", {LAST_APPLIED: json.dumps(workload(replicas=2))})
    assert kinds_of(plan_of(manifest, first)) == [("Deployment shop/api", "Rolled")]


@pytest.mark.parametrize(
    ("text", "object_"),
    [
        pytest.param("deployment/api", "Deployment shop/api", id="a kind in small letters"),
        pytest.param("Deployments/api", "Deployment shop/api", id="in plural"),
        pytest.param("deploy/shop/api", "Deployment shop/api", id="short, with its namespace"),
        pytest.param("deployments.apps/api", "Deployment shop/api", id="with its group"),
        pytest.param("pc/high", "PriorityClass high", id="without a namespace"),
        pytest.param("priorityclasses/high", "PriorityClass high", id="a plural in es"),
        pytest.param("pdb/api", "PodDisruptionBudget shop/api", id="a budget"),
        pytest.param("po/plain", "Pod shop/plain", id="a pod"),
    ],
)
def test_what_is_deleted_can_be_named_as_kubectl_does(text: str, object_: str) -> None:
    plan = plan_of([], served(workload(replicas=2)), high(), budget(minAvailable=1), pod("plain"), deleted=[text])
    assert kinds_of(plan) == [(object_, "Deleted")]
    assert not plan.cluster.priority_classes if "high" in object_ else plan.cluster.priority_classes
    assert not plan.cluster.pod_disruption_budgets if "Budget" in object_ else plan.cluster.pod_disruption_budgets
    assert plan.deleted_pods == (["shop/plain"] if "Pod " in object_ else [])
    assert [(each.after, each.change.replicas_before) for each in plan.workloads] == (
        [(None, 2)] if "Deployment" in object_ else []
    )


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        pytest.param("api", UsageError, "is not an object name", id="no kind"),
        pytest.param("a/b/c/d", UsageError, "is not an object name", id="too many parts"),
        pytest.param("deployment/", UsageError, "is not an object name", id="no name"),
        pytest.param("deploymnt/api", UsageError, "is not a known kind", id="no such kind"),
        pytest.param("node/shop/n1", UsageError, "is not namespaced", id="a namespace for what has none"),
        pytest.param("deployment/other", NotFoundError, "Deployment shop/other not found", id="no such object"),
        pytest.param("deployment/api", UsageError, "both in the manifests", id="one that the change makes"),
    ],
)
def test_a_deletion_that_makes_no_sense_is_refused(text: str, error: type[KpreemptError], message: str) -> None:
    with pytest.raises(error, match=message):
        plan_of(workload(), served(workload()), deleted=[text])


def test_what_means_nothing_can_be_deleted_too() -> None:
    plan = plan_of([], deleted=["cm/a", "configmaps/b", "certificates.cert-manager.io/c"])
    assert kinds_of(plan) == [
        ("ConfigMap shop/a", "Deleted"),
        ("ConfigMap shop/b", "Deleted"),
        ("certificates.cert-manager.io shop/c", "Deleted"),
    ]
    assert plan.notes == ["ignored 2 ConfigMap, 1 certificates (not relevant to scheduling)"]


def test_that_a_custom_resource_is_deleted_is_an_assumption() -> None:
    plan = plan_of([], deleted=["rollout.argoproj.io/api", "services.serving.knative.dev/web"])
    assert [each.subject for each in plan.assumptions] == [
        "rollout.argoproj.io shop/api",
        "services.serving.knative.dev shop/web",
    ]


def test_with_a_namespace_goes_all_that_is_in_it() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api", "uid": "u", "controller": True}
    replica_set = served(workload("ReplicaSet", "api-1"))
    replica_set["metadata"]["ownerReferences"] = [owner]
    plan = plan_of(
        [],
        *(make("Namespace", "shop", namespace=""), served(workload()), replica_set, budget(minAvailable=1)),
        *(pod("plain"), pod("owned", owner={**owner, "kind": "ReplicaSet"}), served(workload(namespace="other"))),
        deleted=["ns/shop"],
    )
    assert kinds_of(plan) == [
        ("Namespace shop", "Deleted"),
        ("Pod shop/plain", "Deleted"),
        ("Deployment shop/api", "Deleted"),
    ]
    assert [(each.deleted_with, each.pods) for each in plan.changes[1:]] == [
        ("Namespace shop", ["shop/plain"]),
        ("Namespace shop", []),
    ]
    assert (plan.cluster.namespaces, plan.cluster.pod_disruption_budgets) == ([], [])
    assert plan.deleted_pods == ["shop/plain"]
    assert [(each.kind, len(each.replica_sets)) for each in plan.workloads] == [("Deployment", 1)]


def test_jobs_of_a_cron_job_go_with_it() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "api", "uid": "u", "controller": True}
    job = served(workload("Job", "api-1"))
    job["metadata"]["ownerReferences"] = [owner]
    plan = plan_of([], served(workload("CronJob")), job, deleted=["cronjob/api"])
    assert kinds_of(plan) == [("CronJob shop/api", "Deleted"), ("Job shop/api-1", "Deleted")]
    assert [each.name for each in plan.workloads] == ["api-1"]


def test_documents_are_wanted_of_what_the_change_is_about() -> None:
    documents = [ManifestDocument(each) for each in (workload(namespace=""), make("ConfigMap", "c"))]
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api", "uid": "u", "controller": True}
    replica_set = served(workload("ReplicaSet", "api-1"))
    replica_set["metadata"]["ownerReferences"] = [owner]
    live = [
        *(served(workload()), served(workload(name="other")), served(workload(namespace="other"))),
        *(replica_set, served(workload("ReplicaSet", "api")), served(workload("StatefulSet", "gone"))),
    ]
    cluster = cluster_of(*live)

    def found(is_kept: KeepDocument) -> list[tuple[str, str, str]]:
        return [
            (kind.name, record.metadata.namespace, record.metadata.name)
            for kind in CLUSTER_KINDS.values()
            for record in getattr(cluster, kind.field)
            if is_kept(kind.name, record)
        ]

    assert found(NeededObjects(documents, "shop", ["sts/gone"]).is_needed) == [
        ("ReplicaSet", "shop", "api-1"),
        # No controller owns it, so that the Deployment may adopt it.
        ("ReplicaSet", "shop", "api"),
        ("StatefulSet", "shop", "gone"),
        ("Deployment", "shop", "api"),
    ]
    # A PriorityClass may be that of any template.
    assert len(found(NeededObjects([ManifestDocument(high())], "shop").is_needed)) == len(live)
    assert len(found(NeededObjects([], "shop", ["priorityclass/high"]).is_needed)) == len(live)
    for_all = [each for each in ALWAYS_RECORDED if each not in ("HorizontalPodAutoscaler", "ServiceAccount")]
    assert NeededObjects([ManifestDocument(high())], "shop").kinds == ["CronJob", *for_all]
    assert NeededObjects(documents, "shop").kinds == [*ALWAYS_RECORDED]
    assert NeededObjects([ManifestDocument(workload("CronJob"))], "shop").kinds == ["CronJob", *ALWAYS_RECORDED]
    assert NeededObjects([], "shop", ["cj/x"]).kinds == ["CronJob"]
    scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}}
    assert NeededObjects([ManifestDocument(scaler)], "shop").kinds == ["HorizontalPodAutoscaler", *for_all]


def deep(levels: int) -> Any:
    value: Any = "end"
    for _ in range(levels):
        value = {"x": [value]}
    return value


@pytest.mark.parametrize(
    ("path", "value", "reported"),
    [
        pytest.param("spec.replicas", "3", "cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32", id="a number as text"),
        pytest.param("spec.replicas", -1, "spec.replicas: Invalid value: -1: must be greater than or equal to 0", id="fewer than none"),
        pytest.param("spec.replicas", True, "cannot unmarshal bool into Go struct field DeploymentSpec.spec.replicas of type int32", id="a truth for a number"),
        pytest.param("spec.replicas", 2.5, "cannot unmarshal number 2.5 into Go struct field DeploymentSpec.spec.replicas of type int32", id="half a pod"),
        pytest.param("spec.replicas", 2**40, "cannot unmarshal number 1099511627776 into Go struct field", id="more than 32 bits"),
        pytest.param("spec.minReadySeconds", -5, "spec.minReadySeconds: Invalid value: -5: must be", id="time that goes back"),
        pytest.param("spec.paused", "yes", "cannot unmarshal string into Go struct field DeploymentSpec.spec.paused of type bool", id="a text for a truth"),
        pytest.param("spec.strategy", "Recreate", "cannot unmarshal string into Go struct field DeploymentSpec.spec.strategy of type", id="a text for a strategy"),
        pytest.param("spec.strategy.type", "OnDelete", 'spec.strategy.type: Unsupported value: "OnDelete"', id="a strategy of other kinds"),
        pytest.param("spec.strategy.rollingUpdate", [], "cannot unmarshal array into Go struct field DeploymentStrategy.spec.strategy.rollingUpdate of type", id="a list"),
        pytest.param("spec.strategy.rollingUpdate.maxSurge", "x%", 'spec.strategy.rollingUpdate.maxSurge: Invalid value: "x%": a valid percent', id="no percentage"),
        pytest.param("spec.strategy.rollingUpdate.maxSurge", "25", 'spec.strategy.rollingUpdate.maxSurge: Invalid value: "25": a valid percent', id="a percentage without its sign"),
        pytest.param("spec.strategy.rollingUpdate.maxUnavailable", "999999%", 'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "999999%": must not be greater than 100%', id="more than all"),
        pytest.param("spec.strategy.rollingUpdate.maxUnavailable", "9" * 5000 + "%", 'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "999', id="a percentage beyond all"),
        pytest.param("spec.template", None, "spec.template.spec.containers: Required value", id="no template"),
        pytest.param("spec.template.metadata.labels", [], "cannot unmarshal array into Go struct field ObjectMeta.spec.template.metadata.labels of type", id="labels as a list"),
        pytest.param("spec.template.spec.containers", {"a": 1}, "cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type", id="containers as a mapping"),
        pytest.param("spec.template.spec.containers", [7], "cannot unmarshal number into Go struct field PodSpec.spec.template.spec.containers[0] of type", id="a container that is a number"),
        pytest.param("spec.template.spec.containers.0.resources.requests.cpu", "much", "spec.template.spec.containers[0].resources.requests.cpu: quantities must match", id="no amount"),
        pytest.param("spec.template.spec.priority", "x", "cannot unmarshal string into Go struct field PodSpec.spec.template.spec.priority of type int32", id="a priority as text"),
        pytest.param("spec.template.spec.x", deep(40), "is nested too deeply", id="depths"),
        pytest.param("metadata.labels", {"a": 1}, "metadata.labels.a: expected a string", id="a label that is a number"),
        pytest.param("metadata.name", ["a"], "metadata.name: expected", id="a list for a name"),
        pytest.param("metadata.namespace", 5, "metadata.namespace: expected", id="a number for a namespace"),
        pytest.param("metadata", "x", "metadata: expected", id="a text for metadata"),
        pytest.param("metadata.name", ..., "metadata.name: is missing", id="no name"),
        pytest.param("kind", 5, "kind: expected", id="a number for a kind"),
        pytest.param("kind", ..., "kind: is missing", id="no kind"),
        pytest.param("apiVersion", ..., "apiVersion: is missing", id="no API version"),
        pytest.param("apiVersion", {}, "apiVersion: expected", id="a mapping for a version"),
        pytest.param("spec", "x", "cannot unmarshal string into Go struct field Deployment.spec of type", id="a text for a spec"),
        pytest.param("kind", deep(5000), "kind: expected", id="depths for a kind"),
        pytest.param("metadata.name", deep(5000), "is nested too deeply", id="depths for a name"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_there", [True, False], ids=["in the cluster", "new"])
def test_a_hostile_manifest_is_one_rejection_with_its_place(
    path: str, value: Any, reported: str, is_there: bool
) -> None:
    live = [served(workload())] if is_there else []
    plan = plan_of(changed(workload(), path, value), *live)
    assert [(each.kind, each.source, each.line) for each in plan.changes] == [(ChangeKind.REJECTED, "change.yaml", 1)]
    (reason,) = plan.rejections.values()
    assert reported in reason
    assert (plan.workloads, plan.cluster) == ([], cluster_of(*live))


@pytest.mark.parametrize(
    ("replicas", "new"), [(None, "1,000,000,000"), (1, "999,999,999")], ids=["new", "in the cluster"]
)
def test_too_many_pods_are_an_error_with_their_place(replicas: int | None, new: str) -> None:
    live = [served(workload(replicas=replicas))] if replicas else []
    with pytest.raises(InputError) as caught:
        plan_of(workload(replicas=10**9), *live)
    words = f"spec: the change creates more than 20,000 new pods ({new} so far)"
    assert caught.value.message == f"change.yaml:1: Deployment shop/api: {words}"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("spec.template.spec.containers", "x", id="containers as text"),
        pytest.param("spec.template.spec.containers", [{"name": {}}, 5], id="odd containers"),
        pytest.param("spec.template.spec.volumes", {"a": 1}, id="volumes as a mapping"),
        pytest.param("spec.template.metadata", [], id="metadata as a list"),
        pytest.param("spec.template.x", deep(400), id="depths"),
        pytest.param("spec.template", "x", id="a template as text"),
        pytest.param("spec", None, id="no spec"),
        pytest.param("metadata.annotations", 5, id="annotations as a number"),
    ],
)
def test_odd_documents_of_the_cluster_are_another_template(path: str, value: Any) -> None:
    live = served(workload())
    documents = [changed(live, path, value)]
    plan = _plan_with(workload(), live, documents)
    expected = ChangeKind.UNCHANGED if path == "metadata.annotations" else ChangeKind.ROLLED
    assert [each.kind for each in plan.changes] == [expected]


def _plan_with(manifest: Document, live: Document, documents: list[Document]) -> Any:
    from kpreempt.analysis.check.rollout.plan import plan_change
    from kpreempt.analysis.check.rollout.records import ApplyOptions
    from kpreempt.snapshot.decode import decode_object

    given = [ManifestDocument(manifest, "change.yaml", 1)]
    options = ApplyOptions(namespace="shop")
    manifests = options.prepared(given)
    return plan_change(cluster_of(live), manifests, LiveDocuments(documents), decode_object, options)


def test_pods_of_all_objects_count_together() -> None:
    half = MAX_NEW_PODS // 2
    assert len(plan_of([workload(replicas=half), workload(name="b", replicas=half)]).workloads) == 2
    with pytest.raises(
        InputError, match=r"change\.yaml:11: Deployment shop/b: spec: the change creates more than 20,000"
    ):
        plan_of([workload(replicas=half), workload(name="b", replicas=half + 1)])
