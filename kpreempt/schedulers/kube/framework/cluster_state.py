"""The cluster as the scheduler's cache and queue see it when a pod is scheduled.

Follows ``pkg/scheduler/backend/cache`` (the order of nodes, and which pods count) and ``backend/queue/nominator.go`` of
v1.36.3. Finished pods are ignored, pods on nodes that do not exist use no node's resources, and unassigned pods count
only if they are nominated to a node, are handled by this scheduler and are not gated.

Pods are grouped by node, either from scratch or by updating the groups of a similar list. The number of pods with given
labels on each node is maintained in the same way. A selector is matched against each distinct set of labels, not
against each pod, because replicas share their labels.
"""

from __future__ import annotations

import operator
from bisect import insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain, compress
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.devices import CLASS_RESOURCE_PREFIX, DeviceClass, ResourceClaim
from kpreempt.model.frozen import FrozenList, frozen
from kpreempt.model.labels import LabelIndex, LabelSelector
from kpreempt.model.node import ContainerImage, Node
from kpreempt.model.pod import TERMINAL_PHASES, Pod, PodMeta, has_namespace_selector
from kpreempt.model.storage import CSIDriver, CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from kpreempt.schedulers.kube.framework.node_info import ImageState, NodeInfo, PodInfo, is_same_pod
from kpreempt.schedulers.kube.versions import Behavior

if TYPE_CHECKING:
    from kpreempt.schedulers.interface import PodChanges
    from kpreempt.schedulers.kube.devices.allocator import Devices


# The deprecated label comes first, as in upstream's GetZoneKey.
REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_NOWHERE: frozenset[str] = frozenset()
# If these are the same objects, one cluster closely follows another.
_BUT_FOR_PODS = frozenset(ClusterSnapshot.__struct_fields__) - {"pods", "pod_disruption_budgets"}


