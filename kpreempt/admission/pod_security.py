"""The Pod Security Standards that a namespace's labels select, and how a pod violates them.

Follows ``k8s.io/pod-security-admission`` v0.36.3 (``admission/admission.go``, ``api/helpers.go``,
``policy/check_*.go``), with the sysctls of v0.37.1. The API server's own configuration, which can set other defaults
and exempt namespaces, users and runtime classes, is unknown, so the usual one is assumed: privileged, with no
exemptions.

The server copies AppArmor profiles between annotations and fields first; here only those in the manifest are reported.
A check that is newer than the server does not exist there, so ``latest`` and newer versions are the server's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kpreempt.admission.validation.problems import Document, Problems, invalid
from kpreempt.model.documents import mapping_in, mappings_in

Labels = Mapping[str, str]

_PREFIX = "pod-security.kubernetes.io/"
_PRIVILEGED, _BASELINE, _RESTRICTED = _LEVELS = ("privileged", "baseline", "restricted")
_LATEST = "latest"
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")

# The plugin is on by default from 1.23 on.
_FIRST = 23

_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_PROFILES = ("RuntimeDefault", "Localhost")
_CAPABILITIES = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"),
        *("SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
# The only capability that restricted allows.
_ALLOWED = "NET_BIND_SERVICE"
# The types that baseline allows, each with the first policy version that does.
_SE_LINUX_TYPES = {"container_t": 0, "container_init_t": 0, "container_kvm_t": 0, "container_engine_t": 31}
# The sysctls that baseline allows, each with the first policy version that does.
_SYSCTLS = {
    "kernel.shm_rmid_forced": 0,
    "net.ipv4.ip_local_port_range": 0,
    "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ping_group_range": 0,
    "net.ipv4.ip_unprivileged_port_start": 0,
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_keepalive_time": 29,
    "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29,
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
    "net.ipv4.tcp_slow_start_after_idle": 37,
    "net.ipv4.tcp_notsent_lowat": 37,
}
_VOLUMES = frozenset(
    {
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected"),
        "secret",
    }
)
_HANDLERS = (
    *(("livenessProbe",), ("readinessProbe",), ("startupProbe",)),
    *(("lifecycle", "postStart"), ("lifecycle", "preStop")),
)


class Standard(NamedTuple):
    """A level and a policy version: a minor version of Kubernetes, or ``None`` for the latest."""

    level: str = _PRIVILEGED
    version: int | None = None

    def __str__(self) -> str:
        """``restricted:latest``."""
        return f"{self.level}:{_LATEST if self.version is None else f'v1.{self.version}'}"


class Standards(NamedTuple):
    """The standards of a namespace: ``enforce`` rejects pods, ``warn`` only prints a warning."""

    enforce: Standard = Standard()
    warn: Standard = Standard()


class Violations(NamedTuple):
    """How a pod violates the enforced standard and the one for warnings, in the API server's words, or nothing."""

    enforce: str = ""
    warn: str = ""


def standards_of(labels: Labels) -> Standards:
    """Return the standards that the labels of a namespace select.

    Without a level for warnings, that of the enforced standard applies. An unknown enforced level is taken as
    restricted, an unknown level for warnings as privileged, and an unknown version as the latest.
    """
    enforce = _standard(labels, "enforce", unknown=_RESTRICTED)
    warn = _standard(labels, "warn", unknown=_PRIVILEGED)
    is_default = f"{_PREFIX}warn" not in labels and labels.get(f"{_PREFIX}enforce") in _LEVELS
    if is_default and enforce.level != _PRIVILEGED:
        has_version = f"{_PREFIX}warn-version" in labels
        warn = Standard(enforce.level, warn.version if has_version else enforce.version)
    return Standards(enforce, warn)


def check_labels(labels: Labels) -> Problems:
    """Validate the labels of a namespace that select its standards."""
    for mode in ("enforce", "audit", "warn"):
        level, version = labels.get(f"{_PREFIX}{mode}"), labels.get(f"{_PREFIX}{mode}-version")
        if level is not None and level not in _LEVELS:
            detail = f"must be one of {', '.join(_LEVELS)}"
            yield invalid(("metadata", "labels", f"{_PREFIX}{mode}"), level, detail)
        if version is not None and version != _LATEST and not _VERSION.fullmatch(version):
            yield invalid(("metadata", "labels", f"{_PREFIX}{mode}-version"), version, 'must be "latest" or "v1.x"')


def violations_of(pod: Document, labels: Labels, minor: int) -> Violations:
    """Return how a pod, as plain data, violates the standards that a namespace's ``labels`` select.

    ``minor`` is the minor version of the API server. Without the defaults of the API, the result is the same. A pod
    template violates standards like its pods, but only its pods are rejected.
    """
    standards = standards_of(labels)
    enforce, warn = (_violation(pod, each, minor) for each in standards)
    return Violations(
        f'violates PodSecurity "{standards.enforce}": {enforce}' if enforce else "",
        f'would violate PodSecurity "{standards.warn}": {warn}' if warn else "",
    )


