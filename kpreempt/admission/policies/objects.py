"""Objects as expressions see them: in the API's form, without what the API server leaves out when it encodes them.

An empty list or map is left out, and so is an empty string, a zero or ``false`` if the field cannot tell it from a
missing one. Some structs are always there. Quantities have their canonical form. Follows the types in ``k8s.io/api``
v0.36.3 and ``k8s.io/apimachinery`` v0.36.3 ``pkg/runtime/converter.go``. Values that the API server sets later than
defaults are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any, Final

from kpreempt.admission.admit import DEFAULT_SECONDS, not_tolerated
from kpreempt.admission.plugin_state import DEFAULT_ACCOUNT
from kpreempt.admission.policies.requests import UNKNOWN
from kpreempt.admission.schema import ApiTypes, api_types, fields_of, required_of, type_of_kind
from kpreempt.admission.validation.problems import Document
from kpreempt.cel.values import Document as DocumentValue
from kpreempt.cel.values import Failure, LazyMap, List, Value, from_json
from kpreempt.model.documents import group_of, mapping_in
from kpreempt.model.quantity import canonical_text
from kpreempt.model.workloads import LimitRange


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ZEROS: Final = {"boolean": False, "string": "", "int32": 0, "int64": 0}
# Fields of pointers, or that are always encoded, by type; the names are unambiguous.
_KEPT: Final[Mapping[str, frozenset[str]]] = {
    "boolean": _words(
        """
        allowPrivilegeEscalation automountServiceAccountToken controller blockOwnerDeletion enableServiceLinks fuse
        hostUsers immutable manualSelector optional privileged readOnlyRootFilesystem runAsNonRoot
        setHostnameAsFQDN shareProcessNamespace suspend allocateLoadBalancerNodePorts allowVolumeExpansion
        attachRequired podInfoOnMount requiresRepublish storageCapacity seLinuxMount hostProcess
        """
    ),
    "string": _words(
        """
        storageClassName runtimeClassName ingressClassName loadBalancerClass volumeAttributesClassName appProtocol
        hostnameOverride localhostProfile managedBy timeZone trafficDistribution apiGroup
        """
    ),
}
# Numbers that are left out if they are zero.
_PLAIN_NUMBERS: Final = _words(
    "failureThreshold hostPort initialDelaySeconds minReadySeconds nodePort periodSeconds successThreshold"
)
_ALWAYS_THERE: Final[Mapping[str, tuple[str, ...]]] = {
    "apps.v1.DaemonSetSpec": ("updateStrategy",),
    "apps.v1.DeploymentSpec": ("strategy",),
    "apps.v1.StatefulSetSpec": ("updateStrategy",),
    "batch.v1.CronJobSpec": ("jobTemplate",),
    "batch.v1.JobTemplateSpec": ("metadata", "spec"),
    "core.v1.Container": ("resources",),
    "core.v1.EphemeralContainer": ("resources",),
    "core.v1.PersistentVolumeClaimSpec": ("resources",),
    "core.v1.PodTemplateSpec": ("metadata", "spec"),
}
_SET_BY_SERVER: Final = ("uid", "creationTimestamp", "managedFields", "generation")
# Fields of the spec that the API server or an admission plugin sets if they are missing.
_SET_LATER: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "PersistentVolumeClaim"): ("storageClassName",),
    ("", "Pod"): ("priority", "preemptionPolicy"),
    ("", "Service"): ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"),
    ("batch", "Job"): ("selector",),
    ("networking.k8s.io", "Ingress"): ("ingressClassName",),
}


def value_of(document: Document | None) -> Value:
    """Return an object as expressions see it; null for ``None``. Raises ``TooLargeError``."""
    if document is None:
        return None
    api = api_types()
    kind = type_of_kind(api, document)
    plain = _with_unknowns(document)
    if kind is None:
        return _any(plain)
    if "status" in fields_of(api, kind.type_name):
        # The API server resets the status of a new object, and sets some of it.
        plain.setdefault("status", UNKNOWN)
    return _struct(plain, kind.type_name, api)


def _with_unknowns(document: Document) -> dict[str, Any]:
    metadata, spec = ({**mapping_in(document, key)} for key in ("metadata", "spec"))
    for key in _SET_BY_SERVER:
        metadata.setdefault(key, UNKNOWN)
    for key in _SET_LATER.get((group_of(document), str(document.get("kind"))), ()):
        spec.setdefault(key, UNKNOWN)
    return {**document, "metadata": metadata, **({"spec": spec} if spec else {})}


def unknown(what: str) -> Failure:
    """Return the value of something that is unknown."""
    return Failure(f"{what} is unknown", is_unknown=True)


def _map(entries: Mapping[str, Any]) -> DocumentValue:
    known = ((key, each) for key, each in entries.items() if each is not UNKNOWN)
    waiting = {key: partial(unknown, f"the value of {key}") for key, each in entries.items() if each is UNKNOWN}
    return LazyMap(known, waiting) if waiting else DocumentValue(known)


def _any(value: Any) -> Value:
    """Convert a value without a type."""
    if isinstance(value, dict):
        return _map({str(key): each if each is UNKNOWN else _any(each) for key, each in value.items()})
    return List(map(_any, value)) if isinstance(value, list) else from_json(value)


def _struct(given: Mapping[str, Any], type_name: str, api: ApiTypes) -> DocumentValue:
    fields, needed = fields_of(api, type_name), required_of(api, type_name, None)
    entries: dict[str, Any] = {}
    for key, each in given.items():
        inner = fields[key].type_name if key in fields else "any"
        if each is UNKNOWN:
            entries[key] = UNKNOWN
        elif key in needed or not _is_left_out(key, each, inner):
            entries[key] = _typed(each, inner, api)
    for key in _ALWAYS_THERE.get(type_name, ()):
        entries.setdefault(key, DocumentValue())
    return _map(entries)


def _is_left_out(key: str, value: Any, type_name: str) -> bool:
    if type_name.startswith(("[]", "{}")):
        return not value
    if type_name in ("int32", "int64") and key not in _PLAIN_NUMBERS:
        return False
    zero = _ZEROS.get(type_name)
    return zero is not None and type(value) is type(zero) and value == zero and key not in _KEPT.get(type_name, ())


def _typed(value: Any, type_name: str, api: ApiTypes) -> Value:
    if type_name.startswith("[]") and isinstance(value, list):
        return List(_typed(each, type_name[2:], api) for each in value)
    if type_name.startswith("{}") and isinstance(value, dict):
        return _map({key: each if each is UNKNOWN else _typed(each, type_name[2:], api) for key, each in value.items()})
    if type_name == "quantity":
        return canonical_text(str(value))
    return _struct(value, type_name, api) if isinstance(value, dict) and type_name in api.types else _any(value)


# What controllers compute for the pods they create.
_COMPUTED_LABELS: Final = (
    *("pod-template-hash", "controller-revision-hash", "pod-template-generation"),
    *("controller-uid", "batch.kubernetes.io/controller-uid"),
)
_TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path


def admitted_pod(
    pod: Document, limit_ranges: Iterable[LimitRange] = (), *, is_generated: bool = False
) -> dict[str, Any]:
    """Return a new pod as the plugins change it that are on by default: its account, tolerations and resources.

    ``is_generated`` means that a controller creates it, so that its name and some labels are computed. ``limit_ranges``
    are those of its namespace.
    """
    result: dict[str, Any] = deepcopy(dict(pod))
    spec = result.setdefault("spec", {})
    account = spec.get("serviceAccountName") or DEFAULT_ACCOUNT
    spec.update(serviceAccountName=account, serviceAccount=account)
    containers = [each for key in ("initContainers", "containers") for each in spec.get(key) or []]
    for each in containers:
        _add_limits(each, limit_ranges)
    if spec.get("automountServiceAccountToken") is not False:
        _mount_token(spec, containers)
    own = spec.get("tolerations") or []
    missing = not_tolerated([(each.get("key") or "", each.get("effect") or "") for each in own])
    added = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": DEFAULT_SECONDS}
    spec["tolerations"] = [*own, *({"key": key, **added} for key in missing)]
    if is_generated:
        _hide_computed(result.setdefault("metadata", {}))
    return result


def _mount_token(spec: dict[str, Any], containers: Iterable[dict[str, Any]]) -> None:
    lacking = [
        each
        for each in containers
        if all(mount.get("mountPath") != _TOKEN_PATH for mount in each.get("volumeMounts") or [])
    ]
    if not lacking:
        return
    name = "kube-api-access-xxxxx"
    for each in lacking:
        mount = {"name": name, "mountPath": _TOKEN_PATH, "readOnly": True}
        each["volumeMounts"] = [*(each.get("volumeMounts") or []), mount]
    sources: list[dict[str, Any]] = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]
    volume = {"name": name, "projected": {"sources": sources, "defaultMode": 0o644}}
    spec["volumes"] = [*(spec.get("volumes") or []), volume]


def _add_limits(container: dict[str, Any], limit_ranges: Iterable[LimitRange]) -> None:
    """Add the defaults of LimitRanges to a container's resources."""
    for item in (item for each in limit_ranges for item in each.spec.limits if item.type == "Container"):
        resources = container["resources"] = {**mapping_in(container, "resources")}
        for key, defaults in (("limits", item.default), ("requests", item.default_request)):
            if added := {name: str(each) for name, each in defaults.items()}:
                resources[key] = {**added, **mapping_in(resources, key)}


def _hide_computed(metadata: dict[str, Any]) -> None:
    metadata["name"] = UNKNOWN
    labels = mapping_in(metadata, "labels")
    metadata["labels"] = {key: UNKNOWN if key in _COMPUTED_LABELS else each for key, each in labels.items()}
    metadata["ownerReferences"] = [
        {**each, "uid": UNKNOWN, **({"name": UNKNOWN} if each.get("kind") in ("ReplicaSet", "Job") else {})}
        for each in metadata.get("ownerReferences") or []
    ]
