"""Resource claims and their templates, slices, device classes and taint rules (dynamic resource allocation).

The records have the shape of ``resource.k8s.io/v1``; fields of older versions are next to it until
``kpreempt/snapshot/decode.py`` has converted them. Each spec and status is strict: an unknown field is recorded in
``unread_fields`` of its object, because it may affect an allocation.
"""

from __future__ import annotations

import msgspec

from kpreempt.model.affinity import NodeSelector
from kpreempt.model.frozen import NO_ENTRIES, NO_ITEMS
from kpreempt.model.meta import AnnotatedMeta, Keyed, ObjectMeta, Time
from kpreempt.model.quantity import Quantity

EXACT_COUNT = "ExactCount"
ALL_DEVICES = "All"
# The maximum number of results of an allocation (``AllocationResultsMaxSize``), and of alternatives of a request.
MAX_RESULTS = 32
MAX_ALTERNATIVES = 8
# Marks the claim that the scheduler creates for a pod's extended resources.
EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
# The prefix of the extended resource that each device class implicitly provides, followed by the class's name.
CLASS_RESOURCE_PREFIX = "deviceclass.resource.kubernetes.io/"

# The replacements of a selector, and of an unknown field, in redacted snapshots.
REDACTED_SELECTOR = "(redacted)"
REDACTED_FIELD = "(not said)"

# A device's driver, pool and name.
DeviceId = tuple[str, str, str]


class _Strict(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """An object all of whose fields must be known."""


class Opaque(msgspec.Struct, frozen=True, omit_defaults=True):
    """Driver-specific data; no scheduler reads it, and its content is not kept."""


class CELDeviceSelector(_Strict, frozen=True):
    """An expression over one device."""

    expression: str = ""


class DeviceSelector(_Strict, frozen=True):
    """A selector of devices. Without ``cel``, its type is unknown."""

    cel: CELDeviceSelector | None = None


class DeviceTaint(_Strict, frozen=True):
    """A taint of a device that repels claims. ``effect`` is NoSchedule, NoExecute, or None, which has no effect."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: Time | None = None


class DeviceToleration(_Strict, frozen=True):
    """A taint, or a family of taints, that a request tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: DeviceTaint) -> bool:
        """Return whether the taint is tolerated (``dynamic-resource-allocation`` v0.36.3 ``ToleratesTaint``)."""
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        return self.operator == "Exists" or (self.operator in ("", "Equal") and self.value == taint.value)


class CapacityRequirements(_Strict, frozen=True):
    """The amounts of a device's capacities that a request consumes, by capacity name."""

    requests: dict[str, Quantity] = NO_ENTRIES


class DerivedAttribute(_Strict, frozen=True):
    """An attribute that is computed from others (alpha in 1.37)."""

    name: str = ""
    expression: str = ""


class ExactDeviceRequest(_Strict, frozen=True):
    """Devices of a class. ``count`` applies to the mode ExactCount; the other mode is All."""

    device_class_name: str = ""
    selectors: list[DeviceSelector] = NO_ITEMS
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = NO_ITEMS
    capacity: CapacityRequirements | None = None
    derived_attributes: list[DerivedAttribute] = NO_ITEMS


class DeviceSubRequest(_Strict, frozen=True):
    """One of several alternatives; the first available one is allocated."""

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
        """Alternatives have no admin access."""
        return None


class DeviceRequest(_Strict, frozen=True):
    """Devices requested by a claim: exactly these, or the first available alternative.

    The fields after ``first_available`` are ``v1beta1``'s equivalent of ``exactly``.
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
    """An attribute that the devices of some requests, by default all, must have in common or must not."""

    requests: list[str] = NO_ITEMS
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(_Strict, frozen=True):
    """The requests of a claim."""

    requests: list[DeviceRequest] = NO_ITEMS
    constraints: list[DeviceConstraint] = NO_ITEMS
    config: list[Opaque] = NO_ITEMS


class ResourceClaimSpec(_Strict, frozen=True):
    """The content of a claim."""

    devices: DeviceClaim = DeviceClaim()


class DeviceResult(_Strict, frozen=True):
    """A device, or with ``share_id`` a share of one, allocated for a request."""

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
        """The device's driver, pool and name."""
        return self.driver, self.pool, self.device


