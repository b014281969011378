"""Validate pods and pod templates.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/validation/validation.go`` (``ValidatePodSpec``,
``ValidatePodCreate``, ``ValidatePodTemplateSpec``) and ``pkg/registry/core/pod/strategy.go``. Updates of pods are in
``pod_updates``; scheduling and volumes are in ``placement`` and ``volumes``.

The API server runs with ``--allow-privileged``, as all installers set it. Service account tokens without a service
account are not rejected, because admission sets the account.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kpreempt.admission.validation.container_resources import check_pod_resources, check_requirements
from kpreempt.admission.validation.containers import check_containers, check_image_padding
from kpreempt.admission.validation.metadata import (
    METADATA,
    check_annotations,
    check_labels,
    check_metadata,
    check_metadata_update,
)
from kpreempt.admission.validation.placement import check_placement
from kpreempt.admission.validation.pod_annotations import (
    check_annotation_updates,
    check_pod_annotations,
    check_profiles_match,
)
from kpreempt.admission.validation.pod_parts import (
    elements,
    in_most_tolerant_form,
    new_problems,
    without_disabled_fields,
)
from kpreempt.admission.validation.problems import (
    Document,
    Problems,
    Server,
    forbidden,
    invalid,
    required,
    too_long,
    unsupported,
)
from kpreempt.admission.validation.security_contexts import check_os, check_pod_context
from kpreempt.admission.validation.values import MAX_INT32, dns_label, dns_subdomain, qualified_name
from kpreempt.admission.validation.volumes import check_created_claims, check_volumes
from kpreempt.model.documents import Path, mapping_in

SPEC: Path = ("spec",)
ANNOTATIONS: Path = (*METADATA, "annotations")
_GRACE = "terminationGracePeriodSeconds"
# Names in a pod's spec. An empty one is not set.
_NAMES = {
    "serviceAccountName": dns_subdomain,
    "nodeName": dns_subdomain,
    "hostname": dns_label,
    "subdomain": dns_label,
    "priorityClassName": dns_subdomain,
}
_ENUMS = {
    "restartPolicy": frozenset({"Always", "OnFailure", "Never"}),
    "preemptionPolicy": frozenset({"PreemptLowerPriority", "Never"}),
}
_MAX_HOSTNAME = 64


def check_pod(document: Document, old: Document | None, server: Server) -> Problems:
    """Validate a new pod, or its update from ``old``."""
    yield from check_metadata(document)
    if old is None:
        yield from _pod_parts(document, None, server)
        yield from _creation(document, server)
        return
    yield from check_metadata_update(document, old)
    yield from new_problems(_pod_parts(document, old, server), _pod_parts(old, old, server))
    annotations, before = mapping_in(document, "metadata", "annotations"), mapping_in(old, "metadata", "annotations")
    yield from check_annotation_updates(annotations, before, ANNOTATIONS)
    from kpreempt.admission.validation.pod_updates import check_spec_update  # noqa: PLC0415 - pods rarely change

    yield from check_spec_update(_spec(document, old, server), _spec(old, old, server), SPEC)


def _spec(document: Document, old: Document | None, server: Server) -> dict[str, Any]:
    """Return a pod's spec as the API server validates it."""
    before = None if old is None else mapping_in(old, "spec")
    spec = without_disabled_fields(mapping_in(document, "spec"), before, server)
    if spec.get(_GRACE, 0) < 0:
        spec[_GRACE] = 1
    return spec


def _pod_parts(document: Document, old: Document | None, server: Server) -> Problems:
    metadata, spec = mapping_in(document, "metadata"), _spec(document, old, server)
    yield from check_pod_annotations(metadata.get("annotations") or {}, spec, ANNOTATIONS)
    # A new pod's labels are added to its selectors; the old pod's selectors have them.
    labels = (metadata.get("labels") or {}) if old is None else {}
    yield from _check_spec(spec, server, SPEC, labels, is_pod=True)
    if metadata.get("name"):
        yield from check_created_claims(spec, metadata["name"], SPEC)
    for name in ("containers", "initContainers"):
        for container, at in elements(spec, name, SPEC):
            yield from check_image_padding(container, at)


