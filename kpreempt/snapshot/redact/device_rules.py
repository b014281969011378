"""Redaction of resource claims, slices and device classes.

A selector is an expression, which is removed completely: an answer that depends on it is uncertain in a redacted
cluster. Everything else decides as before, using tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kpreempt.model import devices
from kpreempt.snapshot.redact import spaces
from kpreempt.snapshot.redact.spaces import AMOUNTS, WORDS, Renamer, Rule, each_item, joined, keyed, name_rule, nothing
from kpreempt.snapshot.redact.tokens import Space

_ATTRIBUTE = Space("attribute")
_ATTRIBUTE_VALUE = Space("attributevalue", is_sorted=False)
_CAPACITY = Space("capacity")
_COUNTER = Space("counter")


def _attribute(renamer: Renamer, name: str) -> str:
    """Return an attribute's name, with its domain, which may be a driver."""
    domain, slash, own = name.rpartition("/")
    return f"{renamer.rename(spaces.DRIVER, domain) if domain else ''}{slash}{renamer.rename(_ATTRIBUTE, own)}"


def _attributes(renamer: Renamer, value: Mapping[str, devices.DeviceAttribute]) -> Any:
    rename = name_rule(_ATTRIBUTE_VALUE)
    texts = ("string_value", "version_value", "string_values", "version_values")
    return {
        _attribute(renamer, name): msgspec.structs.replace(
            attribute, **{text: rename(renamer, getattr(attribute, text)) for text in texts}
        )
        for name, attribute in value.items()
    }


def _consumer(renamer: Renamer, reference: devices.ConsumerReference) -> devices.ConsumerReference:
    """Return the user of a claim: a pod, or something unknown."""
    space = spaces.POD if reference.resource == "pods" else Space("consumer")
    return devices.ConsumerReference(
        api_group=renamer.word(reference.api_group) if reference.api_group else "",
        resource=renamer.word(reference.resource) if reference.resource else "",
        name=renamer.rename(space, reference.name) if reference.name else "",
        uid=renamer.rename(_UID, reference.uid) if reference.uid else "",
    )


_UID = Space("uid")
_class = name_rule(spaces.DEVICE_CLASS)
_pool = name_rule(Space("devicepool"))
_device = name_rule(Space("device"))
_driver = name_rule(spaces.DRIVER)
_node = name_rule(spaces.NODE)
_condition = name_rule(Space("condition"))
_counter_set = name_rule(Space("counterset"))
_capacity = keyed(name_rule(_CAPACITY))
_counters = keyed(name_rule(_COUNTER))
# A request, or one of its alternatives after a slash.
_request = each_item(joined("/", name_rule(Space("request"))))
_unread: dict[str, Rule] = {"unread_fields": lambda _, value: [devices.REDACTED_FIELD] if value else value}

RECORDS: dict[type[msgspec.Struct], Rule] = {
    devices.CELDeviceSelector: lambda _, __: devices.CELDeviceSelector(devices.REDACTED_SELECTOR),
    devices.ConsumerReference: _consumer,
}
FIELDS: dict[type[msgspec.Struct], dict[str, Rule]] = {
    devices.DerivedAttribute: {"name": name_rule(_ATTRIBUTE), "expression": nothing},
    devices.CapacityRequirements: {"requests": _capacity},
    devices.ExactDeviceRequest: {"device_class_name": _class, "allocation_mode": WORDS},
    devices.DeviceSubRequest: {"name": _request, "device_class_name": _class, "allocation_mode": WORDS},
    devices.DeviceRequest: {"name": _request, "device_class_name": _class, "allocation_mode": WORDS},
    devices.DeviceConstraint: {
        "requests": _request,
        "match_attribute": _attribute,
        "distinct_attribute": _attribute,
    },
    devices.DeviceResult: {
        "request": _request,
        "driver": _driver,
        "pool": _pool,
        "device": _device,
        "binding_conditions": _condition,
        "binding_failure_conditions": _condition,
        "share_id": name_rule(_UID),
        "consumed_capacity": _capacity,
        "skip_node_operations": WORDS,
    },
    devices.AllocationResult: {"controller": nothing},
    devices.DeviceCondition: {"type": _condition, "status": WORDS},
    devices.AllocatedDeviceStatus: {"driver": _driver, "pool": _pool, "device": _device, "share_id": name_rule(_UID)},
    devices.ResourceClaim: _unread,
    devices.ResourceClaimTemplate: _unread,
    devices.ResourceSlice: _unread,
    devices.DeviceClass: _unread,
    devices.DeviceTaintRule: _unread,
    devices.CounterSet: {"name": _counter_set, "counters": _counters},
    devices.CounterConsumption: {
        "counter_set": _counter_set,
        "counters": _counters,
        "compatibility_groups": name_rule(Space("compatibilitygroup")),
    },
    devices.BasicDevice: {
        "attributes": _attributes,
        "capacity": _capacity,
        "node_name": _node,
        "binding_conditions": _condition,
        "binding_failure_conditions": _condition,
    },
    devices.Device: {
        "name": _device,
        "node_allocatable_resource_mappings": AMOUNTS,
        "node_allocatable_resources": AMOUNTS,
    },
    devices.ResourcePool: {"name": _pool},
    devices.ResourceSliceSpec: {
        "driver": _driver,
        "node_name": _node,
        "partition_type_attribute": _attribute,
        "skip_node_operations": WORDS,
    },
    devices.DeviceTaintSelector: {
        "driver": _driver,
        "pool": _pool,
        "device": _device,
        "device_class_name": _class,
    },
}
