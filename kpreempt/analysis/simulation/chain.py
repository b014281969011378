"""Who had to go for whom, and what came in their place."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.meta import controller_name, controller_of
from kpreempt.model.pod import Pod
from kpreempt.verdict.simulation import Displaced

_Name = tuple[str, int]
_NOBODY: _Name = ("", 0)


class Chain:
    """Victims by the pod that they left for, and replacements by the pod that they took the place of.

    Keys come again, since a StatefulSet's pods keep their names: a pod is named by its key and by how many of that key
    came before it, a victim by its key and how often a pod of that key was evicted. So nobody follows from itself.
    """

    def __init__(self) -> None:
        self._victims: dict[_Name, list[tuple[Pod, list[str], int]]] = {}
        self._with_node: set[_Name] = set()
        self._drained: set[_Name] = set()
        self._times: dict[str, int] = {}
        self._came: dict[str, int] = {}
        self._replacements: dict[_Name, _Name] = {}
        self._replaced: set[_Name] = set()
        self._were_replaced: set[str] = set()
        self._nodes: dict[_Name, str] = {}
        self._pods: dict[str, Pod] = {}
        self.evictions = 0

    def evicted(self, pod: Pod, cause: str, violated: Sequence[str]) -> None:
        """A pod had to go for ``cause``."""
        self.evictions += 1
        self._pods[pod.key] = pod
        time = self._times[pod.key] = self._times.get(pod.key, 0) + 1
        self._victims.setdefault(self._latest(cause), []).append((pod, list(violated), time))

    def went_with_node(self, pod: Pod, node: str, violated: Sequence[str]) -> None:
        """A pod is lost with its node (``Node n1``)."""
        self.evicted(pod, node, violated)
        self._with_node.add((pod.key, self._times[pod.key]))

    def was_drained(self, pod: Pod, node: str, violated: Sequence[str]) -> None:
        """A pod is evicted so that its node (``Node n1``) gets empty."""
        self.evicted(pod, node, violated)
        self._drained.add((pod.key, self._times[pod.key]))

    def was_evicted(self, key: str) -> bool:
        """Whether a pod of that key had to go."""
        return key in self._times

    def came(self, key: str) -> None:
        """A pod is made that takes no victim's place."""
        self._came[key] = self._came.get(key, 0) + 1

    def replaced(self, key: str, replacement: str) -> None:
        """A pod is made in the place of the one that went last under that key."""
        self.came(replacement)
        name = self._replacements[key, self._times[key]] = self._latest(replacement)
        self._replaced.add(name)
        self._were_replaced.add(replacement)

    def is_replacement(self, key: str) -> bool:
        """Whether a pod of that key took the place of another."""
        return key in self._were_replaced

    def landed(self, key: str, node: str) -> None:
        """A pod was bound."""
        self._nodes[self._latest(key)] = node

    def pod(self, key: str) -> Pod:
        """A pod that had to go, as it was."""
        return self._pods[key]

    def displaced(self) -> list[Displaced]:
        """All victims, each followed by those that had to go for what took its place."""
        found: list[Displaced] = []
        causes = [cause for cause in self._victims if cause not in self._replaced]
        # Whoever had to go for whom, the first on top. A chain may be as long as there are pods: no recursion.
        left = [(cause, victim, 1) for cause in causes for victim in self._victims.get(cause, [])][::-1]
        while left:
            cause, (pod, violated, time), depth = left.pop()
            replacement = self._replacements.get((pod.key, time), _NOBODY)
            found.append(
                Displaced(
                    pod=pod.key,
                    priority=pod.priority,
                    node=pod.spec.node_name,
                    cause=cause[0],
                    depth=depth,
                    owner=controller_name(pod.metadata),
                    violated=violated,
                    replacement=replacement[0],
                    lands_on=self._nodes.get(replacement, ""),
                    with_node=(pod.key, time) in self._with_node,
                    drained=(pod.key, time) in self._drained,
                    lost=controller_of(pod.metadata) is None,
                )
            )
            left += [(replacement, victim, depth + 1) for victim in self._victims.get(replacement, [])][::-1]
        return found

    def _latest(self, key: str) -> _Name:
        return (key, self._came.get(key, 0))
