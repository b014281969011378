"""Who had to go for whom, and what came in their place."""

from __future__ import annotations

from kpreempt.model.meta import controller_name
from kpreempt.model.pod import Pod
from kpreempt.verdict.play import Displaced


class Chain:
    """Victims by the pod that they left for, and replacements by the pod that they took the place of.

    A victim is named by its key and how often a pod of that key was evicted, since a StatefulSet's keep their names.
    """

    def __init__(self) -> None:
        self._victims: dict[str, list[tuple[Pod, list[str], int]]] = {}
        self._times: dict[str, int] = {}
        self._replacements: dict[tuple[str, int], str] = {}
        self._replaced: set[str] = set()
        self._nodes: dict[str, str] = {}
        self._pods: dict[str, Pod] = {}
        self.evictions = 0

    def evicted(self, pod: Pod, cause: str, violated: list[str]) -> None:
        """A pod had to go for ``cause``."""
        self.evictions += 1
        self._pods[pod.key] = pod
        time = self._times[pod.key] = self._times.get(pod.key, 0) + 1
        self._victims.setdefault(cause, []).append((pod, violated, time))

    def was_evicted(self, key: str) -> bool:
        """Whether a pod of that key had to go."""
        return key in self._times

    def replaced(self, key: str, replacement: str) -> None:
        """A pod is made in the place of the one that went last under that key."""
        self._replacements[key, self._times[key]] = replacement
        if replacement == key:
            # It bears the name of the one before, and has yet to land.
            self._nodes.pop(key, None)
        self._replaced.add(replacement)

    def is_replacement(self, key: str) -> bool:
        """Whether a pod took the place of another."""
        return key in self._replaced

    def landed(self, key: str, node: str) -> None:
        """A pod was bound."""
        self._nodes[key] = node

    def pod(self, key: str) -> Pod:
        """A pod that had to go, as it was."""
        return self._pods[key]

    def displaced(self) -> list[Displaced]:
        """All victims, each followed by those that had to go for what took its place."""
        found: list[Displaced] = []
        seen: set[tuple[str, int]] = set()
        causes = [cause for cause in self._victims if cause not in self._replaced]
        # Whoever had to go for whom, the first on top. A chain may be as long as there are pods: no recursion.
        left = [(cause, victim, 1) for cause in causes for victim in self._victims.get(cause, [])][::-1]
        while left:
            cause, (pod, violated, time), depth = left.pop()
            name = (pod.key, time)
            if name in seen:
                continue
            seen.add(name)
            replacement = self._replacements.get(name, "")
            found.append(
                Displaced(
                    pod=pod.key,
                    priority=pod.priority,
                    node=pod.spec.node_name,
                    cause=cause,
                    depth=depth,
                    owner=controller_name(pod.metadata),
                    violated=violated,
                    replacement=replacement,
                    lands_on=self._nodes.get(replacement, ""),
                )
            )
            left += [(replacement, victim, depth + 1) for victim in self._victims.get(replacement, [])][::-1]
        return found
