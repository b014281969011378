"""New nodes of a node pool of Karpenter's, as far as the pool and the nodes of the cluster say what these are like.

A pool states requirements, not machines: which one comes, Karpenter decides by the prices and by what its cloud has.
Here it is the smallest that is known: one that the pool has already, one whose size the pool states, or one of a type
that the pool allows and another node of the cluster is of. That it is this one is an assumption.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from kpreempt.analysis.nodes.copies import HOST_NAME, Added, Copier
from kpreempt.analysis.nodes.kinds import kinds_of
from kpreempt.errors import NotFoundError, UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.karpenter import NODE_POOL, NodePool
from kpreempt.model.labels import matches_requirement
from kpreempt.model.meta import AnnotatedMeta
from kpreempt.model.node import Node, NodeSpec, NodeStatus
from kpreempt.model.quantity import quantity
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.unread import missing

if TYPE_CHECKING:
    from kpreempt.analysis.nodes.changes import NumberedName

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
# By cloud, the labels whose value is the number of CPUs, and the memory in Mi.
_SIZES = (
    ("karpenter.k8s.aws/instance-cpu", "karpenter.k8s.aws/instance-memory"),
    ("karpenter.azure.com/sku-cpu", "karpenter.azure.com/sku-memory"),
)
# What a kubelet allows where nobody says otherwise.
_PODS = "110"
_KIND = "NodePool"
_UNKNOWN = "which machines Karpenter makes, and in which zones, is not known"
_OF_MACHINE = (
    *("kubernetes.io/arch", "kubernetes.io/os", "topology.kubernetes.io/"),
    *("karpenter.k8s.aws/", "karpenter.azure.com/"),
)


def nodes_of_pool(cluster: ClusterSnapshot, copier: Copier, asked: NumberedName) -> Added:
    """So many nodes of a pool. Raises ``NotFoundError``, and ``UsageError`` where nothing says what they have."""
    pool = _pool(cluster, asked.name)
    subject = f"{_KIND} {asked.name}"
    added, message = _made(cluster, copier, pool, asked)
    said = [Assumption(subject, "spec.template.spec.requirements", message)]
    if over := _over_limits(pool, added.nodes):
        message = f"{over} of the pool would be passed, so that Karpenter does not make all of these nodes"
        said.append(Assumption(subject, "spec.limits", message, AssumptionKind.UNCERTAIN))
    return msgspec.structs.replace(added, assumptions=[*said, *added.assumptions])


def _pool(cluster: ClusterSnapshot, name: str) -> NodePool:
    if found := next((each for each in cluster.node_pools if each.metadata.name == name), None):
        return found
    near = difflib.get_close_matches(name, [each.metadata.name for each in cluster.node_pools], n=3)
    raise NotFoundError(missing(cluster, _KIND, f'{_KIND} "{name}" in the cluster'), hint=", ".join(near))


def _made(cluster: ClusterSnapshot, copier: Copier, pool: NodePool, asked: NumberedName) -> tuple[Added, str]:
    """The nodes, and what is assumed of them."""
    fitting = [kind.like for kind in kinds_of(cluster) if _allows(pool, kind.like.labels)]
    if own := next((node for node in fitting if node.labels.get(NODE_POOL) == asked.name), None):
        return copier.like(own, asked.number), (
            f"{_UNKNOWN}; taken to be like {own.name}, the smallest that the pool has"
        )
    if size := _stated_size(pool):
        message = "what the kubelet keeps of the stated CPU and memory is not known, nor the zone; all of it counts"
        return copier.of_pattern(_pattern(pool, {}, size), asked.number), message
    types = _allowed(pool, INSTANCE_TYPE)
    if other := next((node for node in fitting if node.labels.get(INSTANCE_TYPE) in types), None):
        shared = {key: value for key, value in other.labels.items() if _is_of_machine(key)}
        pattern = _pattern(pool, shared, other.status)
        return copier.of_pattern(pattern, asked.number), (
            f"{_UNKNOWN}; taken to be of the type of {other.name}, {other.labels[INSTANCE_TYPE]}, in its zone"
        )
    raise UsageError(
        f"--add-pool {asked.name}: what its nodes have is not known: it states no size, and the cluster has no node of "
        "it, nor one of an instance type that it names",
        hint="--add-node FILE, a Node with status.allocatable",
    )


def _allows(pool: NodePool, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels satisfies the requirements that are about the labels it has."""
    return all(
        matches_requirement(each.key, each.operator, each.values, labels)
        for each in pool.spec.template.spec.requirements
        if each.key in labels
    )


def _allowed(pool: NodePool, key: str) -> list[str]:
    """The values that the pool names for a label; none where it does not name them."""
    found = [each for each in pool.spec.template.spec.requirements if each.key == key and each.operator == "In"]
    return [value for value in found[0].values if all(value in each.values for each in found)] if found else []


def _stated_size(pool: NodePool) -> NodeStatus | None:
    """What a node has of a pool that allows one size only."""
    for cpu_label, memory_label in _SIZES:
        cpu, memory = _allowed(pool, cpu_label), _allowed(pool, memory_label)
        if len(cpu) == len(memory) == 1 and all(each[0].isdecimal() and len(each[0]) <= 9 for each in (cpu, memory)):
            amounts = {"cpu": quantity(cpu[0]), "memory": quantity(f"{memory[0]}Mi"), "pods": quantity(_PODS)}
            return NodeStatus(allocatable=amounts, capacity=amounts)
    return None


def _is_of_machine(key: str) -> bool:
    """Whether a label says what a machine is, and not to which pool or for what it is there."""
    return key == INSTANCE_TYPE or key.startswith(_OF_MACHINE)


def _pattern(pool: NodePool, labels: Mapping[str, str], status: NodeStatus) -> Node:
    """A node of the pool, with what the pool leaves no choice about."""
    template, name = pool.spec.template, pool.metadata.name
    only = {each.key: _allowed(pool, each.key) for each in template.spec.requirements}
    labels = {
        **labels,
        **{key: values[0] for key, values in only.items() if len(values) == 1},
        **template.metadata.labels,
        NODE_POOL: name,
        HOST_NAME: name,
    }
    metadata = AnnotatedMeta(name=name, labels=labels)
    return Node(metadata=metadata, spec=NodeSpec(taints=template.spec.taints), status=status)


def _over_limits(pool: NodePool, nodes: list[Node]) -> str:
    """The limits that the pool passes with these nodes: ``the limit for cpu``."""
    passed = []
    for name, limit in pool.spec.limits.items():
        now = pool.status.resources.get(name)
        new = sum(each.nano for node in nodes if (each := node.status.capacity.get(name)) is not None)
        if (now.nano if now is not None else 0) + new > limit.nano:
            passed.append(name)
    return f"the limit for {' and '.join(passed)}" if passed else ""
