"""The delete that an eviction issues: condition, preconditions, grace period.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/registry/core/pod/storage/eviction.go`` (``addConditionAndDeletePod``),
``pkg/registry/core/pod/strategy.go`` (``CheckGracefulDelete``) and ``k8s.io/apiserver`` v0.36.3
``pkg/registry/rest/delete.go`` (``BeforeDelete``).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from kpreempt.eviction.records import CONFLICT, USUAL, Answer, Details, EvictionRules, RefusalError
from kpreempt.model.pod import TERMINAL_PHASES, Pod, PodCondition

DEFAULT_GRACE = 30
_FIRST, _LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


class Preconditions(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What must hold of a pod that is deleted. An empty UID is none."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How a pod is deleted."""

    grace_period_seconds: int | None = None
    preconditions: Preconditions | None = None
    dry_run: list[str] | None = None
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None

    @property
    def version(self) -> str | None:
        """The resourceVersion that the pod must have."""
        return self.preconditions.resource_version if self.preconditions is not None else None

    def with_version(self, version: str) -> DeleteOptions:
        """These, for a pod of this resourceVersion alone."""
        conditions = msgspec.structs.replace(self.preconditions or Preconditions(), resource_version=version)
        return msgspec.structs.replace(self, preconditions=conditions)


def check_preconditions(pod: Pod, options: DeleteOptions) -> None:
    """Raise ``RefusalError`` where the pod is not the one that is meant."""
    wanted, found = options.preconditions or Preconditions(), pod.metadata
    if wanted.uid and wanted.uid != found.uid:
        problem = (
            f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({found.uid}). "
            "The object might have been deleted and then recreated"
        )
    elif wanted.resource_version and wanted.resource_version != found.resource_version:
        problem = (
            f"the ResourceVersion in the precondition ({wanted.resource_version}) does not match the ResourceVersion "
            f"in record ({found.resource_version}). The object might have been modified"
        )
    else:
        return
    message = f'Operation cannot be fulfilled on Pod "{found.name}": {problem}'
    raise RefusalError(Answer(CONFLICT, "Conflict", message, Details(name=found.name, kind="Pod")))


def with_eviction_condition(pod: Pod, now: datetime) -> Pod:
    """The pod with the condition that says that it is evicted."""
    new = PodCondition(
        type="DisruptionTarget",
        status="True",
        reason="EvictionByEvictionAPI",
        message="Eviction API: evicting",
        last_transition_time=now,
    )
    conditions = list(pod.status.conditions)
    for place, old in enumerate(conditions):
        if old.type == new.type:
            since = old.last_transition_time if old.status == new.status else now
            conditions[place] = msgspec.structs.replace(new, last_transition_time=since)
            break
    else:
        conditions.append(new)
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=conditions))


def deleted(pod: Pod, grace_period: int | None, now: datetime, rules: EvictionRules = USUAL) -> Pod | None:
    """The pod once it was told to end with ``grace_period`` seconds, or with its own; ``None`` where it is gone."""
    metadata = pod.metadata
    if metadata.deletion_timestamp is not None:
        return _shortened(pod, grace_period, now, rules)
    grace = grace_seconds(pod, grace_period)
    if grace == 0 and not metadata.finalizers:
        return None
    return _replaced(
        pod,
        deletion_timestamp=later(now, grace),
        deletion_grace_period_seconds=grace,
        generation=metadata.generation + 1 if metadata.generation > 0 else 0,
    )


def grace_seconds(pod: Pod, asked: int | None) -> int:
    """How long a pod that is deleted now has to end."""
    own = pod.spec.termination_grace_period_seconds
    period = asked if asked is not None else own if own is not None else DEFAULT_GRACE
    if not pod.spec.node_name or pod.status.phase in TERMINAL_PHASES:
        return 0
    return period if period >= 0 else 1


def later(time: datetime, seconds: float) -> datetime:
    """The time so many seconds on; the last or the first that there is where that is beyond it."""
    try:
        return time + timedelta(seconds=seconds)
    except OverflowError:
        return _LAST if seconds > 0 else _FIRST


def _shortened(pod: Pod, asked: int | None, now: datetime, rules: EvictionRules) -> Pod | None:
    """A pod that has been told to end already: only a shorter time makes a difference."""
    metadata = pod.metadata
    granted, until = metadata.deletion_grace_period_seconds, metadata.deletion_timestamp
    assert until is not None
    if not granted:
        return pod if metadata.finalizers else None
    asked = 1 if asked is not None and asked < 0 else asked
    if asked is None or asked >= granted:
        return pod
    if asked == 0 and not metadata.finalizers:
        return None
    until = later(until, asked - granted)
    if rules.grace_never_ends_in_the_past and until < now:
        until, asked = now, min(asked, 1)
    return _replaced(pod, deletion_timestamp=until, deletion_grace_period_seconds=asked)


def _replaced(pod: Pod, **values: object) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, **values))