class ClusterState:
    """Nodes with their pods, nominated pods by node, and lookups of everything else by name. Immutable.

    ``before`` is the state of a cluster with the same nodes and possibly other pods, made for the same scheduler. Nodes
    whose pods are unchanged are shared with it, including what has been computed for them; ``changes`` lists the
    changed pods, if known. ``follows_closely`` means that only pods and budgets differ.
    """

    node_infos: list[NodeInfo]
    by_name: Mapping[str, NodeInfo]

    def __init__(
        self,
        cluster: ClusterSnapshot,
        behavior: Behavior,
        *,
        now: datetime,
        scheduler_names: frozenset[str],
        ungated: frozenset[str] = frozenset(),
        is_queued: bool = True,
        before: ClusterState | None = None,
        changes: PodChanges | None = None,
    ) -> None:
        """``ungated`` are the names of the schedulers whose queue admits pods with scheduling gates."""
        self.cluster = cluster
        self.frozen_objects: FrozenObjects = FrozenObjects(cluster, before.frozen_objects if before else None)
        self.behavior = behavior
        self.now = now
        self.scheduler_names = scheduler_names
        self._ungated = ungated
        self.is_queued = is_queued
        self._selected_namespaces: dict[bytes, frozenset[str]] = {}
        self.follows_closely = before is not None and all(
            getattr(cluster, field) is getattr(before.cluster, field) for field in _BUT_FOR_PODS
        )
        if before is None:
            nodes = in_zone_order(cluster.nodes)
            self.position = {node.metadata.name: index for index, node in enumerate(nodes)}
            changed: dict[Position, list[Pod]] = {name: [] for name in self.position}
            add_by_position(changed, cluster.pods, self._place_of)
            self._groups = _Groups(changed, {})
        else:
            self.position = before.position
            if changes is None:
                changed = regrouped(before._groups, before.cluster.pods, cluster.pods, self._place_of)
            else:
                changed = moved(before._groups, changes, self._place_of)
            self._groups = before._groups.updated(changed)
        groups = self._groups
        self.nominated_pods: dict[str, list[PodInfo]] = before.nominated_pods if before is not None else {}
        # The nodes to which pods are nominated, by UID and by ``namespace/name``.
        self._nominated_names: dict[str, frozenset[str]] = before._nominated_names if before is not None else {}
        # The nodes to which pods with such terms are nominated.
        self._nominated_selecting_namespaces: frozenset[str] = (
            before._nominated_selecting_namespaces if before is not None else _NOWHERE
        )
        self.has_rounded_images: bool = before is not None and before.has_rounded_images
        self._nominate([place for place in changed if isinstance(place, NominatedTo)])
        # The nodes of the previous state, and the names of nodes that differ here or have other nominated pods.
        self.nodes_before: Sequence[NodeInfo] | None = before.node_infos if before is not None else None
        self.changed_since = [place.node if isinstance(place, NominatedTo) else place for place in changed]
        if before is None:
            self.node_infos = [NodeInfo(node, groups[node.metadata.name], behavior) for node in nodes]
            self._spread_images()
        else:
            self._take_nodes(before, [place for place in changed if isinstance(place, str)])
        self.by_name = _NodesByName(self.position, self.node_infos)

    def _place_of(self, pod: Pod) -> Position:
        """Return the node whose resources the pod uses, or on which they are reserved for it."""
        if pod.status.phase in TERMINAL_PHASES:
            return NOWHERE
        node_name = pod.spec.node_name
        if node_name:
            return node_name if node_name in self.position else NOWHERE
        # A queue reserves nothing for a gated pod. Without a queue, older versions did not check.
        is_reserved = self.behavior.reserves_gated_pods or (
            self.behavior.keeps_nominated_pods_complete and not self.is_queued
        )
        is_nominated = (
            pod.status.nominated_node_name
            and (is_reserved or not pod.spec.scheduling_gates or pod.spec.scheduler_name in self._ungated)
            and pod.spec.scheduler_name in self.scheduler_names
        )
        return NominatedTo(pod.status.nominated_node_name) if is_nominated else NOWHERE

    def _take_nodes(self, before: ClusterState, changed: Collection[str]) -> None:
        """Take the nodes of the previous state, and rebuild those whose pods changed."""
        groups = self._groups
        self.node_infos = list(before.node_infos)
        for name in changed:
            place = self.position[name]
            self.node_infos[place] = before.node_infos[place].with_pods(groups[name])
        places = [self.position[name] for name in changed]
        self.num_pods = before.num_pods + sum(len(groups[name]) - len(before._groups[name]) for name in changed)
        if (counted := before.__dict__.get("_pods_by_labels")) is not None:
            self.__dict__["_pods_by_labels"] = counted.followed(
                (name, before._groups[name], groups[name]) for name in changed
            )
        for kind, of_node in _WITH_AFFINITY.items():
            # Usually none of the changed nodes has, or had, any.
            if kind in before.__dict__ and not any(
                of_node(state.node_infos[place]) for place in places for state in (before, self)
            ):
                self.__dict__[kind] = before.__dict__[kind]
        if (selecting := before.__dict__.get("_nodes_selecting_namespaces")) is not None:
            self.__dict__["_nodes_selecting_namespaces"] = selecting.difference(changed).union(
                name for name, place in zip(changed, places, strict=True) if _selects_namespaces(self.node_infos[place])
            )
        if "image_names" in before.__dict__:
            self.__dict__["image_names"] = before.image_names
        if self.follows_closely:
            self.__dict__ |= {name: before.__dict__[name] for name in _OF_THE_REST if name in before.__dict__}

    def _nominate(self, changed: Collection[NominatedTo]) -> None:
        """Reserve resources for nominated pods on their nodes; records of already nominated pods are reused."""
        if not changed:
            return
        is_fully_known = self.is_queued or self.behavior.keeps_nominated_pods_complete
        self.nominated_pods, self._nominated_names = dict(self.nominated_pods), dict(self._nominated_names)
        for place in changed:
            name, group = place.node, self._groups[place]
            infos = self.nominated_pods.pop(name, [])
            self._name(name, infos, frozenset.difference)
            if not is_fully_known:
                # What the scheduler knows about a nominated pod that is not in its queue (``nominatedPodToInfo``).
                known = [(each.metadata.name, each.metadata.namespace, each.metadata.uid) for each in group]
                group = [Pod(metadata=PodMeta(name=name, namespace=space, uid=uid)) for name, space, uid in known]
            change = frozenset.union if any(map(has_namespace_selector, group)) else frozenset.difference
            self._nominated_selecting_namespaces = change(self._nominated_selecting_namespaces, (name,))
            is_same = len(infos) == len(group) and all(map(is_, [info.pod for info in infos], group))
            if group:
                self.nominated_pods[name] = infos if is_same else [PodInfo(pod, self.behavior) for pod in group]
                self._name(name, self.nominated_pods[name], frozenset.union)

    def _name(
        self, node: str, infos: Iterable[PodInfo], change: Callable[[frozenset[str], Collection[str]], frozenset[str]]
    ) -> None:
        """Update the nodes to which pods are nominated."""
        for info in infos:
            for key in (info.pod.metadata.uid, info.key):
                self._nominated_names[key] = change(self._nominated_names.get(key, _NOWHERE), (node,))

    @cached_property
    def nominated_out_of_queue(self) -> list[Pod]:
        """The nominated pods of which the scheduler knows only the names."""
        if self.is_queued or self.behavior.keeps_nominated_pods_complete or not self.nominated_pods:
            return []
        return [pod for pod in self.cluster.pods if isinstance(self._place_of(pod), NominatedTo)]

    def places_nominated_to(self, pod: Pod) -> frozenset[int]:
        """Return the positions of the nodes to which exactly this pod is nominated, by UID or, if none, by name."""
        names = self._nominated_names.get(pod.metadata.uid, _NOWHERE) | self._nominated_names.get(pod.key, _NOWHERE)
        return frozenset(
            self.position[name]
            for name in names
            if name in self.position and any(is_same_pod(info.pod, pod) for info in self.nominated_pods[name])
        )

    def _spread_images(self) -> None:
        """Give every node its images with the number of nodes that have them (``createImageExistenceMap``).

        A running scheduler's cache has the size that the first node reported for a name; a stand-alone snapshot has
        each node's own. They differ only if two nodes have different images with the same name.
        """
        counts: dict[str, int] = {}
        first: dict[str, ContainerImage] = {}
        for node in self.cluster.nodes:
            for name in {name for image in node.status.images for name in image.names}:
                counts[name] = counts.get(name, 0) + 1
            if self.is_queued:
                for image in node.status.images:
                    for name in image.names:
                        first.setdefault(name, image)
        if not counts:
            return
        images = (image for node in self.cluster.nodes for image in node.status.images)
        self.has_rounded_images = any(image.size_bytes_up_to for image in images)
        for node_info in self.node_infos:
            node_info.image_states = {
                name: ImageState(first.get(name, image), counts[name])
                for image in node_info.node.status.images
                for name in image.names
            }

    @cached_property
    def image_names(self) -> frozenset[str]:
        """The names of all images on nodes."""
        return frozenset(chain.from_iterable(each.image_states for each in self.node_infos))

    def has_nodes_of(self, other: ClusterState) -> bool:
        """Return whether both states share the same nodes in the same order because they have a common origin."""
        return self.position is other.position

    def pods_on(self, node_name: str) -> list[Pod]:
        """Return the pods of a node of the cluster; callers must not change the list."""
        return self._groups[node_name]

    @cached_property
    def num_pods(self) -> int:
        """The number of pods that use resources on nodes."""
        return sum(len(self._groups[name]) for name in self.position)

    def selected_pods(self, namespace: str, selector: LabelSelector) -> dict[str, int]:
        """Return how many pods of the namespace are selected, by node name, excluding terminating pods.

        Nodes without any are omitted.
        """
        if self.follows_closely:
            return self._pods_by_labels.selected(namespace, selector)
        # A single query is not worth indexing all pods.
        counts = {
            node_info.name: sum(map(selector.matches, labels))
            for node_info in self.node_infos
            if node_info.num_pods and (labels := node_info.labels_by_namespace.get(namespace))
        }
        return {name: count for name, count in counts.items() if count}

    @cached_property
    def nodes_with_affinity(self) -> list[NodeInfo]:
        """The nodes with pods that have any affinity."""
        return [node_info for node_info in self.node_infos if node_info.pods_with_affinity]

    @property
    def has_namespace_selectors(self) -> bool:
        """Whether affinity terms of pods on nodes, or of nominated pods, select namespaces by their labels."""
        return bool(self._nodes_selecting_namespaces) or bool(self._nominated_selecting_namespaces)

    @cached_property
    def _nodes_selecting_namespaces(self) -> frozenset[str]:
        return frozenset(each.name for each in self.nodes_with_affinity if _selects_namespaces(each))

    @cached_property
    def nodes_with_anti_affinity(self) -> list[NodeInfo]:
        """The nodes with pods that have required anti-affinity."""
        return [node_info for node_info in self.node_infos if node_info.pods_with_required_anti_affinity]

    @cached_property
    def _pods_by_labels(self) -> PodsByLabels:
        return PodsByLabels(self.node_infos)

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace; empty if it is unknown."""
        return self._namespace_labels.get(namespace, {})

    def selected_namespaces(self, selector: LabelSelector) -> frozenset[str]:
        """Return the names of the namespaces that match the selector."""
        text = msgspec.json.encode(selector)
        found = self._selected_namespaces.get(text)
        if found is None:
            namespaces = self.cluster.namespaces
            places = self._namespace_index.matching(selector)
            found = self._selected_namespaces[text] = frozenset(namespaces[each].metadata.name for each in places)
        return found

    @cached_property
    def _namespace_index(self) -> LabelIndex:
        return LabelIndex(namespace.metadata.labels for namespace in self.cluster.namespaces)

    @cached_property
    def _namespace_labels(self) -> dict[str, dict[str, str]]:
        return {namespace.metadata.name: namespace.metadata.labels for namespace in self.cluster.namespaces}

    @cached_property
    def persistent_volume_claims(self) -> dict[str, PersistentVolumeClaim]:
        """Claims by ``namespace/name``."""
        return {claim.key: claim for claim in self.cluster.persistent_volume_claims}

    @cached_property
    def persistent_volumes(self) -> dict[str, PersistentVolume]:
        """Volumes by name."""
        return {volume.metadata.name: volume for volume in self.cluster.persistent_volumes}

    @cached_property
    def storage_classes(self) -> dict[str, StorageClass]:
        """Storage classes by name."""
        return {storage_class.metadata.name: storage_class for storage_class in self.cluster.storage_classes}

    @cached_property
    def csi_nodes(self) -> dict[str, CSINode]:
        """CSI drivers of nodes, by node name."""
        return {csi_node.metadata.name: csi_node for csi_node in self.cluster.csi_nodes}

    @cached_property
    def csi_drivers(self) -> dict[str, CSIDriver]:
        """CSI drivers by name."""
        return {driver.metadata.name: driver for driver in self.cluster.csi_drivers}

    @cached_property
    def resource_claims(self) -> dict[str, ResourceClaim]:
        """Device claims by ``namespace/name``."""
        return {claim.key: claim for claim in self.cluster.resource_claims}

    @cached_property
    def devices(self) -> Devices:
        """The devices that exist, and their allocations."""
        from kpreempt.schedulers.kube.devices.allocator import Devices  # noqa: PLC0415 - few pods request devices

        return Devices(self.cluster, self.behavior)

    @cached_property
    def classes_of_extended_resources(self) -> dict[str, DeviceClass]:
        """The device class that may provide an extended resource, by resource name.

        If several classes name the same resource, the newest wins, then the first by name.
        """
        classes = self.cluster.device_classes
        found = {f"{CLASS_RESOURCE_PREFIX}{each.metadata.name}": each for each in classes}
        for each in sorted(classes, key=lambda each: each.metadata.name, reverse=True):
            name = each.spec.extended_resource_name
            if name and (name not in found or _created(each) >= _created(found[name])):
                found[name] = each
        return found

    def devices_serving(self, resource: str, node_info: NodeInfo) -> tuple[int, int]:
        """Return how many devices of a class provide an extended resource on the node, and how many are in use."""
        device_class = self.classes_of_extended_resources.get(resource)
        if device_class is None:
            return 0, 0
        from kpreempt.schedulers.kube.devices.extended import devices_of_class  # noqa: PLC0415 - few clusters need it

        return devices_of_class(self.devices, device_class, node_info.node)

    def has_devices(self, node_info: NodeInfo) -> bool:
        """Return whether the node can access any device, as scores count them."""
        from kpreempt.schedulers.kube.devices.extended import devices_of_class  # noqa: PLC0415 - few clusters need it

        return devices_of_class(self.devices, DeviceClass(), node_info.node)[0] > 0


def _created(device_class: DeviceClass) -> datetime:
    return device_class.metadata.creation_timestamp or datetime.min.replace(tzinfo=UTC)


# Derived lazily from neither nodes nor pods.
_OF_THE_REST = (
    "_namespace_labels",
    "persistent_volume_claims",
    "persistent_volumes",
    "storage_classes",
    "csi_nodes",
    "csi_drivers",
    "resource_claims",
    "devices",
    "classes_of_extended_resources",
)

# The nodes whose pods have some affinity, and a function that returns such pods of a node.
_WITH_AFFINITY = {
    "nodes_with_affinity": attrgetter("pods_with_affinity"),
    "nodes_with_anti_affinity": attrgetter("pods_with_required_anti_affinity"),
}


def _selects_namespaces(node_info: NodeInfo) -> bool:
    return any(has_namespace_selector(info.pod) for info in node_info.pods_with_affinity)


def in_zone_order(nodes: list[Node]) -> list[Node]:
    """Order nodes as the scheduler's node tree does: one from each zone in turn (``backend/cache/node_tree.go``)."""
    zones: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        zones.setdefault(zone_of(node), []).append(node)
    if len(zones) <= 1:
        return list(nodes)
    ordered: list[Node] = []
    for index in range(max(map(len, zones.values()))):
        ordered.extend(zone[index] for zone in zones.values() if index < len(zone))
    return ordered


