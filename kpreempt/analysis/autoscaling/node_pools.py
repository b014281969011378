"""What is in the way of a pod on new nodes of Karpenter's NodePools.

Follows ``sigs.k8s.io/karpenter`` v1.9: ``pkg/scheduling/requirement.go`` and ``requirements.go`` (which values two
requirements share, and which labels may be undefined), ``pkg/scheduling/taints.go``, and
``pkg/controllers/provisioning/scheduling/nodeclaim.go`` (``CanAdd``). Preferences do not matter: Karpenter drops them
one after another. The cloud's instance types are unknown, so a pool without obstacles may still have no node for the
pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kpreempt.model.affinity import NodeSelectorTerm
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import format_requirement, parse_int64
from kpreempt.model.node import MACHINE_SIZES, NODE_POOL, NodePool
from kpreempt.model.pod import Pod
from kpreempt.model.taints import find_untolerated_taint
from kpreempt.schedulers.kube.framework.resources import pod_requests, requests_in_units
from kpreempt.verdict.autoscaling import Obstacle, ObstacleKind, PoolObstacles

_HOST_NAME = "kubernetes.io/hostname"
_ZONE = "topology.kubernetes.io/zone"
# Other names of labels, from ``pkg/apis/v1/labels.go`` and from the clouds' providers.
_NORMALIZED = {
    "failure-domain.beta.kubernetes.io/zone": _ZONE,
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "topology.ebs.csi.aws.com/zone": _ZONE,
    "topology.disk.csi.azure.com/zone": _ZONE,
    "topology.gke.io/zone": _ZONE,
}
# Kubernetes, Karpenter and the clouds define labels of new nodes in these domains; only others must be in the pool.
_DEFINED_ELSEWHERE = ("k8s.io", "kubernetes.io", "karpenter", "aws", "azure", "google", "gke.io", "cloud")
_REPELLING = frozenset(("NoSchedule", "NoExecute"))
_ON_EVERY_NODE = frozenset(("cpu", "memory", "ephemeral-storage", "pods", "nodes"))
# Operators that only NodePools have.
_COMPARISONS = {"Gte": ">=", "Lte": "<="}
_MI_PER_UNIT = {"cpu": 1_000, "memory": 2**20}


class Expression(NamedTuple):
    """A requirement of a pod, a volume or a pool on one label."""

    key: str
    operator: str
    values: Sequence[str]

    @property
    def text(self) -> str:
        """As for ``kubectl -l``."""
        if self.operator == "In" and len(self.values) == 1:
            return f"{self.key}={self.values[0]}"
        if self.operator in _COMPARISONS:
            return f"{self.key} {_COMPARISONS[self.operator]} {','.join(self.values)}"
        return format_requirement(self.key, self.operator, list(self.values))


class _Allowed(NamedTuple):
    """The values of a label that are allowed: these, or all others if it is a complement, within the bounds."""

    is_complement: bool
    values: frozenset[str]
    least: int | None = None
    most: int | None = None

    @property
    def excludes(self) -> bool:
        """Whether the label may be missing (Karpenter's operators NotIn and DoesNotExist)."""
        return bool(self.values) if self.is_complement else not self.values

    def has(self, value: str) -> bool:
        if (value in self.values) == self.is_complement:
            return False
        if self.least is None and self.most is None:
            return True
        number = parse_int64(value)
        return number is not None and _within(number, self.least, self.most)

    def meets(self, other: _Allowed) -> bool:
        """Whether some value is allowed by both."""
        least, most = _bounds(self, other)
        if least is not None and most is not None and least > most:
            return False
        if self.is_complement and other.is_complement:
            return True
        one, two = (other, self) if self.is_complement else (self, other)
        return any(one.has(value) and two.has(value) for value in one.values)

    def narrowed(self, other: _Allowed) -> _Allowed:
        """The values that both allow."""
        least, most = _bounds(self, other)
        if self.is_complement and other.is_complement:
            if least is not None and most is not None and least > most:
                return _Allowed(False, frozenset())
            return _Allowed(True, self.values | other.values, least, most)
        one, two = (other, self) if self.is_complement else (self, other)
        return _Allowed(False, frozenset(value for value in one.values if one.has(value) and two.has(value)))


def _within(number: int, least: int | None, most: int | None) -> bool:
    return (least is None or number >= least) and (most is None or number <= most)


def _bounds(one: _Allowed, two: _Allowed) -> tuple[int | None, int | None]:
    least = max((each for each in (one.least, two.least) if each is not None), default=None)
    most = min((each for each in (one.most, two.most) if each is not None), default=None)
    return least, most


def _allowed(expression: Expression) -> _Allowed | None:
    """The values that an expression allows; ``None`` for an operator or a number that Karpenter does not know."""
    values = frozenset(expression.values)
    match expression.operator:
        case "In":
            return _Allowed(False, values)
        case "NotIn":
            return _Allowed(True, values)
        case "Exists":
            return _Allowed(True, frozenset())
        case "DoesNotExist":
            return _Allowed(False, frozenset())
    number = parse_int64(expression.values[0]) if len(expression.values) == 1 else None
    if number is None:
        return None
    bounds = {"Gt": (number + 1, None), "Gte": (number, None), "Lt": (None, number - 1), "Lte": (None, number)}
    found = bounds.get(expression.operator)
    return None if found is None else _Allowed(True, frozenset(), *found)


class VolumeTopology(NamedTuple):
    """Where a volume of the pod can be: one of these terms; ``name`` is ``PersistentVolume pv-1``."""

    name: str
    terms: Sequence[Sequence[Expression]]


class Volumes:
    """The volumes of a cluster."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self._claims = {
            (each.metadata.namespace, each.metadata.name): each for each in cluster.persistent_volume_claims
        }
        self._disks = {each.metadata.name: each for each in cluster.persistent_volumes}
        self._classes = {each.metadata.name: each for each in cluster.storage_classes}

    def of(self, pod: Pod) -> list[VolumeTopology]:
        """The pod's volumes that are tied to nodes, and the classes of volumes that are yet to be provisioned."""
        found = []
        for volume in pod.spec.volumes:
            name = volume.persistent_volume_claim.claim_name if volume.persistent_volume_claim is not None else ""
            if not name and volume.ephemeral is not None:
                name = f"{pod.metadata.name}-{volume.name}"
            claim = self._claims.get((pod.metadata.namespace, name))
            if claim is None:
                continue
            disk = self._disks.get(claim.spec.volume_name)
            kind = self._classes.get(claim.spec.storage_class_name or "")
            affinity = disk.spec.node_affinity if disk is not None else None
            if disk is not None and affinity is not None and affinity.required is not None:
                terms = [_expressions(term) for term in affinity.required.node_selector_terms]
                found.append(VolumeTopology(f"PersistentVolume {disk.metadata.name}", terms))
            elif not claim.spec.volume_name and kind is not None and kind.allowed_topologies:
                terms = [
                    [Expression(_key(each.key), "In", each.values) for each in term.match_label_expressions]
                    for term in kind.allowed_topologies
                ]
                found.append(VolumeTopology(f"StorageClass {kind.metadata.name}", terms))
        return found


def _key(key: str) -> str:
    return _NORMALIZED.get(key, key)


def _expressions(term: NodeSelectorTerm) -> list[Expression]:
    return [Expression(_key(each.key), each.operator, each.values) for each in term.match_expressions]


def obstacles_of(pool: NodePool, pod: Pod, volumes: Sequence[VolumeTopology]) -> PoolObstacles:
    """What is in the way of the pod on a new node of the pool."""
    found: list[Obstacle] = []
    if pool.metadata.deletion_timestamp is not None:
        found.append(Obstacle(kind=ObstacleKind.BEING_DELETED))
    if pool.spec.replicas is not None:
        found.append(Obstacle(kind=ObstacleKind.STATIC))
    ready = next((each for each in pool.status.conditions if each.type == "Ready"), None)
    if ready is not None and ready.status != "True":
        found.append(Obstacle(kind=ObstacleKind.NOT_READY, message=ready.message or ready.reason))
    offered = _offered(pool)
    found += _selection(offered, pod)
    for volume in volumes:
        found += _fewest([_conflicts(offered, term, volume.name) for term in volume.terms])
    taints = [taint for taint in pool.spec.template.spec.taints if taint.effect in _REPELLING]
    found += [
        Obstacle(kind=ObstacleKind.TAINT, key=taint.key, offered=str(taint))
        for taint in taints
        # Whether Karpenter compares numbers depends on its version.
        if find_untolerated_taint([taint], pod.spec.tolerations, _REPELLING, compares_numbers=True) is not None
    ]
    requested = requests_in_units(pod_requests(pod))
    return PoolObstacles(pool.metadata.name, [*found, *_limits(pool, requested), *_sizes(offered, requested)])


def _offered(pool: NodePool) -> dict[str, list[Expression]]:
    """The requirements of the pool, by label; its own labels count as requirements."""
    template = pool.spec.template
    labels = {**template.metadata.labels, NODE_POOL: pool.metadata.name}
    expressions = [
        *(Expression(_key(each.key), each.operator, each.values) for each in template.spec.requirements),
        *(Expression(_key(key), "In", [value]) for key, value in labels.items()),
    ]
    found: dict[str, list[Expression]] = {}
    for each in expressions:
        found.setdefault(each.key, []).append(each)
    return found


def _selection(offered: dict[str, list[Expression]], pod: Pod) -> list[Obstacle]:
    """Conflicts with the node selector, and with the required term of the node affinity that has the fewest."""
    selector = [Expression(_key(key), "In", [value]) for key, value in pod.spec.node_selector.items()]
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required if affinity is not None else None
    terms = [_expressions(term) for term in required.node_selector_terms] if required is not None else []
    return [*_conflicts(offered, selector), *_fewest([_conflicts(offered, term) for term in terms])]


def _fewest(alternatives: list[list[Obstacle]]) -> list[Obstacle]:
    return min(alternatives, key=len, default=[])


def _conflicts(offered: dict[str, list[Expression]], wanted: Iterable[Expression], volume: str = "") -> list[Obstacle]:
    found = []
    for each in wanted:
        own = offered.get(each.key, [])
        values = _allowed(each)
        if values is None:
            continue
        if each.key == _HOST_NAME:
            # A new node has a new name.
            is_conflict = not values.is_complement
        elif own:
            is_conflict = _are_disjoint(own, values)
        else:
            # Volumes only limit the labels that the pool defines.
            is_conflict = not volume and not values.excludes and not _is_defined_elsewhere(each.key)
        if is_conflict:
            texts = [expression.text for expression in own]
            found.append(
                Obstacle(
                    kind=ObstacleKind.REQUIREMENT,
                    key=each.key,
                    wanted=each.text,
                    offered=",".join(texts),
                    volume=volume,
                )
            )
    return found


def _are_disjoint(own: Sequence[Expression], values: _Allowed) -> bool:
    """Whether the requirements of a pool on a label leave no value that is allowed; unknown ones leave all."""
    left = _Allowed(True, frozenset())
    for expression in own:
        allowed = _allowed(expression)
        left = left if allowed is None else left.narrowed(allowed)
    return not left.meets(values) and not (values.excludes and left.excludes)


def _is_defined_elsewhere(key: str) -> bool:
    """Whether a new node may have the label although the pool does not define it."""
    domain, slash, _ = key.partition("/")
    return bool(slash) and any(part in domain for part in _DEFINED_ELSEWHERE)


def _limits(pool: NodePool, requested: dict[str, int]) -> list[Obstacle]:
    """The limits that leave less than the pod requests; the usage is what Karpenter last wrote."""
    limits = requests_in_units({name: amount.nano for name, amount in pool.spec.limits.items()})
    used = requests_in_units({name: amount.nano for name, amount in pool.status.resources.items()})
    found = []
    for name, limit in limits.items():
        # A node has at least what its pods request, and some of what every node has.
        needed = max(int(name in _ON_EVERY_NODE), requested.get(name, 0))
        if used.get(name, 0) + needed > limit:
            found.append(
                Obstacle(
                    kind=ObstacleKind.LIMIT,
                    key=name,
                    requested=requested.get(name, 0),
                    used=used.get(name, 0),
                    limit=limit,
                )
            )
    return found


def _sizes(offered: dict[str, list[Expression]], requested: dict[str, int]) -> list[Obstacle]:
    """The sizes to which the pool limits its nodes that are smaller than the request."""
    found = []
    for labels in MACHINE_SIZES:
        for resource, label in zip(("cpu", "memory"), labels, strict=True):
            left = _Allowed(True, frozenset())
            for expression in offered.get(label, ()):
                allowed = _allowed(expression)
                left = left if allowed is None else left.narrowed(allowed)
            numbers = [parse_int64(value) for value in left.values] if not left.is_complement else [left.most]
            known = [number for number in numbers if number is not None]
            largest = max(known, default=0) * _MI_PER_UNIT[resource]
            if known and len(known) == len(numbers) and requested.get(resource, 0) > largest:
                texts = ",".join(expression.text for expression in offered[label])
                found.append(
                    Obstacle(
                        kind=ObstacleKind.SIZE,
                        key=resource,
                        offered=texts,
                        requested=requested[resource],
                        limit=largest,
                    )
                )
    return found
