"""Changes to the sets: everyday harmless ones, and harmful ones with the rule that catches each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, NamedTuple

from tests.gate.sets import Object, documents_of

_Change = Callable[[list[Object]], None]
_WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet")


def _template(document: Object) -> Object | None:
    """The pod template of a workload or a CronJob."""
    if document["kind"] == "CronJob":
        return document["spec"]["jobTemplate"]["spec"]["template"]
    return document["spec"]["template"] if document["kind"] in _WORKLOADS else None


def _image(documents: list[Object]) -> None:
    for template in filter(None, map(_template, documents)):
        for container in template["spec"]["containers"]:
            container["image"] = container["image"].partition("@")[0].rpartition(":")[0] + ":v99.0.1"


def _one_image(documents: list[Object]) -> None:
    _image([next(each for each in documents if each["kind"] in _WORKLOADS)])


def _restart(documents: list[Object]) -> None:
    for document in documents:
        if document["kind"] in _WORKLOADS:
            metadata = document["spec"]["template"].setdefault("metadata", {})
            annotations = metadata.setdefault("annotations", {})
            annotations["kubectl.kubernetes.io/restartedAt"] = "2026-11-21T08:00:00Z"


def _env(documents: list[Object]) -> None:
    for template in filter(None, map(_template, documents)):
        container = template["spec"]["containers"][0]
        container["env"] = [*container.get("env", []), {"name": "LOG_LEVEL", "value": "info"}]


def _scale(documents: list[Object]) -> None:
    """One more replica of the first one with capacity for it; workloads tied to a full pool have none."""
    for document in documents:
        if document["kind"] in ("Deployment", "StatefulSet") and document["metadata"]["name"] != "model":
            document["spec"]["replicas"] = document["spec"].get("replicas", 1) + 1
            return


def _nothing(documents: list[Object]) -> None:
    pass


HARMLESS: dict[str, _Change] = {
    "unchanged": _nothing,
    "images": _image,
    "one image": _one_image,
    "restart": _restart,
    "environment": _env,
    "scale": _scale,
}


class Harmful(NamedTuple):
    """A change that a gate must stop, and the rule that does so.

    With ``prunes`` the installed set is the base, and objects that only it has are deleted; ``options`` are more
    options of ``check``.
    """

    name: str
    set_name: str
    change: _Change
    rule: str
    prunes: bool = False
    options: tuple[str, ...] = ()


def _find(documents: Iterable[Object], kind: str, name: str) -> Object:
    return next(each for each in documents if each["kind"] == kind and each["metadata"]["name"] == name)


def _merged(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged


def _spec(kind: str, name: str, patch: Object) -> _Change:
    """Merge into an object's spec."""

    def change(documents: list[Object]) -> None:
        document = _find(documents, kind, name)
        document["spec"] = _merged(document["spec"], patch)

    return change


def _pod(kind: str, name: str, patch: Object) -> _Change:
    """Merge into the spec of a workload's pods."""
    return _spec(kind, name, {"template": {"spec": patch}})


def _requests(kind: str, name: str, requests: Object, **more: Any) -> _Change:
    """Set the first container's requests, and fields of the workload's spec."""

    def change(documents: list[Object]) -> None:
        document = _find(documents, kind, name)
        document["spec"] = _merged(document["spec"], more)
        document["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": requests}

    return change


def _both(first: _Change, second: _Change) -> _Change:
    def change(documents: list[Object]) -> None:
        first(documents)
        second(documents)

    return change


def _old_budget(documents: list[Object]) -> None:
    _find(documents, "PodDisruptionBudget", "broker")["apiVersion"] = "policy/v1beta1"


def _without_namespace(documents: list[Object]) -> None:
    for document in documents:
        if document["metadata"].get("namespace") == "batch":
            document["metadata"]["namespace"] = "batch-two"
    documents[:] = [each for each in documents if each["kind"] != "Namespace"]


def _claim_of_no_class(documents: list[Object]) -> None:
    claim = _find(documents, "PersistentVolumeClaim", "backup")
    claim["metadata"]["name"] = "backup-two"
    claim["spec"]["storageClassName"] = "nowhere"
    job = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "browser", "namespace": "database"},
        "spec": {
            "selector": {"matchLabels": {"app": "browser"}},
            "template": {
                "metadata": {"labels": {"app": "browser"}},
                "spec": {
                    "containers": [{"name": "browser", "image": "example.com/tools/browser:1"}],
                    "volumes": [{"name": "backup", "persistentVolumeClaim": {"claimName": "backup-two"}}],
                },
            },
        },
    }
    documents.append(job)


