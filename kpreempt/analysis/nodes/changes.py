"""Changes to a cluster: nodes added, removed or edited, an object removed, a budget with more disruptions.

Each function returns a new cluster. Statuses of budgets are kept: removing a pod does not trigger its budget's
controller.

New nodes of a Karpenter NodePool are created as far as the pool and the cluster's nodes show what they look like. A
pool has requirements rather than machine types; Karpenter chooses by price and availability. Here it is the smallest
known machine: one that the pool already has, one whose size the pool specifies, or one of an instance type that the
pool allows and another node has. That choice is an assumption.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

import msgspec

from kpreempt.analysis.nodes.copies import HOST_NAME, Added, Copier, kinds_of, with_nodes
from kpreempt.analysis.unread import BUDGETS
from kpreempt.errors import NotFoundError, UsageError, listed
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import matches_requirement
from kpreempt.model.meta import DEFAULT_NAMESPACE, AnnotatedMeta, controller_name, controller_of, replace_in
from kpreempt.model.node import MACHINE_SIZES, NODE_POOL, Node, NodePool, NodeSpec, NodeStatus
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudgetStatus
from kpreempt.model.quantity import quantity
from kpreempt.model.taints import Taint, TaintEffect
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.unread import missing

MAX_NODES = 1000
_FILES = (".yaml", ".yml", ".json")
_REMOVED = ("removed with it", "of DaemonSets or static, deleted with the node")

# Reads the objects in a file as the API server would store them.
ReadFile = Callable[[str], ClusterSnapshot]


class NumberedName(NamedTuple):
    """``NAME=N``; ``is_stated`` says whether N was given."""

    name: str
    number: int
    is_stated: bool


def numbered_name(text: str, option: str, example: str) -> NumberedName:
    """Parse ``NAME[=N]``; N defaults to 1. Raises ``UsageError``."""
    name, equals, digits = text.rpartition("=")
    if not equals:
        name = text
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= 6
    if not name or (equals and not (is_number and int(digits) >= 1)):
        raise UsageError(f'{option} "{text}": expected NAME or NAME=N', hint=example)
    number = int(digits) if equals else 1
    if number > MAX_NODES:
        raise UsageError(f"{option} {text}: too many nodes: {number:,} (maximum {MAX_NODES:,})")
    return NumberedName(name, number, bool(equals))


def is_file(name: str) -> bool:
    """Whether the name refers to a file; node names contain no slash, except in ``node/NAME``."""
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
    """The cluster with ``added`` nodes (``NODE[=N]`` or ``FILE[=N]``) and without ``removed`` ones.

    ``pools`` are ``NODEPOOL[=N]``. Nodes are copied before any is removed. Raises ``UsageError``, ``NotFoundError`` and
    the errors of ``read_file``.
    """
    copier = Copier(cluster, now=now)
    additions = Added()
    for text in added:
        requested = numbered_name(text, "--add-node", "--add-node pool-b-7=2, --add-node node.yaml")
        if is_file(requested.name):
            additions += _of_file(cluster, copier, requested, read_file(requested.name))
            continue
        node_name = requested.name.removeprefix("node/")
        check_node(cluster, node_name)
        additions += copier.like(next(node for node in cluster.nodes if node.name == node_name), requested.number)
    for text in pools:
        additions += nodes_of_pool(cluster, copier, numbered_name(text, "--add-pool", "--add-pool default=2"))
    assumptions = list(additions.assumptions)
    for name in removed:
        cluster, consequences = without_node(cluster, name.removeprefix("node/"), now)
        assumptions += consequences
    cluster = msgspec.structs.replace(with_nodes(cluster, additions), is_what_if=True)
    return cluster, list(dict.fromkeys(assumptions))


def _of_file(cluster: ClusterSnapshot, copier: Copier, requested: NumberedName, objects: ClusterSnapshot) -> Added:
    if not objects.nodes:
        raise UsageError(f"--add-node {requested.name}: the file has no Node")
    taken = {node.name for node in cluster.nodes}
    found = Added()
    for node in objects.nodes:
        if not requested.is_stated and node.name in taken:
            hint = f"--add-node {requested.name}=1 gives it a new name"
            raise UsageError(f'--add-node {requested.name}: node "{node.name}" already exists', hint=hint)
        if not node.status.allocatable:
            raise UsageError(
                f'--add-node {requested.name}: node "{node.name}" has neither status.allocatable nor status.capacity'
            )
        objects_of_node = Added(
            csi_nodes=[each for each in objects.csi_nodes if each.metadata.name == node.name],
            resource_slices=[each for each in objects.resource_slices if each.spec.node_name == node.name],
        )
        found += copier.of_pattern(node, requested.number, keeps_name=node.name not in taken, known=objects_of_node)
        taken.update(each.name for each in found.nodes)
    return found


def without_node(cluster: ClusterSnapshot, name: str, now: datetime) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster without a node and the objects that belong to it, and what happens to its pods.

    Pods that a controller recreates become pending, under their old names. All others are removed: DaemonSet pods,
    static pods, terminating pods, and those without a controller. Raises ``NotFoundError``.
    """
    check_node(cluster, name)
    removed = [pod for pod in cluster.pods if pod.spec.node_name == name]
    cluster, consequences = without_pods(cluster, name, removed, now)
    changed = msgspec.structs.replace(
        cluster,
        nodes=[node for node in cluster.nodes if node.name != name],
        csi_nodes=[each for each in cluster.csi_nodes if each.metadata.name != name],
        resource_slices=[each for each in cluster.resource_slices if each.spec.node_name != name],
        volume_attachments=[each for each in cluster.volume_attachments if each.spec.node_name != name],
    )
    return changed, consequences


