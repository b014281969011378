"""``kubectl drain``: its options, which pods of a node it evicts, and what it says of those that stay.

Follows ``k8s.io/kubectl`` v0.36.3 ``pkg/cmd/drain/drain.go``, ``pkg/drain/filters.go`` and ``pkg/drain/drain.go``. The
words for a failed eviction are those of v0.32 to v0.34, too. Older clients wait in another way: a wait that is over may
say "global timeout reached", and v0.29 has no blank after "due to error:".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import datetime

import msgspec

from kpreempt.eviction.selectors import Requirement
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod

USAGE = "See 'kubectl drain -h' for help and examples"
_DURATION = re.compile(r"(?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+|0")
_PART = re.compile(r"(\d+(?:\.\d*)?)(ns|us|µs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
# What the client says of a request, or of a wait, for which the time is over.
DEADLINE = "context deadline exceeded"


class DrainOptions(msgspec.Struct, frozen=True, rename="camel"):
    """The options of ``kubectl drain``; ``timeout`` is in seconds, and 0 for none."""

    force: bool = False
    ignore_daemon_sets: bool = False
    delete_empty_dir_data: bool = False
    pod_selector: str = ""
    skip_wait_for_delete_timeout_seconds: int = 0
    grace_period_seconds: int = -1
    disable_eviction: bool = False
    timeout: float = 0.0

    @property
    def grace(self) -> int | None:
        """The grace period that is asked for; ``None`` is the pod's own."""
        return self.grace_period_seconds if self.grace_period_seconds >= 0 else None


class CommandError(Exception):
    """A command line that kubectl refuses; the text is what it prints, a line each."""


def shown_duration(seconds: float) -> str:
    """Seconds as Go prints a duration: ``20s``, ``1m0s``."""
    whole = int(seconds)
    minutes, rest = divmod(seconds, 60)
    text = f"{rest:.9f}".rstrip("0").rstrip(".") + "s"
    hours, minutes = divmod(int(minutes), 60)
    if seconds < 1 and seconds:
        return f"{seconds * 1000:.6f}".rstrip("0").rstrip(".") + "ms"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if whole >= 60 else text


def timeout_seconds(text: str) -> float:
    """The seconds of ``--timeout``. Raises ``CommandError``."""
    if not _DURATION.fullmatch(text):
        problem = f'time: invalid duration "{text}"'
        raise CommandError(f'error: invalid argument "{text}" for "--timeout" flag: {problem}\n{USAGE}')
    return sum(float(amount) * _UNITS[unit] for amount, unit in _PART.findall(text))


class Choice(msgspec.Struct, frozen=True):
    """What is done with the pods of a node: texts with the pods that they are about, in the order of the list.

    With errors nothing of the node is evicted, and warnings are not shown.
    """

    pods: list[Pod]
    warnings: dict[str, list[str]]
    errors: dict[str, list[str]]

    def shown_errors(self) -> list[str]:
        """The errors, as kubectl shows them; their order is random there, and by text here."""
        return sorted(f"cannot delete {text}: {', '.join(pods)}" for text, pods in self.errors.items())

    def shown_warnings(self) -> list[str]:
        """The warnings, likewise."""
        return sorted(f"{text}: {', '.join(pods)}" for text, pods in self.warnings.items())


class _Finding(msgspec.Struct, frozen=True):
    """What the filters say of a pod."""

    is_deleted: bool = False
    warning: str = ""
    error: str = ""


def choose_pods(
    pods: Iterable[Pod],
    node: str,
    options: DrainOptions,
    selector: Collection[Requirement],
    daemon_sets: Collection[tuple[str, str]],
    now: datetime,
) -> Choice:
    """What is done with the pods of ``node``; ``daemon_sets`` are namespaces and names of those that exist."""
    chosen: list[Pod] = []
    warnings: dict[str, list[str]] = {}
    errors: dict[str, list[str]] = {}
    for pod in sorted(pods, key=lambda each: each.key):
        labels = pod.metadata.labels
        if pod.spec.node_name != node or not all(part.matches(labels) for part in selector):
            continue
        finding = _filtered(pod, options, daemon_sets, now)
        if finding.error:
            errors.setdefault(finding.error, []).append(pod.key)
            continue
        if finding.warning:
            warnings.setdefault(finding.warning, []).append(pod.key)
        if finding.is_deleted:
            chosen.append(pod)
    return Choice(chosen, warnings, errors)


def _filtered(pod: Pod, options: DrainOptions, daemon_sets: Collection[tuple[str, str]], now: datetime) -> _Finding:
    """What the last filter says that kubectl comes to: the first that leaves a pod alone, or objects, ends it.

    So its warnings of local storage, and of a DaemonSet that does not exist, never show: a later filter has the say.
    """
    until, patience = pod.metadata.deletion_timestamp, options.skip_wait_for_delete_timeout_seconds
    if patience > 0 and until is not None and int((now - until).total_seconds()) > patience:
        return _Finding()
    owner = controller_of(pod.metadata)
    if not pod.is_terminal and owner is not None and (owner.api_version, owner.kind) == ("apps/v1", "DaemonSet"):
        if (pod.metadata.namespace, owner.name) in daemon_sets:
            if options.ignore_daemon_sets:
                return _Finding(warning="ignoring DaemonSet-managed Pods")
            return _Finding(error="DaemonSet-managed Pods (use --ignore-daemonsets to ignore)")
        if not options.force:
            return _Finding(error=f'daemonsets.apps "{owner.name}" not found')
    if pod.is_mirror:
        return _Finding()
    if pod.is_terminal:
        return _Finding(is_deleted=True)
    if pod.has_empty_dir and not options.delete_empty_dir_data:
        return _Finding(error="Pods with local storage (use --delete-emptydir-data to override)")
    if owner is not None:
        return _Finding(is_deleted=True)
    if not options.force:
        return _Finding(error="Pods that declare no controller (use --force to override)")
    return _Finding(is_deleted=True, warning="deleting Pods that declare no controller")


def timed_out(timeout: float) -> str:
    """The time that was given for a node, in seconds, is over before a pod was evicted."""
    return f"global timeout reached: {shown_duration(timeout)}"


def not_evicted(pod: Pod, why: str) -> str:
    """A pod is not evicted."""
    return f'error when evicting pods/"{pod.metadata.name}" -n "{pod.metadata.namespace}": {why}'


def still_there(pod: Pod, why: str) -> str:
    """A pod that was evicted is not gone."""
    metadata = pod.metadata
    return f'error when waiting for pod "{metadata.name}" in namespace "{metadata.namespace}" to terminate: {why}'
