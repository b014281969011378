"""Validate the probes and lifecycle hooks of containers.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/validation/validation.go`` (``validateProbe``,
``validateLifecycle``, ``validateHandler``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from kpreempt.admission.validation.pod_parts import HOOKS, PROBES
from kpreempt.admission.validation.problems import (
    Document,
    Problems,
    Server,
    forbidden,
    invalid,
    required,
    unsupported,
)
from kpreempt.admission.validation.values import port_name, port_number
from kpreempt.model.documents import Path

_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_SCHEMES = frozenset({"HTTP", "HTTPS"})
_HEADER = re.compile("[-A-Za-z0-9]+")
_AMOUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_GRACE = "terminationGracePeriodSeconds"
_Handler = Callable[[Document, Path], Problems]


def check_probes(container: Document, path: Path) -> Problems:
    """Validate the probes of a container."""
    for name in PROBES:
        probe = container.get(name)
        if probe is not None:
            yield from _probe(probe, name, (*path, name))


def _probe(probe: Document, name: str, path: Path) -> Problems:
    yield from _one_handler(probe, _PROBE_HANDLERS, _HANDLERS, path)
    for field in _AMOUNTS:
        if probe.get(field, 0) < 0:
            yield invalid((*path, field), probe[field], "must be greater than or equal to 0")
    grace, at = probe.get(_GRACE), (*path, _GRACE)
    if grace is not None and grace <= 0:
        yield invalid(at, grace, "must be greater than 0")
    if name == "readinessProbe":
        if grace is not None:
            yield invalid(at, grace, "must not be set for readinessProbes")
    elif probe.get("successThreshold", 1) != 1:
        yield invalid((*path, "successThreshold"), probe["successThreshold"], "must be 1")


def check_lifecycle(lifecycle: Document, grace_seconds: int, server: Server, path: Path) -> Problems:
    """Validate the hooks of a container in a pod with a termination grace period."""

    def check_sleep(sleep: Document, at: Path) -> Problems:
        seconds, lowest = sleep.get("seconds", 0), 0 if server.minor >= 33 else 1
        if not lowest <= seconds <= grace_seconds:
            bound = "must be greater than 0" if lowest else "must be non-negative"
            yield invalid(at, seconds, f"{bound} and less than terminationGracePeriodSeconds ({grace_seconds})")

    handlers = {**_HANDLERS, "sleep": check_sleep}
    for hook in HOOKS:
        if lifecycle.get(hook) is not None:
            yield from _one_handler(lifecycle[hook], _HOOK_HANDLERS, handlers, (*path, hook))


def _one_handler(parent: Document, names: Sequence[str], handlers: dict[str, _Handler], path: Path) -> Problems:
    given = [name for name in names if parent.get(name) is not None]
    if not given:
        yield required(path, "must specify a handler type")
        return
    first, *others = given
    yield from handlers[first](parent[first], (*path, first))
    for name in others:
        yield forbidden((*path, name), "may not specify more than 1 handler type")


def _exec(action: Document, path: Path) -> Problems:
    if not action.get("command"):
        yield required((*path, "command"))


def _http(action: Document, path: Path) -> Problems:
    if action.get("path") == "":
        yield required((*path, "path"))
    yield from _port(action, path)
    scheme = action.get("scheme", "HTTP")
    if scheme not in _SCHEMES:
        yield unsupported((*path, "scheme"), scheme, _SCHEMES)
    for index, header in enumerate(action.get("httpHeaders") or ()):
        name = header.get("name", "")
        if not _HEADER.fullmatch(name):
            detail = (
                "a valid HTTP header must consist of alphanumeric characters or '-' (regex used for validation is "
                f"'{_HEADER.pattern}')"
            )
            yield invalid((*path, "httpHeaders", index, "name"), name, detail)


def _port(action: Document, path: Path) -> Problems:
    port = action.get("port", 0)
    if problem := port_name(port) if isinstance(port, str) else port_number(port):
        yield invalid((*path, "port"), port, problem)


_HANDLERS: dict[str, _Handler] = {"exec": _exec, "httpGet": _http, "tcpSocket": _port, "grpc": _port}
