"""Pods from JSON, made small: what replicas have in common is read and kept once, and what nothing reads is let go.

A dump of 150,000 pods repeats a few hundred specs and label sets. They are known again by their texts, which is quicker
than to read them, and shared, which takes a third of the memory; records are frozen, so sharing cannot be seen from
outside. This runs for every pod, so it leaves to msgspec what it can.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec
from msgspec.structs import astuple, force_setattr, replace

from kpreempt.model.frozen import NO_ITEMS
from kpreempt.model.pod import (
    AllAnnotations,
    Container,
    ContainerStatus,
    Pod,
    PodAnnotations,
    PodCondition,
    PodMeta,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Volume,
    all_annotations,
)
from kpreempt.snapshot.decode import Json, decoder_of

# What conditions are read for: budgets (Ready), evictions under way, resizes. Nobody reads the others.
_CONDITIONS = frozenset(("Ready", "DisruptionTarget", "PodResizePending", "PodResizeInProgress", "PodScheduled"))
# So many texts of a part are known at a time. Most clusters have fewer, and in others replicas are close to each other.
_MOST_PARTS = 20_000
_ENCODER = msgspec.json.Encoder(enc_hook=str)


def _written(record: type[msgspec.Struct], *names: str, **kinds: Any) -> Any:
    """The record with texts in the fields of these names, and in others with values of these kinds."""
    kinds = {**dict.fromkeys(names, msgspec.Raw), **kinds}
    fields = [
        (each.name, kinds.get(each.name, each.type), msgspec.field(name=each.encode_name, default=each.default))
        for each in msgspec.structs.fields(record)
    ]
    return msgspec.defstruct(f"_Written{record.__name__}", fields, omit_defaults=True, gc=False)


# Of containers little is read, and replicas differ in the rest, as in the names of mounts. What is read of a spec makes
# the text by which it is known.
_WrittenContainers: Any = list[_written(Container, *Container.__struct_fields__)]  # type: ignore[misc]
_WrittenSpec = _written(
    PodSpec,
    *(name for name in PodSpec.__struct_fields__ if name not in ("node_name", "volumes")),
    containers=_WrittenContainers,
    init_containers=_WrittenContainers,
)
_OF_META = ("labels", "owner_references")
_WrittenMeta = _written(PodMeta, *_OF_META)
_WrittenPod = msgspec.defstruct(
    "_WrittenPod",
    [
        ("metadata", _WrittenMeta, msgspec.field(default_factory=_WrittenMeta)),
        ("spec", _WrittenSpec, msgspec.field(default_factory=_WrittenSpec)),
        ("status", PodStatus, PodStatus()),
    ],
    gc=False,
)
_POD = decoder_of(_WrittenPod)
_LABELS, _OWNERS, _ANNOTATIONS = map(PodMeta.__struct_fields__.index, (*_OF_META, "annotations"))


class _Parts(dict[bytes, Any]):
    """What texts say, each read where it is met first."""

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self._decode = decoder_of(kind).decode

    def __missing__(self, json: bytes) -> Any:
        if len(self) == _MOST_PARTS:
            self.clear()
        part = self[json] = self._decode(json)
        return part


class PodDecoder:
    """Decodes pods, with parts that it has seen before; ``keeps_conditions`` leaves those of pods as they are."""

    def __init__(self, *, keeps_conditions: bool = False) -> None:
        self._keeps_conditions = keeps_conditions
        self._specs = _Parts(PodSpec)
        self._labels, self._owners = (_Parts(_kind_of(PodMeta, name)) for name in _OF_META)
        self._affinities = _Parts(_kind_of(PodSpec, "affinity"))
        self._node_names: dict[str, str] = {}
        self._annotations: dict[PodAnnotations, PodAnnotations | None] = {PodAnnotations(): None}
        self._all_annotations: dict[Hashable, AllAnnotations | None] = {(): None}
        self._lists: dict[Hashable, list[Any]] = {}
        self._statuses: dict[Hashable, list[ContainerStatus]] = {}
        self._conditions: dict[tuple[str, str, str], PodCondition] = {}

    def decode(self, json: Json) -> Pod:
        """The pod that a text is. Raises as the decoders of msgspec do."""
        written = _POD.decode(json)
        status = written.status
        if status.conditions or status.container_statuses or status.init_container_statuses:
            if status.conditions and not self._keeps_conditions:
                conditions = [self._condition(each) for each in status.conditions if each.type in _CONDITIONS]
                force_setattr(status, "conditions", self._lists.setdefault(tuple(conditions), conditions))
            if status.container_statuses:
                force_setattr(status, "container_statuses", self._telling(status.container_statuses))
            if status.init_container_statuses:
                force_setattr(status, "init_container_statuses", self._telling(status.init_container_statuses))
        return Pod(self._meta(written.metadata), self._spec(written.spec), status)

    def shared(self, pod: Pod) -> Pod:
        """A pod that was decoded in another way, with the parts that this one has seen."""
        return self.decode(_ENCODER.encode(pod))

    def annotate(self, pod: Pod, annotations: dict[str, str]) -> None:
        """Give a pod that was just decoded all its annotations."""
        key = tuple(annotations.items())
        if key not in self._all_annotations:
            made = all_annotations(annotations)
            self._all_annotations[key] = made if made.everything else None
        force_setattr(pod.metadata, "annotations", self._all_annotations[key])

    def _meta(self, written: Any) -> PodMeta:
        values = [*astuple(written)]
        if type(labels := values[_LABELS]) is msgspec.Raw:
            values[_LABELS] = self._labels[bytes(labels)]
        if type(owners := values[_OWNERS]) is msgspec.Raw:
            values[_OWNERS] = self._owners[bytes(owners)]
        if (annotations := values[_ANNOTATIONS]) is not None:
            values[_ANNOTATIONS] = self._annotations.setdefault(annotations, annotations)
        return PodMeta(*values)

    def _spec(self, written: Any) -> PodSpec:
        """The spec that all replicas have, with what is each one's own: the node, volumes, a DaemonSet's affinity."""
        node_name, volumes, affinity = written.node_name, written.volumes, written.affinity
        written.node_name = ""
        if volumes or affinity is not None:
            # An empty list is the same of all.
            written.volumes, written.affinity = NO_ITEMS if volumes else volumes, None
        spec: PodSpec = replace(
            self._specs[_ENCODER.encode(written)], node_name=self._node_names.setdefault(node_name, node_name)
        )
        if volumes:
            # Most volumes are of sources that no scheduler reads; these have nothing but a name here.
            volumes = [volume for volume in volumes if volume != Volume(name=volume.name)]
            force_setattr(spec, "volumes", volumes or NO_ITEMS)
        if affinity is not None:
            force_setattr(spec, "affinity", self._affinities[bytes(affinity)])
        return spec

    def _condition(self, condition: PodCondition) -> PodCondition:
        """The condition, without the time and message where only its status counts.

        What the scheduler says of a pod that it could not place is kept.
        """
        if condition.type not in ("Ready", "PodScheduled"):
            return condition
        if condition.type == "PodScheduled" and condition.status != "True":
            return condition
        key = (condition.type, condition.status, condition.reason)
        known = self._conditions.get(key)
        if known is None:
            known = self._conditions[key] = PodCondition(*key)
        return known

    def _telling(self, statuses: list[ContainerStatus]) -> list[ContainerStatus]:
        """The statuses that say what a container was given, or that it began anew; the others are not read."""
        telling = [
            each for each in statuses if each.restart_count or each.resources is not None or each.allocated_resources
        ]
        if not telling:
            return NO_ITEMS
        key = tuple(
            (
                each.name,
                each.restart_count,
                *each.allocated_resources,
                *map(id, each.allocated_resources.values()),
                _key(each.resources),
            )
            for each in telling
        )
        return self._statuses.setdefault(key, telling)


def _key(resources: ResourceRequirements | None) -> Hashable:
    """A key for amounts: names, and the identities of the quantities, since equal texts are one object already.

    Equal amounts in other words (1000m, 1) stay apart: a report shows the words.
    """
    if resources is None:
        return None
    requests, limits = resources.requests, resources.limits
    if not limits and not resources.claims:
        return (*requests, *map(id, requests.values()))
    return tuple(requests), *map(id, requests.values()), tuple(limits), *map(id, limits.values()), *resources.claims


def _kind_of(record: type[msgspec.Struct], name: str) -> Any:
    return next(each.type for each in msgspec.structs.fields(record) if each.name == name)
