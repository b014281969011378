"""conformance: critical pods are never evicted (``plugins/conformance/conformance.go`` of Volcano v1.8.0)."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.schedulers.volcano.configuration import PluginOption
from kpreempt.schedulers.volcano.session import Session, Vote
from kpreempt.schedulers.volcano.task import Task

NAME = "conformance"
_CRITICAL_CLASSES = ("system-cluster-critical", "system-node-critical")
_SYSTEM_NAMESPACE = "kube-system"


def open_session(session: Session, _option: PluginOption) -> None:
    """Register what conformance has a say in."""
    session.register(Vote.PREEMPTABLE, NAME, _evictable)
    session.register(Vote.RECLAIMABLE, NAME, _evictable)


def _evictable(_evictor: Task, candidates: Sequence[Task]) -> list[str]:
    reasons = []
    for task in candidates:
        reason = f"it is in {_SYSTEM_NAMESPACE}" if task.namespace == _SYSTEM_NAMESPACE else ""
        if task.pod.spec.priority_class_name in _CRITICAL_CLASSES:
            reason = f"its priority class is {task.pod.spec.priority_class_name}"
        reasons.append(reason)
    return reasons