def without_pods(
    cluster: ClusterSnapshot, node_name: str, removed: Sequence[Pod], now: datetime, words: tuple[str, str] = _REMOVED
) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster without these pods of a node, except those that controllers recreate, and what happens to them.

    ``words`` say what happens to all of them, and to those of DaemonSets.
    """
    if not removed:
        return cluster, []
    from kpreempt.controllers.resource_claims import released  # noqa: PLC0415 - rarely needed

    recreated = {}
    for pod in removed:
        owner = controller_of(pod.metadata)
        made = _recreated(pod, now) if owner is not None and owner.kind != "DaemonSet" else None
        if made is not None:
            recreated[pod.key] = replace_in(made, "metadata", name=pod.metadata.name)
    gone = {pod.key for pod in removed}
    changed = msgspec.structs.replace(
        cluster,
        pods=[recreated.get(pod.key, pod) for pod in cluster.pods if pod.key not in gone or pod.key in recreated],
        resource_claims=released(cluster.resource_claims, removed) if cluster.resource_claims else [],
    )
    return changed, _consequences(node_name, removed, set(recreated), words)


def _recreated(pod: Pod, now: datetime, taken: Collection[str] = ()) -> Pod | None:
    """The pod that a controller creates if this one is deleted, with ``new`` at the end of a generated name.

    ``taken`` are the keys of other pods.
    """
    from kpreempt.controllers.replacement import replacement_of  # noqa: PLC0415 - rarely needed

    if pod.is_terminal or pod.metadata.deletion_timestamp is not None:
        return None
    suffixes = chain(["new"], (f"new-{number}" for number in range(2, len(taken) + 2)))
    made = (replacement_of(pod, suffix=suffix, uid=f"{pod.metadata.uid}-new", now=now) for suffix in suffixes)
    return next((each for each in made if each is None or each.key not in taken), None)


def _consequences(
    name: str, removed: Sequence[Pod], recreated: set[str], words_of_all: tuple[str, str]
) -> list[Assumption]:
    """The assumption about the removed pods of a node."""
    active = [pod for pod in removed if not pod.is_terminal]
    if not active:
        return []
    groups: Mapping[str, list[str]] = {"again": [], "node": [], "leaving": [], "lost": []}
    for pod in active:
        owner = controller_of(pod.metadata)
        of_node = owner is not None and owner.kind in ("DaemonSet", "Node")
        is_leaving = pod.metadata.deletion_timestamp is not None
        group = "again" if pod.key in recreated else "node" if of_node else "leaving" if is_leaving else "lost"
        groups[group].append(pod.key)
    what, of_node_words = words_of_all
    words = {
        "again": "recreated by their controllers and pending, under their old names",
        "node": of_node_words,
        "leaving": "already terminating",
        "lost": f"that no controller recreates: {listed(groups['lost'])}",
    }
    parts = [f"{len(pods):,} {words[group]}" for group, pods in groups.items() if pods]
    noun = "1 pod is" if len(active) == 1 else f"{len(active):,} pods are"
    return [Assumption(f"Node {name}", "pods", f"{noun} {what}: {'; '.join(parts)}", AssumptionKind.INFORMATIONAL)]


INSTANCE_TYPE = "node.kubernetes.io/instance-type"
# The kubelet's default for the maximum number of pods.
_PODS = "110"
_KIND = "NodePool"
_UNKNOWN = "the machine types and zones that Karpenter would choose are unknown"
_OF_MACHINE = (
    *("kubernetes.io/arch", "kubernetes.io/os", "topology.kubernetes.io/"),
    *("karpenter.k8s.aws/", "karpenter.azure.com/"),
)


def nodes_of_pool(cluster: ClusterSnapshot, copier: Copier, requested: NumberedName) -> Added:
    """New nodes of a pool. Raises ``NotFoundError``, and ``UsageError`` if nothing shows what they look like."""
    pool = next((each for each in cluster.node_pools if each.metadata.name == requested.name), None)
    if pool is None:
        near = difflib.get_close_matches(requested.name, [each.metadata.name for each in cluster.node_pools], n=3)
        problem = missing(cluster, _KIND, f'{_KIND} "{requested.name}"')
        raise NotFoundError(problem, hint=", ".join(near))
    subject = f"{_KIND} {requested.name}"
    added, message = _create(cluster, copier, pool, requested)
    assumptions = [Assumption(subject, "spec.template.spec.requirements", message)]
    # The limits that the pool exceeds with these nodes: ``the limit for cpu``.
    exceeded = []
    for name, limit in pool.spec.limits.items():
        now = pool.status.resources.get(name)
        new = sum(each.nano for node in added.nodes if (each := node.status.capacity.get(name)) is not None)
        if (now.nano if now is not None else 0) + new > limit.nano:
            exceeded.append(name)
    if limits := (f"the limit for {' and '.join(exceeded)}" if exceeded else ""):
        message = f"{limits} of the pool would be exceeded, so Karpenter would not create all of these nodes"
        assumptions.append(Assumption(subject, "spec.limits", message, AssumptionKind.UNCERTAIN))
    return msgspec.structs.replace(added, assumptions=[*assumptions, *added.assumptions])


def _create(cluster: ClusterSnapshot, copier: Copier, pool: NodePool, requested: NumberedName) -> tuple[Added, str]:
    """The nodes, and the assumption about them."""
    # The nodes that meet the requirements on labels they have.
    fitting = [
        kind.like
        for kind in kinds_of(cluster)
        if all(
            matches_requirement(each.key, each.operator, each.values, kind.like.labels)
            for each in pool.spec.template.spec.requirements
            if each.key in kind.like.labels
        )
    ]
    if own := next((node for node in fitting if node.labels.get(NODE_POOL) == requested.name), None):
        return copier.like(own, requested.number), (
            f"{_UNKNOWN}; assumed to be like {own.name}, the smallest node of the pool"
        )
    if size := _stated_size(pool):
        message = "the zone and the kubelet's reserved resources are unknown; the full size is available to pods"
        return copier.of_pattern(_pattern(pool, {}, size), requested.number), message
    types = _allowed(pool, INSTANCE_TYPE)
    if other := next((node for node in fitting if node.labels.get(INSTANCE_TYPE) in types), None):
        # Keep labels that describe the machine, but not its pool or purpose.
        shared = {
            key: value for key, value in other.labels.items() if (key == INSTANCE_TYPE or key.startswith(_OF_MACHINE))
        }
        pattern = _pattern(pool, shared, other.status)
        return copier.of_pattern(pattern, requested.number), (
            f"{_UNKNOWN}; assumed to be a {other.labels[INSTANCE_TYPE]} like {other.name}, in its zone"
        )
    raise UsageError(
        f"--add-pool {requested.name}: the size of its nodes is unknown: it is not in the pool, and the cluster has no "
        "node of the pool or of an instance type that it allows",
        hint="use --add-node FILE with a Node that has status.allocatable",
    )


def _allowed(pool: NodePool, key: str) -> list[str]:
    """The values that the pool allows for a label; empty if it lists none."""
    found = [each for each in pool.spec.template.spec.requirements if each.key == key and each.operator == "In"]
    return [value for value in found[0].values if all(value in each.values for each in found)] if found else []


def _stated_size(pool: NodePool) -> NodeStatus | None:
    """The resources of a node, if the pool allows only one size."""
    for cpu_label, memory_label in MACHINE_SIZES:
        cpu, memory = _allowed(pool, cpu_label), _allowed(pool, memory_label)
        if len(cpu) == len(memory) == 1 and all(each[0].isdecimal() and len(each[0]) <= 9 for each in (cpu, memory)):
            amounts = {"cpu": quantity(cpu[0]), "memory": quantity(f"{memory[0]}Mi"), "pods": quantity(_PODS)}
            return NodeStatus(allocatable=amounts, capacity=amounts)
    return None


def _pattern(pool: NodePool, labels: Mapping[str, str], status: NodeStatus) -> Node:
    """A node of the pool, with everything that the pool determines."""
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
# The field of a cluster, and the name of an object in messages, by kind.
_FIELDS = {
    "pod": ("pods", "pod"),
    "node": ("nodes", "node"),
    "pdb": ("pod_disruption_budgets", BUDGETS),
    "resourceclaim": ("resource_claims", "ResourceClaim"),
}
_NODE_FORMS = "pod/NAME, pod/NS/NAME, node/NAME, pdb/NS/NAME, resourceclaim/NS/NAME"
_MAX_INT32 = 2**31 - 1


TRUE = "true"


class NodeField(StrEnum):
    """The fields of a node that can be edited: everything of a node that users set and that affects scheduling."""

    LABELS = "metadata.labels"
    TAINTS = "spec.taints"
    UNSCHEDULABLE = "spec.unschedulable"
    ALLOCATABLE = "status.allocatable"


class NodeEdit(msgspec.Struct, frozen=True):
    """A change to a node.

    ``key`` is that of a label or taint, or a resource. The ``value`` is ``None`` to remove it; a removed taint without
    an ``effect`` is removed with every effect.
    """

    node: str
    field: NodeField
    key: str = ""
    value: str | None = None
    effect: TaintEffect = ""

    @property
    def argument(self) -> str:
        """The option with which users make the edit."""
        value = "-" if self.value is None else f"={self.value}"
        effect = f":{self.effect}" if self.effect else ""
        if self.field is NodeField.TAINTS:
            spec = f"{effect}-" if self.value is None else f"={self.value}{effect}" if self.value else effect
            return f"--taint-node={self.node}={self.key}{spec}"
        if self.field is NodeField.LABELS:
            return f"--label-node={self.node}={self.key}{value}"
        if self.field is NodeField.UNSCHEDULABLE:
            return f"--{'cordon' if self.value == TRUE else 'uncordon'}={self.node}"
        return f"--set-node={self.node}:{self.field}.{self.key}{value}"


def cordon(node_name: str) -> NodeEdit:
    """The edit of ``kubectl cordon``."""
    return NodeEdit(node_name, NodeField.UNSCHEDULABLE, value=TRUE)


def uncordon(node_name: str) -> NodeEdit:
    """The edit of ``kubectl uncordon``."""
    return NodeEdit(node_name, NodeField.UNSCHEDULABLE)


def edited_node(node: Node, edit: NodeEdit) -> Node:
    """The node after an edit. As with ``kubectl taint``, a new taint comes first."""
    value = edit.value
    if edit.field is NodeField.UNSCHEDULABLE:
        return cordoned_node(node) if value == TRUE else _uncordoned_node(node)
    if edit.field is NodeField.TAINTS:
        new = [Taint(key=edit.key, value=value, effect=edit.effect)] if value is not None else []
        kept = [each for each in node.spec.taints if each.key != edit.key or edit.effect not in ("", each.effect)]
        return replace_in(node, "spec", taints=[*new, *kept])
    if edit.field is NodeField.LABELS:
        others = {key: each for key, each in node.labels.items() if key != edit.key}
        return replace_in(node, "metadata", labels=others if value is None else {**node.labels, edit.key: value})
    allocatable = {name: amount for name, amount in node.status.allocatable.items() if name != edit.key}
    if value is None:
        return replace_in(node, "status", allocatable=allocatable)
    amount = quantity(value)
    # A machine that offers more has more.
    capacity = node.status.capacity
    if edit.key in capacity and capacity[edit.key].nano < amount.nano:
        capacity = {**capacity, edit.key: amount}
    return replace_in(node, "status", allocatable={**node.status.allocatable, edit.key: amount}, capacity=capacity)


def changed(
    cluster: ClusterSnapshot,
    namespace: str = "",
    *,
    default: str = DEFAULT_NAMESPACE,
    removed: Iterable[str] = (),
    edits: Iterable[NodeEdit] = (),
    budgets: Iterable[str] = (),
    now: datetime | None = None,
) -> ClusterSnapshot:
    """The cluster without the ``removed`` objects, then with edited nodes, then with changed budgets.

    ``namespace`` applies to names without one. If it is empty, they may be in any, with ``default`` first. With
    ``now``, controllers recreate removed pods then. Raises the errors of these functions.
    """
    for target in removed:
        cluster = without(cluster, target, namespace or default, now, anywhere=not namespace)
    for edit in edits:
        check_node(cluster, edit.node)
        nodes = [edited_node(node, edit) if node.name == edit.node else node for node in cluster.nodes]
        cluster = msgspec.structs.replace(cluster, nodes=nodes)
    for budget in budgets:
        cluster = set_budget(cluster, budget)
    return msgspec.structs.replace(cluster, is_what_if=True)


def recreations(before: ClusterSnapshot, after: ClusterSnapshot) -> list[Assumption]:
    """The assumptions about pods that controllers have recreated after a change."""
    existing = {(pod.key, pod.metadata.uid) for pod in before.pods}
    return [
        Assumption(
            f"Pod {pod.key}",
            "metadata.ownerReferences",
            f"{controller_name(pod.metadata)} creates it in place of a removed pod; it is pending",
            AssumptionKind.INFORMATIONAL,
        )
        for pod in after.pods
        if (pod.key, pod.metadata.uid) not in existing
    ]


def without(
    cluster: ClusterSnapshot,
    target: str,
    namespace: str = DEFAULT_NAMESPACE,
    now: datetime | None = None,
    *,
    anywhere: bool = False,
) -> ClusterSnapshot:
    """The cluster without one object.

    ``target`` is ``pod/NAME``, ``pod/NS/NAME``, ``NS/NAME`` (a pod), ``node/NAME``, ``pdb/NS/NAME`` or
    ``resourceclaim/NS/NAME``; ``namespace`` is the default, and with ``anywhere``, the only other namespace that has
    the object. Pods of a removed node keep its name. A removed pod's device claims are released unless another pod uses
    them, and with ``now``, its controller recreates it then.
    Raises ``UsageError`` for another format and ``NotFoundError`` if the object does not exist.
    """
    from kpreempt.controllers.resource_claims import released  # noqa: PLC0415 - rarely needed

    parts = target.split("/")
    kind, rest = "pod", parts
    if len(parts) > 1 and parts[0].lower() in _KINDS:
        kind, rest = _KINDS[parts[0].lower()], parts[1:]
    if not 1 <= len(rest) <= (1 if kind == "node" else 2) or not all(rest):
        raise UsageError(f'"{target}" is not an object name', hint=_NODE_FORMS)
    field, name = _FIELDS[kind]
    existing = [(each.name if kind == "node" else each.key, each) for each in getattr(cluster, field)]
    if anywhere and kind != "node" and len(rest) == 1:
        from kpreempt.analysis.targets import only_namespace  # noqa: PLC0415 - rarely needed

        places = (own.rpartition("/") for own, _ in existing)
        found = {place for place, _, own in places if own == rest[0]}
        namespace = only_namespace(found, f'{name} "{rest[0]}"', namespace) or namespace
    key = rest[-1] if kind == "node" else f"{rest[0] if len(rest) == 2 else namespace}/{rest[-1]}"
    changes = {field: [each for own, each in existing if own != key]}
    if len(changes[field]) == len(existing):
        raise _not_found(cluster, name, key, (own for own, _ in existing))
    if kind == "node":
        changes["csi_nodes"] = [each for each in cluster.csi_nodes if each.metadata.name != key]
    elif kind == "pod":
        gone = [each for own, each in existing if own == key]
        if cluster.resource_claims:
            changes["resource_claims"] = released(cluster.resource_claims, gone)
        if now is not None:
            taken = {pod.key for pod in changes["pods"]}
            made = (_recreated(pod, now, taken) for pod in gone)
            changes["pods"] += [pod for pod in made if pod is not None]
    return msgspec.structs.replace(cluster, **changes)


def check_node(cluster: ClusterSnapshot, node_name: str) -> None:
    """Raise ``NotFoundError`` that suggests similar names, unless the node is in the cluster."""
    if all(node.name != node_name for node in cluster.nodes):
        raise _not_found(cluster, "node", node_name, (node.name for node in cluster.nodes))


def set_budget(cluster: ClusterSnapshot, text: str) -> ClusterSnapshot:
    """The cluster with a budget that allows another number of disruptions: ``NS/NAME=ALLOWED``.

    Raises ``UsageError`` for another format and ``NotFoundError`` for an unknown budget.
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
    """The node, marked unschedulable, with the node controller's taint; an already cordoned node is returned as is."""
    taints = node.spec.taints
    if not any(taint.key == _UNSCHEDULABLE.key and taint.effect == _UNSCHEDULABLE.effect for taint in taints):
        taints = [*taints, _UNSCHEDULABLE]
    elif node.spec.unschedulable:
        return node
    return replace_in(node, "spec", unschedulable=True, taints=taints)


def _uncordoned_node(node: Node) -> Node:
    """The node, schedulable again, without the cordon's taint."""
    taints = [taint for taint in node.spec.taints if taint.key != _UNSCHEDULABLE.key]
    return replace_in(node, "spec", unschedulable=False, taints=taints)


def _not_found(cluster: ClusterSnapshot, kind: str, name: str, names: Iterable[str]) -> NotFoundError:
    near = difflib.get_close_matches(name, list(names), n=3)
    first, slash, rest = name.partition("/")
    if slash and not near:
        # The part before the slash may be a misspelled kind instead of a namespace.
        near = [f"{_KINDS[each]}/{rest}" for each in difflib.get_close_matches(first.lower(), _KINDS, n=1)]
    read = {"node": "Node", "pod": "Pod"}.get(kind, kind)
    return NotFoundError(missing(cluster, read, f'{kind} "{name}"'), hint=", ".join(near))
