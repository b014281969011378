"""Validate Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/apps/validation/validation.go``, ``pkg/apis/core/validation/
validation.go`` (``ValidateReplicationController``) and the strategies in ``pkg/registry/apps``. The API server sets
statuses and generations itself, so they are not validated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kpreempt.admission.validation.claims import check_claim_spec
from kpreempt.admission.validation.metadata import (
    IMMUTABLE,
    check_annotations,
    check_labels,
    check_metadata,
    check_metadata_update,
)
from kpreempt.admission.validation.pod_annotations import check_pod_annotations
from kpreempt.admission.validation.pods import check_template
from kpreempt.admission.validation.problems import (
    Document,
    Problem,
    Problems,
    Server,
    forbidden,
    invalid,
    required,
    unsupported,
)
from kpreempt.admission.validation.selectors import (
    check_selected,
    check_selector_form,
    is_empty,
    is_same,
)
from kpreempt.admission.validation.values import dns_label, dns_subdomain, int_or_percent, percentage_of
from kpreempt.model.documents import Path, mapping_in

SPEC: Path = ("spec",)
TEMPLATE: Path = (*SPEC, "template")
_ALWAYS = "Always"
_ALL = 100
_ROLLING = "RollingUpdate"
_ON_DELETE = "OnDelete"
_RECREATE = "Recreate"
_POD_MANAGEMENT = ("OrderedReady", "Parallel")
_RETENTION = ("Delete", "Retain")
_RETENTION_FIELD = "persistentVolumeClaimRetentionPolicy"
# What the API server calls the workload of an empty selector.
_NAMES = {
    "Deployment": "deployment",
    "ReplicaSet": "deployment",
    "StatefulSet": "statefulset",
    "DaemonSet": "daemonset",
}
_MUTABLE_OF_STATEFUL_SETS = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    _RETENTION_FIELD,
    "minReadySeconds",
)


def check_non_negative(part: Document, fields: Sequence[str], path: Path) -> Problems:
    """Validate numbers that may not be negative."""
    for field in fields:
        value = part.get(field)
        if value is not None and value < 0:
            yield invalid((*path, field), value, "must be greater than or equal to 0")


def check_deployment(document: Document, old: Document | None, server: Server) -> Problems:
    """Validate a Deployment; its selector never changes."""
    yield from _common(document, old, server)
    spec = mapping_in(document, "spec")
    yield from check_non_negative(spec, ("replicas", "minReadySeconds", "revisionHistoryLimit"), SPEC)
    yield from _deployment_strategy(mapping_in(spec, "strategy"), (*SPEC, "strategy"))
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        yield from check_non_negative(spec, ("progressDeadlineSeconds",), SPEC)
        if deadline <= spec.get("minReadySeconds", 0):
            yield invalid((*SPEC, "progressDeadlineSeconds"), deadline, "must be greater than minReadySeconds")


def check_replica_set(document: Document, old: Document | None, server: Server) -> Problems:
    """Validate a ReplicaSet; its selector never changes."""
    yield from _common(document, old, server)
    yield from check_non_negative(mapping_in(document, "spec"), ("replicas", "minReadySeconds"), SPEC)


def check_daemon_set(document: Document, old: Document | None, server: Server) -> Problems:
    """Validate a DaemonSet; its selector never changes."""
    yield from _common(document, old, server)
    spec = mapping_in(document, "spec")
    yield from check_non_negative(spec, ("minReadySeconds", "revisionHistoryLimit"), SPEC)
    strategy, path = mapping_in(spec, "updateStrategy"), (*SPEC, "updateStrategy")
    kind = strategy.get("type") or _ROLLING
    if kind == _ROLLING:
        yield from _rolling_daemons(mapping_in(strategy, "rollingUpdate"), (*path, "rollingUpdate"))
    elif kind != _ON_DELETE:
        yield unsupported((*path, "type"), kind, (_ON_DELETE, _ROLLING))


def check_replication_controller(document: Document, old: Document | None, server: Server) -> Problems:
    """Validate a ReplicationController. By default it selects the labels of its template."""
    metadata = mapping_in(document, "metadata")
    if server.minor >= 35 and metadata.get("name"):
        # A prefix that is not used may have any form.
        metadata = {key: value for key, value in metadata.items() if key != "generateName"}
    yield from _metadata({**document, "metadata": metadata}, old)
    spec = mapping_in(document, "spec")
    yield from check_non_negative(spec, ("replicas", "minReadySeconds"), SPEC)
    template = mapping_in(spec, "template")
    labels = mapping_in(template, "metadata", "labels")
    selector = spec.get("selector") or labels
    if not selector:
        yield required((*SPEC, "selector"))
    if spec.get("template") is None:
        yield required(TEMPLATE)
        return
    if not selector.items() <= labels.items():
        yield invalid((*TEMPLATE, "metadata", "labels"), labels, "`selector` does not match template `labels`")
    yield from check_template(template, server, TEMPLATE, old=_template_of(old))
    yield from _long_running(template, "ReplicationController")


def check_stateful_set(document: Document, old: Document | None, server: Server) -> Problems:
    """Validate a StatefulSet; which fields may change depends on the version."""
    yield from _metadata(document, old, is_label=True)
    yield from _selector(document, old)
    spec = mapping_in(document, "spec")
    policy = spec.get("podManagementPolicy") or _POD_MANAGEMENT[0]
    if policy not in _POD_MANAGEMENT:
        detail = f"must be '{_POD_MANAGEMENT[0]}' or '{_POD_MANAGEMENT[1]}'"
        yield invalid((*SPEC, "podManagementPolicy"), policy, detail)
    yield from _stateful_strategy(spec, None if old is None else mapping_in(old, "spec"), server)
    for field, value in mapping_in(spec, _RETENTION_FIELD).items():
        if value not in ("", *_RETENTION):
            yield unsupported((*SPEC, _RETENTION_FIELD, field), value, _RETENTION)
    yield from check_non_negative(spec, ("replicas", "minReadySeconds"), SPEC)
    yield from check_non_negative(mapping_in(spec, "ordinals"), ("start",), (*SPEC, "ordinals"))
    yield from _stateful_template(document, old, server)
    if old is None:
        yield from _new_stateful_set(spec, server)
    else:
        yield from _stateful_update(spec, mapping_in(old, "spec"), server)


def _metadata(document: Document, old: Document | None, *, is_label: bool = False) -> Problems:
    if old is None:
        yield from check_metadata(document, name=dns_label if is_label else dns_subdomain)
    else:
        yield from check_metadata_update(document, old)


def _template_of(document: Document | None) -> Document | None:
    return None if document is None else mapping_in(document, "spec", "template")


def _common(document: Document, old: Document | None, server: Server) -> Problems:
    """Validate the metadata, the selector and the template."""
    yield from _metadata(document, old)
    yield from _selector(document, old)
    template = mapping_in(document, "spec", "template")
    yield from check_template(template, server, TEMPLATE, old=_template_of(old))
    yield from _long_running(template, "DaemonSet" if document["kind"] == "DaemonSet" else "ReplicaSet")
    if old is not None:
        selector = mapping_in(document, "spec").get("selector")
        if not is_same(selector, mapping_in(old, "spec").get("selector")):
            yield invalid((*SPEC, "selector"), selector, IMMUTABLE)


def _selector(document: Document, old: Document | None) -> Problems:
    spec, kind, path = mapping_in(document, "spec"), document["kind"], (*SPEC, "selector")
    selector = spec.get("selector")
    if selector is None and kind != "DaemonSet":
        yield required(path)
        return
    known = mapping_in(old or {}, "spec").get("selector") if kind == "DaemonSet" else None
    yield from check_selector_form(selector, known, path)
    if selector is not None and is_empty(selector):
        yield invalid(path, selector, f"empty selector is invalid for {_NAMES[kind]}")
    yield from check_selected(selector, mapping_in(spec, "template"), TEMPLATE)


def _long_running(template: Document, kind: str) -> Problems:
    """Validate that the pods of a template run until they are deleted."""
    spec, path = mapping_in(template, "spec"), (*TEMPLATE, "spec")
    policy = spec.get("restartPolicy") or _ALWAYS
    if policy != _ALWAYS:
        yield unsupported((*path, "restartPolicy"), policy, (_ALWAYS,))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        yield forbidden((*path, "activeDeadlineSeconds"), detail)


def _deployment_strategy(strategy: Document, path: Path) -> Problems:
    kind, at = strategy.get("type") or _ROLLING, (*path, "rollingUpdate")
    if kind == _RECREATE:
        if strategy.get("rollingUpdate") is not None:
            yield forbidden(at, f"may not be specified when strategy `type` is '{_RECREATE}'")
    elif kind != _ROLLING:
        yield unsupported((*path, "type"), kind, (_RECREATE, _ROLLING))
    else:
        rolling = {"maxUnavailable": "25%", "maxSurge": "25%", **mapping_in(strategy, "rollingUpdate")}
        yield from _amounts_of_pods(rolling, at, limited=("maxUnavailable",))
        if _is_none(rolling["maxUnavailable"]) and _is_none(rolling["maxSurge"]):
            unavailable = rolling["maxUnavailable"]
            yield invalid((*at, "maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0")


def _rolling_daemons(given: Document, path: Path) -> Problems:
    rolling = {"maxUnavailable": 1, "maxSurge": 0, **given}
    yield from _amounts_of_pods(rolling, path, limited=("maxUnavailable", "maxSurge"))
    is_none, is_no_surge = _is_none(rolling["maxUnavailable"]), _is_none(rolling["maxSurge"])
    if not is_none and not is_no_surge:
        yield invalid((*path, "maxSurge"), rolling["maxSurge"], "may not be set when maxUnavailable is non-zero")
    elif is_none and is_no_surge:
        yield required((*path, "maxUnavailable"), "cannot be 0 when maxSurge is 0")


def _amounts_of_pods(rolling: Mapping[str, Any], path: Path, limited: Sequence[str]) -> Problems:
    """Validate numbers or percentages of pods; those of ``limited`` fields are at most 100%."""
    for field in ("maxUnavailable", "maxSurge"):
        value = rolling.get(field)
        if value is None:
            continue
        if problem := int_or_percent(value):
            yield invalid((*path, field), value, problem)
        elif field in limited and (percentage_of(value) or 0) > _ALL:
            yield invalid((*path, field), value, "must not be greater than 100%")


def _is_none(value: object) -> bool:
    """Whether a number or percentage of pods is zero; other texts are invalid anyway."""
    return value == 0 or percentage_of(value) == 0


def _stateful_strategy(spec: Document, old: Document | None, server: Server) -> Problems:
    strategy, path = mapping_in(spec, "updateStrategy"), (*SPEC, "updateStrategy")
    before = mapping_in(old or {}, "updateStrategy")
    kind, rolling = strategy.get("type") or _ROLLING, strategy.get("rollingUpdate")
    known = [_ROLLING, _ON_DELETE]
    # The gate StatefulSetRecreateStrategy is off in 1.37.
    if server.minor >= 38 or (server.minor == 37 and before.get("type") == _RECREATE):
        known.append(_RECREATE)
    if kind not in known:
        names = [f"'{each}'" for each in known]
        yield invalid((*path, "type"), kind, f"must be {', '.join(names[:-1])} or {names[-1]}")
    elif kind != _ROLLING:
        if rolling is not None:
            detail = f"only allowed for updateStrategy '{_ROLLING}'"
            yield invalid((*path, "rollingUpdate"), rolling, detail)
    elif rolling is not None:
        at = (*path, "rollingUpdate")
        yield from check_non_negative(rolling, ("partition",), at)
        # Before 1.37 the gate MaxUnavailableStatefulSet is off: a new value is dropped.
        is_kept = server.minor >= 37 or "maxUnavailable" in mapping_in(before, "rollingUpdate")
        if is_kept and (unavailable := rolling.get("maxUnavailable")) is not None:
            yield from _amounts_of_pods({"maxUnavailable": unavailable}, at, limited=("maxUnavailable",))
            if _is_none(unavailable):
                yield invalid((*at, "maxUnavailable"), unavailable, "cannot be 0")


def _stateful_template(document: Document, old: Document | None, server: Server) -> Problems:
    template = mapping_in(document, "spec", "template")
    before = None if old is None else _complete_template(mapping_in(old, "spec"))
    at, annotations = (*TEMPLATE, "metadata"), mapping_in(template, "metadata", "annotations")
    # Before 1.34, and if the old template is invalid, only its metadata is validated.
    if server.minor < 34 or (before is not None and any(check_template(before, server, TEMPLATE))):
        yield from check_labels(mapping_in(template, "metadata", "labels"), (*at, "labels"))
        yield from check_annotations(annotations, (*at, "annotations"))
        yield from check_pod_annotations(annotations, mapping_in(template, "spec"), (*at, "annotations"))
    else:
        yield from check_template(_complete_template(mapping_in(document, "spec")), server, TEMPLATE)
    yield from _long_running(template, "StatefulSet")


def _complete_template(spec: Document) -> Document:
    """Return the template of the pods with their claims, and without what the controller replaces."""
    template = mapping_in(spec, "template")
    names = {mapping_in(each, "metadata").get("name", "") for each in spec.get("volumeClaimTemplates") or ()}
    pod = {key: value for key, value in mapping_in(template, "spec").items() if key not in ("hostname", "subdomain")}
    claims = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in sorted(names)]
    volumes = [each for each in pod.get("volumes") or () if each.get("name", "") not in names]
    return {**template, "spec": {**pod, "volumes": [*volumes, *claims]}}


def _new_stateful_set(spec: Document, server: Server) -> Problems:
    name = spec.get("serviceName")
    if server.minor >= 33 and name and (problem := dns_label(name)):
        yield invalid((*SPEC, "serviceName"), name, problem)
    if server.minor >= 34:
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            path = (*SPEC, "volumeClaimTemplates", index, "spec")
            yield from check_claim_spec(mapping_in(claim, "spec"), server, path)


def _stateful_update(spec: Document, old: Document, server: Server) -> Problems:
    immutable = ["selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy"]
    mutable = [each for each in _MUTABLE_OF_STATEFUL_SETS if server.minor >= 33 or each != "revisionHistoryLimit"]
    if server.minor < 33:
        immutable.append("revisionHistoryLimit")
    for field in immutable:
        if is_same(_comparable(spec, field), _comparable(old, field)):
            continue
        if server.minor >= 37:
            yield invalid((*SPEC, field), spec.get(field), IMMUTABLE)
        else:
            names = ", ".join(f"'{each}'" for each in mutable[:-1])
            detail = f"updates to statefulset spec for fields other than {names} and '{mutable[-1]}' are forbidden"
            yield Problem((*SPEC, field), forbidden(SPEC, detail).message)


def _comparable(spec: Document, field: str) -> Any:
    """Return a field as it is compared: with defaults, and claims without their kind and status."""
    value = spec.get(field)
    if field == "podManagementPolicy":
        return value or _POD_MANAGEMENT[0]
    if field != "volumeClaimTemplates":
        return value
    return [
        {"metadata": each.get("metadata"), "spec": {"volumeMode": "Filesystem", **mapping_in(each, "spec")}}
        for each in value or ()
    ]


VALIDATORS = {
    "DaemonSet": check_daemon_set,
    "Deployment": check_deployment,
    "ReplicaSet": check_replica_set,
    "ReplicationController": check_replication_controller,
    "StatefulSet": check_stateful_set,
}