def _standard(labels: Labels, mode: str, *, unknown: str) -> Standard:
    level = labels.get(f"{_PREFIX}{mode}", _PRIVILEGED)
    version = _VERSION.fullmatch(labels.get(f"{_PREFIX}{mode}-version", _LATEST))
    return Standard(level if level in _LEVELS else unknown, int(version[1]) if version else None)


class _Pod:
    """A pod that is checked by a policy ``version`` on a server of version 1.``server``.

    ``version`` is a minor version, not newer than the server.
    """

    def __init__(self, pod: Document, version: int, server: int) -> None:
        self.version, self.server = version, server
        self.spec = mapping_in(pod, "spec")
        self.context = mapping_in(self.spec, "securityContext")
        self.annotations = {key: str(each) for key, each in mapping_in(pod, "metadata", "annotations").items()}
        self.containers = [
            each
            for key in ("initContainers", "containers", "ephemeralContainers")
            for each in mappings_in(self.spec, key)
        ]
        self.contexts = [(str(each.get("name", "")), mapping_in(each, "securityContext")) for each in self.containers]
        self.volumes = list(mappings_in(self.spec, "volumes"))

    @property
    def is_windows(self) -> bool:
        """Whether it is exempt from checks that Windows lacks."""
        return self.version >= 25 and mapping_in(self.spec, "os").get("name") == "windows"

    @property
    def has_user_namespace(self) -> bool:
        """Whether it is exempt from checks of the user."""
        return self.version >= 35 and self.spec.get("hostUsers") is False

    def containers_with(self, is_bad: Callable[[Document], object]) -> list[str]:
        """Return the names of the containers whose security context is bad."""
        return [name for name, context in self.contexts if is_bad(context)]

    def setters(self, is_bad: Callable[[Document], object]) -> str:
        """Return ``pod and containers "a", "b"`` for what has a bad security context."""
        names = self.containers_with(is_bad)
        return " and ".join(["pod"] * bool(is_bad(self.context)) + [_named("container", names)] * bool(names))

    def values(self, *path: str) -> list[Any]:
        """Return the values at a path of the security contexts of the pod and its containers."""
        found = (_at(each, *path) for each in (self.context, *(context for _, context in self.contexts)))
        return [each for each in found if each is not None]


def _named(noun: str, names: Sequence[str]) -> str:
    return f"{noun if len(names) == 1 else f'{noun}s'} {_quoted(names)}"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{each}"' for each in names)


def _listed(values: Iterable[Any]) -> list[str]:
    return sorted({str(each) for each in values})


def _at(context: Document, *path: str) -> Any:
    return mapping_in(context, *path[:-1]).get(path[-1])


# Baseline.


