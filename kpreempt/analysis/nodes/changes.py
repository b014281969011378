"""What if the cluster were a little different: nodes that come or go, a cordoned node, no object, a larger budget.

Each function returns a new cluster. Statuses of budgets stay as they were: taking a pod out does not make its budget's
controller run again.

New nodes of a Karpenter NodePool are made as far as the pool and the cluster's nodes say what they are like. A pool
states requirements, not machines: which one comes, Karpenter decides by price and by what its cloud has. Here it is the
smallest known one: one that the pool has already, one whose size the pool states, or one of a type that the pool allows
and another node of the cluster has. That it is this one is an assumption.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from kpreempt.analysis.nodes.copies import HOST_NAME, Added, Copier, kinds_of, with_nodes
from kpreempt.analysis.unread import BUDGETS
from kpreempt.errors import NotFoundError, UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import matches_requirement
from kpreempt.model.meta import DEFAULT_NAMESPACE, AnnotatedMeta, controller_of, replace_in
from kpreempt.model.node import NODE_POOL, Node, NodePool, NodeSpec, NodeStatus
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudgetStatus
from kpreempt.model.quantity import quantity
from kpreempt.model.taints import Taint
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
        asked = numbered_name(text, "--add-node", "--add-node pool-b-7=2, --add-node node.yaml")
        if is_file(asked.name):
            coming += _of_file(cluster, copier, asked, read_file(asked.name))
            continue
        node_name = asked.name.removeprefix("node/")
        check_node(cluster, node_name)
        coming += copier.like(next(node for node in cluster.nodes if node.name == node_name), asked.number)
    for text in pools:
        coming += nodes_of_pool(cluster, copier, numbered_name(text, "--add-pool", "--add-pool default=2"))
    said = list(coming.assumptions)
    for name in removed:
        cluster, becomes = without_node(cluster, name.removeprefix("node/"), now)
        said += becomes
    return with_nodes(cluster, coming), list(dict.fromkeys(said))


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
        found += copier.of_pattern(node, asked.number, keeps_name=node.name not in taken, beside=beside)
        taken.update(each.name for each in found.nodes)
    return found


def without_node(cluster: ClusterSnapshot, name: str, now: datetime) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster without a node and what is there because of it, and what becomes of its pods.

    Those that a controller makes anew wait for a node, under their old names; nobody has placed them yet. All others
    are gone: of DaemonSets, static ones, those that were on their way out, and those without a controller. Raises
    ``NotFoundError``.
    """
    from kpreempt.controllers.resource_claims import released  # noqa: PLC0415 - few questions change nodes

    check_node(cluster, name)
    going = [pod for pod in cluster.pods if pod.spec.node_name == name]
    again = {pod.key: made for pod in going if (made := _recreated(pod, now)) is not None}
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


def _recreated(pod: Pod, now: datetime) -> Pod | None:
    from kpreempt.controllers.replacement import is_replaced, replacement_of  # noqa: PLC0415 - few need it

    owner = controller_of(pod.metadata)
    is_counted = not pod.is_terminal and pod.metadata.deletion_timestamp is None
    if owner is None or owner.kind == "DaemonSet" or not is_counted or not is_replaced(pod):
        return None
    made = replacement_of(pod, suffix="", uid=f"{pod.metadata.uid}-new", now=now)
    if made is None:
        return None
    return replace_in(made, "metadata", name=pod.metadata.name)


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
    unnamed = len(groups["lost"]) - _NAMES_SHOWN
    lost = ", ".join(groups["lost"][:_NAMES_SHOWN]) + (f" and {unnamed:,} more" if unnamed > 0 else "")
    words = {
        "again": "made anew by their controllers and pending, under their old names",
        "node": "of DaemonSets or static, which end with their node",
        "leaving": "terminating already",
        "lost": f"that no controller of Kubernetes makes anew: {lost}",
    }
    parts = [f"{len(pods):,} {words[group]}" for group, pods in groups.items() if pods]
    noun = "1 pod leaves" if len(there) == 1 else f"{len(there):,} pods leave"
    return [Assumption(f"Node {name}", "pods", f"{noun} with it: {'; '.join(parts)}", AssumptionKind.INFORMATIONAL)]


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
    pool = next((each for each in cluster.node_pools if each.metadata.name == asked.name), None)
    if pool is None:
        near = difflib.get_close_matches(asked.name, [each.metadata.name for each in cluster.node_pools], n=3)
        there_is_none = missing(cluster, _KIND, f'{_KIND} "{asked.name}" in the cluster')
        raise NotFoundError(there_is_none, hint=", ".join(near))
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


