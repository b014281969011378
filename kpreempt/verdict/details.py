"""What a plugin saw when it refused a node: one record type per kind of refusal, told apart by ``type`` in JSON.

CPU is in milli-CPU, memory and storage in bytes, all other resources in whole units.
"""

from __future__ import annotations

import msgspec


class _Detail(msgspec.Struct, frozen=True, rename="camel", tag_field="type", gc=False):
    """Base of all details."""

    @property
    def is_lasting(self) -> bool:
        """Whether the node refuses the pod whatever runs there, by its size or its labels.

        Taints and cordons come and go with the state of a node, and what affinity, spread and volumes want may still
        come.
        """
        return False


class Shortfall(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One resource of which a node has too little. ``resource`` is ``pods`` where the number of pods is at its limit.

    ``exceeds_node`` says that the request is larger than the whole node, so that no eviction can help.
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
        """What share of the request is missing."""
        return self.missing / max(self.requested, 1)


class InsufficientResources(_Detail, frozen=True, tag="InsufficientResources"):
    """The resources that are short on the node, and how many pods use it."""

    shortfalls: list[Shortfall]
    pods: int = 0

    @property
    def is_lasting(self) -> bool:
        """Where the pod asks for more than the whole node."""
        return any(each.requested > each.allocatable for each in self.shortfalls)


class UntoleratedTaint(_Detail, frozen=True, tag="UntoleratedTaint"):
    """The first taint that the pod does not tolerate."""

    key: str
    value: str
    effect: str


class NodeAffinityMismatch(_Detail, frozen=True, tag="NodeAffinityMismatch"):
    """What the node lacks: expressions in selector syntax, from the pod's node selector or its required terms.

    ``source`` is ``nodeSelector``, ``nodeAffinity`` or ``addedAffinity`` (the scheduler's configuration).
    """

    source: str
    unmet: list[str]

    @property
    def is_lasting(self) -> bool:
        """Always."""
        return True


class NodeNameMismatch(_Detail, frozen=True, tag="NodeNameMismatch"):
    """The only node that the pod names."""

    wanted: str

    @property
    def is_lasting(self) -> bool:
        """Always."""
        return True


class PortConflict(_Detail, frozen=True, tag="PortConflict"):
    """A host port that is taken, and the pods that hold it."""

    port: int
    protocol: str
    host_ip: str
    holders: list[str]


class AffinityConflict(_Detail, frozen=True, tag="AffinityConflict"):
    """A pod affinity or anti-affinity term that fails on the node.

    ``rule`` is ``affinity`` (no pod that the term wants), ``antiAffinity`` (pods that the term refuses) or
    ``existingAntiAffinity`` (terms of pods that are there already refuse the incoming pod). ``holders`` are the pods
    that match, or that hold the term. ``topology_value`` is empty where the node lacks the label.
    """

    rule: str
    topology_key: str
    topology_value: str
    selector: str
    holders: list[str] = []


class SpreadConflict(_Detail, frozen=True, tag="SpreadConflict"):
    """A topology spread constraint that fails on the node.

    The skew would be ``count`` (matching pods in the node's domain) + ``self_match`` - ``minimum`` (over all domains);
    it may be at most ``max_skew``. ``topology_value`` is empty where the node lacks the label. ``counts`` gives the
    matching pods of the domains that have the fewest and of the node's own, 20 at most. ``minimum`` is 0 where there
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
    """A volume or claim that keeps the pod off the node, with what was wanted and what the node has."""

    claim: str = ""
    volume: str = ""
    problem: str = ""
    holders: list[str] = []


class VolumeLimitExceeded(_Detail, frozen=True, tag="VolumeLimitExceeded"):
    """A driver's limit of attached volumes on the node: ``used`` are there, ``requested`` would be new."""

    driver: str
    used: int
    requested: int
    limit: int


class MissingFeatures(_Detail, frozen=True, tag="MissingFeatures"):
    """Features that the pod needs and the node does not declare."""

    features: list[str]


# The name of the claim that the scheduler would make for a pod's extended resources.
EXTENDED_RESOURCES = "<extended-resources>"


class DeviceHolder(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A device (``driver/pool/device``), the claim that has it, and the pods that use the claim.

    ``is_lower`` says that all of these are pods of lower priority on the node.
    """

    device: str
    claim: str
    pods: list[str] = []
    is_lower: bool = False


class InsufficientDevices(_Detail, frozen=True, tag="InsufficientDevices"):
    """The first request of a claim for which the node has no devices, beside those for the requests before it.

    It wants ``wanted`` devices of a class (0: all that there are), or one of several ``alternatives``. Of the devices
    that match its class and selectors some are ``allocated`` to claims, of these ``allocated_to_lower`` to claims that
    only pods of lower priority on the node use, and others have a taint that the request does not tolerate.
    ``holders`` are 20 at most. Pools that are being updated, or invalid, do not count. ``fits_without_lower`` says that
    there were devices for all claims if those of pods of lower priority were free; evicting pods frees none.
    """

    claim: str
    request: str
    device_class: str
    wanted: int
    matching: int
    alternatives: int = 0
    allocated: int = 0
    allocated_to_lower: int = 0
    tainted: int = 0
    holders: list[DeviceHolder] = []
    updating: list[str] = []
    invalid: list[str] = []
    fits_without_lower: bool = False

    @property
    def is_lasting(self) -> bool:
        """Where there are fewer such devices than are wanted, whoever has them."""
        return not (self.updating or self.invalid or self.alternatives) and self.matching < self.wanted


class ClaimUnavailable(_Detail, frozen=True, tag="ClaimUnavailable"):
    """An allocated claim that the node cannot use.

    Its devices can be reached from other nodes only (``reachable_from``, terms of a node selector), or were not made
    ready in time.
    """

    claim: str
    devices: list[str] = []
    reachable_from: list[str] = []

    @property
    def is_lasting(self) -> bool:
        """Never: a claim that nobody uses is deallocated."""
        return False


class PluginFinding(_Detail, frozen=True, tag="PluginFinding"):
    """What an out-of-tree plugin saw, in its own words: a phrase, and facts by name in its order."""

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


class ExtenderCall(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """One call of an extender, in the order in which they were made.

    ``extender`` is its address without a user's name and password; ``verb`` is ``filter``, ``prioritize`` or
    ``preempt``, and ``asked`` the number of nodes that it was asked about. ``without_victims`` says that this was a
    node that was chosen for preemption, without the victims there (1.8).

    What it did: ``refused`` nodes, each with its reason or an empty text, of which no eviction mends ``unresolvable``;
    ``let_in`` are nodes that it was not asked about. With ``returns_nodes`` it sent whole nodes back, which today's
    scheduler scores as if there were no pods on them. Of candidates it ``dropped`` some, and ``changed`` the victims of
    others to these; ``violations`` are the numbers of violated budgets that it gave instead of those that it was told.
    ``scores`` are those that it gave, before its weight. ``error`` is how the call failed, which was passed over where
    it was ``ignored``.
    """

    extender: str
    verb: str
    asked: int = 0
    without_victims: bool = False
    refused: dict[str, str] = {}
    unresolvable: list[str] = []
    let_in: list[str] = []
    returns_nodes: bool = False
    dropped: list[str] = []
    changed: dict[str, list[str]] = {}
    violations: dict[str, int] = {}
    scores: dict[str, int] = {}
    error: str = ""
    ignored: bool = False
