"""Validate Jobs and CronJobs.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/batch/validation/validation.go`` and the strategies in
``pkg/registry/batch``. The API server adds a selector to a new Job and the labels that it selects to its template.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from kpreempt.admission.validation.job_specs import INDEXED, check_job_spec
from kpreempt.admission.validation.metadata import IMMUTABLE, METADATA, check_metadata, check_metadata_update
from kpreempt.admission.validation.pod_parts import elements, without_disabled_fields
from kpreempt.admission.validation.problems import (
    Document,
    Problems,
    Server,
    invalid,
    required,
    unsupported,
)
from kpreempt.admission.validation.schedules import schedule, time_zone
from kpreempt.admission.validation.selectors import (
    check_selected,
    check_selector_form,
    is_same,
    is_valid_selector,
    matches,
)
from kpreempt.admission.validation.values import dns_label
from kpreempt.admission.validation.workloads import SPEC, TEMPLATE, check_non_negative
from kpreempt.model.documents import Path, mapping_in

_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_SELECTED_LABEL = _UID_LABELS[1]
# Stands for the UID and the end of the name that the API server generates for a new object.
_NEW_UID = "00000000-0000-0000-0000-000000000000"
_NAME_END = "xxxxx"
_MAX_NAME_START = 58
_MAX_CRON_JOB_NAME = 52
_POLICIES = ("Allow", "Forbid", "Replace")
_DELEGATION = ("scheduling.k8s.io/workload-name", "scheduling.k8s.io/group-template-name")
_IMMUTABLE = ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_DEFAULTS = {"completionMode": "NonIndexed"}
# Fields that the API server drops before their feature gate is on by default; this one only from a new Job.
_MANAGER = "managedBy"
_DROPPED_BEFORE = {"successPolicy": 31, _MANAGER: 32}


def check_job(document: Document, old: Document | None, server: Server) -> Problems:
    """Validate a Job; the template of a suspended one may change in part."""
    if old is None:
        yield from check_metadata(document)
        yield from _new_job(_with_generated(_with_kept_fields(document, None, server)), server)
        return
    yield from check_metadata_update(document, old)
    document = _with_kept_fields(document, old, server)
    # An old object that was not read from a cluster, or not completely, lacks generated parts.
    if not mapping_in(old, "metadata").get("uid") or not mapping_in(old, "spec").get("selector"):
        document, old = _with_generated(document), _with_generated(old)
    if server.minor < 37:
        before = mapping_in(old, "spec", "template", "metadata", "labels")
        is_prefixed = before.keys() >= {_NAME_LABELS[1], _UID_LABELS[1]}
        yield from _generated(document, is_prefixed=is_prefixed)
    yield from _job_spec(document, old, server)
    yield from _pod_names(document)
    yield from _update(document, old, server)


def _new_job(document: Document, server: Server) -> Problems:
    yield from _generated(document, is_prefixed=True)
    yield from _job_spec(document, None, server)
    yield from _pod_names(document)
    yield from _delegation(mapping_in(document, "metadata"), None, server, METADATA)


def _with_kept_fields(document: Document, old: Document | None, server: Server) -> Document:
    """Return a Job without the fields that the API server drops, except those of the old one."""
    kept = mapping_in(old or {}, "spec").keys() | (() if old is None else {_MANAGER})
    spec = {
        field: value
        for field, value in mapping_in(document, "spec").items()
        if server.minor >= _DROPPED_BEFORE.get(field, 0) or field in kept
    }
    return {**document, "spec": spec}


def _is_manual(document: Document) -> bool:
    return bool(mapping_in(document, "spec").get("manualSelector"))


def _final_name(document: Document) -> tuple[Path, str]:
    """Return the name of an object, with a placeholder for its generated part, and the field that determines it."""
    metadata = mapping_in(document, "metadata")
    if name := metadata.get("name"):
        return (*METADATA, "name"), name
    return (*METADATA, "generateName"), f"{metadata.get('generateName', '')[:_MAX_NAME_START]}{_NAME_END}"


def _generated_labels(document: Document) -> dict[str, str]:
    uid = mapping_in(document, "metadata").get("uid") or _NEW_UID
    return {**dict.fromkeys(_NAME_LABELS, _final_name(document)[1]), **dict.fromkeys(_UID_LABELS, uid)}


def _with_generated(document: Document) -> dict[str, Any]:
    """Return a copy of a Job with its generated selector and labels, unless the selector is manual."""
    result = deepcopy(dict(document))
    if _is_manual(document):
        return result
    labels = _generated_labels(document)
    spec = result.setdefault("spec", {})
    metadata = spec.setdefault("template", {}).setdefault("metadata", {})
    metadata["labels"] = {**labels, **(metadata.get("labels") or {})}
    selector = spec.setdefault("selector", {})
    selected = {_SELECTED_LABEL: labels[_SELECTED_LABEL]}
    selector["matchLabels"] = {**selected, **(selector.get("matchLabels") or {})}
    return result


def _generated(document: Document, *, is_prefixed: bool) -> Problems:
    """Validate that the generated labels and the selector have no other values."""
    selector = mapping_in(document, "spec").get("selector")
    if _is_manual(document) or selector is None:
        return
    labels = mapping_in(document, "spec", "template", "metadata", "labels")
    expected = _generated_labels(document)
    if not is_prefixed:
        expected = {key: value for key, value in expected.items() if "/" not in key}
    for key, value in expected.items():
        path = (*TEMPLATE, "metadata", "labels", key)
        if key not in labels:
            yield required(path, f"must be '{value}'")
        elif labels[key] != value:
            yield invalid(path, labels[key], f"must be '{value}'")
    if is_valid_selector(selector) and not matches(selector, expected):
        yield invalid((*SPEC, "selector"), selector, "`selector` not auto-generated")


def _job_spec(document: Document, old: Document | None, server: Server) -> Problems:
    spec, path = mapping_in(document, "spec"), (*SPEC, "selector")
    before = None if old is None else mapping_in(old, "spec")
    yield from check_job_spec(spec, server, SPEC, old=before)
    selector = spec.get("selector")
    if selector is None:
        yield required(path)
        return
    yield from check_selector_form(selector, (before or {}).get("selector"), path)
    yield from check_selected(selector, mapping_in(spec, "template"), TEMPLATE)


def _pod_names(document: Document) -> Problems:
    """Validate that the host names of an indexed Job's pods, which end in their index, are valid."""
    spec = mapping_in(document, "spec")
    completions = spec.get("completions") or 0
    if spec.get("completionMode") != INDEXED or completions <= 0:
        return
    path, name = _final_name(document)
    host = f"{name}-{completions - 1}"
    if dns_label(host):
        yield invalid(path, name, f"will not able to create pod with invalid DNS label: {host}")


