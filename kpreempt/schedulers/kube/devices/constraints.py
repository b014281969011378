"""What the devices of a claim must have in common, or must not (``structured/internal/incubating``, v0.36.3)."""

from __future__ import annotations

from typing import Protocol

from kpreempt.model.devices import Device, DeviceAttribute, DeviceConstraint


class Constraint(Protocol):
    """A constraint of one claim, with the devices that were added to it."""

    def add(self, request: str, alternative: str, device: Device, driver: str) -> bool:
        """Take a device in for a request, and say whether it satisfies the constraint beside those before it."""
        ...

    def remove(self, request: str, alternative: str) -> None:
        """Take back the last device that was added, which was for this request."""
        ...


def constraint_of(stated: DeviceConstraint, *, compares_all: bool) -> Constraint | None:
    """The constraint, without devices; ``None`` for a sort that is not known.

    ``compares_all`` says that a distinct attribute is compared with those of all devices before. Up to 1.36 that of
    the last device of each request is.
    """
    if stated.match_attribute is not None:
        return _Match(stated, stated.match_attribute)
    if stated.distinct_attribute is None:
        return None
    kind = _DistinctFromAll if compares_all else _DistinctByRequest
    return kind(stated, stated.distinct_attribute)


class _OnRequests:
    def __init__(self, stated: DeviceConstraint, attribute: str) -> None:
        self._requests = frozenset(stated.requests)
        self._attribute = attribute

    def _concerns(self, request: str, alternative: str) -> bool:
        named = self._requests
        return not named or request in named or (bool(alternative) and f"{request}/{alternative}" in named)


class _Match(_OnRequests):
    """All devices have the same value."""

    def __init__(self, stated: DeviceConstraint, attribute: str) -> None:
        super().__init__(stated, attribute)
        self._value: tuple[str, object] | None = None
        self._count = 0

    def add(self, request: str, alternative: str, device: Device, driver: str) -> bool:
        if not self._concerns(request, alternative):
            return True
        attribute = attribute_of(device, driver, self._attribute)
        if attribute is None:
            return False
        value = attribute.typed
        if not self._count:
            self._value = value
        # A value of a type that is not known matches none.
        elif value is None or value != self._value:
            return False
        self._count += 1
        return True

    def remove(self, request: str, alternative: str) -> None:
        if self._concerns(request, alternative):
            self._count -= 1


class _DistinctByRequest(_OnRequests):
    """The value differs from that of the last device of each request."""

    def __init__(self, stated: DeviceConstraint, attribute: str) -> None:
        super().__init__(stated, attribute)
        self._values: dict[str, tuple[str, object] | None] = {}
        self._count = 0

    def add(self, request: str, alternative: str, device: Device, driver: str) -> bool:
        if not self._concerns(request, alternative):
            return True
        attribute = attribute_of(device, driver, self._attribute)
        if attribute is None:
            return False
        value = attribute.typed
        if self._count and self._values and (value is None or value in self._values.values()):
            return False
        self._values[request] = value
        self._count += 1
        return True

    def remove(self, request: str, alternative: str) -> None:
        if self._concerns(request, alternative):
            self._values.pop(request, None)
            self._count -= 1


class _DistinctFromAll(_OnRequests):
    """The value differs from that of every device."""

    def __init__(self, stated: DeviceConstraint, attribute: str) -> None:
        super().__init__(stated, attribute)
        self._values: list[tuple[str, object] | None] = []

    def add(self, request: str, alternative: str, device: Device, driver: str) -> bool:
        if not self._concerns(request, alternative):
            return True
        attribute = attribute_of(device, driver, self._attribute)
        if attribute is None:
            return False
        value = attribute.typed
        if self._values and (value is None or value in self._values):
            return False
        self._values.append(value)
        return True

    def remove(self, request: str, alternative: str) -> None:
        if self._concerns(request, alternative):
            self._values.pop()


def attribute_of(device: Device, driver: str, name: str) -> DeviceAttribute | None:
    """The attribute of that name; one without a domain is the driver's."""
    found = device.attributes.get(name)
    if found is not None:
        return found
    domain, slash, own = name.partition("/")
    return device.attributes.get(own) if slash and domain == driver else None