class DeviceAllocationResult(_Strict, frozen=True):
    """All devices of a claim."""

    results: list[DeviceResult] = NO_ITEMS
    config: list[Opaque] = NO_ITEMS


class AllocationResult(_Strict, frozen=True):
    """The devices of a claim, and the nodes that can reach them; without a selector, all nodes."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: Time | None = None
    controller: str = ""


class ConsumerReference(_Strict, frozen=True):
    """A user of a claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One condition of an allocated device."""

    type: str = ""
    status: str = ""


class AllocatedDeviceStatus(_Strict, frozen=True):
    """The driver's status of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(name="shareID", default=None)
    conditions: list[DeviceCondition] = NO_ITEMS
    data: Opaque | None = None
    network_data: Opaque | None = None


class ResourceClaimStatus(_Strict, frozen=True):
    """The allocation of a claim, and its users."""

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
    """The content of claims that are created from a template."""

    metadata: Opaque | None = None
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A template from which a claim is created for each pod that references it."""

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
        """The name of its type and its value; ``None`` for a list, or an unknown type."""
        # Called for every attribute of every device.
        if self.string_value is not None:
            return "string", self.string_value
        if self.int_value is not None:
            return "int", self.int_value
        if self.bool_value is not None:
            return "bool", self.bool_value
        return None if self.version_value is None else ("version", self.version_value)


class CapacityRange(_Strict, frozen=True):
    """The amounts that a request may consume, from ``min`` to ``max`` in steps."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityPolicy(_Strict, frozen=True):
    """How much of a capacity a request consumes: the requested amount, rounded up, or the default."""

    default: Quantity | None = None
    valid_values: list[Quantity] = NO_ITEMS
    valid_range: CapacityRange | None = None


class DeviceCapacity(_Strict, frozen=True):
    """A capacity of a device."""

    value: Quantity
    request_policy: CapacityPolicy | None = None


class Counter(_Strict, frozen=True):
    """An amount of a resource that devices share."""

    value: Quantity


class CounterSet(_Strict, frozen=True):
    """The total amounts of the counters that devices of a pool share."""

    name: str = ""
    counters: dict[str, Counter] = NO_ENTRIES


class CounterConsumption(_Strict, frozen=True):
    """The amounts of a counter set that a device consumes."""

    counter_set: str = ""
    counters: dict[str, Counter] = NO_ENTRIES
    compatibility_groups: list[str] = NO_ITEMS


class BasicDevice(_Strict, frozen=True):
    """A device without its name, as in ``v1beta1``."""

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
    """A device of a slice. ``node_allocatable_resources`` are the node resources that it consumes (alpha in 1.36)."""

    name: str = ""
    node_allocatable_resource_mappings: dict[str, Opaque] = NO_ENTRIES
    node_allocatable_resources: dict[str, Opaque] = NO_ENTRIES
    basic: BasicDevice | None = None


class ResourcePool(_Strict, frozen=True):
    """The pool of a slice. Only slices of its highest generation count; the pool must have that number of slices."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(_Strict, frozen=True):
    """Devices of a pool, and the nodes that can reach them."""

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
    """The devices of a class, and the extended resource that it can provide."""

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
    """The devices that a rule taints; empty fields match any."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    device_class_name: str | None = None
    selectors: list[DeviceSelector] = NO_ITEMS


class DeviceTaintRuleSpec(_Strict, frozen=True):
    """A taint, and the devices that have it; all devices if there is no selector."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A taint on devices that is defined outside of their slices."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
    unread_fields: list[str] = NO_ITEMS