def _update(document: Document, old: Document, server: Server) -> Problems:
    spec, before = mapping_in(document, "spec"), mapping_in(old, "spec")
    completions, path = spec.get("completions"), (*SPEC, "completions")
    if completions != before.get("completions"):
        if spec.get("completionMode") != INDEXED:
            yield invalid(path, completions, IMMUTABLE)
        elif completions is not None and completions != spec.get("parallelism", 1):
            yield invalid(path, completions, "can only be modified in tandem with spec.parallelism")
    for field in _IMMUTABLE:
        default = _DEFAULTS.get(field)
        new, known = spec.get(field, default), before.get(field, default)
        if (new is None) != (known is None) or not is_same(new, known):
            yield invalid((*SPEC, field), new, IMMUTABLE)
    yield from _template_update(document, old, server)
    metadata = mapping_in(document, "metadata")
    yield from _delegation(metadata, mapping_in(old, "metadata"), server, METADATA)


def _template_update(document: Document, old: Document, server: Server) -> Problems:
    given, before = mapping_in(document, "spec", "template"), mapping_in(old, "spec", "template")
    known = mapping_in(before, "spec")
    template = {**given, "spec": without_disabled_fields(mapping_in(given, "spec"), known, server)}
    path = TEMPLATE
    if _is_mutable(old, server):
        template, before = _without_directives(template), _without_directives(before)
        if server.minor >= 36:
            # Only the pods' specs are compared.
            template, before = _without_resources(template), _without_resources(before)
            path = (*TEMPLATE, "spec")
    if not is_same(template, before):
        yield invalid(path, given, IMMUTABLE)


def _is_suspended(old: Document) -> bool:
    return bool(mapping_in(old, "spec").get("suspend"))