def zone_of(node: Node) -> tuple[str, str]:
    """Return a node's region and zone (``component-helpers`` v0.36.3 ``node/topology/helpers.go``)."""
    labels = node.metadata.labels
    region, zone = (next((labels[key] for key in keys if key in labels), "") for keys in (REGION_LABELS, ZONE_LABELS))
    return region, zone


# By identity, a record (which keeps the identity valid) and its frozen copy.
_Frozen = dict[int, tuple[Any, Any]]


class FrozenObjects:
    """A ``ClusterSnapshot`` for out-of-tree plugins: each kind is frozen when first read.

    Records that ``before`` has already frozen are reused.
    """

    def __init__(self, cluster: ClusterSnapshot, before: FrozenObjects | None = None) -> None:
        self._cluster = cluster
        self._frozen: dict[str, _Frozen] = {}
        self._before: dict[str, _Frozen] = {} if before is None else before._before | before._frozen

    def __getattr__(self, field: str) -> Any:
        # Called only for attributes that are not set yet.
        value = getattr(self._cluster, field)
        if isinstance(value, list) and value and isinstance(value[0], msgspec.Struct):
            known, seen = self._before.pop(field, {}), dict[int, tuple[Any, Any]]()
            for record in value:
                seen[id(record)] = known.get(id(record)) or (record, frozen(record))
            self._frozen[field] = seen
            found: Any = FrozenList([seen[id(record)][1] for record in value])
        else:
            found = frozen(value)
        self.__dict__[field] = found
        return found


