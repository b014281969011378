"""binpack: prefers full nodes (``plugins/binpack/binpack.go`` of Volcano v1.8.0)."""

from __future__ import annotations

from kpreempt.schedulers.volcano.configuration import PluginOption
from kpreempt.schedulers.volcano.node import Node
from kpreempt.schedulers.volcano.resources import CPU, MEMORY
from kpreempt.schedulers.volcano.session import Session, Vote
from kpreempt.schedulers.volcano.task import Task

NAME = "binpack"
_MAX_SCORE = 100


def open_session(session: Session, option: PluginOption) -> None:
    """Register what binpack has a say in."""
    weight = option.integer("binpack.weight", 1)
    weights = _weights(option)

    def node_order(task: Task, node: Node) -> float:
        return score(task, node, weights) * (_MAX_SCORE * weight)

    if weight != 0:
        session.register(Vote.NODE_ORDER, NAME, node_order)


def score(task: Task, node: Node, weights: dict[str, int]) -> float:
    """How full the node is with the task, 0 to 1: the weighted mean over what it asks for; 0 where it does not fit."""
    total = 0.0
    weight_sum = 0
    for name in task.request.names():
        if name not in weights:
            continue
        weight, capacity = weights[name], node.allocatable.get(name)
        if capacity != 0 and weight != 0:
            used = task.request.get(name) + node.used.get(name)
            if used > capacity:
                return 0.0
            total += used * weight / capacity
        weight_sum += weight
    return total / weight_sum if weight_sum > 0 else total


def _weights(option: PluginOption) -> dict[str, int]:
    def weight(key: str) -> int:
        given = option.integer(key, 1)
        return 1 if given < 0 else given

    names = [name.strip() for name in option.text("binpack.resources").split(",")]
    weights = {name: weight(f"binpack.resources.{name}") for name in names if name}
    return {**weights, CPU: weight("binpack.cpu"), MEMORY: weight("binpack.memory")}
