"""What the API server refuses of a workload, on plain data.

Only what controllers read, and what whoever writes manifests gets wrong: an apply that is refused changes nothing, and
a simulation of it would mislead. Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/apps/validation/validation.go``.
"""

from __future__ import annotations

import re
from typing import Any

from kpreempt.admission.defaults import workload_with_defaults
from kpreempt.analysis.document_reader import Document, DocumentReader
from kpreempt.controllers.stateful_set import MAX_ORDINAL

# The field that says how the pods of a kind are replaced, and the types that it may have.
STRATEGY_FIELDS = {"Deployment": "strategy", "StatefulSet": "updateStrategy", "DaemonSet": "updateStrategy"}
_STRATEGY_TYPES = {
    "Deployment": ("RollingUpdate", "Recreate"),
    "StatefulSet": ("RollingUpdate", "OnDelete"),
    "DaemonSet": ("RollingUpdate", "OnDelete"),
}
# The field that says how many pods there are.
SIZE_FIELDS = {
    "Deployment": "replicas",
    "StatefulSet": "replicas",
    "ReplicaSet": "replicas",
    "ReplicationController": "replicas",
    "Job": "parallelism",
}
_PERCENTAGE = re.compile(r"[0-9]{1,9}%")
_INT32 = 2**31 - 1
_COUNTS = (
    *("minReadySeconds", "replicas", "parallelism", "completions", "backoffLimit", "backoffLimitPerIndex"),
    *("maxFailedIndexes", "activeDeadlineSeconds", "progressDeadlineSeconds", "revisionHistoryLimit"),
)

_WITH_SELECTOR = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")


def check_workload(kind: str, spec: Document, reader: DocumentReader, path: str = "spec") -> None:
    """Raise ``InputError`` for what controllers could not read in the spec of a workload of that kind.

    ``path`` is where the spec is within the object that ``reader`` is for.
    """
    for key in _COUNTS:
        count = reader.int32(spec, key, path)
        if count is not None and count < 0:
            raise reader.error("expected a number that is not negative", f"{path}.{key}")
    for key in ("paused", "suspend"):
        if not isinstance(spec.get(key), (bool, type(None))):
            raise reader.error("expected true or false", f"{path}.{key}")
    if kind in STRATEGY_FIELDS:
        _check_strategy(kind, spec, reader, path)
    if kind == "StatefulSet":
        _check_one_of(spec, "podManagementPolicy", ("OrderedReady", "Parallel"), reader, path)
        ordinals = reader.mapping(spec, "ordinals", path)
        start = reader.int32(ordinals, "start", f"{path}.ordinals") or 0
        if start < 0:
            raise reader.error("expected a number that is not negative", f"{path}.ordinals.start")
        replicas = spec.get("replicas")
        if start + (1 if replicas is None else replicas) - 1 > MAX_ORDINAL:
            # The controller takes a pod with a higher one for none of its own, and never gets there.
            raise reader.error(f"leads to an ordinal above {MAX_ORDINAL}", f"{path}.ordinals.start")
    if kind == "Job":
        _check_one_of(spec, "completionMode", ("NonIndexed", "Indexed"), reader, path)
        _check_one_of(spec, "podReplacementPolicy", ("TerminatingOrFailed", "Failed"), reader, path)


def _check_strategy(kind: str, spec: Document, reader: DocumentReader, path: str) -> None:
    field = STRATEGY_FIELDS[kind]
    strategy = reader.mapping(spec, field, path)
    path = f"{path}.{field}"
    _check_one_of(strategy, "type", _STRATEGY_TYPES[kind], reader, path)
    rolling = reader.mapping(strategy, "rollingUpdate", path)
    path = f"{path}.rollingUpdate"
    for key in ("maxUnavailable", "maxSurge"):
        value = rolling.get(key)
        if value is not None and not _is_amount(value):
            raise reader.error("expected a number of pods or a percentage", f"{path}.{key}")
        if key == "maxUnavailable" and isinstance(value, str) and int(value[:-1]) > 100:
            raise reader.error("is more than 100%", f"{path}.{key}")
    if (reader.int32(rolling, "partition", path) or 0) < 0:
        raise reader.error("expected a number that is not negative", f"{path}.partition")


def _is_amount(value: Any) -> bool:
    if isinstance(value, str):
        return _PERCENTAGE.fullmatch(value) is not None
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _INT32


def _check_one_of(parent: Document, key: str, allowed: tuple[str, ...], reader: DocumentReader, path: str) -> None:
    value = reader.text(parent, key, path)
    if value and value not in allowed:
        raise reader.error(f"is not one of {', '.join(allowed)}", f"{path}.{key}")


def refuse_workload(document: Document, reader: DocumentReader) -> None:
    """Raise ``InputError`` for a workload that the API server refuses, whose fields are of the right types."""
    kind, spec = document["kind"], reader.mapping(document, "spec")
    if kind == "CronJob":
        holder = reader.mapping(reader.mapping(spec, "jobTemplate", "spec"), "spec", "spec.jobTemplate")
        _refuse_template(holder, reader, "spec.jobTemplate.spec")
        return
    _refuse_template(spec, reader, "spec")
    if kind in _WITH_SELECTOR:
        # A selector of labels that the template does not have; expressions are left to the API server.
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
    if kind in ("Deployment", "DaemonSet"):
        _refuse_strategy(kind, workload_with_defaults(document)["spec"], reader)


def _refuse_template(spec: Document, reader: DocumentReader, path: str) -> None:
    pod = reader.mapping(reader.mapping(spec, "template", path), "spec", f"{path}.template")
    path = f"{path}.template.spec"
    if not reader.mappings(pod, "containers", path):
        raise reader.error("has no container", f"{path}.containers")


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