class NominatedTo(NamedTuple):
    """The place of pods for which a node reserves resources."""

    node: str


# The name of a node, a reservation on one, or that a pod uses no resources at all.
Position = str | NominatedTo
NOWHERE: Position = ""

PositionOf = Callable[[Pod], Position]

# How many groups may differ from those of an earlier state before all are copied.
_MAX_OTHERS = 500


class _Groups(Mapping[Position, list[Pod]]):
    """Pods by position: those of an earlier state, and ``others`` instead of some of them."""

    __slots__ = ("_earlier", "_others")

    def __init__(self, earlier: dict[Position, list[Pod]], others: dict[Position, list[Pod]]) -> None:
        self._earlier = earlier
        self._others = others

    def updated(self, changed: dict[Position, list[Pod]]) -> _Groups:
        """Return a copy with ``changed`` groups; it shares what is unchanged."""
        others = self._others | changed
        return _Groups(self._earlier, others) if len(others) <= _MAX_OTHERS else _Groups(self._earlier | others, {})

    def __getitem__(self, place: Position) -> list[Pod]:
        others = self._others.get(place)
        return self._earlier[place] if others is None else others

    def __iter__(self) -> Iterator[Position]:
        return iter(self._earlier | self._others)

    def __len__(self) -> int:
        return len(self._earlier.keys() | self._others.keys())


