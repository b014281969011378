"""What redaction makes of claims for devices, slices and classes.

A selector is an expression, of which nothing can be left: an answer that hangs on one is uncertain in a redacted
cluster. All else decides as before, by tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kpreempt.model import devices
from kpreempt.snapshot.redact import spaces
from kpreempt.snapshot.redact.spaces import Renamer, named
from kpreempt.snapshot.redact.tokens import Space

_Rule = Callable[[Renamer, Any], Any]

_ATTRIBUTE = Space("attribute")
_ATTRIBUTE_VALUE = Space("attributevalue", is_sorted=False)
_CAPACITY = Space("capacity")
_COUNTER = Space("counter")
_REQUEST = Space("request")


def _keyed(space: Space) -> _Rule:
    """The names of amounts."""
    return lambda renamer, value: {renamer.rename(space, name): each for name, each in value.items()}


def _words(renamer: Renamer, value: Any) -> Any:
    return [renamer.word(each) for each in value] if isinstance(value, list) else renamer.word(value)


def _attribute(renamer: Renamer, name: str) -> str:
    """An attribute's name, with its domain, which may be a driver."""
    domain, slash, own = name.rpartition("/")
    return f"{renamer.rename(spaces.DRIVER, domain) if domain else ''}{slash}{renamer.rename(_ATTRIBUTE, own)}"


def _attributes(renamer: Renamer, value: Mapping[str, devices.DeviceAttribute]) -> Any:
    return {_attribute(renamer, name): _typed(renamer, each) for name, each in value.items()}


def _typed(renamer: Renamer, attribute: devices.DeviceAttribute) -> devices.DeviceAttribute:
    rename = named(_ATTRIBUTE_VALUE)
    texts = ("string_value", "version_value", "string_values", "version_values")
    return msgspec.structs.replace(attribute, **{name: rename(renamer, getattr(attribute, name)) for name in texts})


def _request(renamer: Renamer, value: Any) -> Any:
    """A request, or one of its alternatives behind a slash."""
    if isinstance(value, list):
        return [_request(renamer, each) for each in value]
    return "/".join(renamer.rename(_REQUEST, part) if part else part for part in value.split("/"))


def _consumer(renamer: Renamer, reference: devices.ConsumerReference) -> devices.ConsumerReference:
    """Who has a claim reserved: a pod, or what is not known."""
    space = spaces.POD if reference.resource == "pods" else Space("consumer")
    return devices.ConsumerReference(
        api_group=renamer.word(reference.api_group) if reference.api_group else "",
        resource=renamer.word(reference.resource) if reference.resource else "",
        name=renamer.rename(space, reference.name) if reference.name else "",
        uid=renamer.rename(_UID, reference.uid) if reference.uid else "",
    )


def _resources(renamer: Renamer, value: Mapping[str, Any]) -> Any:
    return {renamer.resource(name): each for name, each in value.items()}


def _not_said(_: Renamer, value: list[str]) -> list[str]:
    return [devices.REDACTED_FIELD] if value else value


def _nothing(_: Renamer, value: Any) -> Any:
    return type(value)()


_UID = Space("uid")
_class = named(spaces.DEVICE_CLASS)
_pool = named(Space("devicepool"))
_device = named(Space("device"))
_driver = named(spaces.DRIVER)
_node = named(spaces.NODE)
_condition = named(Space("condition"))
_counter_set = named(Space("counterset"))
_unread: dict[str, _Rule] = {"unread_fields": _not_said}

RECORDS: dict[type[msgspec.Struct], _Rule] = {
    devices.CELDeviceSelector: lambda _, __: devices.CELDeviceSelector(devices.REDACTED_SELECTOR),
    devices.ConsumerReference: _consumer,
}
FIELDS: dict[type[msgspec.Struct], dict[str, _Rule]] = {
    devices.DerivedAttribute: {"name": named(_ATTRIBUTE), "expression": _nothing},
    devices.CapacityRequirements: {"requests": _keyed(_CAPACITY)},
    devices.ExactDeviceRequest: {"device_class_name": _class, "allocation_mode": _words},
    devices.DeviceSubRequest: {"name": _request, "device_class_name": _class, "allocation_mode": _words},
    devices.DeviceRequest: {"name": _request, "device_class_name": _class, "allocation_mode": _words},
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
        "share_id": named(_UID),
        "consumed_capacity": _keyed(_CAPACITY),
        "skip_node_operations": _words,
    },
    devices.AllocationResult: {"controller": _nothing},
    devices.DeviceCondition: {"type": _condition, "status": _words},
    devices.AllocatedDeviceStatus: {"driver": _driver, "pool": _pool, "device": _device, "share_id": named(_UID)},
    devices.ResourceClaim: _unread,
    devices.ResourceClaimTemplate: _unread,
    devices.ResourceSlice: _unread,
    devices.DeviceClass: _unread,
    devices.DeviceTaintRule: _unread,
    devices.CounterSet: {"name": _counter_set, "counters": _keyed(_COUNTER)},
    devices.CounterConsumption: {
        "counter_set": _counter_set,
        "counters": _keyed(_COUNTER),
        "compatibility_groups": named(Space("compatibilitygroup")),
    },
    devices.BasicDevice: {
        "attributes": _attributes,
        "capacity": _keyed(_CAPACITY),
        "node_name": _node,
        "binding_conditions": _condition,
        "binding_failure_conditions": _condition,
    },
    devices.Device: {
        "name": _device,
        "node_allocatable_resource_mappings": _resources,
        "node_allocatable_resources": _resources,
    },
    devices.ResourcePool: {"name": _pool},
    devices.ResourceSliceSpec: {
        "driver": _driver,
        "node_name": _node,
        "partition_type_attribute": _attribute,
        "skip_node_operations": _words,
    },
    devices.DeviceTaintSelector: {
        "driver": _driver,
        "pool": _pool,
        "device": _device,
        "device_class_name": _class,
    },
}
