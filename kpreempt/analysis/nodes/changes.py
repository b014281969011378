"""What if nodes came or went: the cluster of a question with the nodes that its options add and remove.

New nodes of a Karpenter NodePool are made as far as the pool and the cluster's nodes say what they are like. A pool
states requirements, not machines: which one comes, Karpenter decides by price and by what its cloud has. Here it is the
smallest known one: one that the pool has already, one whose size the pool states, or one of a type that the pool allows
and another node of the cluster has. That it is this one is an assumption.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from kpreempt.analysis.explain.overrides import check_node
from kpreempt.analysis.nodes.copies import HOST_NAME, Added, Copier, kinds_of, with_nodes
from kpreempt.controllers.replacement import is_replaced, replacement_of
from kpreempt.controllers.resource_claims import released
from kpreempt.errors import NotFoundError, UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import matches_requirement
from kpreempt.model.meta import AnnotatedMeta, controller_of
from kpreempt.model.node import NODE_POOL, Node, NodePool, NodeSpec, NodeStatus
from kpreempt.model.pod import Pod
from kpreempt.model.quantity import quantity
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.unread import missing

MOST_NODES = 1000
_NAMES_SHOWN = 3
_FILES = (".yaml", ".yml", ".json")

# The objects of a file, as the API server would have them.
ReadFile = Callable[[str], ClusterSnapshot]


class NumberedName(NamedTuple):
    """``NAME=N``; ``is_stated`` says whether the number was."""

    name: str
    number: int
    is_stated: bool


def numbered_name(text: str, option: str, example: str) -> NumberedName:
    """The name and the number of ``NAME[=N]``, of which 1 is meant where it is missing. Raises ``UsageError``."""
    name, equals, digits = text.rpartition("=")
    if not equals:
        name = text
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= 6
    if not name or (equals and not (is_number and int(digits) >= 1)):
        raise UsageError(f'{option} "{text}": NAME or NAME=N is expected', hint=example)
    number = int(digits) if equals else 1
    if number > MOST_NODES:
        raise UsageError(f"{option} {text}: {number:,} nodes are more than {MOST_NODES:,}")
    return NumberedName(name, number, bool(equals))


def is_file(name: str) -> bool:
    """Whether the name of a pattern for new nodes is that of a file; a node's has no slash but for ``node/NAME``."""
    return not name.startswith("node/") and (name == "-" or "/" in name or name.endswith(_FILES))


def with_changed_nodes(
    cluster: ClusterSnapshot,
    *,
    added: Sequence[str] = (),
    pools: Sequence[str] = (),
    removed: Sequence[str] = (),
    read_file: ReadFile,
    now: datetime,
) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster with nodes that are ``added`` (``NODE[=N]`` or ``FILE[=N]``) and without those that are ``removed``.

    ``pools`` are ``NODEPOOL[=N]``. Nodes are made like others as these are before any is removed. Raises
    ``UsageError``, ``NotFoundError`` and what ``read_file`` raises.
    """
    copier = Copier(cluster, now=now)
    coming = Added()
    for text in added:
        coming += _of_text(cluster, copier, text, read_file)
    for text in pools:
        coming += nodes_of_pool(cluster, copier, numbered_name(text, "--add-pool", "--add-pool default=2"))
    said = list(coming.assumptions)
    for name in removed:
        cluster, becomes = without_node(cluster, name.removeprefix("node/"), now)
        said += becomes
    return with_nodes(cluster, coming), list(dict.fromkeys(said))


def _of_text(cluster: ClusterSnapshot, copier: Copier, text: str, read_file: ReadFile) -> Added:
    asked = numbered_name(text, "--add-node", "--add-node pool-b-7=2, --add-node node.yaml")
    if is_file(asked.name):
        return _of_file(cluster, copier, asked, read_file(asked.name))
    name = asked.name.removeprefix("node/")
    check_node(cluster, name)
    return copier.like(_node(cluster, name), asked.number)


def _node(cluster: ClusterSnapshot, name: str) -> Node:
    return next(node for node in cluster.nodes if node.name == name)


def _of_file(cluster: ClusterSnapshot, copier: Copier, asked: NumberedName, objects: ClusterSnapshot) -> Added:
    if not objects.nodes:
        raise UsageError(f"--add-node {asked.name}: there is no Node in it")
    taken = {node.name for node in cluster.nodes}
    found = Added()
    for node in objects.nodes:
        if not asked.is_stated and node.name in taken:
            hint = f"--add-node {asked.name}=1 gives it a fresh name"
            raise UsageError(f'--add-node {asked.name}: the cluster has a node "{node.name}"', hint=hint)
        if not node.status.allocatable:
            raise UsageError(
                f'--add-node {asked.name}: node "{node.name}" says nothing of status.allocatable or status.capacity'
            )
        beside = Added(
            csi_nodes=[each for each in objects.csi_nodes if each.metadata.name == node.name],
            resource_slices=[each for each in objects.resource_slices if each.spec.node_name == node.name],
        )
        keeps_name = node.name not in taken
        found += copier.of_pattern(node, asked.number, keeps_name=keeps_name, beside=beside)
        taken.update(each.name for each in found.nodes)
    return found


def without_node(cluster: ClusterSnapshot, name: str, now: datetime) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster without a node and what is there because of it, and what becomes of its pods.

    Those that a controller makes anew wait for a node, under their old names; nobody has placed them yet. All others
    are gone: of DaemonSets, static ones, those that were on their way out, and those without a controller. Raises
    ``NotFoundError``.
    """
    check_node(cluster, name)
    going = [pod for pod in cluster.pods if pod.spec.node_name == name]
    again = {pod.key: made for pod in going if (made := _made_anew(pod, now)) is not None}
    pods = [again.get(pod.key, pod) for pod in cluster.pods if pod.spec.node_name != name or pod.key in again]
    changed = msgspec.structs.replace(
        cluster,
        nodes=[node for node in cluster.nodes if node.name != name],
        pods=pods,
        csi_nodes=[each for each in cluster.csi_nodes if each.metadata.name != name],
        resource_slices=[each for each in cluster.resource_slices if each.spec.node_name != name],
        volume_attachments=[each for each in cluster.volume_attachments if each.spec.node_name != name],
        resource_claims=released(cluster.resource_claims, going) if cluster.resource_claims else [],
    )
    return changed, _what_becomes(name, going, set(again))