class _NodesByName(Mapping[str, "NodeInfo"]):
    """The nodes of a state by name, in their order."""

    __slots__ = ("_nodes", "_position")

    def __init__(self, position: Mapping[str, int], nodes: Sequence[NodeInfo]) -> None:
        self._position = position
        self._nodes = nodes

    def __getitem__(self, name: str) -> NodeInfo:
        return self._nodes[self._position[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._position)

    def __len__(self) -> int:
        return len(self._nodes)


_STRETCH = 512
# How far ahead both lists are searched for a common pod.
_NEAR = 32


def add_by_position(groups: dict[Position, list[Pod]], pods: Iterable[Pod], place_of: PositionOf) -> None:
    """Append every pod that has a place to that place's group, in the order of ``pods``."""
    for pod in pods:
        place = place_of(pod)
        if place != NOWHERE:
            group = groups.get(place)
            if group is None:
                groups[place] = [pod]
            else:
                group.append(pod)


def regrouped(
    groups: Mapping[Position, list[Pod]], pods: Sequence[Pod], now: Sequence[Pod], place_of: PositionOf
) -> dict[Position, list[Pod]]:
    """Return the groups of the list ``now`` that differ, given the groups of ``pods``. Neither is changed.

    Only pods that are not the same objects in both lists are considered: in a simulation, few of many pods change
    between decisions.
    """
    start, old, new = _differences(pods, now)
    gone: dict[Position, list[Pod]] = {}
    come: dict[Position, list[Pod]] = {}
    add_by_position(gone, old, place_of)
    add_by_position(come, new, place_of)
    after: dict[Position, list[Pod]] = {}
    for place in gone.keys() | come.keys():
        leaving = set(map(id, gone.get(place, ())))
        after[place] = [pod for pod in groups.get(place, ()) if id(pod) not in leaving]
    _insert(after, come, now, start)
    # An equal pod is not enough: the next lookup is by the object that is in the list.
    return {place: group for place, group in after.items() if not _are_same(group, groups.get(place, ()))}


def moved(groups: Mapping[Position, list[Pod]], changes: PodChanges, place_of: PositionOf) -> dict[Position, list[Pod]]:
    """Do the same as ``regrouped``, with known changes."""
    gone: dict[Position, list[Pod]] = {}
    come: dict[Position, list[Pod]] = {}
    add_by_position(gone, (old for old, new in changes.pods if old is not None and old is not new), place_of)
    add_by_position(come, (new for old, new in changes.pods if new is not None and old is not new), place_of)
    changed = {}
    for place in gone.keys() | come.keys():
        leaving = set(map(id, gone.get(place, ())))
        group = changed[place] = [pod for pod in groups.get(place, ()) if id(pod) not in leaving]
        for pod in come.get(place, ()):
            insort(group, pod, key=lambda each: changes.rank[each.key])
    return changed


def _insert(
    groups: dict[Position, list[Pod]], come: Mapping[Position, list[Pod]], now: Sequence[Pod], start: int
) -> None:
    """Insert added pods into their groups, in the order of ``now``, where all of them come after ``start``."""
    places = {id(pod): place for place in come for pod in (*groups[place], *come[place])}
    behind: dict[Position, list[Pod]] = {place: [] for place in come}
    tail = now[start:]
    for pod in compress(tail, map(places.__contains__, map(id, tail))):
        behind[places[id(pod)]].append(pod)
    for place, pods in behind.items():
        known = set(map(id, pods))
        groups[place] = [*(pod for pod in groups[place] if id(pod) not in known), *pods]


def _differences(old: Sequence[Pod], new: Sequence[Pod]) -> tuple[int, list[Pod], list[Pod]]:
    """Return where two lists first differ, and the removed and added pods; a pod that may have moved is in both."""
    first = at = there = _common(old, new, 0, 0)
    gone: list[Pod] = []
    come: list[Pod] = []
    while at < len(old) or there < len(new):
        skipped, added = _until_same(old, new, at, there)
        gone += old[at : at + skipped]
        come += new[there : there + added]
        at, there = at + skipped, there + added
        same = _common(old, new, at, there)
        at, there = at + same, there + same
    return first, gone, come


def _until_same(old: Sequence[Pod], new: Sequence[Pod], at: int, there: int) -> tuple[int, int]:
    """Return how many pods of each list to skip until both continue with the same pod; all, if it is not near."""
    left, coming = len(old) - at, len(new) - there
    for steps in range(1, min(_NEAR, max(left, coming)) + 1):
        for skipped, added in ((steps, 0), (steps, steps), (0, steps)):
            if skipped < left and added < coming and old[at + skipped] is new[there + added]:
                return skipped, added
    return left, coming


def _common(one: Sequence[Pod], other: Sequence[Pod], at: int, there: int) -> int:
    """Return how many pods are the same objects in both lists, from the given positions."""
    most = min(len(one) - at, len(other) - there)
    same = 0
    while same < most and _are_same(
        one[at + same : at + same + _STRETCH], other[there + same : there + same + _STRETCH]
    ):
        same += _STRETCH
    while same < most and one[at + same] is other[there + same]:
        same += 1
    return min(same, most)


def _are_same(one: Sequence[Pod], other: Sequence[Pod]) -> bool:
    return len(one) == len(other) and all(map(operator.is_, one, other))


# Labels in insertion order: a different order is a different key, with the same matches.
_Labels = tuple[tuple[str, str], ...]
# For one namespace: how many pods have the labels, by node name; none is 0.
_Counts = dict[_Labels, dict[str, int]]


class PodsByLabels:
    """The pods of nodes by namespace and labels, excluding terminating pods. Immutable."""

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
        """Return a copy in which the ``changed`` nodes, given by name with old and new pods, have other pods."""
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
            there = {key: by for key, by in of_namespace.items() if by}
            if not there:
                continue
            # Shared parts are copied once, before the first change.
            counts = following._by_namespace[namespace] = dict(following._by_namespace.get(namespace, {}))
            other_labels = {labels for labels, _ in there}
            counts |= {labels: dict(counts.get(labels, {})) for labels in other_labels}
            for (labels, node), by in there.items():
                if count := counts[labels].pop(node, 0) + by:
                    counts[labels][node] = count
            for labels in other_labels:
                if not counts[labels]:
                    del counts[labels]
        return following

    def selected(self, namespace: str, selector: LabelSelector) -> dict[str, int]:
        """Return how many pods of the namespace are selected, by node name; nodes without any are omitted."""
        found: dict[str, int] = {}
        for labels, on_nodes in self._by_namespace.get(namespace, {}).items():
            if selector.matches(dict(labels)):
                for node, count in on_nodes.items():
                    found[node] = found.get(node, 0) + count
        return found