def _made(cluster: ClusterSnapshot, copier: Copier, pool: NodePool, asked: NumberedName) -> tuple[Added, str]:
    """The nodes, and what is assumed of them."""
    # The nodes that satisfy the requirements which are about the labels that they have.
    fitting = [
        kind.like
        for kind in kinds_of(cluster)
        if all(
            matches_requirement(each.key, each.operator, each.values, kind.like.labels)
            for each in pool.spec.template.spec.requirements
            if each.key in kind.like.labels
        )
    ]
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


_UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_KINDS = {
    **dict.fromkeys(("pod", "pods", "po"), "pod"),
    **dict.fromkeys(("node", "nodes", "no"), "node"),
    **dict.fromkeys(("pdb", "pdbs", "poddisruptionbudget", "poddisruptionbudgets"), "pdb"),
    **dict.fromkeys(("resourceclaim", "resourceclaims"), "resourceclaim"),
}
# By kind, the field of a cluster, and what messages call one of its objects.
_FIELDS = {
    "pod": ("pods", "pod"),
    "node": ("nodes", "node"),
    "pdb": ("pod_disruption_budgets", BUDGETS),
    "resourceclaim": ("resource_claims", "ResourceClaim"),
}
_SHAPES = "pod/NAME, pod/NS/NAME, node/NAME, pdb/NS/NAME, resourceclaim/NS/NAME"
_MAX_INT32 = 2**31 - 1


def changed(
    cluster: ClusterSnapshot,
    namespace: str = "",
    *,
    removed: Iterable[str] = (),
    cordons: Iterable[str] = (),
    uncordons: Iterable[str] = (),
    budgets: Iterable[str] = (),
) -> ClusterSnapshot:
    """The cluster ``without`` objects, then with nodes that are closed, then opened, then ``set_budget`` for budgets.

    ``namespace`` is for names without one; it may be empty. Raises what these functions raise.
    """
    for target in removed:
        cluster = without(cluster, target, namespace or DEFAULT_NAMESPACE)
    for names, made in ((cordons, cordoned_node), (uncordons, _uncordoned_node)):
        for name in (each.removeprefix("node/") for each in names):
            check_node(cluster, name)
            nodes = [made(node) if node.name == name else node for node in cluster.nodes]
            cluster = msgspec.structs.replace(cluster, nodes=nodes)
    for budget in budgets:
        cluster = set_budget(cluster, budget)
    return cluster


