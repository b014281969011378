"""Validate the containers of pods and templates.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/validation/validation.go`` (``validateContainers``,
``validateInitContainers``, ``validateEphemeralContainers``, ``validateContainerCommon``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kpreempt.admission.validation.container_resources import check_requirements
from kpreempt.admission.validation.environment import check_environment, check_file_volumes, no_backsteps
from kpreempt.admission.validation.pod_parts import ALWAYS, PROBES, elements, is_host_users, new_problems
from kpreempt.admission.validation.probes import check_lifecycle, check_probes
from kpreempt.admission.validation.problems import (
    Document,
    Problems,
    Server,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
    too_many,
    unsupported,
)
from kpreempt.admission.validation.security_contexts import check_container_context, descending_path
from kpreempt.admission.validation.values import dns_label, port_name, port_number
from kpreempt.model.documents import Path

DEFAULT_GRACE_SECONDS = 30
_PROTOCOLS = frozenset({"TCP", "UDP", "SCTP"})
_ENUMS = {
    "terminationMessagePolicy": frozenset({"File", "FallbackToLogsOnError"}),
    "imagePullPolicy": frozenset({ALWAYS, "IfNotPresent", "Never"}),
}
_PROPAGATIONS = frozenset({"Bidirectional", "HostToContainer", "None"})
_RECURSIVE = frozenset({"Disabled", "Enabled", "IfPossible"})
_RESIZED = frozenset({"cpu", "memory"})
_RESTART = "RestartContainer"
_RESIZE_POLICIES = frozenset({"NotRequired", _RESTART})
_RESTART_POLICIES = frozenset({ALWAYS, "Never", "OnFailure"})
_OPERATORS = frozenset({"In", "NotIn"})
_MAX_RULES, _MAX_EXIT_CODES = 20, 255
_NOT_IN_EPHEMERAL = ("ports", "resources", *PROBES, "lifecycle", "resizePolicy", "restartPolicy", "restartPolicyRules")


class _Pod(NamedTuple):
    """What the validation of a container needs to know about its pod: volumes by name, names of resource claims."""

    spec: Document
    server: Server
    volumes: Mapping[str, Document]
    claims: frozenset[str]

    @property
    def grace_seconds(self) -> int:
        """The time that the containers have to terminate."""
        seconds: int = self.spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)
        return seconds


def check_containers(spec: Document, server: Server, path: Path, *, old: Document | None = None) -> Problems:
    """Validate all containers of a pod's spec; ``path`` is the spec's. Problems that ``old`` has are tolerated."""
    problems = _containers(spec, server, path)
    return problems if old is None else new_problems(problems, _containers(old, server, path))


def _containers(spec: Document, server: Server, path: Path) -> Problems:
    volumes = {each.get("name", ""): each for each, _ in elements(spec, "volumes", path)}
    claims = frozenset(each.get("name", "") for each, _ in elements(spec, "resourceClaims", path))
    pod = _Pod(spec, server, volumes, claims)
    if not spec.get("containers"):
        yield required((*path, "containers"))
    names: set[str] = set()
    for container, at in elements(spec, "containers", path):
        yield from _container(container, pod, at)
        yield from _unique_name(container, names, at)
    yield from _host_ports(elements(spec, "containers", path))
    for container, at in elements(spec, "initContainers", path):
        yield from _init_container(container, pod, at)
        yield from _unique_name(container, names, at)
        # Init containers run one after the other, so they may share host ports.
        yield from _host_ports([(container, at)])
    targets = set(names)
    for container, at in elements(spec, "ephemeralContainers", path):
        yield from _ephemeral_container(container, pod, at)
        yield from _unique_name(container, names, at)
        target = container.get("targetContainerName")
        if target and target not in targets:
            yield not_found((*at, "targetContainerName"), target)


def _unique_name(container: Document, names: set[str], path: Path) -> Problems:
    name = container.get("name")
    if not name:
        return
    if name in names:
        yield duplicate((*path, "name"), name)
    names.add(name)


def _host_ports(containers: Iterable[tuple[Document, Path]]) -> Problems:
    seen: set[str] = set()
    for container, path in containers:
        for port, at in elements(container, "ports", path):
            number = port.get("hostPort")
            if not number:
                continue
            key = f"{port.get('protocol', 'TCP')}/{port.get('hostIP', '')}/{number}"
            if key in seen:
                yield duplicate((*at, "hostPort"), key)
            seen.add(key)


def _container(container: Document, pod: _Pod, path: Path) -> Problems:
    yield from _common(container, pod, path)
    yield from _hooks_and_probes(container, pod, path)
    if pod.server.minor >= 34:
        yield from _restart_policy(container, pod.server, path)
    elif container.get("restartPolicy") is not None:
        yield forbidden((*path, "restartPolicy"), "may not be set for non-init containers")


def _hooks_and_probes(container: Document, pod: _Pod, path: Path) -> Problems:
    lifecycle = container.get("lifecycle")
    if lifecycle is not None:
        yield from check_lifecycle(lifecycle, pod.grace_seconds, pod.server, (*path, "lifecycle"))
    yield from check_probes(container, path)


def _init_container(container: Document, pod: _Pod, path: Path) -> Problems:
    yield from _common(container, pod, path)
    policy, minor = container.get("restartPolicy"), pod.server.minor
    if minor < 34:
        if policy is not None and policy != ALWAYS:
            yield unsupported((*path, "restartPolicy"), policy, (ALWAYS,))
    elif policy == ALWAYS and minor < 36:
        if container.get("restartPolicyRules"):
            detail = "restartPolicyRules are not allowed for init containers with restart policy Always"
            yield forbidden((*path, "restartPolicyRules"), detail)
    else:
        yield from _restart_policy(container, pod.server, path)
    if policy == ALWAYS:
        yield from _hooks_and_probes(container, pod, path)
        return
    for field in ("lifecycle", *PROBES):
        if container.get(field) is not None:
            yield forbidden((*path, field), "may not be set for init containers without restartPolicy=Always")
    for each, at in elements(container, "resizePolicy", path) if minor >= 36 else ():
        if each.get("restartPolicy") == _RESTART:
            detail = f"must not be set to '{_RESTART}' for non-sidecar initContainers"
            yield invalid((*at, "restartPolicy"), _RESTART, detail)


def _ephemeral_container(container: Document, pod: _Pod, path: Path) -> Problems:
    yield from _common(container, pod, path)
    yield from check_image_padding(container, path)
    detail = "cannot be set for an Ephemeral Container"
    for field in _NOT_IN_EPHEMERAL:
        if container.get(field) not in (None, {}, []):
            yield forbidden((*path, field), detail)
    for mount, at in elements(container, "volumeMounts", path):
        for field in ("subPath", "subPathExpr"):
            if mount.get(field):
                yield forbidden((*at, field), detail)


def check_image_padding(container: Document, path: Path) -> Problems:
    """Validate the image of a container of a pod; templates may have whitespace around it."""
    image = container.get("image", "")
    if image.strip() != image:
        yield invalid((*path, "image"), image, "must not have leading or trailing whitespace")


def _restart_policy(container: Document, server: Server, path: Path) -> Problems:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    if policy is None:
        if rules:
            yield required((*path, "restartPolicy"), "must specify restartPolicy when restart rules are used")
    elif policy not in _RESTART_POLICIES:
        yield unsupported((*path, "restartPolicy"), policy, _RESTART_POLICIES)
    if len(rules) > _MAX_RULES:
        yield too_many((*path, "restartPolicyRules"), len(rules), _MAX_RULES)
    actions = ("Restart", "RestartAllContainers") if server.minor >= 36 else ("Restart",)
    for rule, at in elements(container, "restartPolicyRules", path):
        if rule.get("action") not in actions:
            yield unsupported((*at, "action"), rule.get("action", ""), actions)
        yield from _exit_codes(rule.get("exitCodes"), (*at, "exitCodes"))


def _exit_codes(codes: Document | None, path: Path) -> Problems:
    if codes is None:
        yield required(path, "must be specified")
        return
    if codes.get("operator") not in _OPERATORS:
        yield unsupported((*path, "operator"), codes.get("operator", ""), _OPERATORS)
    count = len(codes.get("values") or ())
    if count > _MAX_EXIT_CODES:
        yield too_many((*path, "values"), count, _MAX_EXIT_CODES)


def _common(container: Document, pod: _Pod, path: Path) -> Problems:
    name = container.get("name")
    if not name:
        yield required((*path, "name"))
    elif problem := dns_label(name):
        yield invalid((*path, "name"), name, problem)
    if not container.get("image"):
        yield required((*path, "image"))
    for field, known in _ENUMS.items():
        yield from _one_of(container, field, known, path)
    yield from _ports(container, path)
    yield from check_environment(container, pod.server, path)
    yield from check_file_volumes(container, pod.volumes, path)
    yield from _mounts(container, pod, path)
    yield from _devices(container, pod, path)
    yield from check_requirements(container.get("resources") or {}, (*path, "resources"), pod.claims)
    yield from _resize_policies(container, pod, path)
    yield from check_container_context(container, is_host_users(pod.spec), path)


def _one_of(part: Document, field: str, known: Iterable[str], path: Path) -> Problems:
    """Validate an enum; a missing field has its default."""
    value = part.get(field)
    if value == "":
        yield required((*path, field))
    elif value is not None and value not in known:
        yield unsupported((*path, field), value, known)


def _ports(container: Document, path: Path) -> Problems:
    names: set[str] = set()
    for port, at in elements(container, "ports", path):
        name = port.get("name")
        if name and (problem := port_name(name)):
            yield invalid((*at, "name"), name, problem)
        elif name in names:
            yield duplicate((*at, "name"), name)
        elif name:
            names.add(name)
        if not port.get("containerPort"):
            yield required((*at, "containerPort"))
        for field in ("containerPort", "hostPort"):
            number = port.get(field)
            if number and (problem := port_number(number)):
                yield invalid((*at, field), number, problem)
        yield from _one_of(port, "protocol", _PROTOCOLS, at)


def _mounts(container: Document, pod: _Pod, path: Path) -> Problems:
    devices = {each.get("name"): each.get("devicePath") for each, _ in elements(container, "volumeDevices", path)}
    paths: set[str] = set()
    for mount, at in elements(container, "volumeMounts", path):
        name, mount_path = mount.get("name", ""), mount.get("mountPath", "")
        yield from _volume_name(name, pod, at)
        if not mount_path:
            yield required((*at, "mountPath"))
        elif mount_path in paths:
            yield invalid((*at, "mountPath"), mount_path, "must be unique")
        paths.add(mount_path)
        if name in devices:
            yield invalid((*at, "name"), name, "must not already exist in volumeDevices")
        if mount_path in devices.values():
            yield invalid((*at, "mountPath"), mount_path, "must not already exist as a path in volumeDevices")
        yield from _sub_paths(mount, at)
        yield from _propagation(mount, container, at)
        yield from _recursive_read_only(mount, at)


def _volume_name(name: str, pod: _Pod, path: Path) -> Problems:
    if not name:
        yield required((*path, "name"))
    elif name not in pod.volumes:
        yield not_found((*path, "name"), name)


def _sub_paths(mount: Document, path: Path) -> Problems:
    for field in ("subPath", "subPathExpr"):
        value = mount.get(field)
        if value and (problem := descending_path(value)):
            yield invalid((*path, field), value, problem)
    if mount.get("subPath") and mount.get("subPathExpr"):
        detail = "subPathExpr and subPath are mutually exclusive"
        yield invalid((*path, "subPathExpr"), mount["subPathExpr"], detail)


def _propagation(mount: Document, container: Document, path: Path) -> Problems:
    value, at = mount.get("mountPropagation"), (*path, "mountPropagation")
    if value is None:
        return
    if value not in _PROPAGATIONS:
        yield unsupported(at, value, _PROPAGATIONS)
    if value == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        yield forbidden(at, "Bidirectional mount propagation is available only to privileged containers")


def _recursive_read_only(mount: Document, path: Path) -> Problems:
    value, at = mount.get("recursiveReadOnly"), (*path, "recursiveReadOnly")
    if value is None or value == "Disabled":
        return
    if value not in _RECURSIVE:
        yield unsupported(at, value, _RECURSIVE)
        return
    if not mount.get("readOnly"):
        yield forbidden(at, "may only be specified when readOnly is true")
    if mount.get("mountPropagation", "None") != "None":
        yield forbidden(at, "may only be specified when mountPropagation is None or not specified")


def _devices(container: Document, pod: _Pod, path: Path) -> Problems:
    mounts = {each.get("name"): each.get("mountPath") for each, _ in elements(container, "volumeMounts", path)}
    names: set[str] = set()
    paths: set[str] = set()
    for device, at in elements(container, "volumeDevices", path):
        name, device_path = device.get("name", ""), device.get("devicePath", "")
        yield from _volume_name(name, pod, at)
        yield from _block_volume(name, pod, at)
        if name and name in names:
            yield invalid((*at, "name"), name, "must be unique")
        if not device_path:
            yield required((*at, "devicePath"))
        elif device_path in paths:
            yield invalid((*at, "devicePath"), device_path, "must be unique")
        if no_backsteps(device_path):
            yield invalid((*at, "devicePath"), device_path, "can not contain backsteps ('..')")
        names.add(name)
        paths.add(device_path)
        if name in mounts:
            yield invalid((*at, "name"), name, "must not already exist in volumeMounts")
        if device_path in mounts.values():
            yield invalid((*at, "devicePath"), device_path, "must not already exist as a path in volumeMounts")


def _block_volume(name: str, pod: _Pod, path: Path) -> Problems:
    volume = pod.volumes.get(name)
    if volume is None or any(volume.get(each) is not None for each in ("persistentVolumeClaim", "ephemeral")):
        return
    detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
    yield invalid((*path, "name"), name, detail)


def _resize_policies(container: Document, pod: _Pod, path: Path) -> Problems:
    names: set[str] = set()
    never = pod.spec.get("restartPolicy") == "Never"
    for each, at in elements(container, "resizePolicy", path):
        name, policy = each.get("resourceName", ""), each.get("restartPolicy", "")
        if name in names:
            yield duplicate(at, name)
        names.add(name)
        yield from _one_of({"resourceName": name}, "resourceName", _RESIZED, at)
        yield from _one_of({"restartPolicy": policy}, "restartPolicy", _RESIZE_POLICIES, at)
        if never and policy != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield invalid((*at, "restartPolicy"), policy, detail)
