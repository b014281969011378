"""Which devices a class and a request select, by their CEL expressions (``dynamic-resource-allocation`` v0.36.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kpreempt.model.devices import REDACTED_SELECTOR, DeviceSelector
from kpreempt.schedulers.kube.devices.pools import PoolDevice

if TYPE_CHECKING:
    from kpreempt.cel.devices import DeviceView


class SelectorError(Exception):
    """An expression that does not compile, or fails on a device; ``str`` is upstream's text without its owner."""


class HiddenSelectorError(Exception):
    """An expression that a redacted cluster does not have: what it selects is not known."""


class Selectors:
    """What selectors say of the devices of a cluster, which is kept."""

    def __init__(self, *, names_devices: bool) -> None:
        """``names_devices`` says that an error names the device that it is about (since 1.37)."""
        self._names_devices = names_devices
        self._views: dict[PoolDevice, DeviceView] = {}
        self._known: dict[str, dict[PoolDevice, bool]] = {}

    def select(self, selectors: Sequence[DeviceSelector], device: PoolDevice) -> bool:
        """Whether all of ``selectors``, which have expressions, hold for the device. Raises ``SelectorError``."""
        for index, selector in enumerate(selectors):
            expression = selector.cel.expression if selector.cel is not None else ""
            known = self._known.setdefault(expression, {})
            holds = known.get(device)
            if holds is None:
                holds = known[device] = self._evaluate(expression, index, device)
            if not holds:
                return False
        return True

    def _evaluate(self, expression: str, index: int, device: PoolDevice) -> bool:
        if expression == REDACTED_SELECTOR:
            raise HiddenSelectorError
        from kpreempt.cel import CompileError, EvaluationError  # noqa: PLC0415 - few claims have selectors
        from kpreempt.cel.devices import device_selector  # noqa: PLC0415

        try:
            return device_selector(expression).matches(self._view(device))
        except CompileError as error:
            raise SelectorError(f"selector #{index}: CEL compile error: {error}") from None
        except EvaluationError as error:
            where = f" on device {'/'.join(device.id)}" if self._names_devices else ""
            raise SelectorError(f"selector #{index}{where}: CEL runtime error: {error}") from None

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
