"""``kubectl drain``: its options, which pods of a node it evicts, and its messages about the others.

Follows ``k8s.io/kubectl`` v0.36.3 ``pkg/cmd/drain/drain.go``, ``pkg/drain/filters.go`` and ``pkg/drain/drain.go``. The
messages for a failed eviction are the same in v0.32 to v0.34. Older clients wait differently: a timed-out wait may
report "global timeout reached", and v0.29 has no space after "due to error:".
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
# The client's message for a request or a wait that timed out.
DEADLINE = "context deadline exceeded"


class DrainOptions(msgspec.Struct, frozen=True, rename="camel"):
    """The options of ``kubectl drain``; ``timeout`` is in seconds, and 0 means none."""

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
        """The requested grace period; ``None`` means the pod's own."""
        return self.grace_period_seconds if self.grace_period_seconds >= 0 else None


class CommandError(Exception):
    """A command line that kubectl rejects; the text is what it prints, one error per line."""


def shown_duration(seconds: float) -> str:
    """Format seconds like Go formats a duration: ``20s``, ``1m0s``."""
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
    """Parse the value of ``--timeout`` to seconds. Raises ``CommandError``."""
    if not _DURATION.fullmatch(text):
        problem = f'time: invalid duration "{text}"'
        raise CommandError(f'error: invalid argument "{text}" for "--timeout" flag: {problem}\n{USAGE}')
    return sum(float(amount) * _UNITS[unit] for amount, unit in _PART.findall(text))


class Choice(msgspec.Struct, frozen=True):
    """What happens to the pods of a node: messages with the pods they apply to, in list order.

    With errors nothing on the node is evicted, and warnings are not shown.
    """

    pods: list[Pod]
    warnings: dict[str, list[str]]
    errors: dict[str, list[str]]

    def shown_errors(self) -> list[str]:
        """Return the errors as kubectl prints them; kubectl's order is random, here they are sorted."""
        return sorted(f"cannot delete {text}: {', '.join(pods)}" for text, pods in self.errors.items())

    def shown_warnings(self) -> list[str]:
        """Return the warnings as kubectl prints them, sorted."""
        return sorted(f"{text}: {', '.join(pods)}" for text, pods in self.warnings.items())


class _Finding(msgspec.Struct, frozen=True):
    """The result of the filters for a pod."""

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
    """Decide what happens to the pods of ``node``; ``daemon_sets`` are namespaces and names of existing ones."""
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
    """Return the result of the last filter that runs: the first one that skips a pod or reports an error ends it.

    So its warnings about local storage and missing DaemonSets are never shown: a later filter overrides them.
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
    """The timeout for a node, in seconds, expired before a pod was evicted."""
    return f"global timeout reached: {shown_duration(timeout)}"


def not_evicted(pod: Pod, why: str) -> str:
    """A pod could not be evicted."""
    return f'error when evicting pods/"{pod.metadata.name}" -n "{pod.metadata.namespace}": {why}'


def still_there(pod: Pod, why: str) -> str:
    """An evicted pod is not gone."""
    metadata = pod.metadata
    return f'error when waiting for pod "{metadata.name}" in namespace "{metadata.namespace}" to terminate: {why}'
