"""Scheduler configurations: files, and those of managed services that come with kpreempt, by name.

Only publicly documented configurations are included; each file names its source.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpreempt.errors import UsageError
from kpreempt.snapshot.documents import parse_document, read_document

if TYPE_CHECKING:
    from kpreempt.snapshot.live.connection import Connection

# What --scheduler-config takes in addition to files, with a few words on each.
SHIPPED = {"eks": "default configuration of Amazon EKS 1.31 and later"}

_LIVE_PREFIXES = ("configmap/", "cm/")
_NOT_DOCUMENTED = "gke-optimize-utilization"


def read_scheduler_config(name: str) -> dict[str, Any]:
    """The configuration of a shipped name, else of a file (``./eks`` for one of such a name).

    Raises ``InputError``, and ``UsageError`` for a configuration that is not public.
    """
    if name == _NOT_DOCUMENTED:
        message = f"--scheduler-config {name}: GKE does not publish this configuration"
        raise UsageError(message, hint="a FILE with the scoring strategy MostAllocated is similar: docs/schedulers.md")
    if name not in SHIPPED:
        return read_document(name)
    return parse_document(resources.files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8"), name)


def read_own_config(path: str, live: Connection | None, namespace: str) -> dict[str, Any] | None:
    """The configuration of a scheduler with a custom format: a file, or ``configmap/[NAMESPACE/]NAME`` (``live``).

    ``namespace`` is for names without one. Raises ``UsageError``, ``ClusterError`` and ``InputError``.
    """
    prefix = next((each for each in _LIVE_PREFIXES if path.startswith(each)), "")
    if not prefix or Path(path).exists():
        return read_document(path)
    if live is None:
        raise UsageError(
            f"--scheduler-config {path}: a ConfigMap can only be read from a live cluster, not from a dump",
            hint=f"kubectl get {path.replace('/', ' ', 1)} -o yaml > FILE, then --scheduler-config FILE",
        )
    from kpreempt.snapshot.live.api import read_config_map

    given, slash, name = path.removeprefix(prefix).rpartition("/")
    return {**read_config_map(live, given if slash else namespace, name), "kind": "ConfigMap"}
