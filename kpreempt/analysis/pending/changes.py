"""What became of pending pods between two looks."""

from __future__ import annotations

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.verdict import PendingPod, PendingPods
from kpreempt.verdict.pending import TELLING_STATES, PendingChange, PendingChangeKind, PendingChanges


def changes_since(before: PendingPods, now: PendingPods, cluster: ClusterSnapshot) -> PendingChanges:
    """Those since ``before``: pods that landed or went, then new ones, then those of which something else is expected.

    ``cluster`` is the one that ``now`` is about: it tells where pods are that wait no longer.
    """
    earlier = {item.pod: item for item in before.items}
    present = {item.pod: item for item in now.items}
    left = earlier.keys() - present.keys()
    found = {pod.key: pod for pod in cluster.pods if pod.key in left} if left else {}
    changes = []
    for name in earlier:
        if name not in left:
            continue
        pod = found.get(name)
        if pod is not None and pod.spec.node_name:
            changes.append(PendingChange(name, PendingChangeKind.LANDED, node=pod.spec.node_name))
        elif pod is None or pod.is_terminal:
            changes.append(PendingChange(name, PendingChangeKind.GONE))
    changes += [PendingChange(name, PendingChangeKind.NEW) for name in present if name not in earlier]
    for name, item in present.items():
        old = earlier.get(name)
        if old is not None and _fate(old) != _fate(item):
            changes.append(PendingChange(name, PendingChangeKind.CHANGED, outcome=old.outcome, state=old.state))
    return PendingChanges(before.at, changes)


def _fate(item: PendingPod) -> tuple[object, ...]:
    """What a reader takes for something else; when a pod is tried again, or on which node it fits, is not."""
    if item.state in TELLING_STATES:
        return (item.state, item.nominated_node_name)
    return (item.outcome, *(item.nodes if item.victims else ()))
