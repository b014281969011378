"""The kinds of names that are replaced, and how names composed of other names are rebuilt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from kpreempt.model.affinity import NodeSelector
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import JOB_UID_LABEL, LOCAL_QUEUE_LABEL, QUEUE_LABEL
from kpreempt.model.labels import parse_int64
from kpreempt.model.meta import Time
from kpreempt.model.node import NODE_POOL as NODE_POOL_LABEL
from kpreempt.model.node import ContainerImage
from kpreempt.model.volcano import DEFAULT_QUEUE
from kpreempt.snapshot.redact import well_known
from kpreempt.snapshot.redact.tokens import Names, Space, ending_of_key, ending_of_value

# The strings that Go parses as true or false.
GO_BOOLEANS = frozenset(("1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"))
_ZONE_DELIMITER = "__"
_DASHES_OF_ZONE = 2
_DASHES_OF_MEMBER = 2
_DIGITS = re.compile(r"\+?[0-9]+")
_LATEST = ":latest"
_AWS = "aws://"
_AWS_VOLUME = re.compile(r"vol-[^/]*")
_GCE_DISK = re.compile(r"projects/UNSPECIFIED/(zones|regions)/([^/]+)/disks/(.+)")
_CSI_LIMIT = f"{well_known.ATTACHABLE_VOLUMES}csi-"
_DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
_QUOTA = "requests."
_PERCENTAGE = re.compile(r"[-+]?[0-9]+%")
_VERSION = re.compile(r"v?[0-9]+\.[0-9]+(?:\.[0-9]+)?")
_NO_TIME = "none"


def _ending_of_resource(name: str) -> str:
    """Keep the parts that decide whether a resource counts as Kubernetes' own: a slash, and this text in the name."""
    if "kubernetes.io/" in name:
        return ".kubernetes.io/r"
    return "/r" if "/" in name else ""


def _ending_of_member(name: str) -> str:
    """Keep the number after the last dash if there are two or more dashes: Volcano sorts the pods of a job by it."""
    *others, last = name.split("-")
    return f"-{last}" if len(others) >= _DASHES_OF_MEMBER and _DIGITS.fullmatch(last) else ""


POD = Space("pod")
# The same names, in a cluster with pod groups.
MEMBER = Space(POD.stem, ending=_ending_of_member)
NODE = Space("node", ending=ending_of_value)
NAMESPACE = Space("namespace", well_known.NAMESPACES.__contains__, ending_of_value)
LABEL_KEY = Space("key", well_known.is_label, ending_of_key)
LABEL_VALUE = Space("value", ending=ending_of_value, is_sorted=False)
# Values of labels for the location of a node, which messages and volumes sort.
DOMAIN = Space("domain", ending=ending_of_value)
# Values of taints, which a message lists in order.
TAINT_VALUE = Space("taint", ending=ending_of_value)
REGION = Space("region")
# Without a dash: a Google zone has three parts, of which the first two are its region.
ZONE = Space("zone", joint="")
IMAGE = Space("image", ending=lambda name: ":tag" if _is_tagged(name) else "", is_sorted=False)
RESOURCE = Space("resource", well_known.is_resource, _ending_of_resource)
# A driver's name is the beginning of a reason that is sorted with others.
DRIVER = Space("driver", well_known.PROVISIONERS.__contains__, fences=("node(s)", "persistentvolumeclaim"))
PRIORITY_CLASS = Space("priorityclass", well_known.PRIORITY_CLASSES.__contains__)
SCHEDULER = Space("scheduler", well_known.SCHEDULERS.__contains__, is_sorted=False)
FINALIZER = Space("finalizer", well_known.FINALIZERS.__contains__, is_sorted=False)
GATE = Space("gate", sorts_with_kept=False)
FEATURE = Space("feature", well_known.NODE_FEATURES.__contains__)
ADDRESS = Space("address", well_known.ADDRESSES.__contains__, is_sorted=False)
WORD = Space("word", well_known.WORDS.__contains__, sorts_with_kept=False)
KIND = Space("kind", well_known.KINDS.__contains__, sorts_with_kept=False)
API_VERSION = Space("group", well_known.is_api_version, lambda _: "/v1", sorts_with_kept=False)
POOL = Space("pool", "rbd".__eq__, is_sorted=False)
# Karpenter's.
NODE_POOL = Space("nodepool", is_sorted=False)
# In the form of an EBS volume's name, which the scheduler searches for.
HANDLE = Space("vol", is_sorted=False)
CLAIM = Space("claim")
VOLUME = Space("volume")
QUEUE = Space("queue", DEFAULT_QUEUE.__eq__)
LOCAL_QUEUE = Space("localqueue")
UID = Space("uid")
DEVICE_CLASS = Space("deviceclass")
TEXT = Space("text")
"""Names for which there is no other space."""

