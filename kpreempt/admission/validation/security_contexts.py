"""Validate the security contexts of pods and containers, and what an operating system allows in them.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/validation/validation.go`` (``ValidateSecurityContext``,
``validatePodSpecSecurityContext``, ``validateWindowsHostProcessPod``, ``validateHostUsers``, ``validateOS``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kpreempt.admission.validation.environment import no_backsteps
from kpreempt.admission.validation.pod_parts import SYSTEM_ADMIN, all_containers, elements, is_host_users
from kpreempt.admission.validation.problems import (
    Document,
    Problems,
    Server,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
    unsupported,
)
from kpreempt.admission.validation.values import MAX_INT32, MAX_SUBDOMAIN, dns_subdomain
from kpreempt.model.documents import Path

LOCALHOST = "Localhost"
LINUX, WINDOWS = "linux", "windows"
_PROFILES = frozenset({LOCALHOST, "RuntimeDefault", "Unconfined"})
_MAX_PATH = 4095
_MAX_CREDENTIALS = 64 * 1024

_SYSCTL_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = re.compile(rf"({_SYSCTL_SEGMENT}[./])*{_SYSCTL_SEGMENT}")
_IPC_SYSCTLS = frozenset(
    {
        "kernel.sem",
        *(f"kernel.shm{each}" for each in ("", "all", "max", "mni", "_rmid_forced")),
        *(f"kernel.msg{each}" for each in ("", "max", "mnb", "mni")),
    }
)
_SWAPPED = str.maketrans("./", "/.")

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NETBIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DNS_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS_DOMAIN = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_NOT_IN_USER = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
_MAX_DOMAIN, _MAX_USER = 256, 104

_POD_ENUMS = {
    "fsGroupChangePolicy": frozenset({"Always", "OnRootMismatch"}),
    "supplementalGroupsPolicy": frozenset({"Merge", "Strict"}),
}
_NOT_ON_WINDOWS = "cannot be set for a windows pod"
_POD_LINUX_FIELDS = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")
_POD_CONTEXT_LINUX_FIELDS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_CONTAINER_LINUX_FIELDS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)
# Fields that are not set if they are ``false`` or empty.
_UNSET_IF_EMPTY = frozenset({"hostPID", "hostIPC", "sysctls", "supplementalGroups"})


def check_container_context(container: Document, is_host_user: bool, path: Path) -> Problems:
    """Validate the security context of a container; ``is_host_user``: it runs in the host's user namespace."""
    context = container.get("securityContext")
    if context is None:
        return
    at = (*path, "securityContext")
    yield from _ids(context, ("runAsUser", "runAsGroup"), at)
    yield from _proc_mount(context, is_host_user, at)
    yield from _escalation(context, at)
    yield from _profiles(context, at)


def _ids(context: Document, fields: Iterable[str], path: Path) -> Problems:
    for field in fields:
        value = context.get(field)
        if value is not None:
            yield from _id(value, (*path, field))


def _id(value: int, path: Path) -> Problems:
    if not 0 <= value <= MAX_INT32:
        yield invalid(path, value, f"must be between 0 and {MAX_INT32}, inclusive")


def _proc_mount(context: Document, is_host_user: bool, path: Path) -> Problems:
    value, at = context.get("procMount"), (*path, "procMount")
    if value is None:
        return
    if value not in ("Default", "Unmasked"):
        yield unsupported(at, value, ("Default", "Unmasked"))
    elif value == "Unmasked" and is_host_user:
        yield invalid(at, value, "`hostUsers` must be false to use `Unmasked`")


