"""Selectors of devices: CEL expressions about one device, which say whether it may be allocated.

Follows ``k8s.io/dynamic-resource-allocation`` v0.36.3 ``cel/compile.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class DeviceView:
    """What a selector sees of a device.

    ``attributes`` are as in the API: a name, with or without a domain, to one of ``{"string": ...}``, ``{"int": ...}``,
    ``{"bool": ...}`` or ``{"version": ...}``; ``capacity`` is a name to ``{"value": quantity}``.
    """

    driver: str
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    capacity: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    allow_multiple_allocations: bool = False


class DeviceSelector(Protocol):
    """A compiled selector."""

    expression: str

    def matches(self, device: DeviceView) -> bool:
        """Whether the device is one that the selector means. Raises ``EvaluationError``."""
        ...


def device_selector(expression: str) -> DeviceSelector:
    """The selector that ``expression`` states, remembered by its text. Raises ``CompileError``."""
    raise NotImplementedError