# The labels whose values are names of objects.
_OF_LABELS = {
    NODE_POOL_LABEL: NODE_POOL,
    QUEUE_LABEL: LOCAL_QUEUE,
    LOCAL_QUEUE_LABEL: LOCAL_QUEUE,
    JOB_UID_LABEL: UID,
}
# Prefixes of resources for drivers or device classes, or that schedulers treat as Kubernetes' own.
_PREFIXES = (
    (_CSI_LIMIT, DRIVER),
    (_DEVICE_CLASS, DEVICE_CLASS),
    (_QUOTA, RESOURCE),
    (well_known.ATTACHABLE_VOLUMES, RESOURCE),
    (well_known.HUGE_PAGES, RESOURCE),
)


# The images of a node that matter, with sizes only as exact as necessary.
RoundedImages = Callable[[list[ContainerImage]], list[ContainerImage]]


class Retime(Protocol):
    """Returns the replacement of a time; ``Times`` has two of these."""

    def __call__(self, time: datetime, *, is_ordered_only: bool) -> datetime: ...


class KnownNames:
    """Facts about all objects together that determine how single names are replaced.

    ``number_labels`` and ``number_taints`` are the keys whose values are compared as numbers; an empty taint key stands
    for all of them. ``places`` are the keys of labels by whose values pods spread. ``ephemeral`` has, by namespace and
    name of a claim, the pod and volume after which it is named. ``regions`` are those of zones that a Google disk
    spans; the scheduler derives them from the zones' names.
    """

    def __init__(self, cluster: ClusterSnapshot | None = None) -> None:
        """Begin empty, or with the objects of a cluster."""
        self.number_labels: set[str] = set()
        self.number_taints: set[str] = set()
        self.places = set(well_known.ZONES)
        self.ephemeral: dict[tuple[str, str], tuple[str, str]] = {}
        self.regions: dict[str, str] = {}
        self.has_groups = False
        if cluster is not None:
            self.add(cluster)

    def add(self, cluster: ClusterSnapshot) -> None:
        """Process more objects."""
        seen: set[int] = set()
        for pod in cluster.pods:
            rules = pod.spec.affinity.node_affinity if pod.spec.affinity else None
            if rules is not None:
                self.number_labels.update(_compared(rules.required))
                self.number_labels.update(_compared(NodeSelector([each.preference for each in rules.preferred])))
            if id(pod.spec.tolerations) not in seen:
                seen.add(id(pod.spec.tolerations))
                # Tolerations that compare numbers; without a key, the values of all taints.
                self.number_taints.update(
                    each.key
                    for each in pod.spec.tolerations
                    if each.operator in ("Gt", "Lt") or (not each.key and each.value)
                )
            self.places.update(each.topology_key for each in pod.spec.topology_spread_constraints)
            for volume in pod.spec.volumes:
                if volume.ephemeral is not None and volume.persistent_volume_claim is None:
                    claim = f"{pod.metadata.name}-{volume.name}"
                    self.ephemeral[pod.metadata.namespace, claim] = pod.metadata.name, volume.name
        for disk in cluster.persistent_volumes:
            self.number_labels.update(_compared(disk.spec.node_affinity.required if disk.spec.node_affinity else None))
            zone_labels = well_known.ZONES & disk.metadata.labels.keys() if disk.spec.gce_persistent_disk else ()
            for key in zone_labels:
                zones = disk.metadata.labels[key].split(_ZONE_DELIMITER)
                if len(zones) > 1 and all(zone.count("-") == _DASHES_OF_ZONE for zone in zones):
                    self.regions.update({zone: zone.rpartition("-")[0] for zone in zones})
        self.has_groups |= bool(cluster.pod_groups)


