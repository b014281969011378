"""The pods that are nominated to nodes, in two indices: by node, and the node by the pod's UID.

Follows ``nominatedPodMap`` in ``pkg/scheduler/internal/queue/scheduling_queue.go`` of v1.13.12. What the scheduler
decided is kept here before the API server knows of it, so that the node may differ from the pod's status.
"""

from __future__ import annotations

from kpreempt.model.pod import Pod


class NominatedPods:
    """Which pods are nominated to which node, each to at most one, those of a node in the order of nomination."""

    def __init__(self) -> None:
        self._pods: dict[str, list[Pod]] = {}
        self._nodes: dict[str, str] = {}

    def add(self, pod: Pod, node_name: str = "") -> None:
        """Nominate the pod, to the node of its status without a ``node_name``. Without both it is nominated no more."""
        self.delete(pod)
        node_name = node_name or pod.status.nominated_node_name
        if node_name:
            self._nodes[pod.identity] = node_name
            self._pods.setdefault(node_name, []).append(pod)

    def delete(self, pod: Pod) -> None:
        """Forget the pod's nomination, wherever it is to."""
        node_name = self._nodes.pop(pod.identity, None)
        if node_name is None:
            return
        rest = [each for each in self._pods[node_name] if each.identity != pod.identity]
        if rest:
            self._pods[node_name] = rest
        else:
            del self._pods[node_name]

    def update(self, old: Pod, new: Pod) -> None:
        """The pod has changed. Its status counts again: what was decided in memory only is lost."""
        self.delete(old)
        self.add(new)

    def node_of(self, pod: Pod) -> str:
        """The node that the pod is nominated to, or an empty text."""
        return self._nodes.get(pod.identity, "")

    def by_node(self) -> dict[str, list[str]]:
        """The pods of every node as ``namespace/name``, nodes in the order of their first nomination."""
        return {node_name: [pod.key for pod in pods] for node_name, pods in self._pods.items()}


class Nominator(NominatedPods):
    """The same today: ``pkg/scheduler/backend/queue/nominator.go`` of v1.36.3."""

    def update(self, old: Pod, new: Pod) -> None:
        """The pod has changed. What was decided in memory stays where neither status names a node."""
        kept = ""
        if not old.status.nominated_node_name and not new.status.nominated_node_name:
            kept = self.node_of(old)
        self.delete(old)
        self.add(new, kept)
