"""What the API knows of the fields of a pod template: which lists have keys, and where zero means missing.

Follows ``k8s.io/api`` v0.36.3 ``core/v1/types.go``.
"""

from __future__ import annotations

from typing import Any

# The fields by which the elements of a list are told apart; all other lists count as a whole, in their order.
MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "ports": ("containerPort", "protocol"),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
}
# Maps whose keys are anyone's, so that an empty value is a value.
_FREE_MAP_NAMES = """
annotations labels matchLabels nodeSelector limits requests overhead volumeAttributes userAnnotations options
"""
FREE_MAPS = frozenset(_FREE_MAP_NAMES.split())
# Maps of quantities, and fields that are one.
QUANTITY_MAPS = frozenset({"limits", "requests", "overhead"})
QUANTITY_FIELDS = frozenset({"sizeLimit", "divisor"})

# Fields that the API server does not keep where they are zero or empty, because their type has no other word for it.
_NAMES = """
annotations apiVersion audience minReadySeconds paused chapAuthDiscovery chapAuthSession conditionType dnsPolicy
effect fieldPath fsType generateName group host hostIP hostIPC hostNetwork hostPID hostPort hostname
imagePullPolicy initialDelaySeconds labels level limits matchLabels medium metadata nodeName nodeSelector operator
overhead partition path periodSeconds podAffinityTerm prefix priorityClassName protocol pullPolicy readOnly
request requests resources role schedulerName scheme secretFile secretName serviceAccount serviceAccountName stdin
stdinOnce subPath subPathExpr subdomain subresource successThreshold failureThreshold terminationMessagePath
terminationMessagePolicy timeoutSeconds tty uid user userAnnotations value volumeAttributes volumeID volumeName
weight workingDir
"""
_ZERO_IS_MISSING = frozenset(_NAMES.split())
# Where one of those fields has another type, in which zero is a value.
_EXCEPT_IN = {"readOnly": ("azureDisk", "csi"), "fsType": ("azureDisk", "csi")}


def is_missing(parent: str, key: str, value: Any) -> bool:
    """Whether the API server keeps nothing of a field with this value, in an object that is in the field ``parent``."""
    if value is None or value == []:
        return True
    if parent in FREE_MAPS or key not in _ZERO_IS_MISSING or parent in _EXCEPT_IN.get(key, ()):
        return False
    if isinstance(value, dict):
        return (key in FREE_MAPS and not value) or (key not in FREE_MAPS and _all_missing(key, value))
    return value == "" or value is False or (type(value) is int and value == 0)


def _all_missing(parent: str, value: dict[str, Any]) -> bool:
    return all(is_missing(parent, key, each) for key, each in value.items())


def merge_key(field: str, element: Any) -> tuple[Any, ...] | None:
    """What tells an element of the list ``field`` from the others; ``None`` where nothing does."""
    fields = MERGE_KEYS.get(field)
    if fields is None or not isinstance(element, dict):
        return None
    values = tuple(element.get(each, "TCP" if each == "protocol" else None) for each in fields)
    return values if all(isinstance(each, (str, int)) for each in values) else None


def merge_keys(field: str, elements: list[Any]) -> list[tuple[Any, ...]] | None:
    """The key of each element, or ``None`` where an element has none or two have the same."""
    keys = [merge_key(field, each) for each in elements]
    known = [each for each in keys if each is not None]
    return known if len(known) == len(keys) == len(set(known)) else None