def _app_armor(pod: _Pod) -> str:
    def is_bad(context: Document) -> bool:
        # The field is new in 1.30.
        return pod.server >= 30 and _at(context, "appArmorProfile", "type") not in (None, *_PROFILES)

    annotations = [
        f"{key}={json.dumps(value)}"
        for key, value in sorted(pod.annotations.items())
        if key.startswith(_APP_ARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    ]
    contexts = (pod.context, *(each for _, each in pod.contexts))
    values = [*_listed(_at(each, "appArmorProfile", "type") for each in contexts if is_bad(each)), *annotations]
    if not values:
        return ""
    noun = "forbidden AppArmor profile" if len(values) == 1 else "forbidden AppArmor profiles"
    if pod.server < 30:
        return f"{noun} ({', '.join(values)})"
    places = [pod.setters(is_bad), ("annotation" if len(annotations) == 1 else "annotations") if annotations else ""]
    return f"{noun} ({' and '.join(filter(None, places))} must not set AppArmor profile type to {_quoted(values)})"


def _capabilities_of(context: Document, change: str = "add") -> list[str]:
    capabilities = _at(context, "capabilities", change)
    return [str(each) for each in capabilities] if isinstance(capabilities, list) else []


def _capabilities(pod: _Pod) -> str:
    names = pod.containers_with(lambda context: {*_capabilities_of(context)} - _CAPABILITIES)
    bad = _listed(
        each for _, context in pod.contexts for each in _capabilities_of(context) if each not in _CAPABILITIES
    )
    return f"non-default capabilities ({_not_to_add(names, bad)})" if names else ""


def _not_to_add(names: Sequence[str], capabilities: Sequence[str]) -> str:
    must = f"must not include {_quoted(capabilities)} in securityContext.capabilities.add"
    return f"{_named('container', names)} {must}"


def _host_namespaces(pod: _Pod) -> str:
    found = [f"{each}=true" for each in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(each)]
    return f"host namespaces ({', '.join(found)})" if found else ""


def _host_paths(pod: _Pod) -> str:
    names = [str(each.get("name", "")) for each in pod.volumes if each.get("hostPath") is not None]
    return f"hostPath volumes ({_named('volume', names)})" if names else ""


def _host_ports(pod: _Pod) -> str:
    names: list[str] = []
    ports: list[int] = []
    for (name, _), container in zip(pod.contexts, pod.containers, strict=True):
        own = [port["hostPort"] for port in mappings_in(container, "ports") if port.get("hostPort")]
        names += [name] if own else []
        ports += own
    listed = _listed(ports)
    return _used("hostPort", names, "hostPort", ", ".join(listed), len(listed))


def _used(reason: str, names: Sequence[str], noun: str, values: str, count: int, user: str = "container") -> str:
    """Return ``hostPort (containers "a", "b" use hostPorts 80, 81)``."""
    if not names:
        return ""
    verb, plural = "uses" if len(names) == 1 else "use", "" if count == 1 else "s"
    return f"{reason} ({_named(user, names)} {verb} {noun}{plural} {values})"


def _probe_hosts(pod: _Pod) -> str:
    hosts: dict[str, list[str]] = {}
    for each in pod.containers:
        for path in _HANDLERS:
            for action in ("httpGet", "tcpSocket"):
                if host := mapping_in(each, *path, action).get("host"):
                    hosts.setdefault(str(each.get("name", "")), []).append(str(host))
    used = _listed(each for own in hosts.values() for each in own)
    noun = "probe or lifecycle host"
    return _used(noun, sorted(hosts), noun, _quoted(used), len(used))


def _privileged(pod: _Pod) -> str:
    names = pod.containers_with(lambda context: context.get("privileged"))
    return f"privileged ({_named('container', names)} must not set securityContext.privileged=true)" if names else ""


def _proc_mount_of_host(pod: _Pod) -> str:
    return "" if pod.has_user_namespace else _proc_mount(pod)


def _proc_mount(pod: _Pod) -> str:
    # The gate ProcMountType is off before 1.33, so the server drops the field.
    def is_bad(context: Document) -> bool:
        return pod.server >= 33 and context.get("procMount") not in (None, "Default")

    names = pod.containers_with(is_bad)
    bad = _listed(context["procMount"] for _, context in pod.contexts if is_bad(context))
    if not names:
        return ""
    return f"procMount ({_named('container', names)} must not set securityContext.procMount to {_quoted(bad)})"


def _se_linux(pod: _Pod) -> str:
    allowed = {"", *(each for each, since in _SE_LINUX_TYPES.items() if since <= pod.version)}

    def is_bad(context: Document) -> bool:
        options = mapping_in(context, "seLinuxOptions")
        return str(options.get("type") or "") not in allowed or bool(options.get("user") or options.get("role"))

    setters = pod.setters(is_bad)
    types = _listed(each for each in pod.values("seLinuxOptions", "type") if each not in allowed)
    details = [_named("type", types)] if types else []
    details += [f"{each} may not be set" for each in ("user", "role") if any(pod.values("seLinuxOptions", each))]
    if not setters:
        return ""
    return f"seLinuxOptions ({setters} set forbidden securityContext.seLinuxOptions: {'; '.join(details)})"


def _seccomp_annotations(pod: _Pod) -> str:
    keys = [_SECCOMP_POD, *(f"{_SECCOMP_CONTAINER}{name}" for name, _ in pod.contexts)]
    bad = _listed(
        f"{key}={json.dumps(value)}"
        for key in keys
        if (value := pod.annotations.get(key)) is not None
        and value not in ("runtime/default", "docker/default")
        and not value.startswith("localhost/")
    )
    noun = "annotation" if len(bad) == 1 else "annotations"
    return f"seccompProfile (forbidden {noun} {', '.join(bad)})" if bad else ""


def _has_bad_seccomp(context: Document) -> bool:
    profile = context.get("seccompProfile")
    return isinstance(profile, dict) and profile.get("type") not in _PROFILES


def _seccomp(pod: _Pod) -> str:
    setters = pod.setters(_has_bad_seccomp)
    bad = _listed(each for each in pod.values("seccompProfile", "type") if each not in _PROFILES)
    if not setters:
        return ""
    return f"seccompProfile ({setters} must not set securityContext.seccompProfile.type to {_quoted(bad)})"


def _sysctls(pod: _Pod) -> str:
    names = [str(each.get("name", "")) for each in mappings_in(pod.context, "sysctls")]
    bad = [each for each in names if _SYSCTLS.get(each, pod.version + 1) > pod.version]
    return f"forbidden sysctls ({', '.join(bad)})" if bad else ""


def _host_process(pod: _Pod) -> str:
    setters = pod.setters(lambda context: _at(context, "windowsOptions", "hostProcess"))
    return f"hostProcess ({setters} must not set securityContext.windowsOptions.hostProcess=true)" if setters else ""


# Restricted.


def _privilege_escalation(pod: _Pod) -> str:
    names = pod.containers_with(lambda context: context.get("allowPrivilegeEscalation") is not False)
    if not names or pod.is_windows:
        return ""
    must = f"{_named('container', names)} must set securityContext.allowPrivilegeEscalation=false"
    return f"allowPrivilegeEscalation != false ({must})"


def _restricted_capabilities(pod: _Pod) -> str:
    keeping = pod.containers_with(lambda context: "ALL" not in _capabilities_of(context, "drop"))
    adding = pod.containers_with(lambda context: {*_capabilities_of(context)} - {_ALLOWED})
    bad = _listed(each for _, context in pod.contexts for each in _capabilities_of(context) if each != _ALLOWED)
    details = []
    if keeping:
        details.append(f'{_named("container", keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        details.append(_not_to_add(adding, bad))
    return f"unrestricted capabilities ({'; '.join(details)})" if details and not pod.is_windows else ""


def _restricted_volumes(pod: _Pod) -> str:
    bad = {
        str(each.get("name", "")): sources[0]
        for each in pod.volumes
        # A volume without a source is an empty directory.
        if (sources := [key for key in each if key != "name" and each[key] is not None]) and not _VOLUMES & {*sources}
    }
    types = _listed(bad.values())
    noun = "restricted volume type"
    return _used(f"{noun}s", list(bad), noun, _quoted(types), len(types), "volume")


def _non_root(pod: _Pod) -> str:
    if pod.has_user_namespace:
        return ""
    reason = "runAsNonRoot != true"
    if setters := pod.setters(lambda context: context.get("runAsNonRoot") is False):
        return f"{reason} ({setters} must not set securityContext.runAsNonRoot=false)"
    names = pod.containers_with(lambda context: context.get("runAsNonRoot") is None)
    if not names or pod.context.get("runAsNonRoot"):
        return ""
    return f"{reason} (pod or {_named('container', names)} must set securityContext.runAsNonRoot=true)"


def _root_user(pod: _Pod) -> str:
    setters = pod.setters(lambda context: context.get("runAsUser") == 0)
    return f"runAsUser=0 ({setters} must not set runAsUser=0)" if setters and not pod.has_user_namespace else ""


def _required_seccomp(pod: _Pod) -> str:
    if pod.is_windows:
        return ""
    if problem := _seccomp(pod):
        return problem
    names = pod.containers_with(lambda context: not isinstance(context.get("seccompProfile"), dict))
    if not names or isinstance(pod.context.get("seccompProfile"), dict):
        return ""
    must = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return f"seccompProfile (pod or {_named('container', names)} {must})"


_FOREVER = 10_000


class _Check(NamedTuple):
    """A check of the policy versions from ``since`` until before ``until``.

    From version ``replaced`` on, restricted has a stricter check instead.
    """

    run: Callable[[_Pod], str]
    since: int = 0
    until: int = _FOREVER
    replaced: int = _FOREVER


# In the order of upstream's names, which is that of the messages.
_BASELINE_CHECKS = (
    _Check(_app_armor),
    _Check(_capabilities, replaced=22),
    _Check(_host_namespaces),
    _Check(_host_paths, replaced=0),
    _Check(_host_ports),
    _Check(_probe_hosts, since=34),
    _Check(_privileged),
    _Check(_proc_mount_of_host, replaced=35),
    _Check(_se_linux),
    _Check(_seccomp_annotations, until=19),
    _Check(_seccomp, since=19, replaced=19),
    _Check(_sysctls),
    _Check(_host_process),
)
_RESTRICTED_CHECKS = (
    _Check(_privilege_escalation, since=8),
    _Check(_restricted_capabilities, since=22),
    _Check(_proc_mount, since=35),
    _Check(_restricted_volumes),
    _Check(_non_root),
    _Check(_root_user, since=23),
    _Check(_required_seccomp, since=19),
)


def _violation(pod: Document, standard: Standard, minor: int) -> str:
    if standard.level == _PRIVILEGED or minor < _FIRST:
        return ""
    version = minor if standard.version is None else min(standard.version, minor)
    is_restricted = standard.level == _RESTRICTED
    checks = [each for each in _BASELINE_CHECKS if not (is_restricted and version >= each.replaced)]
    checks += _RESTRICTED_CHECKS if is_restricted else ()
    checked = _Pod(pod, version, minor)
    found = (each.run(checked) for each in checks if each.since <= version < each.until)
    return ", ".join(filter(None, found))
