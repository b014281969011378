"""Validate the environment variables of containers, and references to fields of the pod.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/validation/validation.go`` (``ValidateEnv``, ``ValidateEnvFrom``)
and ``pkg/apis/core/pods/helpers.go``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from kpreempt.admission.validation.pod_parts import elements
from kpreempt.admission.validation.problems import (
    Document,
    Problems,
    Server,
    invalid,
    not_found,
    required,
    unsupported,
)
from kpreempt.admission.validation.values import (
    amount,
    config_key,
    dns_label,
    dns_subdomain,
    environment_name,
    qualified_name,
)
from kpreempt.model.documents import Path
from kpreempt.model.quantity import NANO_PER_MILLI, NANO_PER_UNIT

ENVIRONMENT_FIELDS = frozenset(
    {
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    }
)
# Fields of pods that the API server can select. What selects them allows some of these.
_KNOWN_FIELDS = ENVIRONMENT_FIELDS | {
    "metadata.annotations",
    "metadata.labels",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.phase",
}
_OLD_NAMES = {"spec.host": "spec.nodeName"}
_RESOURCES = frozenset(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_FROM_SOURCES = ("configMapRef", "secretRef")
_EXPONENT = re.compile(r"[eE][+-]?[0-9]+$")
_BINARY = frozenset(1 << 10 * step for step in range(7))
_DECIMAL = frozenset(10 ** (3 * step) for step in range(7))


def check_environment(container: Document, server: Server, path: Path) -> Problems:
    """Validate ``env`` and ``envFrom`` of a container."""
    is_relaxed = server.minor >= 32
    for each, at in elements(container, "env", path):
        name = each.get("name")
        if not name:
            yield required((*at, "name"))
        elif problem := environment_name(name, is_relaxed=is_relaxed):
            yield invalid((*at, "name"), name, problem)
        if each.get("valueFrom") is not None:
            yield from _value_source(each, server, (*at, "valueFrom"))
    for each, at in elements(container, "envFrom", path):
        prefix = each.get("prefix")
        if prefix and (problem := environment_name(prefix, is_relaxed=is_relaxed)):
            yield invalid((*at, "prefix"), prefix, problem)
        yield from _from_source(each, at)


def _value_source(variable: Document, server: Server, path: Path) -> Problems:
    source = variable["valueFrom"]
    given = [each for each in _SOURCES if source.get(each) is not None]
    for each in given:
        yield from _CHECKS[each](source[each], (*path, each))
    if not given:
        *names, last = (f"`{each}`" for each in _SOURCES[: None if server.minor >= 35 else -1])
        yield invalid(path, "", f"must specify one of: {', '.join(names)} or {last}")
    elif variable.get("value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def _from_source(source: Document, path: Path) -> Problems:
    given = [each for each in _FROM_SOURCES if source.get(each) is not None]
    for each in given:
        name = source[each].get("name")
        if not name:
            yield required((*path, each, "name"))
        elif problem := dns_subdomain(_as_prefix(name)):
            yield invalid((*path, each, "name"), name, problem)
    if not given:
        yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(given) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def _as_prefix(name: str) -> str:
    """Mask a dash at the end, which is valid here."""
    return f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name


def check_field_reference(reference: Document, fields: Collection[str], path: Path) -> Problems:
    """Validate a reference to a field of the pod, which must be one of ``fields``, or an annotation or label."""
    if reference.get("apiVersion") == "":
        yield required((*path, "apiVersion"))
        return
    field = reference.get("fieldPath")
    if not field:
        yield required((*path, "fieldPath"))
        return
    at = (*path, "fieldPath")
    version = reference.get("apiVersion", "v1")
    if version != "v1":
        yield invalid(at, field, f"error converting fieldPath: unsupported pod version: {version}")
        return
    name, key = _subscript(field)
    if key is not None:
        yield from _subscripted(field, name, key, at)
        return
    current = _OLD_NAMES.get(field, field)
    if current not in _KNOWN_FIELDS:
        yield invalid(at, field, f"error converting fieldPath: field label not supported: {field}")
    elif current not in fields:
        yield unsupported(at, current, fields)


def _subscript(field: str) -> tuple[str, str | None]:
    """Split ``metadata.labels['key']`` into the field and the key."""
    if field.endswith("']"):
        name, separator, key = field[:-2].partition("['")
        if name and separator:
            return name, key
    return field, None


def _subscripted(field: str, name: str, key: str, path: Path) -> Problems:
    if name not in ("metadata.annotations", "metadata.labels"):
        yield invalid(path, field, f"error converting fieldPath: field label does not support subscript: {field}")
    elif problem := qualified_name(key.lower() if name == "metadata.annotations" else key):
        yield invalid(path, key, problem)


def check_resource_reference(reference: Document, path: Path) -> Problems:
    """Validate a reference to a resource of a container, except the container's name."""
    resource = reference.get("resource")
    if not resource:
        yield required((*path, "resource"))
        return
    if resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        yield unsupported((*path, "resource"), resource, _RESOURCES)
    divisor = reference.get("divisor") or "0"
    if not _is_divisor(resource, divisor):
        known = "1m and 1" if resource.endswith(".cpu") else "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"
        kind = resource.partition(".")[2]
        yield invalid(
            (*path, "divisor"), divisor, f"only divisor's values {known} are supported with the {kind} resource"
        )