def _made_anew(pod: Pod, now: datetime) -> Pod | None:
    owner = controller_of(pod.metadata)
    is_counted = not pod.is_terminal and pod.metadata.deletion_timestamp is None
    if owner is None or owner.kind == "DaemonSet" or not is_counted or not is_replaced(pod):
        return None
    made = replacement_of(pod, suffix="", uid=f"{pod.metadata.uid}-new", now=now)
    if made is None:
        return None
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, name=pod.metadata.name))


def _what_becomes(name: str, going: Sequence[Pod], again: set[str]) -> list[Assumption]:
    """What is said of the pods of a node that is taken away."""
    there = [pod for pod in going if not pod.is_terminal]
    if not there:
        return []
    groups: Mapping[str, list[str]] = {"again": [], "node": [], "leaving": [], "lost": []}
    for pod in there:
        owner = controller_of(pod.metadata)
        of_node = owner is not None and owner.kind in ("DaemonSet", "Node")
        is_leaving = pod.metadata.deletion_timestamp is not None
        group = "again" if pod.key in again else "node" if of_node else "leaving" if is_leaving else "lost"
        groups[group].append(pod.key)
    words = {
        "again": "made anew by their controllers and pending, under their old names",
        "node": "of DaemonSets or static, which end with their node",
        "leaving": "terminating already",
        "lost": f"that no controller of Kubernetes makes anew: {_named(groups['lost'])}",
    }
    parts = [f"{len(pods):,} {words[group]}" for group, pods in groups.items() if pods]
    noun = "1 pod leaves" if len(there) == 1 else f"{len(there):,} pods leave"
    said = f"{noun} with it: {'; '.join(parts)}"
    return [Assumption(f"Node {name}", "pods", said, AssumptionKind.TOLD)]


def _named(keys: Sequence[str]) -> str:
    rest = len(keys) - _NAMES_SHOWN
    return ", ".join(keys[:_NAMES_SHOWN]) + (f" and {rest:,} more" if rest > 0 else "")


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
    # The limits that the pool passes with these nodes: ``the limit for cpu``.
    passed = []
    for name, limit in pool.spec.limits.items():
        now = pool.status.resources.get(name)
        new = sum(each.nano for node in added.nodes if (each := node.status.capacity.get(name)) is not None)
        if (now.nano if now is not None else 0) + new > limit.nano:
            passed.append(name)
    if over := (f"the limit for {' and '.join(passed)}" if passed else ""):
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
        # Whether a label says what a machine is, and not to which pool or for what it is there.
        shared = {
            key: value for key, value in other.labels.items() if (key == INSTANCE_TYPE or key.startswith(_OF_MACHINE))
        }
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
