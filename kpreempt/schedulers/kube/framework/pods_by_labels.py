"""How many pods with which labels are on which nodes, kept from one cluster to the next that follows it.

A selector is put to each set of labels that there is, and not to each pod: replicas share theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kpreempt.model.labels import LabelSelector
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.node_info import NodeInfo

# Labels as they stand: those in another order are other ones here, and selected alike.
_Labels = tuple[tuple[str, str], ...]
# Of one namespace: how many pods have the labels, by the node's name; none is 0.
_Counts = dict[_Labels, dict[str, int]]


class PodsByLabels:
    """The pods of nodes by namespace and labels, without those that are being deleted. Never changed."""

    __slots__ = ("_by_namespace",)

    def __init__(self, nodes: Iterable[NodeInfo]) -> None:
        self._by_namespace: dict[str, _Counts] = {}
        for node_info in nodes:
            for namespace, labels in node_info.labels_by_namespace.items():
                counts = self._by_namespace.setdefault(namespace, {})
                for each in labels:
                    on_nodes = counts.setdefault(tuple(each.items()), {})
                    on_nodes[node_info.name] = on_nodes.get(node_info.name, 0) + 1

    def followed(self, changed: Iterable[tuple[str, Sequence[Pod], Sequence[Pod]]]) -> PodsByLabels:
        """The same with other pods on the nodes that ``changed``, given by name with their pods before and now."""
        differences: dict[str, dict[tuple[_Labels, str], int]] = {}
        for name, before, now in changed:
            same = set(map(id, before)) & set(map(id, now))
            for pods, sign in ((before, -1), (now, 1)):
                for pod in pods:
                    metadata = pod.metadata
                    if id(pod) not in same and metadata.deletion_timestamp is None:
                        of_namespace = differences.setdefault(metadata.namespace, {})
                        key = (tuple(metadata.labels.items()), name)
                        of_namespace[key] = of_namespace.get(key, 0) + sign
        following = PodsByLabels(())
        following._by_namespace = dict(self._by_namespace)
        for namespace, of_namespace in differences.items():
            following._change(namespace, {key: by for key, by in of_namespace.items() if by})
        return following

    def _change(self, namespace: str, differences: Mapping[tuple[_Labels, str], int]) -> None:
        if not differences:
            return
        # What is shared with those before is copied first, once.
        counts = self._by_namespace[namespace] = dict(self._by_namespace.get(namespace, {}))
        for labels in {labels for labels, _ in differences}:
            counts[labels] = dict(counts.get(labels, {}))
        for (labels, node), by in differences.items():
            count = counts[labels].pop(node, 0) + by
            if count:
                counts[labels][node] = count
        for labels in {labels for labels, _ in differences}:
            if not counts[labels]:
                del counts[labels]

    def selected(self, namespace: str, selector: LabelSelector) -> dict[str, int]:
        """How many pods of the namespace are selected, by the name of their node; nodes without any are left out."""
        found: dict[str, int] = {}
        for labels, on_nodes in self._by_namespace.get(namespace, {}).items():
            if selector.matches(dict(labels)):
                for node, count in on_nodes.items():
                    found[node] = found.get(node, 0) + count
        return found