def _bigger_volumes(documents: list[Object]) -> None:
    template = _find(documents, "StatefulSet", "broker")["spec"]["volumeClaimTemplates"][0]
    template["spec"]["resources"]["requests"]["storage"] = "200Gi"


def _greedy_agents(documents: list[Object]) -> None:
    """High-priority pods on each node, for which others are evicted."""
    _find(documents, "DaemonSet", "agent")["spec"]["template"]["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "3"}
    }


def _taken_port(documents: list[Object]) -> None:
    container = _find(documents, "Deployment", "csi-controller")["spec"]["template"]["spec"]["containers"][0]
    container["ports"] = [{"containerPort": 9100, "hostPort": 9100}]


def _without(*names: tuple[str, str]) -> _Change:
    """Remove these objects, each by its kind and name."""

    def change(documents: list[Object]) -> None:
        deleted = [_find(documents, kind, name) for kind, name in names]
        documents[:] = [each for each in documents if each not in deleted]

    return change


def _pdb(name: str, selector: Object, **spec: Any) -> _Change:
    """Add a PDB."""

    def change(documents: list[Object]) -> None:
        namespace = _find(documents, "Deployment", selector["matchLabels"]["app"])["metadata"].get("namespace")
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata}
        documents.append({**budget, "spec": {"selector": selector, **spec}})

    return change


def _more(*documents: Object) -> _Change:
    """Add objects."""

    def change(there: list[Object]) -> None:
        there += deepcopy(documents)

    return change


def _nothing_left(documents: list[Object]) -> None:
    documents.clear()


def _workload(
    kind: str, namespace: str, app: str, *, cpu: str = "100m", spec: Object | None = None, **pod: Any
) -> Object:
    """A workload with these fields in its spec and in that of its pods."""
    container = {"name": "main", "image": "example.com/tools/main:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": app, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": app}},
            "template": {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container], **pod}},
            **(spec or {}),
        },
    }


def _lone_pod(namespace: str, name: str, *, app: str = "", annotations: Object | None = None, **spec: Any) -> Object:
    """A pod without a workload."""
    metadata = {"name": name, "namespace": namespace, "labels": {"app": app or name}, "annotations": annotations or {}}
    container = {"name": "main", "image": "example.com/tools/main:1", "resources": {"requests": {"cpu": "100m"}}}
    spec = {"containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _machine(name: str) -> Object:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _forged_budget(documents: list[Object]) -> None:
    """A PDB that sets its own number of allowed disruptions."""
    _find(documents, "PodDisruptionBudget", "frontend")["status"] = {
        "disruptionsAllowed": 100,
        "currentHealthy": 100,
        "desiredHealthy": 1,
        "expectedPods": 100,
        "observedGeneration": 1,
    }


_BACKUP = {"volumes": [{"name": "backup", "persistentVolumeClaim": {"claimName": "backup"}}]}
_APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "browser"}}}
        ]
    }
}
_PUSHY = _requests(
    "Deployment", "checkout", {"cpu": "3"}, replicas=8, template={"spec": {"priorityClassName": "business"}}
)
_WITHOUT_APP = {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}


def _relabeled_pod(documents: list[Object]) -> None:
    """The first pod of the StatefulSet, with another label."""
    template = _find(documents, "StatefulSet", "broker")["spec"]["template"]
    metadata = {"name": "broker-0", "namespace": "broker", "labels": {"app": "broker-old"}}
    documents.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})


def _default_class(documents: list[Object]) -> None:
    metadata = {"name": "everything"}
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    documents.append({**kind, "metadata": metadata, "value": 100_000, "globalDefault": True})


def _without_maximum(documents: list[Object]) -> None:
    for item in _find(documents, "LimitRange", "batch")["spec"]["limits"]:
        item.pop("max", None)


def _privileged(documents: list[Object]) -> None:
    labels = _find(documents, "Namespace", "edge")["metadata"].setdefault("labels", {})
    labels["pod-security.kubernetes.io/enforce"] = "privileged"


