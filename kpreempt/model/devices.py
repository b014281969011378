"""Resource claims and their templates, slices, device classes and taint rules (dynamic resource allocation).

The records have the shape of ``resource.k8s.io/v1``; what only older versions have stands beside it until
``kpreempt/snapshot/decode.py`` has moved it. Each spec and status is strict: a field that is not known here is
noted in ``unread_fields`` of its object, because it may decide about an allocation.
"""

from __future__ import annotations

import msgspec

from kpreempt.model.affinity import NodeSelector
from kpreempt.model.frozen import NO_ENTRIES, NO_ITEMS
from kpreempt.model.meta import AnnotatedMeta, Keyed, ObjectMeta, Time
from kpreempt.model.quantity import Quantity

EXACT_COUNT = "ExactCount"
ALL_DEVICES = "All"
# The results that an allocation may have (``AllocationResultsMaxSize``), and the alternatives of a request.
MAX_RESULTS = 32
MAX_ALTERNATIVES = 8
# Marks the claim that the scheduler makes for a pod's extended resources.
EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
# The extended resource that each class of devices stands for, by the class's name.
CLASS_RESOURCE_PREFIX = "deviceclass.resource.kubernetes.io/"

# What redaction leaves of a selector, and of a field that is not known.
REDACTED_SELECTOR = "(redacted)"
REDACTED_FIELD = "(not said)"

# A device's driver, pool and name.
DeviceId = tuple[str, str, str]


