"""What the API server refuses of a workload's template, its selector and its strategy, on plain data.

Only what whoever writes manifests gets wrong: an apply that is refused changes nothing, and a play of it would mislead.
Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/apps/validation/validation.go``.
"""

from __future__ import annotations

from kpreempt.analysis.document_reader import Document, DocumentReader
from kpreempt.analysis.rollout.workload_defaults import workload_with_defaults

_WITH_SELECTOR = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")


def refuse_workload(document: Document, reader: DocumentReader) -> None:
    """Raise ``InputError`` for a workload that the API server refuses, whose fields are of the right types."""
    kind, spec = document["kind"], reader.mapping(document, "spec")
    if kind == "CronJob":
        holder = reader.mapping(reader.mapping(spec, "jobTemplate", "spec"), "spec", "spec.jobTemplate")
        _refuse_template(holder, reader, "spec.jobTemplate.spec")
        return
    _refuse_template(spec, reader, "spec")
    if kind in _WITH_SELECTOR:
        _refuse_selector(spec, reader)
    if kind in ("Deployment", "DaemonSet"):
        _refuse_strategy(kind, workload_with_defaults(document)["spec"], reader)


def _refuse_template(spec: Document, reader: DocumentReader, path: str) -> None:
    pod = reader.mapping(reader.mapping(spec, "template", path), "spec", f"{path}.template")
    path = f"{path}.template.spec"
    if not reader.mappings(pod, "containers", path):
        raise reader.error("has no container", f"{path}.containers")


def _refuse_selector(spec: Document, reader: DocumentReader) -> None:
    """A selector of labels that the template does not have; expressions are left to the API server."""
    selector = reader.mapping(spec, "selector", "spec")
    wanted = reader.texts(selector, "matchLabels", "spec.selector")
    if not wanted and not reader.mappings(selector, "matchExpressions", "spec.selector"):
        raise reader.error("is missing", "spec.selector")
    metadata = reader.mapping(reader.mapping(spec, "template", "spec"), "metadata", "spec.template")
    labels = reader.texts(metadata, "labels", "spec.template.metadata")
    for key, value in wanted.items():
        if labels.get(key) != value:
            has = f"has {key}={labels[key]}" if key in labels else f"has no label {key}"
            raise reader.error(f"asks for {key}={value}, and the template {has}", "spec.selector.matchLabels")


def _refuse_strategy(kind: str, spec: Document, reader: DocumentReader) -> None:
    """``spec`` has its defaults."""
    field = "strategy" if kind == "Deployment" else "updateStrategy"
    if kind == "Deployment" and (spec.get("minReadySeconds") or 0) >= spec["progressDeadlineSeconds"]:
        raise reader.error("has to be more than minReadySeconds", "spec.progressDeadlineSeconds")
    rolling = reader.mapping(reader.mapping(spec, field, "spec"), "rollingUpdate", f"spec.{field}")
    if not rolling:
        return
    path = f"spec.{field}.rollingUpdate"
    surges, gives_up = (_is_positive(rolling.get(key)) for key in ("maxSurge", "maxUnavailable"))
    if not surges and not gives_up:
        raise reader.error("cannot be 0 where maxSurge is 0", f"{path}.maxUnavailable")
    if kind == "DaemonSet" and surges and gives_up:
        raise reader.error("cannot be set where maxUnavailable is not 0, which is 1 by default", f"{path}.maxSurge")


def _is_positive(amount: object) -> bool:
    return amount not in (None, 0) and not (isinstance(amount, str) and int(amount.rstrip("%")) == 0)