def _annotated(kind: str, name: str, **annotations: str) -> _Change:
    """Add annotations to an object."""

    def change(documents: list[Object]) -> None:
        metadata = _find(documents, kind, name)["metadata"]
        metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}

    return change


def _before_itself(kind: str, name: str, first: _Change) -> _Change:
    """Make the change to a copy of an object that comes before it."""

    def change(documents: list[Object]) -> None:
        document = _find(documents, kind, name)
        copied = [deepcopy(document)]
        first(copied)
        documents.insert(documents.index(document), copied[0])

    return change


HARMFUL = (
    Harmful("no node is as big", "shop", _requests("Deployment", "frontend", {"cpu": "40"}), "require-schedulable"),
    Harmful(
        "no node has the label",
        "watch",
        _pod("Deployment", "operator", {"nodeSelector": {"disk": "nvme"}}),
        "require-schedulable",
    ),
    Harmful("more replicas than fit", "shop", _spec("Deployment", "cart", {"replicas": 400}), "require-schedulable"),
    Harmful(
        "all pods go before one comes",
        "edge",
        _both(
            _image, _spec("Deployment", "edge-controller", {"strategy": {"type": "Recreate", "rollingUpdate": None}})
        ),
        "min-ready",
    ),
    Harmful("no replicas", "gitops", _spec("Deployment", "server", {"replicas": 0}), "scaled-to-zero"),
    Harmful(
        "another selector",
        "scaler",
        _spec(
            "Deployment",
            "metrics",
            {"selector": {"matchLabels": {"app": "metrics"}}, "template": {"metadata": {"labels": {"app": "metrics"}}}},
        ),
        "apply-rejected",
    ),
    Harmful("bigger volumes of a StatefulSet", "broker", _bigger_volumes, "apply-rejected"),
    Harmful(
        "a budget that allows nothing",
        "broker",
        _spec("PodDisruptionBudget", "broker", {"maxUnavailable": 0}),
        "pdb-blocks-drain",
    ),
    Harmful("an API that is gone", "broker", _old_budget, "removed-api"),
    Harmful(
        "one more on a full pool",
        "accelerators",
        _both(
            _image, _spec("Deployment", "model", {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}})
        ),
        "require-schedulable",
    ),
    Harmful("more than the quota", "batch", _spec("Deployment", "runner", {"replicas": 40}), "quota-rejections"),
    Harmful(
        "a misspelled field",
        "watch",
        _pod("Deployment", "operator", {"tolerance": [{"operator": "Exists"}]}),
        "apply-rejected",
    ),
    Harmful("a misspelled resource", "shop", _requests("Deployment", "frontend", {"memroy": "64Mi"}), "apply-rejected"),
    Harmful(
        "a misspelled field of a budget",
        "broker",
        _spec("PodDisruptionBudget", "broker", {"unhealthyPodEvictPolicy": "AlwaysAllow"}),
        "apply-rejected",
    ),
    Harmful("a namespace that nobody makes", "batch", _without_namespace, "apply-rejected"),
    Harmful(
        "a priority class that nobody makes",
        "scaler",
        _pod("Deployment", "metrics", {"priorityClassName": "important"}),
        "apply-rejected",
    ),
    Harmful("a claim of no class", "database", _claim_of_no_class, "require-schedulable"),
    Harmful("agents for which others go", "watch", _greedy_agents, "lost-pods"),
    Harmful(
        "a port of the node's that is taken",
        "storage",
        _taken_port,
        "require-schedulable",
    ),
    Harmful("replicas that push others over their budget", "shop", _PUSHY, "max-pdb-violations"),
    Harmful(
        "pods on a node that is not there",
        "shop",
        _pod("Deployment", "cart", {"nodeName": "worker-99"}),
        "bypasses-scheduler",
    ),
    Harmful(
        "a render without two workloads",
        "gitops",
        _without(("Deployment", "server"), ("StatefulSet", "controller")),
        "max-deletions",
        prunes=True,
    ),
    Harmful("an empty render", "shop", _nothing_left, "service-outage", prunes=True),
    Harmful(
        "a render without its namespace", "watch", _without(("Namespace", "watch")), "namespace-deletion", prunes=True
    ),
    Harmful("a namespace deleted by name", "scaler", _nothing, "max-deletions", options=("--delete", "ns/gitops")),
    Harmful(
        "a render without a claim",
        "database",
        _without(("PersistentVolumeClaim", "backup")),
        "volume-deletion",
        prunes=True,
    ),
    Harmful("a render without a CronJob", "batch", _without(("CronJob", "cleanup")), "max-deletions", prunes=True),
    Harmful(
        "a render without a Service", "broker", _without(("Service", "broker-headless")), "service-outage", prunes=True
    ),
    Harmful(
        "the last pods of a Service deleted by name",
        "scaler",
        _nothing,
        "service-outage",
        options=("--delete", "deploy/shop/payment"),
    ),
    Harmful(
        "a mistyped selector", "shop", _spec("Service", "catalog", {"selector": {"app": "catalogue"}}), "service-outage"
    ),
    Harmful(
        "a Service without its selector",
        "edge",
        _spec("Service", "edge-controller", {"selector": None}),
        "service-outage",
    ),
    Harmful(
        "one pod of no Service scaled to zero",
        "scaler",
        _spec("Deployment", "metrics", {"replicas": 0}),
        "scaled-to-zero",
    ),
    Harmful(
        "a StatefulSet scaled to zero", "broker", _spec("StatefulSet", "broker", {"replicas": 0}), "scaled-to-zero"
    ),
    Harmful(
        "a DaemonSet that matches no node",
        "watch",
        _pod("DaemonSet", "agent", {"nodeSelector": {"disk": "nvme"}}),
        "scaled-to-zero",
    ),
    Harmful("a suspended CronJob", "database", _spec("CronJob", "backup", {"suspend": True}), "scaled-to-zero"),
    Harmful(
        "claims retired with their pods",
        "broker",
        _spec(
            "StatefulSet",
            "broker",
            {"replicas": 2, "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Retain"}},
        ),
        "volume-deletion",
    ),
    Harmful(
        "pods on a node without room",
        "shop",
        _both(_pod("Deployment", "cart", {"nodeName": "small-0"}), _requests("Deployment", "cart", {"cpu": "1500m"})),
        "bypasses-scheduler",
    ),
    Harmful(
        "agents on one node",
        "watch",
        _both(_greedy_agents, _pod("DaemonSet", "agent", {"nodeName": "small-0"})),
        "bypasses-scheduler",
    ),
    Harmful(
        "a critical pod for which a kubelet evicts others",
        "shop",
        _more(
            _workload(
                "Deployment", "shop", "urgent", cpu="7", nodeName="worker-2", priorityClassName="system-node-critical"
            )
        ),
        "bypasses-scheduler",
    ),
    Harmful(
        "a mirror pod of no static pod",
        "shop",
        _more(_lone_pod("shop", "mirror", annotations={"kubernetes.io/config.mirror": "x"}, nodeName="worker-2")),
        "bypasses-scheduler",
    ),
    Harmful(
        "a selector that takes over a pod and deletes it",
        "watch",
        _more(
            _merged(
                _workload("ReplicaSet", "billing", "notebooks", spec={"replicas": 0, "selector": _WITHOUT_APP}),
                {"spec": {"template": {"metadata": {"labels": {"app": None, "team": "data"}}}}},
            )
        ),
        "adopted-pods",
    ),
    Harmful(
        "a pod that a DaemonSet takes over", "watch", _more(_lone_pod("watch", "debug", app="agent")), "adopted-pods"
    ),
    Harmful(
        "pods on a node that only a manifest makes",
        "shop",
        _both(_more(_machine("worker-10")), _requests("Deployment", "frontend", {"cpu": "40"})),
        "require-schedulable",
    ),
    Harmful("a node that only a manifest makes", "shop", _more(_machine("worker-10")), "created-nodes"),
    Harmful(
        "replicas on several nodes with a volume for one",
        "database",
        _more(_workload("Deployment", "database", "browser", spec={"replicas": 2}, affinity=_APART, **_BACKUP)),
        "volume-attached-elsewhere",
    ),
    Harmful("a budget that says itself what it allows", "shop", _both(_PUSHY, _forged_budget), "max-pdb-violations"),
    Harmful(
        "a PDB that allows more",
        "broker",
        _spec("PodDisruptionBudget", "broker", {"maxUnavailable": 2}),
        "pdb-weakened",
    ),
    Harmful(
        "a PDB that keeps a share",
        "shop",
        _spec("PodDisruptionBudget", "frontend", {"minAvailable": "20%"}),
        "pdb-weakened",
    ),
    Harmful(
        "a PDB that lets unready pods go",
        "database",
        _spec("PodDisruptionBudget", "database", {"unhealthyPodEvictionPolicy": "AlwaysAllow"}),
        "pdb-weakened",
    ),
    Harmful(
        "a PDB for other pods",
        "watch",
        _spec("PodDisruptionBudget", "store", {"selector": {"matchLabels": {"app": "shop"}}}),
        "pdb-weakened",
    ),
    Harmful(
        "a PDB with a mistyped selector",
        "shop",
        _pdb("cart", {"matchLabels": {"app": "cart", "tier": "web"}}, maxUnavailable=1),
        "pdb-selector",
    ),
    Harmful(
        "a PDB with an empty selector",
        "edge",
        _spec("PodDisruptionBudget", "edge-controller", {"selector": {"matchLabels": None}}),
        "pdb-selector",
    ),
    Harmful(
        "a second PDB on the same pods",
        "shop",
        _pdb("frontend-two", {"matchLabels": {"app": "frontend"}}, maxUnavailable=1),
        "pdb-blocks-drain",
    ),
    Harmful(
        "a PDB that wants the minimum of the autoscaler",
        "shop",
        _pdb("catalog", {"matchLabels": {"app": "catalog"}}, minAvailable=2),
        "pdb-blocks-drain",
    ),
    Harmful(
        "as few replicas as the PDB wants", "shop", _spec("Deployment", "frontend", {"replicas": 2}), "pdb-blocks-drain"
    ),
    Harmful("a pod relabeled out of its PDB", "broker", _relabeled_pod, "pdb-weakened"),
    Harmful(
        "a lower priority",
        "storage",
        _pod("Deployment", "csi-controller", {"priorityClassName": "business"}),
        "priority-lowered",
    ),
    Harmful(
        "no priority class",
        "storage",
        _pod("Deployment", "csi-controller", {"priorityClassName": None}),
        "priority-lowered",
    ),
    Harmful("a default priority class above others", "shop", _default_class, "default-priority-changed"),
    Harmful(
        "a quota that allows more",
        "batch",
        _spec("ResourceQuota", "batch", {"hard": {"pods": "200"}}),
        "quota-loosened",
    ),
    Harmful(
        "a quota without a limit", "batch", _spec("ResourceQuota", "batch", {"hard": {"pods": None}}), "quota-loosened"
    ),
    Harmful("a range without a maximum", "batch", _without_maximum, "quota-loosened"),
    Harmful("a namespace without Pod Security", "edge", _privileged, "namespace-relabeled"),
    Harmful(
        "replicas that push others over their budget as a test of Helm",
        "shop",
        _both(_PUSHY, _annotated("Deployment", "checkout", **{"helm.sh/hook": "test"})),
        "max-pdb-violations",
    ),
    Harmful(
        "no replicas as what Argo CD skips",
        "gitops",
        _both(
            _spec("Deployment", "server", {"replicas": 0}),
            _annotated("Deployment", "server", **{"argocd.argoproj.io/hook": "Skip"}),
        ),
        "scaled-to-zero",
    ),
    Harmful(
        "agents for which others go in a late wave",
        "watch",
        _both(_greedy_agents, _annotated("DaemonSet", "agent", **{"argocd.argoproj.io/sync-wave": "9"})),
        "lost-pods",
    ),
    Harmful(
        "a first document that pushes others over their budget",
        "shop",
        _before_itself("Deployment", "checkout", _PUSHY),
        "duplicate-objects",
    ),
    Harmful(
        "a first document of a budget that allows nothing",
        "broker",
        _before_itself("PodDisruptionBudget", "broker", _spec("PodDisruptionBudget", "broker", {"maxUnavailable": 0})),
        "duplicate-objects",
    ),
    Harmful(
        "a quota below what runs",
        "batch",
        _spec("ResourceQuota", "batch", {"hard": {"pods": "1"}}),
        "quota-rejections",
    ),
)


def changed(set_name: str, change: _Change) -> list[Object]:
    """The set's objects after the change."""
    documents = documents_of(set_name)
    change(documents)
    return documents