def without(cluster: ClusterSnapshot, target: str, namespace: str = DEFAULT_NAMESPACE) -> ClusterSnapshot:
    """The cluster without one object.

    ``target`` is ``pod/NAME``, ``pod/NS/NAME``, ``NS/NAME`` (a pod), ``node/NAME``, ``pdb/NS/NAME`` or
    ``resourceclaim/NS/NAME``; ``namespace`` is for a name without one. Pods of a node that is taken out stay, on a node
    that does not exist. A pod's claims for devices are given back with it, where nobody else uses them. Raises
    ``UsageError`` for a text of another shape and ``NotFoundError`` for an object that is not there.
    """
    from kpreempt.controllers.resource_claims import released  # noqa: PLC0415 - few questions change nodes

    parts = target.split("/")
    kind, rest = "pod", parts
    if len(parts) > 1 and parts[0].lower() in _KINDS:
        kind, rest = _KINDS[parts[0].lower()], parts[1:]
    if not 1 <= len(rest) <= (1 if kind == "node" else 2) or not all(rest):
        raise UsageError(f'"{target}" does not name an object', hint=_SHAPES)
    key = rest[-1] if kind == "node" else f"{rest[0] if len(rest) == 2 else namespace}/{rest[-1]}"
    field, name = _FIELDS[kind]
    there = [(each.name if kind == "node" else each.key, each) for each in getattr(cluster, field)]
    changes = {field: [each for own, each in there if own != key]}
    if len(changes[field]) == len(there):
        raise _not_found(cluster, name, key, (own for own, _ in there))
    if kind == "node":
        changes["csi_nodes"] = [each for each in cluster.csi_nodes if each.metadata.name != key]
    elif kind == "pod" and cluster.resource_claims:
        changes["resource_claims"] = released(cluster.resource_claims, [each for own, each in there if own == key])
    return msgspec.structs.replace(cluster, **changes)


def check_node(cluster: ClusterSnapshot, node_name: str) -> None:
    """Raise ``NotFoundError``, with the names that come near, unless the node is in the cluster."""
    if all(node.name != node_name for node in cluster.nodes):
        raise _not_found(cluster, "node", node_name, (node.name for node in cluster.nodes))


def set_budget(cluster: ClusterSnapshot, text: str) -> ClusterSnapshot:
    """The cluster with a budget that allows another number of disruptions: ``NS/NAME=ALLOWED``.

    Raises ``UsageError`` for a text of another shape and ``NotFoundError`` for an unknown budget.
    """
    key, equals, allowed = text.rpartition("=")
    is_number = allowed.isascii() and allowed.isdecimal() and len(allowed) <= 10 and int(allowed) <= _MAX_INT32
    if not equals or key.count("/") != 1 or not all(key.split("/")) or not is_number:
        raise UsageError(f'"{text}" is not NS/NAME=ALLOWED', hint="shop/web=2")
    old = next((budget for budget in cluster.pod_disruption_budgets if budget.key == key), None)
    if old is None:
        raise _not_found(cluster, BUDGETS, key, (each.key for each in cluster.pod_disruption_budgets))
    status = msgspec.structs.replace(old.status or PodDisruptionBudgetStatus(), disruptions_allowed=int(allowed))
    new = msgspec.structs.replace(old, status=status)
    budgets = [new if budget is old else budget for budget in cluster.pod_disruption_budgets]
    return msgspec.structs.replace(cluster, pod_disruption_budgets=budgets)


def cordoned_node(node: Node) -> Node:
    """The node marked unschedulable, with the taint that the node controller adds; the same where it was already."""
    taints = node.spec.taints
    if not any(taint.key == _UNSCHEDULABLE.key and taint.effect == _UNSCHEDULABLE.effect for taint in taints):
        taints = [*taints, _UNSCHEDULABLE]
    elif node.spec.unschedulable:
        return node
    return replace_in(node, "spec", unschedulable=True, taints=taints)


def _uncordoned_node(node: Node) -> Node:
    """The node, open to pods again, without the taint that stands for its being closed."""
    taints = [taint for taint in node.spec.taints if taint.key != _UNSCHEDULABLE.key]
    return replace_in(node, "spec", unschedulable=False, taints=taints)


def _not_found(cluster: ClusterSnapshot, kind: str, name: str, there: Iterable[str]) -> NotFoundError:
    near = difflib.get_close_matches(name, list(there), n=3)
    first, slash, rest = name.partition("/")
    if slash and not near:
        # What stands where a namespace does may be meant as a kind.
        near = [f"{_KINDS[each]}/{rest}" for each in difflib.get_close_matches(first.lower(), _KINDS, n=1)]
    read = {"node": "Node", "pod": "Pod"}.get(kind, kind)
    return NotFoundError(missing(cluster, read, f'{kind} "{name}" in the cluster'), hint=", ".join(near))
