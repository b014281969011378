"""What the API server fills in to a pod template, on plain data, of which a record keeps only a part.

So that a manifest can be held against what the cluster has. The pods of a simulation get ``kpreempt/admission``'s.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/v1/defaults.go`` and the declared defaults of
``zz_generated.defaults.go``. Parts of a wrong type are left as they are: what is wrong with them is told when the pod
is decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from kpreempt.analysis.document_reader import Document
from kpreempt.model.pod import DEFAULT_GRACE_SECONDS, DEFAULT_RESTART_POLICY, DEFAULT_SCHEDULER_NAME

_FILE_MODE = 0o644
_TOKEN_SECONDS = 3600
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")
_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")
_SOURCE_DEFAULTS: dict[str, Document] = {
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "hostPath": {"type": ""},
}


def template_with_defaults(template: Document, *, is_pod: bool = False) -> Document:
    """A copy of a pod template with the API's defaults; ``is_pod`` for those that only pods get."""
    result = deepcopy(template)
    spec = result.get("spec")
    if not isinstance(spec, dict):
        return result
    _fill(spec, dnsPolicy="ClusterFirst", restartPolicy=DEFAULT_RESTART_POLICY, schedulerName=DEFAULT_SCHEDULER_NAME)
    _fill(spec, terminationGracePeriodSeconds=DEFAULT_GRACE_SECONDS)
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    # The older name of the field is always served beside the newer one.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    on_host = bool(spec.get("hostNetwork"))
    for key in ("containers", "initContainers", "ephemeralContainers"):
        for container in mappings_in(spec, key):
            _fill_container(container, on_host_network=on_host)
            if is_pod and key != "ephemeralContainers":
                _fill_requests(container)
    for volume in mappings_in(spec, "volumes"):
        _fill_volume(volume)
    if is_pod:
        _fill(spec, enableServiceLinks=True)
    return result


def mappings_in(parent: Document, key: str) -> Iterator[Document]:
    """The mappings of a list below ``parent``; nothing of what is no list, or no mapping."""
    value = parent.get(key)
    yield from (each for each in (value if isinstance(value, list) else []) if isinstance(each, dict))


def mapping_in(parent: Document, key: str) -> Document:
    """The mapping below ``parent``, or an empty one that is no part of it."""
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def _fill(parent: Document, **defaults: Any) -> None:
    """Give fields that are missing or empty their defaults; zero means missing, but for a period of grace."""
    for key, default in defaults.items():
        value = parent.get(key)
        is_given = value is not None and (value != "" or default == "")
        if key in _ZERO_IS_MISSING and value == 0 and not isinstance(value, bool):
            is_given = False
        if not is_given:
            parent[key] = default


_ZERO_IS_MISSING = frozenset({"timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"})


def _fill_container(container: Document, *, on_host_network: bool) -> None:
    _fill(
        container,
        imagePullPolicy=_pull_policy(container.get("image")),
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    for port in mappings_in(container, "ports"):
        _fill(port, protocol="TCP")
        # Servers of old filled this in to templates as well.
        if on_host_network and not port.get("hostPort") and "containerPort" in port:
            port["hostPort"] = port["containerPort"]
    for name in _PROBES:
        if isinstance(probe := container.get(name), dict):
            _fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
            _fill_handler(probe)
    lifecycle = mapping_in(container, "lifecycle")
    for name in _HOOKS:
        _fill_handler(mapping_in(lifecycle, name))
    for variable in mappings_in(container, "env"):
        _fill_references(mapping_in(variable, "valueFrom"))


def _fill_handler(handler: Document) -> None:
    if isinstance(get := handler.get("httpGet"), dict):
        _fill(get, path="/", scheme="HTTP")
    if isinstance(grpc := handler.get("grpc"), dict):
        _fill(grpc, service="")


def _fill_references(holder: Document) -> None:
    """Fields and resources of the pod itself, by which a variable or a file gets its value."""
    if isinstance(field := holder.get("fieldRef"), dict):
        _fill(field, apiVersion="v1")
    if isinstance(resource := holder.get("resourceFieldRef"), dict):
        _fill(resource, divisor="0")
    if isinstance(file := holder.get("fileKeyRef"), dict):
        _fill(file, optional=False)


def _fill_requests(container: Document) -> None:
    resources = container.get("resources")
    limits = mapping_in(resources, "limits") if isinstance(resources, dict) else {}
    if isinstance(resources, dict) and limits:
        resources["requests"] = {**limits, **mapping_in(resources, "requests")}


def _fill_volume(volume: Document) -> None:
    sources = [key for key, value in volume.items() if key != "name" and value is not None]
    if not sources:
        volume["emptyDir"] = {}
    for name, defaults in _SOURCE_DEFAULTS.items():
        if isinstance(source := volume.get(name), dict):
            _fill(source, **defaults)
    for name in _WITH_MODE:
        if isinstance(source := volume.get(name), dict):
            _fill(source, defaultMode=_FILE_MODE)
    for item in mappings_in(mapping_in(volume, "downwardAPI"), "items"):
        _fill_references(item)
    for source in mappings_in(mapping_in(volume, "projected"), "sources"):
        if isinstance(token := source.get("serviceAccountToken"), dict):
            _fill(token, expirationSeconds=_TOKEN_SECONDS)
        for item in mappings_in(mapping_in(source, "downwardAPI"), "items"):
            _fill_references(item)
    if isinstance(image := volume.get("image"), dict):
        _fill(image, pullPolicy=_pull_policy(image.get("reference")))
    claim = mapping_in(mapping_in(mapping_in(volume, "ephemeral"), "volumeClaimTemplate"), "spec")
    if claim:
        _fill(claim, volumeMode="Filesystem")


def _pull_policy(image: object) -> str:
    """An image without tag and digest is the latest, which is pulled each time."""
    if not isinstance(image, str):
        return "IfNotPresent"
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"
