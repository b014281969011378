"""What a plugin saw when it rejected a node: one record type per kind of rejection, tagged by ``type`` in JSON.

CPU is in milli-CPU, memory and storage in bytes, all other resources in whole units.
"""

from __future__ import annotations

import msgspec


class _Detail(msgspec.Struct, frozen=True, rename="camel", tag_field="type", gc=False):
    """Base of all details."""

    @property
    def is_permanent(self) -> bool:
        """Whether the node rejects the pod whatever runs there, because of its size or labels.

        Taints and cordons depend on the node's current state, and pods or volumes that affinity, spread constraints and
        claims require may still appear.
        """
        return False


class Shortfall(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A resource that a node does not have enough of.

    ``resource`` is ``pods`` if the maximum number of pods is reached.

    ``exceeds_node``: the request is larger than the whole node, so no eviction can help.
    """

    resource: str
    requested: int
    used: int
    allocatable: int
    exceeds_node: bool = False

    @property
    def missing(self) -> int:
        """How much of the resource is missing, in the resource's own units."""
        return self.requested - (self.allocatable - self.used)

    @property
    def missing_share(self) -> float:
        """The share of the request that is missing."""
        return self.missing / max(self.requested, 1)


class InsufficientResources(_Detail, frozen=True, tag="InsufficientResources"):
    """The resources that the node lacks, and the number of pods on the node."""

    shortfalls: list[Shortfall]
    pods: int = 0

    @property
    def is_permanent(self) -> bool:
        """Whether the pod requests more than the whole node has."""
        return any(each.requested > each.allocatable for each in self.shortfalls)


class UntoleratedTaint(_Detail, frozen=True, tag="UntoleratedTaint"):
    """The first taint that the pod does not tolerate."""

    key: str
    value: str
    effect: str


class NodeAffinityMismatch(_Detail, frozen=True, tag="NodeAffinityMismatch"):
    """Expressions that the node does not match, from the pod's node selector or its required node affinity terms.

    ``unmet`` are the expressions, in selector syntax. ``source`` is ``nodeSelector``, ``nodeAffinity`` or
    ``addedAffinity`` (the scheduler's configuration).
    """

    source: str
    unmet: list[str]

    @property
    def is_permanent(self) -> bool:
        """Always."""
        return True


class NodeNameMismatch(_Detail, frozen=True, tag="NodeNameMismatch"):
    """The only node on which the pod may run, from its ``spec.nodeName``."""

    node_name: str

    @property
    def is_permanent(self) -> bool:
        """Always."""
        return True


class PortConflict(_Detail, frozen=True, tag="PortConflict"):
    """A host port that is in use, and the pods that use it."""

    port: int
    protocol: str
    host_ip: str
    holders: list[str]


class AffinityConflict(_Detail, frozen=True, tag="AffinityConflict"):
    """A pod affinity or anti-affinity term that fails on the node.

    ``rule`` is ``affinity`` (no pod matches the required term), ``antiAffinity`` (pods match the pod's term) or
    ``existingAntiAffinity`` (the incoming pod matches terms of existing pods). ``holders`` are the pods that match, or
    that have the term, and ``holder_nodes`` are their nodes, in the same order, if known. ``topology_value`` is empty
    if the node lacks the label.
    """

    rule: str
    topology_key: str
    topology_value: str
    selector: str
    holders: list[str] = []
    holder_nodes: list[str] = []


class SpreadConflict(_Detail, frozen=True, tag="SpreadConflict"):
    """A topology spread constraint that fails on the node.

    The skew would be ``count`` (matching pods in the node's domain) + ``self_match`` - ``minimum`` (over all domains);
    it may be at most ``max_skew``. ``topology_value`` is empty if the node lacks the label. ``counts`` gives the
    matching pods of the domains with the fewest and of the node's own, at most 20. ``minimum`` is 0 if there
    are fewer domains than ``min_domains``.
    """

    topology_key: str
    topology_value: str
    count: int = 0
    self_match: int = 0
    minimum: int = 0
    skew: int = 0
    max_skew: int = 0
    selector: str = ""
    counts: dict[str, int] = {}
    min_domains: int | None = None


class VolumeConflict(_Detail, frozen=True, tag="VolumeConflict"):
    """A volume or claim that keeps the pod off the node, with the requirement and what the node has."""

    claim: str = ""
    volume: str = ""
    problem: str = ""
    holders: list[str] = []


class VolumeLimitExceeded(_Detail, frozen=True, tag="VolumeLimitExceeded"):
    """A driver's limit on attached volumes on the node: ``used`` are attached, ``requested`` would be added."""

    driver: str
    used: int
    requested: int
    limit: int


class MissingFeatures(_Detail, frozen=True, tag="MissingFeatures"):
    """Features that the pod requires and the node does not declare."""

    features: list[str]


# The name of the claim that the scheduler would create for a pod's extended resources.
EXTENDED_RESOURCES = "<extended-resources>"


class DeviceHolder(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A device (``driver/pool/device``), the claim it is allocated to, and the pods that use the claim.

    ``is_lower``: all of these are lower-priority pods on the node.
    """

    device: str
    claim: str
    pods: list[str] = []
    is_lower: bool = False


class RejectingSelector(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A CEL selector that does not match some of a node's devices, which match all selectors before it.

    It is one of the request, or, if ``is_of_class``, of its device class. ``rejected`` counts the devices, and
    ``values`` has what they have instead: for each attribute that it reads, the number of devices by value, at most 5.
    """

    expression: str
    rejected: int
    is_of_class: bool = False
    values: dict[str, dict[str, int]] = {}


class InsufficientDevices(_Detail, frozen=True, tag="InsufficientDevices"):
    """The first request in a claim that the node cannot satisfy after allocating devices for the previous requests.

    It requires ``requested`` devices of a class (0: all), or one of several ``alternatives``. Of the devices that match
    the class and selectors, ``allocated`` are allocated to claims, of which ``allocated_to_lower`` are used only by
    lower-priority pods on the node, and others have a taint that the request does not tolerate. There are at most 20
    ``holders``. Pools that are being updated, or invalid, do not count. ``fits_without_lower``: all claims would have
    devices if those of lower-priority pods were free; evicting pods does not free them. If too few devices match,
    ``published`` are all devices that the node can access, and ``rejecting`` the selectors that reject some of them.
    """

    claim: str
    request: str
    device_class: str
    requested: int
    matching: int
    alternatives: int = 0
    allocated: int = 0
    allocated_to_lower: int = 0
    tainted: int = 0
    holders: list[DeviceHolder] = []
    updating: list[str] = []
    invalid: list[str] = []
    fits_without_lower: bool = False
    published: int | None = None
    rejecting: list[RejectingSelector] = []

    @property
    def is_permanent(self) -> bool:
        """Whether fewer such devices exist than are required, no matter who uses them."""
        return not (self.updating or self.invalid or self.alternatives) and self.matching < self.requested


class ClaimUnavailable(_Detail, frozen=True, tag="ClaimUnavailable"):
    """An allocated claim that the node cannot use.

    Its devices are reachable only from other nodes (``reachable_from``, terms of a node selector), or could not be
    prepared in time.
    """

    claim: str
    devices: list[str] = []
    reachable_from: list[str] = []

    @property
    def is_permanent(self) -> bool:
        """Never: a claim that no pod uses is deallocated."""
        return False


class PluginFinding(_Detail, frozen=True, tag="PluginFinding"):
    """What an out-of-tree plugin reports: a phrase in its own words, and facts by name, in the plugin's order."""

    summary: str
    facts: dict[str, str | int | float | bool] = {}


Detail = (
    InsufficientResources
    | UntoleratedTaint
    | NodeAffinityMismatch
    | NodeNameMismatch
    | PortConflict
    | AffinityConflict
    | SpreadConflict
    | VolumeConflict
    | VolumeLimitExceeded
    | MissingFeatures
    | InsufficientDevices
    | ClaimUnavailable
    | PluginFinding
)


def missing_share(detail: Detail | None) -> float:
    """How far a node is from fitting the pod: the largest missing share of a request.

    Infinite if something other than resources is missing.
    """
    if not isinstance(detail, InsufficientResources) or not detail.shortfalls:
        return float("inf")
    return max(shortfall.missing_share for shortfall in detail.shortfalls)


class ExtenderCall(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """One call to an extender; calls are listed in order.

    ``extender`` is its URL without user name and password; ``verb`` is ``filter``, ``prioritize`` or ``preempt``, and
    ``nodes_sent`` is the number of nodes sent. ``without_victims``: this was a node chosen for preemption, sent without
    its victims (1.8).

    Results: ``rejected`` are nodes, each with the reason or an empty text, and no eviction helps on the
    ``unresolvable`` ones; ``added`` are nodes that it was not sent. ``returns_nodes``: it returned full Node objects,
    which current schedulers score as if they had no pods. ``removed`` are candidates that it removed, and ``changed``
    has the victims that it replaced; ``violations`` are the numbers of violated budgets that it returned instead of the
    ones sent. ``scores`` are before its weight is applied. ``error`` is how the call failed, which had no effect if it
    was ``ignored``.
    """

    extender: str
    verb: str
    nodes_sent: int = 0
    without_victims: bool = False
    rejected: dict[str, str] = {}
    unresolvable: list[str] = []
    added: list[str] = []
    returns_nodes: bool = False
    removed: list[str] = []
    changed: dict[str, list[str]] = {}
    violations: dict[str, int] = {}
    scores: dict[str, int] = {}
    error: str = ""
    ignored: bool = False