class Renamer:
    """Replaces names and times while objects are walked one by one; ``namespace`` is that of the current object.

    ``rename`` collects names in a first walk over all objects, and returns tokens in the second; ``retime`` does the
    same with times. ``is_finished_renaming`` means that the object is a pod with a node.
    """

    def __init__(
        self,
        known: KnownNames,
        rename: Callable[[Space, str], str],
        names: Names,
        retime: Retime,
        rounded_images: RoundedImages,
    ) -> None:
        self.rename = rename
        self.rounded_images = rounded_images
        self.retime = retime
        self.namespace = ""
        self.is_finished_renaming = False
        self.memo: dict[int, tuple[Any, Any]] = {}
        self._names = names
        self._known = known

    def label_value(self, key: str, value: str) -> str:
        """Replace the value of a label, or one that it is compared with."""
        if key == well_known.NAMESPACE_LABEL:
            return self.rename(NAMESPACE, value)
        if key == well_known.HOSTNAME:
            return self.rename(NODE, value)
        if (space := _OF_LABELS.get(key)) is not None:
            return self.rename(space, value) if value else value
        if key in well_known.FLAGS and value in GO_BOOLEANS:
            return value
        if key in self._known.number_labels and parse_int64(value) is not None:
            return self._names.keep(DOMAIN, value) if key in self._known.places else value
        if key not in self._known.places:
            return self.rename(LABEL_VALUE, value)
        if key in well_known.ZONES and _ZONE_DELIMITER in value:
            return _ZONE_DELIMITER.join(self._zone(part.strip()) for part in value.split(_ZONE_DELIMITER))
        return self._zone(value)

    def taint_value(self, key: str, value: str) -> str:
        """Replace the value of a taint, or one that it is compared with."""
        numbers = self._known.number_taints
        if (key in numbers or "" in numbers) and parse_int64(value) is not None:
            return self._names.keep(TAINT_VALUE, value)
        return self.rename(TAINT_VALUE, value)

    def _zone(self, value: str) -> str:
        region = self._known.regions.get(value)
        if region is None:
            return self.rename(DOMAIN, value)
        return f"{self.rename(REGION, region)}-{self.rename(ZONE, value)}"

    def labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Replace a map of labels, or one that selects by labels."""
        return {self.rename(LABEL_KEY, key): self.label_value(key, value) for key, value in labels.items()}

    def resource(self, name: str) -> str:
        """Replace the name of a resource; prefixes that schedulers know are kept."""
        for prefix, space in _PREFIXES:
            if name.startswith(prefix) and not well_known.is_resource(name):
                self._names.keep(RESOURCE, prefix)
                return prefix + self.rename(space, name.removeprefix(prefix))
        return self.rename(RESOURCE, name)

    def image(self, name: str) -> str:
        """Replace an image; ``:latest`` is kept, because a name without a tag means the same."""
        base = name.removesuffix(_LATEST)
        if base != name and not _is_tagged(base):
            return self.rename(IMAGE, base) + _LATEST
        return self.rename(IMAGE, name)

    def claim(self, name: str) -> str:
        """Replace a claim in the object's namespace; an ephemeral volume's claim is named after pod and volume."""
        pod_and_volume = self._known.ephemeral.get((self.namespace, name))
        if pod_and_volume is None:
            return self.rename(CLAIM, name)
        pod, volume = pod_and_volume
        return f"{self.rename(POD, pod)}-{self.rename(VOLUME, volume)}"

    def handle(self, text: str) -> str:
        """Replace a driver's name of a volume; texts that the scheduler parses keep their form."""
        if disk := _GCE_DISK.fullmatch(text):
            scope, place, name = disk.groups()
            return f"projects/UNSPECIFIED/{scope}/{self._zone(place)}/disks/{self.rename(HANDLE, name)}"
        if not text.startswith(_AWS):
            return self.rename(HANDLE, text)
        parts = urlsplit(text)
        name = parts.path.strip("/")
        volume = self.rename(HANDLE, name)
        good = volume if _AWS_VOLUME.fullmatch(name) else f"x{volume}"
        return f"{_AWS}{self._zone(parts.netloc)}/{good}"

    def time(self, time: datetime) -> datetime:
        """Replace a time that is compared with the current time."""
        return self.retime(time, is_ordered_only=False)

    def relative_time(self, time: datetime) -> datetime:
        """Replace a time that is only compared with other times."""
        return self.retime(time, is_ordered_only=True)

    def start(self, time: datetime) -> datetime:
        """Replace the creation or start time of a pod, which determines its retries while it waits for a node."""
        return self.relative_time(time) if self.is_finished_renaming else self.time(time)

    def written_time(self, text: str) -> str:
        """Replace a time in a text; other texts are kept."""
        try:
            time = msgspec.convert(text, Time)
        except msgspec.ValidationError:
            return _NO_TIME
        return self.time(time).isoformat().replace("+00:00", "Z")

    def address(self, text: str) -> str:
        """Replace the address of a host."""
        token = self.rename(ADDRESS, text)
        if token == text:
            return text
        number = int(token.rpartition("-")[2])
        return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"

    def word(self, text: str) -> str:
        """Replace a text unless it is one of a few words."""
        return self.rename(WORD, text)

    def amount(self, value: int | str | None) -> int | str | None:
        """Replace a number or a percentage."""
        return self.rename(TEXT, value) if isinstance(value, str) and not _PERCENTAGE.fullmatch(value) else value


