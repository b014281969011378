"""The parts of a pod's spec with their paths: lists, containers, and fields that an API server ignores.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/pods/helpers.go`` and ``pkg/api/pod/util.go``
(``dropDisabledFields``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from kpreempt.admission.validation.problems import Document, Problem, Problems, Server
from kpreempt.model.documents import Path

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
HOOKS = ("postStart", "preStop")
ALWAYS = "Always"
SYSTEM_ADMIN = "CAP_SYS_ADMIN"

_NEVER = 1000
_EACH = "*"
_STOP_SIGNAL = "stopSignal"
# Fields, and the first version in which their feature gate is on by default. Before it the API server drops them,
# unless the old object has them.
_POD_FIELDS: Sequence[tuple[tuple[str, ...], int]] = (
    (("hostUsers",), 33),
    (("securityContext", "supplementalGroupsPolicy"), 33),
    (("securityContext", "seLinuxChangePolicy"), 33),
    (("resources",), 34),
    (("resourceClaims",), 34),
    (("hostnameOverride",), 35),
    (("workloadRef",), _NEVER),
    (("schedulingGroup",), _NEVER),
    (("evictionResponders",), _NEVER),
)
_PROJECTED = ("volumes", _EACH, "projected", "sources", _EACH)
_VOLUME_FIELDS: Sequence[tuple[tuple[str, ...], int]] = (
    (("volumes", _EACH, "emptyDir", "mode"), _NEVER),
    *(((*_PROJECTED, name), 37) for name in ("clusterTrustBundle", "podCertificate")),
)
_CONTAINER_FIELDS: Sequence[tuple[tuple[str, ...], int]] = (
    (("resizePolicy",), 33),
    (("volumeMounts", _EACH, "recursiveReadOnly"), 31),
    (("volumeMounts", _EACH, "bindMountOptions"), _NEVER),
    (("resources", "claims"), 34),
    (("env", _EACH, "valueFrom", "fileKeyRef"), 35),
    (("restartPolicyRules",), 35),
    *((("lifecycle", hook, "sleep"), 30) for hook in HOOKS),
    *((("lifecycle", hook, "httpGet", "protocol"), _NEVER) for hook in HOOKS),
    *(((probe, "httpGet", "protocol"), _NEVER) for probe in PROBES),
    *(((probe, "grpc", "mode"), _NEVER) for probe in PROBES),
    (("lifecycle", _STOP_SIGNAL), _NEVER),
)
_FIELDS = (
    *_POD_FIELDS,
    *_VOLUME_FIELDS,
    *(((name, _EACH, *at), minor) for name in CONTAINER_LISTS for at, minor in _CONTAINER_FIELDS),
)


def elements(document: Document, key: str, path: Path) -> Iterator[tuple[Document, Path]]:
    """Yield each element of a list field with its path."""
    for index, each in enumerate(document.get(key) or ()):
        yield each, (*path, key, index)


def all_containers(spec: Document, path: Path) -> Iterator[tuple[Document, Path]]:
    """Yield all containers of a pod's spec with their paths."""
    for name in CONTAINER_LISTS:
        yield from elements(spec, name, path)


def is_host_users(spec: Document) -> bool:
    """Whether the pod's containers run in the host's user namespace, which is the default."""
    return spec.get("hostUsers") is not False


def new_problems(problems: Iterable[Problem], old_problems: Iterable[Problem]) -> Problems:
    """Yield the problems in fields in which the old object has none.

    The API server accepts an update of an object that already has a value that is no longer valid, wherever in the new
    object it is.
    """
    tolerated = {_field(each.path) for each in old_problems}
    yield from (each for each in problems if _field(each.path) not in tolerated)


def _field(path: Path) -> str | None:
    return next((part for part in reversed(path) if isinstance(part, str)), None)


def in_most_tolerant_form(old: Document, server: Server) -> dict[str, Any]:
    """Return an old spec whose problems include values that the API server tolerates because of related old ones.

    Any old SELinux policy allows the new ones of 1.37. Since then, a container with ``CAP_SYS_ADMIN`` that does not
    allow privilege escalation explicitly may forbid it.
    """
    result = deepcopy(dict(old))
    context = result.get("securityContext") or {}
    if server.minor < 37 and context.get("seLinuxChangePolicy") is not None:
        context["seLinuxChangePolicy"] = "MountOption"
    for holder in _container_holders(result, ("securityContext", "capabilities")) if server.minor >= 37 else ():
        if SYSTEM_ADMIN in (holder["capabilities"].get("add") or ()) and not holder.get("allowPrivilegeEscalation"):
            holder["allowPrivilegeEscalation"] = False
    return result


def without_disabled_fields(spec: Document, old: Document | None, server: Server) -> dict[str, Any]:
    """Return a copy of a pod's spec without the fields that the API server drops, because their feature gate is off."""
    result = deepcopy(dict(spec))
    before = old or {}
    for at, minor in _FIELDS:
        if server.minor < minor and not any(True for _ in _holders(before, at)):
            for holder in list(_holders(result, at)):
                del holder[at[-1]]
                if not holder and at[-1] == _STOP_SIGNAL:
                    # The API server does not keep a lifecycle that had only this.
                    _delete_lifecycle(result, holder)
    if server.minor < 33:
        for holder in _container_holders(result, ("securityContext", "procMount")):
            holder["procMount"] = "Default"
    _drop_restart_policies(result, server)
    if server.minor < 35:
        _drop_image_volumes(result, before)
    return result


def _holders(part: Any, at: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the mappings that have the field at the end of ``at``."""
    first, *rest = at
    if first == _EACH:
        for each in part if isinstance(part, list) else ():
            yield from _holders(each, rest)
    elif isinstance(part, dict) and first in part:
        if rest:
            yield from _holders(part[first], rest)
        else:
            yield part


def _container_holders(spec: Document, at: Sequence[str]) -> Iterator[dict[str, Any]]:
    for name in CONTAINER_LISTS:
        yield from _holders(spec, (name, _EACH, *at))


def _delete_lifecycle(spec: dict[str, Any], lifecycle: object) -> None:
    for container in _container_holders(spec, ("lifecycle",)):
        if container["lifecycle"] is lifecycle:
            del container["lifecycle"]


def _drop_restart_policies(spec: dict[str, Any], server: Server) -> None:
    """Drop the restart policies that 1.34 knows but does not have enabled; older versions reject them."""
    if server.minor != 34:
        return
    for name in CONTAINER_LISTS:
        for container in spec.get(name) or ():
            if name != "initContainers" or container.get("restartPolicy") != ALWAYS:
                container.pop("restartPolicy", None)


def _drop_image_volumes(spec: dict[str, Any], old: Document) -> None:
    if any("image" in volume for volume, _ in elements(old, "volumes", ())):
        return
    images = {volume.get("name") for volume, _ in elements(spec, "volumes", ()) if "image" in volume}
    if not images:
        return
    spec["volumes"] = [each for each in spec["volumes"] if "image" not in each]
    for holder in _container_holders(spec, ("volumeMounts",)):
        holder["volumeMounts"] = [each for each in holder["volumeMounts"] if each.get("name") not in images]