class _Strict(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """A part of which every field is known."""


class Opaque(msgspec.Struct, frozen=True, omit_defaults=True):
    """What drivers say to each other; no scheduler reads it, and nothing of it is kept."""


class CELDeviceSelector(_Strict, frozen=True):
    """An expression over one device."""

    expression: str = ""


class DeviceSelector(_Strict, frozen=True):
    """Which devices are meant. Without ``cel`` it is of a sort that is not known."""

    cel: CELDeviceSelector | None = None


class DeviceTaint(_Strict, frozen=True):
    """What a device repels claims with. ``effect`` is NoSchedule, NoExecute, or None, which does nothing."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: Time | None = None


class DeviceToleration(_Strict, frozen=True):
    """A taint, or a family of taints, that a request puts up with."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: DeviceTaint) -> bool:
        """Whether the taint is tolerated (``dynamic-resource-allocation`` v0.36.3 ``ToleratesTaint``)."""
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        return self.operator == "Exists" or (self.operator in ("", "Equal") and self.value == taint.value)


class CapacityRequirements(_Strict, frozen=True):
    """How much of a device's capacity a request takes, by the capacity's name."""

    requests: dict[str, Quantity] = NO_ENTRIES


class DerivedAttribute(_Strict, frozen=True):
    """An attribute that is computed from others (alpha in 1.37)."""

    name: str = ""
    expression: str = ""


class ExactDeviceRequest(_Strict, frozen=True):
    """Devices of a class. ``count`` is that of the mode ExactCount; the other mode is All."""

    device_class_name: str = ""
    selectors: list[DeviceSelector] = NO_ITEMS
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = NO_ITEMS
    capacity: CapacityRequirements | None = None
    derived_attributes: list[DerivedAttribute] = NO_ITEMS


class DeviceSubRequest(_Strict, frozen=True):
    """One of several alternatives, of which the first that can be had is taken."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] = NO_ITEMS
    allocation_mode: str = ""
    count: int = 0
    tolerations: list[DeviceToleration] = NO_ITEMS
    capacity: CapacityRequirements | None = None
    derived_attributes: list[DerivedAttribute] = NO_ITEMS

    @property
    def admin_access(self) -> bool | None:
        """Alternatives have none."""
        return None


class DeviceRequest(_Strict, frozen=True):
    """Devices that a claim wants: exactly these, or the first alternative that can be had.

    What follows ``first_available`` is where ``v1beta1`` has the fields of ``exactly``.
    """

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] = NO_ITEMS
    device_class_name: str = ""
    selectors: list[DeviceSelector] = NO_ITEMS
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = NO_ITEMS
    capacity: CapacityRequirements | None = None


class DeviceConstraint(_Strict, frozen=True):
    """What the devices of some requests, or of all where none are named, must have in common, or must not."""

    requests: list[str] = NO_ITEMS
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(_Strict, frozen=True):
    """The requests of a claim."""

    requests: list[DeviceRequest] = NO_ITEMS
    constraints: list[DeviceConstraint] = NO_ITEMS
    config: list[Opaque] = NO_ITEMS


class ResourceClaimSpec(_Strict, frozen=True):
    """What a claim wants."""

    devices: DeviceClaim = DeviceClaim()


class DeviceResult(_Strict, frozen=True):
    """A device, or with ``share_id`` a share of one, that was allocated for a request."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = NO_ITEMS
    binding_conditions: list[str] = NO_ITEMS
    binding_failure_conditions: list[str] = NO_ITEMS
    share_id: str | None = msgspec.field(name="shareID", default=None)
    consumed_capacity: dict[str, Quantity] = NO_ENTRIES
    skip_node_operations: list[str] = NO_ITEMS

    @property
    def id(self) -> DeviceId:
        """Which device it is."""
        return self.driver, self.pool, self.device


class DeviceAllocationResult(_Strict, frozen=True):
    """All devices of a claim."""

    results: list[DeviceResult] = NO_ITEMS
    config: list[Opaque] = NO_ITEMS


class AllocationResult(_Strict, frozen=True):
    """The devices of a claim, and where they can be reached; without a selector that is everywhere."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: Time | None = None
    controller: str = ""


class ConsumerReference(_Strict, frozen=True):
    """Who may use a claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One condition of an allocated device."""

    type: str = ""
    status: str = ""


class AllocatedDeviceStatus(_Strict, frozen=True):
    """What the driver says of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(name="shareID", default=None)
    conditions: list[DeviceCondition] = NO_ITEMS
    data: Opaque | None = None
    network_data: Opaque | None = None


class ResourceClaimStatus(_Strict, frozen=True):
    """What a claim has got, and who uses it."""

    allocation: AllocationResult | None = None
    reserved_for: list[ConsumerReference] = NO_ITEMS
    devices: list[AllocatedDeviceStatus] = NO_ITEMS
    deallocation_requested: bool = False


class ResourceClaim(Keyed, msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A claim for devices."""

    metadata: AnnotatedMeta = AnnotatedMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()
    unread_fields: list[str] = NO_ITEMS


class ResourceClaimTemplateSpec(_Strict, frozen=True):
    """What claims that are made from a template are like."""

    metadata: Opaque | None = None
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """From which a claim is made for each pod that names it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
    unread_fields: list[str] = NO_ITEMS


class DeviceAttribute(_Strict, frozen=True):
    """A property of a device, which has one of these types; the lists are alpha in 1.36."""

    int_value: int | None = msgspec.field(name="int", default=None)
    bool_value: bool | None = msgspec.field(name="bool", default=None)
    string_value: str | None = msgspec.field(name="string", default=None)
    version_value: str | None = msgspec.field(name="version", default=None)
    int_values: list[int] = msgspec.field(name="ints", default=NO_ITEMS)
    bool_values: list[bool] = msgspec.field(name="bools", default=NO_ITEMS)
    string_values: list[str] = msgspec.field(name="strings", default=NO_ITEMS)
    version_values: list[str] = msgspec.field(name="versions", default=NO_ITEMS)

    @property
    def typed(self) -> tuple[str, str | int | bool] | None:
        """The name of its type and its value; ``None`` for a list, or a type that is not known."""
        # Asked of every attribute of every device.
        if self.string_value is not None:
            return "string", self.string_value
        if self.int_value is not None:
            return "int", self.int_value
        if self.bool_value is not None:
            return "bool", self.bool_value
        return None if self.version_value is None else ("version", self.version_value)


class CapacityRange(_Strict, frozen=True):
    """Amounts that a request may take, from ``min`` to ``max`` in steps."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityPolicy(_Strict, frozen=True):
    """How much of a capacity a request takes: what it asks for, rounded up, or the default."""

    default: Quantity | None = None
    valid_values: list[Quantity] = NO_ITEMS
    valid_range: CapacityRange | None = None


class DeviceCapacity(_Strict, frozen=True):
    """An amount that a device has."""

    value: Quantity
    request_policy: CapacityPolicy | None = None


class Counter(_Strict, frozen=True):
    """An amount of something that devices share."""

    value: Quantity


class CounterSet(_Strict, frozen=True):
    """What there is of the counters that devices of a pool share."""

    name: str = ""
    counters: dict[str, Counter] = NO_ENTRIES


class CounterConsumption(_Strict, frozen=True):
    """What a device takes of a counter set."""

    counter_set: str = ""
    counters: dict[str, Counter] = NO_ENTRIES
    compatibility_groups: list[str] = NO_ITEMS


class BasicDevice(_Strict, frozen=True):
    """A device without its name, as ``v1beta1`` has it."""

    attributes: dict[str, DeviceAttribute] = NO_ENTRIES
    capacity: dict[str, DeviceCapacity] = NO_ENTRIES
    consumes_counters: list[CounterConsumption] = NO_ITEMS
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: list[DeviceTaint] = NO_ITEMS
    binds_to_node: bool | None = None
    binding_conditions: list[str] = NO_ITEMS
    binding_failure_conditions: list[str] = NO_ITEMS
    allow_multiple_allocations: bool | None = None


class Device(BasicDevice, frozen=True):
    """A device of a slice. ``node_allocatable_resources`` are what it takes of the node's own (alpha in 1.36)."""

    name: str = ""
    node_allocatable_resource_mappings: dict[str, Opaque] = NO_ENTRIES
    node_allocatable_resources: dict[str, Opaque] = NO_ENTRIES
    basic: BasicDevice | None = None


class ResourcePool(_Strict, frozen=True):
    """The pool of a slice: only the slices of its highest generation count, and there must be so many of them."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(_Strict, frozen=True):
    """Devices of a pool, and which nodes can reach them."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: list[Device] = NO_ITEMS
    per_device_node_selection: bool | None = None
    shared_counters: list[CounterSet] = NO_ITEMS
    partition_type_attribute: str | None = None
    skip_node_operations: list[str] = NO_ITEMS


class ResourceSlice(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Devices that a driver offers."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()
    unread_fields: list[str] = NO_ITEMS


class DeviceClassSpec(_Strict, frozen=True):
    """Which devices are of a class, and the extended resource that it can stand for."""

    selectors: list[DeviceSelector] = NO_ITEMS
    config: list[Opaque] = NO_ITEMS
    suitable_nodes: Opaque | None = None
    extended_resource_name: str | None = None


class DeviceClass(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A class of devices."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()
    unread_fields: list[str] = NO_ITEMS


class DeviceTaintSelector(_Strict, frozen=True):
    """Which devices a rule taints; what is not named is any."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    device_class_name: str | None = None
    selectors: list[DeviceSelector] = NO_ITEMS


class DeviceTaintRuleSpec(_Strict, frozen=True):
    """A taint, and the devices that have it; all of them where no selector is given."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Taints devices from outside their slices."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
    unread_fields: list[str] = NO_ITEMS