def _creation(document: Document, server: Server) -> Problems:
    spec = _spec(document, None, server)
    if spec.get("ephemeralContainers"):
        yield forbidden((*SPEC, "ephemeralContainers"), "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden((*SPEC, "nodeName"), "cannot be set until all schedulingGates have been cleared")
    annotations = mapping_in(document, "metadata", "annotations")
    yield from check_profiles_match(annotations, spec, server, SPEC, is_pod=True)


def check_template(template: Document, server: Server, path: Path, *, old: Document | None = None) -> Problems:
    """Validate a pod template. Problems that the template ``old`` of an updated object has are tolerated."""
    problems = _template(template, old, server, path)
    if old is None:
        return problems
    before = {**old, "spec": in_most_tolerant_form(mapping_in(old, "spec"), server)}
    return new_problems(problems, _template(before, old, server, path))


def _template(template: Document, old: Document | None, server: Server, path: Path) -> Problems:
    metadata = mapping_in(template, "metadata")
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    at: Path = (*path, "metadata")
    yield from check_labels(labels, (*at, "labels"))
    yield from check_annotations(annotations, (*at, "annotations"))
    before = None if old is None else mapping_in(old, "spec")
    spec, where = _template_spec(mapping_in(template, "spec"), before, server), (*path, "spec")
    yield from check_pod_annotations(annotations, spec, (*at, "annotations"))
    yield from _check_spec(spec, server, where, labels, is_pod=False)
    yield from check_profiles_match(annotations, spec, server, where)
    if spec.get("ephemeralContainers"):
        yield forbidden((*where, "ephemeralContainers"), "ephemeral containers not allowed in pod template")


def _template_spec(spec: Document, old: Document | None, server: Server) -> dict[str, Any]:
    """Return a template's spec as the API server validates it.

    Since 1.28 it does not set the host ports of templates, but ``defaults`` does. Those that are the container's port
    may have been missing, so they are not compared with each other.
    """
    result = without_disabled_fields(spec, old, server)
    if result.get("hostNetwork"):
        for container in (*(result.get("containers") or ()), *(result.get("initContainers") or ())):
            for port in container.get("ports") or ():
                if port.get("hostPort") == port.get("containerPort"):
                    port.pop("hostPort", None)
    return result


def _check_spec(spec: Document, server: Server, path: Path, labels: Mapping[str, str], *, is_pod: bool) -> Problems:
    yield from check_volumes(spec, server, path)
    yield from check_placement(spec, server, path, labels)
    yield from check_containers(spec, server, path)
    if server.minor >= 34:
        # Older versions do not validate the field, but keep it if the old object has it.
        yield from check_pod_resources(spec, path, is_pod=is_pod)
    yield from check_pod_context(spec, server, path)
    yield from check_os(spec, path)
    yield from _host_ports(spec, path)
    yield from _names(spec, path)
    yield from _host_name(spec, path)
    for field, known in _ENUMS.items():
        value = spec.get(field)
        if value == "":
            yield required((*path, field))
        elif value is not None and value not in known:
            yield unsupported((*path, field), value, known)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MAX_INT32:
        detail = f"must be between 1 and {MAX_INT32}, inclusive"
        yield invalid((*path, "activeDeadlineSeconds"), deadline, detail)
    for gate, at in elements(spec, "readinessGates", path):
        condition = gate.get("conditionType", "")
        if problem := qualified_name(condition):
            yield invalid((*at, "conditionType"), condition, problem)
    yield from _overhead(spec, path)


def _overhead(spec: Document, path: Path) -> Problems:
    for problem in check_requirements({"limits": spec.get("overhead") or {}}, path):
        # The rules are those of limits.
        yield problem._replace(path=(*path, "overhead", *problem.path[len(path) + 1 :]))


def _names(spec: Document, path: Path) -> Problems:
    for field, form in _NAMES.items():
        name = spec.get(field)
        if name and (problem := form(name)):
            yield invalid((*path, field), name, problem)
    runtime = spec.get("runtimeClassName")
    if runtime is not None and (problem := dns_subdomain(runtime)):
        yield invalid((*path, "runtimeClassName"), runtime, problem)


def _host_name(spec: Document, path: Path) -> Problems:
    name, at = spec.get("hostnameOverride"), (*path, "hostnameOverride")
    if name is None:
        return
    for field in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(field):
            yield forbidden(at, f"may not be specified when {field} is true")
    if len(name.encode()) > _MAX_HOSTNAME:
        yield too_long(at, _MAX_HOSTNAME)
    if problem := dns_subdomain(name):
        yield invalid(at, name, problem)


def _host_ports(spec: Document, path: Path) -> Problems:
    """Validate that host ports are those of the container in a pod with the host's network.

    Missing ones have the container's port by default, in templates when their pods are created.
    """
    if not spec.get("hostNetwork"):
        return
    for container, at in elements(spec, "containers", path):
        for port, where in elements(container, "ports", at):
            host = port.get("hostPort")
            if host and host != port.get("containerPort"):
                yield invalid((*where, "hostPort"), host, "must match `containerPort` when `hostNetwork` is true")


VALIDATORS = {"Pod": check_pod}
