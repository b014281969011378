"""Which pods of a node ``kubectl drain`` evicts, and what it says of the others.

Follows ``k8s.io/kubectl`` v0.36.3 ``pkg/drain/filters.go`` and ``pkg/drain/drain.go`` (``GetPodsForDeletion``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime

import msgspec

from kpreempt.eviction.selectors import Requirement
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import TERMINAL_PHASES, Pod

_DAEMON_SET_ERROR = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"
_DAEMON_SET_WARNING = "ignoring DaemonSet-managed Pods"
_STORAGE_ERROR = "Pods with local storage (use --delete-emptydir-data to override)"
_STORAGE_WARNING = "deleting Pods with local storage"
_UNMANAGED_ERROR = "Pods that declare no controller (use --force to override)"
_UNMANAGED_WARNING = "deleting Pods that declare no controller"


class DrainOptions(msgspec.Struct, frozen=True, rename="camel"):
    """The options of ``kubectl drain`` that choose pods."""

    force: bool = False
    ignore_daemon_sets: bool = False
    delete_empty_dir_data: bool = False
    pod_selector: str = ""
    skip_wait_for_delete_timeout_seconds: int = 0
    grace_period_seconds: int = -1
    disable_eviction: bool = False


class DrainPod(msgspec.Struct, frozen=True):
    """A pod, and what the scheduler's view of it lacks: whether it is a static pod's mirror, or has an emptyDir."""

    pod: Pod
    is_mirror: bool = False
    has_empty_dir: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether its phase is Succeeded or Failed."""
        return self.pod.status.phase in TERMINAL_PHASES


class Choice(msgspec.Struct, frozen=True):
    """What is done with the pods of a node: texts with the pods that they are about, in the order of the list.

    With errors nothing of the node is evicted, and warnings are not shown.
    """

    pods: list[DrainPod]
    warnings: dict[str, list[str]]
    errors: dict[str, list[str]]

    def shown_errors(self) -> list[str]:
        """The errors, as kubectl shows them; their order is random there, and by text here."""
        return sorted(f"cannot delete {text}: {', '.join(pods)}" for text, pods in self.errors.items())

    def shown_warnings(self) -> list[str]:
        """The warnings, likewise."""
        return sorted(f"{text}: {', '.join(pods)}" for text, pods in self.warnings.items())


class _Finding(msgspec.Struct, frozen=True):
    """What a filter says of a pod."""

    is_deleted: bool = True
    warning: str = ""
    error: str = ""


_FINE = _Finding()
_LEFT = _Finding(is_deleted=False)
_Filter = Callable[[DrainPod], _Finding]


def choose_pods(
    pods: Iterable[DrainPod],
    node: str,
    options: DrainOptions,
    selector: Collection[Requirement],
    daemon_sets: Collection[tuple[str, str]],
    now: datetime,
) -> Choice:
    """What is done with the pods of ``node``; ``daemon_sets`` are namespaces and names of those that exist."""
    filters: tuple[_Filter, ...] = (
        lambda each: _skipped_deleted(each, options, now),
        lambda each: _of_daemon_set(each, options, daemon_sets),
        lambda each: _LEFT if each.is_mirror else _FINE,
        lambda each: _with_local_storage(each, options),
        lambda each: _unmanaged(each, options),
    )
    chosen: list[DrainPod] = []
    warnings: dict[str, list[str]] = {}
    errors: dict[str, list[str]] = {}
    for each in sorted(pods, key=lambda each: each.pod.key):
        labels = each.pod.metadata.labels
        if each.pod.spec.node_name != node or not all(part.matches(labels) for part in selector):
            continue
        finding = _judged(each, filters)
        if finding.error:
            errors.setdefault(finding.error, []).append(each.pod.key)
            continue
        if finding.warning:
            warnings.setdefault(finding.warning, []).append(each.pod.key)
        if finding.is_deleted:
            chosen.append(each)
    return Choice(chosen, warnings, errors)


def _judged(each: DrainPod, filters: Iterable[_Filter]) -> _Finding:
    """What the last filter says that is asked: the first that leaves a pod alone, or objects, ends it."""
    finding = _FINE
    for judge in filters:
        finding = judge(each)
        if not finding.is_deleted:
            break
    return finding


def _skipped_deleted(each: DrainPod, options: DrainOptions, now: datetime) -> _Finding:
    until, patience = each.pod.metadata.deletion_timestamp, options.skip_wait_for_delete_timeout_seconds
    if patience > 0 and until is not None and int((now - until).total_seconds()) > patience:
        return _LEFT
    return _FINE


def _of_daemon_set(each: DrainPod, options: DrainOptions, daemon_sets: Collection[tuple[str, str]]) -> _Finding:
    owner = controller_of(each.pod.metadata)
    if owner is None or (owner.api_version, owner.kind) != ("apps/v1", "DaemonSet") or each.has_ended:
        return _FINE
    if (each.pod.metadata.namespace, owner.name) not in daemon_sets:
        gone = f'daemonsets.apps "{owner.name}" not found'
        return _Finding(warning=gone) if options.force else _Finding(is_deleted=False, error=gone)
    if not options.ignore_daemon_sets:
        return _Finding(is_deleted=False, error=_DAEMON_SET_ERROR)
    return _Finding(is_deleted=False, warning=_DAEMON_SET_WARNING)


def _with_local_storage(each: DrainPod, options: DrainOptions) -> _Finding:
    if not each.has_empty_dir or each.has_ended:
        return _FINE
    if not options.delete_empty_dir_data:
        return _Finding(is_deleted=False, error=_STORAGE_ERROR)
    return _Finding(warning=_STORAGE_WARNING)


def _unmanaged(each: DrainPod, options: DrainOptions) -> _Finding:
    if controller_of(each.pod.metadata) is not None or each.has_ended:
        return _FINE
    if not options.force:
        return _Finding(is_deleted=False, error=_UNMANAGED_ERROR)
    return _Finding(warning=_UNMANAGED_WARNING)