def _is_divisor(resource: str, divisor: object) -> bool:
    nano = amount(divisor).nano
    if nano == 0 or (resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES)):
        return True
    text = str(divisor)
    if resource.endswith(".cpu"):
        units = {NANO_PER_UNIT} if _EXPONENT.search(text) else {NANO_PER_UNIT, NANO_PER_MILLI}
        return nano in units
    if _EXPONENT.search(text):
        return nano == NANO_PER_UNIT
    return nano in {unit * NANO_PER_UNIT for unit in (_BINARY if text.endswith("i") else _DECIMAL)}


def _key_reference(reference: Document, path: Path) -> Problems:
    name, key = reference.get("name", ""), reference.get("key")
    if problem := dns_subdomain(name):
        yield invalid((*path, "name"), name, problem)
    if not key:
        yield required((*path, "key"))
    elif problem := config_key(key):
        yield invalid((*path, "key"), key, problem)


def _file_reference(reference: Document, path: Path) -> Problems:
    forms: dict[str, Callable[[str], str]] = {
        "key": lambda key: environment_name(key, is_relaxed=True),
        "volumeName": dns_label,
        "path": no_backsteps,
    }
    for field, form in forms.items():
        value = reference.get(field)
        if not value:
            yield required((*path, field))
        elif problem := form(value):
            yield invalid((*path, field), value, problem)


def no_backsteps(value: str) -> str:
    """Check that no element of a file path is ``..``."""
    return "must not contain '..'" if ".." in value.split("/") else ""


_CHECKS: dict[str, Callable[[Document, Path], Problems]] = {
    "fieldRef": lambda reference, path: check_field_reference(reference, ENVIRONMENT_FIELDS, path),
    "resourceFieldRef": check_resource_reference,
    "configMapKeyRef": _key_reference,
    "secretKeyRef": _key_reference,
    "fileKeyRef": _file_reference,
}


def check_file_volumes(container: Document, volumes: Mapping[str, Document], path: Path) -> Problems:
    """Validate that variables read from files use ``emptyDir`` volumes."""
    for each, at in elements(container, "env", path):
        reference = (each.get("valueFrom") or {}).get("fileKeyRef")
        if reference is None:
            continue
        name = reference.get("volumeName", "")
        where = (*at, "valueFrom", "fileKeyRef", "volumeName")
        if name not in volumes:
            yield not_found(where, name)
        elif volumes[name].get("emptyDir") is None:
            yield invalid(where, name, "referenced volume must be of type emptyDir")
