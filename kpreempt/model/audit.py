"""Requests in an API server's audit log that end pods (``audit.k8s.io/v1``, ``k8s.io/apiserver`` v0.36.3)."""

from __future__ import annotations

from datetime import datetime

import msgspec

from kpreempt.model.meta import Time


class AuditUser(msgspec.Struct, frozen=True):
    """The user of a request."""

    username: str = ""


class AuditedObject(msgspec.Struct, frozen=True, rename="camel"):
    """The object of a request, in the plural of its kind."""

    resource: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""
    subresource: str = ""


class AuditStatus(msgspec.Struct, frozen=True):
    """The HTTP status of the response."""

    code: int = 0


class AuditRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A request and its response. The times are those of its receipt and of this stage of it."""

    kind: str = ""
    stage: str = ""
    verb: str = ""
    user: AuditUser = AuditUser()
    impersonated_user: AuditUser | None = None
    user_agent: str = ""
    object_ref: AuditedObject = AuditedObject()
    response_status: AuditStatus = AuditStatus()
    request_received_timestamp: Time | None = None
    stage_timestamp: Time | None = None

    @property
    def at(self) -> datetime | None:
        """When it was answered, or else received."""
        return self.stage_timestamp or self.request_received_timestamp

    @property
    def username(self) -> str:
        """The user for which it was made."""
        return (self.impersonated_user or self.user).username

    @property
    def is_eviction(self) -> bool:
        """Whether it requests the eviction of a pod."""
        ref = self.object_ref
        return self.verb == "create" and ref.resource == "pods" and ref.subresource == "eviction"

    @property
    def is_deletion(self) -> bool:
        """Whether it deletes one object, or all that it selects."""
        return self.verb in ("delete", "deletecollection") and not self.object_ref.subresource

    @property
    def is_accepted(self) -> bool:
        """Whether the API server did what was requested."""
        return 200 <= self.response_status.code < 300


class AuditLog(msgspec.Struct, frozen=True):
    """The requests of a log that may have ended pods, in its order, with the times of its first and last request."""

    requests: list[AuditRequest] = []
    since: datetime | None = None
    until: datetime | None = None
