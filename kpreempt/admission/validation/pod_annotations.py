"""Validate the annotations of pods that the API server interprets.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/validation/validation.go`` (``ValidatePodSpecificAnnotations``,
``ValidatePodSpecificAnnotationUpdates``, ``validateSeccompAnnotationsAndFields``,
``validateAppArmorAnnotationsAndFieldsMatchOnCreate``) and ``pkg/registry/core/pod/strategy.go``
(``applyAppArmorVersionSkew``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from kpreempt.admission.validation.pod_parts import all_containers
from kpreempt.admission.validation.problems import Document, Problems, Server, forbidden, invalid
from kpreempt.admission.validation.security_contexts import LOCALHOST, WINDOWS, check_app_armor, descending_path
from kpreempt.admission.validation.values import MAX_INT32
from kpreempt.model.documents import Path, mapping_in

_MIRROR = "kubernetes.io/config.mirror"
_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"

_INTEGER = re.compile("0|-[0-9]+|[1-9][0-9]*")
_LOCAL = "localhost/"
_RUNTIME, _DOCKER, _UNCONFINED = "runtime/default", "docker/default", "unconfined"
# The values of an annotation that match a type of profile.
_SECCOMP_VALUES = {"Unconfined": (_UNCONFINED,), "RuntimeDefault": (_RUNTIME, _DOCKER)}
_APP_ARMOR_VALUES = {"Unconfined": (_UNCONFINED,), "RuntimeDefault": (_RUNTIME,)}
_APP_ARMOR_TYPES = {_UNCONFINED: "Unconfined", _RUNTIME: "RuntimeDefault"}


def check_pod_annotations(annotations: Mapping[str, str], spec: Document, path: Path) -> Problems:
    """Validate the annotations of a pod or template with a spec; ``path`` is that of the annotations."""
    names = {container.get("name") for container, _ in all_containers(spec, path)}
    for key, value in annotations.items():
        at = (*path, key)
        if key.startswith(_APP_ARMOR) and key.removeprefix(_APP_ARMOR) not in names:
            yield invalid(at, key.removeprefix(_APP_ARMOR), "container not found")
        if problem := _value_problem(key, value):
            yield invalid(at, value, problem)
    if _MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid((*path, _MIRROR), annotations[_MIRROR], detail)


def _value_problem(key: str, value: str) -> str:
    if key == _DELETION_COST:
        is_valid = _INTEGER.fullmatch(value) and -MAX_INT32 - 1 <= int(value) <= MAX_INT32
        return "" if is_valid else "must be a 32bit integer"
    if key == _TOLERATIONS:
        return _tolerations(value)
    if key == _SECCOMP_POD or key.startswith(_SECCOMP_CONTAINER):
        if value.startswith(_LOCAL):
            return descending_path(value.removeprefix(_LOCAL))
        return "" if value in (_RUNTIME, _DOCKER, _UNCONFINED) else "must be a valid seccomp profile"
    if key.startswith(_APP_ARMOR) and value not in ("", _RUNTIME, _UNCONFINED) and not value.startswith(_LOCAL):
        return f"invalid AppArmor profile name: {json.dumps(value)}"
    return ""


def _tolerations(value: str) -> str:
    try:
        decoded = json.loads(value) if value else None
    except ValueError:
        return "is not JSON"
    is_list = isinstance(decoded, list) and all(isinstance(each, dict) for each in decoded if each is not None)
    return "" if decoded is None or is_list else "is not a list of tolerations"


def check_annotation_updates(annotations: Mapping[str, str], old: Mapping[str, str], path: Path) -> Problems:
    """Validate that annotations of a pod that were applied when it was created do not change."""
    for key in sorted(annotations.keys() | old.keys()):
        if annotations.get(key) == old.get(key):
            continue
        verb = "add" if key not in old else "remove or update"
        if key.startswith(_APP_ARMOR):
            yield forbidden((*path, key), f"may not {verb} AppArmor annotations")
        elif key == _MIRROR:
            yield forbidden((*path, key), f"may not {verb} mirror pod annotation")


def check_profiles_match(
    annotations: Mapping[str, str], spec: Document, server: Server, path: Path, *, is_pod: bool = False
) -> Problems:
    """Validate that annotations with profiles agree with the fields; ``path`` is that of the spec.

    In a new pod (``is_pod``), an annotation for a container comes before a profile for the whole pod.
    """
    of_pod = mapping_in(spec, "securityContext", "seccompProfile")
    yield from _seccomp(of_pod, annotations.get(_SECCOMP_POD), path)
    for container, at in all_containers(spec, path):
        profile = mapping_in(container, "securityContext", "seccompProfile")
        yield from _seccomp(profile, annotations.get(f"{_SECCOMP_CONTAINER}{container.get('name')}"), at)
    if server.minor >= 30 and mapping_in(spec, "os").get("name") != WINDOWS:
        yield from _app_armor(annotations, spec, path, is_pod)


def _seccomp(profile: Document, annotation: str | None, path: Path) -> Problems:
    if annotation is not None:
        yield from _match(profile, annotation, _SECCOMP_VALUES, "seccomp", (*path, "securityContext", "seccompProfile"))


def _app_armor(annotations: Mapping[str, str], spec: Document, path: Path, is_pod: bool) -> Problems:
    of_pod = mapping_in(spec, "securityContext", "appArmorProfile")
    for container, at in all_containers(spec, path):
        annotation = annotations.get(f"{_APP_ARMOR}{container.get('name')}")
        if annotation is None:
            continue
        own = mapping_in(container, "securityContext", "appArmorProfile")
        if not own and is_pod and _is_profile(annotation):
            continue
        yield from _match(
            own or of_pod, annotation, _APP_ARMOR_VALUES, "apparmor", (*at, "securityContext", "appArmorProfile")
        )


def _is_profile(annotation: str) -> bool:
    """Whether the API server can turn an annotation into a field."""
    if annotation in _APP_ARMOR_TYPES:
        return True
    local = annotation.removeprefix(_LOCAL)
    return local != annotation and not any(check_app_armor({"type": LOCALHOST, "localhostProfile": local}, ()))


def _match(
    profile: Document, annotation: str, values: Mapping[str, tuple[str, ...]], what: str, path: Path
) -> Problems:
    kind = profile.get("type", "")
    if kind in values:
        if annotation not in values[kind]:
            yield forbidden((*path, "type"), f"{what} type in annotation and field must match")
    elif kind == LOCALHOST:
        if not annotation.startswith(_LOCAL):
            yield forbidden((*path, "type"), f"{what} type in annotation and field must match")
        elif annotation.removeprefix(_LOCAL) != profile.get("localhostProfile"):
            yield forbidden((*path, "localhostProfile"), f"{what} profile in annotation and field must match")