# Replaces the value of a field.
Rule = Callable[[Renamer, Any], Any]


def each_item(rule: Rule) -> Rule:
    """Return a rule that applies another one to a text, to each text of a list, or to ``None``."""

    def apply(renamer: Renamer, value: Any) -> Any:
        if isinstance(value, list):
            return [rule(renamer, item) if item else item for item in value]
        return rule(renamer, value) if value else value

    return apply


def name_rule(space: Space) -> Rule:
    """Return the rule for a name of one space, or for several; ``None`` stays."""
    return each_item(lambda renamer, name: renamer.rename(space, name))


def keyed(rule: Rule) -> Rule:
    """Return the rule for a map by names, whose values are kept."""
    return lambda renamer, value: {rule(renamer, name): item for name, item in value.items()}


def joined(separator: str, part: Rule) -> Rule:
    """Return the rule for a text composed of parts."""
    return lambda renamer, value: separator.join(part(renamer, item) if item else "" for item in value.split(separator))


def nothing(_: Renamer, value: Any) -> Any:
    """Remove a value that nothing reads in a redacted cluster."""
    return type(value)()


WORDS: Rule = each_item(Renamer.word)
AMOUNTS: Rule = keyed(Renamer.resource)


def public_version(text: str) -> str:
    """Return the numbers of a version, without a vendor's suffix."""
    match = _VERSION.match(text)
    return match[0] if match else ""


def _is_tagged(image: str) -> bool:
    return image.rfind(":") > image.rfind("/")


def _compared(selector: NodeSelector | None) -> Iterator[str]:
    for term in selector.node_selector_terms if selector else ():
        for each in term.match_expressions:
            if each.operator in ("Gt", "Lt"):
                yield each.key
