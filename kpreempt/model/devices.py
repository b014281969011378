"""Resource claims, slices and device classes (dynamic resource allocation).

kpreempt does not allocate devices; these are read so that it can say which claims make an answer uncertain.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kpreempt.model.meta import ObjectMeta


class ResourceClaimAllocationStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    allocation: dict[str, Any] | None = None


class ResourceClaim(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A claim for devices."""

    metadata: ObjectMeta = ObjectMeta()
    status: ResourceClaimAllocationStatus = ResourceClaimAllocationStatus()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class ResourceSlice(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Devices that a driver offers."""

    metadata: ObjectMeta = ObjectMeta()


class DeviceClassSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The extended resource that a class of devices can stand for."""

    extended_resource_name: str | None = None


class DeviceClass(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()