def _is_mutable(old: Document, server: Server) -> bool:
    """Whether a Job is suspended and has no pods; before 1.36, whether it never started."""
    status = mapping_in(old, "status")
    is_new = not status.get("startTime")
    if server.minor < 36:
        return _is_suspended(old) and is_new
    is_stopped = any(
        each.get("type") == "Suspended" and each.get("status") == "True" for each in status.get("conditions") or ()
    )
    return _is_suspended(old) and (is_new or is_stopped) and not status.get("active")


def _without_directives(template: Document) -> dict[str, Any]:
    """Return a template without what determines on which nodes its pods run, and without labels and annotations."""
    result = deepcopy(dict(template))
    for field in ("labels", "annotations"):
        mapping_in(result, "metadata").pop(field, None)
    spec = mapping_in(result, "spec")
    for field in ("nodeSelector", "tolerations", "schedulingGates"):
        spec.pop(field, None)
    mapping_in(spec, "affinity").pop("nodeAffinity", None)
    return result


def _without_resources(template: Document) -> dict[str, Any]:
    """Return a template's spec without the resources of its containers."""
    spec = deepcopy(mapping_in(template, "spec"))
    for field in ("containers", "initContainers"):
        for container, _ in elements(spec, field, ()):
            container.pop("resources", None)  # type: ignore[attr-defined]
    return spec


def _delegation(metadata: Document, old: Document | None, server: Server, path: Path) -> Problems:
    """Validate that the annotations that refer to a Workload are both set or both missing."""
    if server.minor < 38:
        return
    found = _delegation_of(metadata)
    if any(value is not None for value in found.values()) and (old is None or found != _delegation_of(old)):
        for key, value in found.items():
            if not value:
                detail = f"must be set to a non-empty value when {_DELEGATION[0]} or {_DELEGATION[1]} is set"
                yield required((*path, "annotations", key), detail)


def _delegation_of(metadata: Document) -> Mapping[str, str | None]:
    return {key: mapping_in(metadata, "annotations").get(key) for key in _DELEGATION}


def check_cron_job(document: Document, old: Document | None, server: Server) -> Problems:
    """Validate a CronJob; an old time zone may be unknown."""
    if old is None:
        yield from check_metadata(document)
        path, name = _final_name(document)
        if len(name) > _MAX_CRON_JOB_NAME:
            yield invalid(path, name, f"must be no more than {_MAX_CRON_JOB_NAME} characters")
    else:
        yield from check_metadata_update(document, old)
    spec, before = mapping_in(document, "spec"), None if old is None else mapping_in(old, "spec")
    yield from _schedule(spec, before, (*SPEC, "schedule"))
    zone = spec.get("timeZone")
    if zone is not None and (before is None or before.get("timeZone") != zone) and (problem := time_zone(zone)):
        yield invalid((*SPEC, "timeZone"), zone, problem)
    policy = spec.get("concurrencyPolicy") or _POLICIES[0]
    if policy not in _POLICIES:
        yield unsupported((*SPEC, "concurrencyPolicy"), policy, _POLICIES)
    limits = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    yield from check_non_negative(spec, limits, SPEC)
    template = mapping_in(spec, "jobTemplate")
    yield from _job_template(template, None if before is None else mapping_in(before, "jobTemplate"), server)


def _schedule(spec: Document, old: Document | None, path: Path) -> Problems:
    text = spec.get("schedule", "")
    if not text:
        yield required(path)
        return
    if problem := schedule(text):
        yield invalid(path, text, problem)
    if "TZ" not in text:
        return
    if old is None or "TZ" not in old.get("schedule", ""):
        yield invalid(path, text, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    elif spec.get("timeZone") is not None:
        yield invalid(path, text, "cannot use both timeZone field and TZ or CRON_TZ in schedule")


def _job_template(template: Document, old: Document | None, server: Server) -> Problems:
    path = (*SPEC, "jobTemplate")
    spec, at = mapping_in(template, "spec"), (*path, "spec")
    yield from check_job_spec(spec, server, at, old=None if old is None else mapping_in(old, "spec"))
    if spec.get("selector") is not None:
        yield invalid((*at, "selector"), spec["selector"], "`selector` will be auto-generated")
    if spec.get("manualSelector"):
        yield unsupported((*at, "manualSelector"), True, ("false", "nil"))
    before = None if old is None else mapping_in(old, "metadata")
    yield from _delegation(mapping_in(template, "metadata"), before, server, (*path, "metadata"))


VALIDATORS = {"CronJob": check_cron_job, "Job": check_job}
