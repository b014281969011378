"""The devices that a class and a request select by CEL expressions (``dynamic-resource-allocation`` v0.36.3)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from kpreempt.model.devices import REDACTED_SELECTOR, DeviceSelector
from kpreempt.schedulers.kube.devices.pools import PoolDevice

if TYPE_CHECKING:
    from kpreempt.cel.devices import AttributeName, DeviceView
    from kpreempt.cel.devices import DeviceSelector as CompiledSelector

_HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional"
    " fields"
)


class SelectorError(Exception):
    """An expression that does not compile, or fails on a device; ``str`` is upstream's text without its owner."""


class HiddenSelectorError(Exception):
    """An expression that is redacted: it is unknown what it selects."""


# What all selectors may read of a device, and its attributes with their types, by domain and name.
_Content = tuple[Hashable, dict["AttributeName", tuple[str, str | int | bool]]]


class Selectors:
    """Cached results of selectors for the devices of a cluster."""

    def __init__(self, *, names_devices: bool) -> None:
        """``names_devices``: an error names the device and suggests how to handle missing keys (since 1.37)."""
        self._names_devices = names_devices
        self._compiled: dict[str, CompiledSelector] = {}
        self._views: dict[PoolDevice, DeviceView] = {}
        self._known: dict[str, dict[PoolDevice, bool]] = {}
        self._contents: dict[PoolDevice, _Content | None] = {}
        # Results of selectors for devices that they cannot distinguish.
        self._by_content: dict[tuple[str, Hashable], bool] = {}

    def select(self, selectors: Sequence[DeviceSelector], device: PoolDevice) -> bool:
        """Return whether all of ``selectors``, which have expressions, match the device. Raises ``SelectorError``."""
        for index, selector in enumerate(selectors):
            expression = selector.cel.expression if selector.cel is not None else ""
            known = self._known.setdefault(expression, {})
            holds = known.get(device)
            if holds is None:
                holds = known[device] = self._evaluate(expression, index, device)
            if not holds:
                return False
        return True

    def attributes_of(self, expression: str) -> Collection[AttributeName]:
        """Return the attributes, by domain and name, that an evaluated expression reads; none if it may read any."""
        compiled = self._compiled.get(expression)
        return sorted(compiled.attributes_read or ()) if compiled is not None else ()

    def _evaluate(self, expression: str, index: int, device: PoolDevice) -> bool:
        selector = self._compiled.get(expression) or self._compile(expression, index)
        alike = self._what_counts(selector.attributes_read, device)
        if alike is None:
            return self._matches(selector, index, device)
        holds = self._by_content.get((expression, alike))
        if holds is None:
            holds = self._by_content[expression, alike] = self._matches(selector, index, device)
        return holds

    def _compile(self, expression: str, index: int) -> CompiledSelector:
        if expression == REDACTED_SELECTOR:
            raise HiddenSelectorError
        from kpreempt.cel import CompileError  # noqa: PLC0415 - few claims have selectors
        from kpreempt.cel.devices import device_selector  # noqa: PLC0415

        try:
            selector = self._compiled[expression] = device_selector(expression)
        except CompileError as error:
            raise SelectorError(f"selector #{index}: CEL compile error: {error}") from None
        return selector

    def _matches(self, selector: CompiledSelector, index: int, device: PoolDevice) -> bool:
        from kpreempt.cel import EvaluationError  # noqa: PLC0415 - few claims have selectors

        try:
            return selector.matches(self._view(device))
        except EvaluationError as error:
            suffix = f" on device {'/'.join(device.id)}" if self._names_devices else ""
            hint = _HINT if self._names_devices and "no such key:" in str(error) else ""
            raise SelectorError(f"selector #{index}{suffix}: CEL runtime error: {error}{hint}") from None

    def _what_counts(self, names: Collection[AttributeName] | None, device: PoolDevice) -> Hashable | None:
        """Return what can affect the result if only these attributes are read; ``None`` if any may be.

        Also ``None`` for a device that could not be read completely, or that has an attribute both with and without its
        domain.
        """
        if names is None:
            return None
        if device not in self._contents:
            self._contents[device] = _content(device)
        content = self._contents[device]
        if content is None:
            return None
        rest, attributes = content
        return rest, tuple([attributes.get(each) for each in names])

    def _view(self, device: PoolDevice) -> DeviceView:
        from kpreempt.cel.devices import DeviceView  # noqa: PLC0415

        view = self._views.get(device)
        if view is None:
            stated = device.device
            attributes: dict[str, dict[str, Any]] = {
                name: dict([typed]) if (typed := attribute.typed) is not None else {}
                for name, attribute in stated.attributes.items()
            }
            capacity = {name: {"value": str(each.value)} for name, each in stated.capacity.items()}
            view = DeviceView(device.slice.driver, attributes, capacity, bool(stated.allow_multiple_allocations))
            self._views[device] = view
        return view


def _content(device: PoolDevice) -> _Content | None:
    from kpreempt.cel.devices import is_version  # noqa: PLC0415 - few claims have selectors

    stated, driver = device.device, device.slice.driver
    found: dict[AttributeName, tuple[str, str | int | bool]] = {}
    for full_name, attribute in stated.attributes.items():
        typed = attribute.typed
        if typed is None or (typed[0] == "version" and not is_version(str(typed[1]))):
            return None
        domain, slash, name = full_name.partition("/")
        found[(domain, name) if slash else (driver, full_name)] = typed
    if len(found) < len(stated.attributes):
        return None
    capacity = tuple([(name, each.value.text) for name, each in stated.capacity.items()])
    return (driver, bool(stated.allow_multiple_allocations), capacity), found
