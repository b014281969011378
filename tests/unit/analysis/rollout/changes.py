"""Workloads as they are written and as the API server has them, for tests of changes."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from kpreempt.admission.defaults import with_defaults
from kpreempt.analysis.check.rollout.apply import LAST_APPLIED
from kpreempt.analysis.check.rollout.hooks import Applier
from kpreempt.analysis.check.rollout.plan import LiveDocuments, ManifestDocument, Plan, plan_change
from kpreempt.analysis.check.rollout.records import ApplyOptions
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.snapshot.decode import decode_object
from kpreempt.snapshot.load import cluster_from_json
from kpreempt.verdict import Assumption

Document = dict[str, Any]

API_VERSIONS = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}


def template(**container: Any) -> Document:
    """A pod template with one container."""
    main = {"name": "main", "image": "shop/api:1", "resources": {"requests": {"cpu": "1"}}, **container}
    return {"metadata": {"labels": {"app": "api"}}, "spec": {"containers": [main]}}


def workload(kind: str = "Deployment", name: str = "api", namespace: str = "shop", **spec: Any) -> Document:
    """A workload as users write it."""
    spec.setdefault("template", template())
    if kind in ("Job", "CronJob"):
        spec["template"] = changed(spec["template"], "spec.restartPolicy", "Never")
    else:
        labels = {"app": "api"}
        spec.setdefault("selector", labels if kind == "ReplicationController" else {"matchLabels": labels})
    if kind == "CronJob":
        spec = {"schedule": "@daily", "jobTemplate": {"spec": {"template": spec.pop("template")}}, **spec}
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": API_VERSIONS[kind], "kind": kind, "metadata": metadata, "spec": spec}


def served(document: Document, *, applied: bool = False) -> Document:
    """A workload as the API server has it; ``applied`` with what ``kubectl apply`` notes on it."""
    live = with_defaults(document)
    live["metadata"]["uid"] = f"uid-{live['metadata']['name']}"
    if applied:
        live["metadata"].setdefault("annotations", {})[LAST_APPLIED] = json.dumps(document)
    return live


def changed(document: Document, path: str, value: Any) -> Document:
    """A copy with another value at a path such as ``spec.template.spec.containers.0.image``; ``...`` takes it away."""
    result = copy.deepcopy(document)
    place: Any = result
    *parents, last = path.split(".")
    for part in parents:
        place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
    if value is ...:
        del place[last]
    else:
        place[int(last) if isinstance(place, list) else last] = value
    return result


def cluster_of(*objects: Document) -> ClusterSnapshot:
    """The cluster that has the objects."""
    return cluster_from_json([json.dumps(each).encode() for each in objects], "cluster")


def assumed(plan: Plan) -> list[Assumption]:
    """The assumptions of a plan without the note about resources that nothing validates."""
    return [each for each in plan.assumptions if each.subject != "custom resources"]


def plan_of(
    manifests: Document | Sequence[Document],
    *live: Document,
    namespace: str = "shop",
    deleted: Sequence[str] = (),
    has_documents: bool = True,
    creates_namespaces: bool = False,
    applied_by: Applier | None = None,
    minor: int | None = None,
) -> Plan:
    """What manifests do to a cluster of ``live`` objects; without documents only the records of it are known."""
    given = [manifests] if isinstance(manifests, dict) else manifests
    documents = [ManifestDocument(document, "change.yaml", 10 * index + 1) for index, document in enumerate(given)]
    options = ApplyOptions(
        namespace=namespace, creates_namespaces=creates_namespaces, applied_by=applied_by, minor=minor
    )
    return plan_change(
        cluster_of(*live),
        options.prepared(documents),
        LiveDocuments(live if has_documents else ()),
        decode_object,
        options,
        deleted=deleted,
    )