def _escalation(context: Document, path: Path) -> Problems:
    if context.get("allowPrivilegeEscalation") is not False:
        return
    at = (*path, "allowPrivilegeEscalation")
    if context.get("privileged"):
        yield invalid(at, False, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
    if SYSTEM_ADMIN in ((context.get("capabilities") or {}).get("add") or ()):
        detail = f"cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` {SYSTEM_ADMIN}"
        yield invalid(at, False, detail)


def _profiles(context: Document, path: Path) -> Problems:
    yield from _seccomp(context.get("seccompProfile"), (*path, "seccompProfile"))
    yield from _windows_options(context.get("windowsOptions"), (*path, "windowsOptions"))
    yield from check_app_armor(context.get("appArmorProfile"), (*path, "appArmorProfile"))


def _seccomp(profile: Document | None, path: Path) -> Problems:
    if profile is None:
        return
    kind, local = profile.get("type"), profile.get("localhostProfile")
    at = (*path, "localhostProfile")
    if not kind:
        yield required((*path, "type"), "type is required when seccompProfile is set")
    elif kind not in _PROFILES:
        yield unsupported((*path, "type"), kind, _PROFILES)
    if kind == LOCALHOST:
        if local is None:
            yield required(at, "must be set when seccomp type is Localhost")
        elif problem := descending_path(local):
            yield invalid(at, local, problem)
    elif local is not None:
        yield invalid(at, local, "can only be set when seccomp type is Localhost")


def descending_path(value: str) -> str:
    """Check a relative path without ``..``."""
    return "must be a relative path" if value.startswith("/") else no_backsteps(value)


def check_app_armor(profile: Document | None, path: Path) -> Problems:
    """Validate an AppArmor profile."""
    if profile is None:
        return
    kind, local = profile.get("type"), profile.get("localhostProfile")
    at = (*path, "localhostProfile")
    if not kind:
        yield required((*path, "type"), "type is required when appArmorProfile is set")
    elif kind not in _PROFILES:
        yield unsupported((*path, "type"), kind, _PROFILES)
    elif kind != LOCALHOST:
        if local is not None:
            yield invalid(at, local, "can only be set when AppArmor type is Localhost")
    elif not local:
        yield required(at, "must be set when AppArmor type is Localhost")
    elif local.strip() != local:
        yield invalid(at, local, "must not be padded with whitespace")
    elif len(local.encode()) > _MAX_PATH:
        yield too_long(at, _MAX_PATH)


def _windows_options(options: Document | None, path: Path) -> Problems:
    if options is None:
        return
    name, credentials, user = (
        options.get(f) for f in ("gmsaCredentialSpecName", "gmsaCredentialSpec", "runAsUserName")
    )
    if name is not None and (problem := dns_subdomain(name)):
        yield invalid((*path, "gmsaCredentialSpecName"), name, problem)
    if credentials == "":
        yield invalid((*path, "gmsaCredentialSpec"), credentials, "gmsaCredentialSpec cannot be an empty string")
    elif credentials and len(credentials.encode()) > _MAX_CREDENTIALS:
        yield invalid((*path, "gmsaCredentialSpec"), credentials, "gmsaCredentialSpec size must be under 64 KiB")
    if user is not None and (problem := _windows_user(user)):
        yield invalid((*path, "runAsUserName"), user, f"runAsUserName{problem}")


def _windows_user(value: str) -> str:
    if not value:
        return " cannot be an empty string"
    if _CONTROL.search(value):
        return " cannot contain control characters"
    if value.count("\\") > 1:
        return " cannot contain more than one backslash"
    domain, separator, user = value.rpartition("\\")
    if len(domain.encode()) >= _MAX_DOMAIN:
        return f"'s Domain length must be under {_MAX_DOMAIN} characters"
    if separator and not (_NETBIOS.fullmatch(domain) or _DNS_DOMAIN.fullmatch(domain)):
        return "'s Domain doesn't match the NetBios nor the DNS format"
    if not user:
        return "'s User cannot be empty"
    if len(user.encode()) > _MAX_USER:
        return f"'s User length must not be longer than {_MAX_USER} characters"
    if not user.strip(". "):
        return "'s User cannot contain only periods or spaces"
    return "'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]" if _NOT_IN_USER.search(user) else ""


def check_pod_context(spec: Document, server: Server, path: Path) -> Problems:
    """Validate the security context of a pod, and its namespaces on the host."""
    context, at = spec.get("securityContext") or {}, (*path, "securityContext")
    yield from _ids(context, ("fsGroup", "runAsUser", "runAsGroup"), at)
    for index, value in enumerate(context.get("supplementalGroups") or ()):
        yield from _id(value, (*at, "supplementalGroups", index))
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid((*path, "shareProcessNamespace"), True, detail)
    yield from _sysctls(spec, context, at)
    enums = {**_POD_ENUMS, "seLinuxChangePolicy": frozenset({"Recursive", "MountOption"})}
    if server.minor < 37:
        enums["seLinuxChangePolicy"] = frozenset({"Recursive"})
    for field, known in enums.items():
        value = context.get(field)
        if value is not None and value not in known:
            yield unsupported((*at, field), value, known)
    yield from _profiles(context, at)
    yield from _host_processes(spec, context, path)
    if not is_host_users(spec):
        yield from _user_namespace(spec, server, path)


def _sysctls(spec: Document, context: Document, path: Path) -> Problems:
    seen: set[str] = set()
    for each, where in elements(context, "sysctls", path):
        name, at = each.get("name", ""), (*where, "name")
        if not name:
            yield required(at)
        elif len(name) > MAX_SUBDOMAIN or not _SYSCTL.fullmatch(name):
            detail = f"must have at most {MAX_SUBDOMAIN} characters and match regex ^{_SYSCTL.pattern}$"
            yield invalid(at, name, detail)
        elif name in seen:
            yield duplicate(at, name)
        field = _host_namespace(name)
        if field and spec.get(field):
            yield invalid(at, name, f"may not be specified when '{field}' is true")
        seen.add(name)


def _host_namespace(name: str) -> str:
    """The field that puts a pod into the host's namespace that a sysctl belongs to."""
    separator = re.search("[./]", name)
    if separator and separator[0] == "/":
        name = name.translate(_SWAPPED)
    if name.startswith("net."):
        return "hostNetwork"
    return "hostIPC" if name in _IPC_SYSCTLS or name.startswith("fs.mqueue.") else ""


def _host_processes(spec: Document, context: Document, path: Path) -> Problems:
    """Validate Windows containers that run as processes of the host: all or none of them do."""
    of_pod = (context.get("windowsOptions") or {}).get("hostProcess")
    flags = []
    for container, at in all_containers(spec, path):
        options = (container.get("securityContext") or {}).get("windowsOptions") or {}
        own = options.get("hostProcess")
        if of_pod is not None and own is not None and of_pod != own:
            detail = f"pod hostProcess value must be identical if both are specified, was {str(of_pod).lower()}"
            yield invalid((*at, "securityContext", "windowsOptions", "hostProcess"), own, detail)
        flags.append(bool(of_pod if own is None else own))
    if not any(flags):
        return
    if not all(flags):
        detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield invalid(path, "", detail)
    if not spec.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        yield invalid((*path, "hostNetwork"), False, detail)


def _user_namespace(spec: Document, server: Server, path: Path) -> Problems:
    detail = "when `hostUsers` is false"
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(field):
            yield forbidden((*path, field), detail)
    for container, at in all_containers(spec, path) if server.minor >= 34 else ():
        if container.get("volumeDevices"):
            yield forbidden((*at, "volumeDevices"), detail)


def check_os(spec: Document, path: Path) -> Problems:
    """Validate the operating system of a pod, and the fields that belong to the other one."""
    system = spec.get("os")
    if system is None:
        return
    name = system.get("name")
    if not name:
        yield required((*path, "os", "name"))
    elif name == LINUX:
        yield from _without_windows_options(spec, path)
    elif name == WINDOWS:
        yield from _without_linux_fields(spec, path)
    else:
        yield unsupported((*path, "os"), name, (LINUX, WINDOWS))


def _without_windows_options(spec: Document, path: Path) -> Problems:
    for part, at in ((spec, path), *all_containers(spec, path)):
        if (part.get("securityContext") or {}).get("windowsOptions") is not None:
            where = (*at, "securityContext", "windowsOptions")
            yield forbidden(where, "windows options cannot be set for a linux pod")


def _without_linux_fields(spec: Document, path: Path) -> Problems:
    yield from _unset(spec, _POD_LINUX_FIELDS, path)
    context = spec.get("securityContext") or {}
    yield from _unset(context, _POD_CONTEXT_LINUX_FIELDS, (*path, "securityContext"))
    for container, at in all_containers(spec, path):
        context = container.get("securityContext") or {}
        yield from _unset(context, _CONTAINER_LINUX_FIELDS, (*at, "securityContext"))


def _unset(part: Document, fields: Iterable[str], path: Path) -> Problems:
    for field in fields:
        value = part.get(field)
        is_set = bool(value) if field in _UNSET_IF_EMPTY else value is not None
        if is_set:
            yield forbidden((*path, field), _NOT_ON_WINDOWS)
