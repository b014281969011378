"""How full nodes are, for those who draw them: no part of a verdict, nor of its JSON."""

from __future__ import annotations

from kpreempt.verdict.base import UntrackedRecord


class NodeUse(UntrackedRecord, frozen=True):
    """What a node has for pods, and what the pods on it request. ``nominated`` are pods that are to come to it."""

    allocatable: dict[str, int]
    used: dict[str, int]
    nominated: list[str] = []


class Occupancy(UntrackedRecord, frozen=True):
    """Nodes by name, and what the pods request that may have to go.

    CPU in milli-CPU, memory and storage in bytes, all other resources in units; ``pods`` is the number of pods.
    """

    nodes: dict[str, NodeUse]
    requests: dict[str, dict[str, int]] = {}
