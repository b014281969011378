"""The disruption controller for recorded lines, in which every object is known: missing objects do not exist.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/disruption/disruption.go`` (``trySync`` and the finders of
``getExpectedScale``). Other kinds are inferred from the objects; a kind with replicas has a scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType

import msgspec

from kpreempt.controllers.actions import SyncError
from kpreempt.controllers.disruption import WITHOUT_SCALE, Candidates, Scale, ScaleOf, failed_status, sync_budget
from kpreempt.eviction.records import StoredBudget
from kpreempt.eviction.selectors import problem_of
from kpreempt.eviction.subresource import failed_conditions, status_of, with_allowed_condition
from kpreempt.model.meta import ObjectMeta, OwnerReference, controller_of
from kpreempt.model.pod import Pod

_OWN = {("", "ReplicationController"), ("apps", "ReplicaSet"), ("apps", "Deployment"), ("apps", "StatefulSet")}
_VERSION = "v1"


def synced(stored: StoredBudget, pods: Iterable[Pod], scale_of: ScaleOf, now: datetime) -> tuple[StoredBudget, bool]:
    """Return the budget after a sync of the disruption controller, and whether it wrote its status."""
    before = status_of(stored)
    try:
        if problem := problem_of(stored.budget.spec.selector):
            raise SyncError(problem)
        status = sync_budget(stored.budget, Candidates(pods).of(stored.budget), scale_of, now).status
    except SyncError as error:
        failed = msgspec.structs.replace(stored.budget, status=failed_status(stored.budget))
        return StoredBudget(failed, failed_conditions(stored, error, now)), True
    condition = stored.allowed_condition
    if (
        status == before
        and condition is not None
        and condition.observed_generation == status.observed_generation
        and condition.status == ("True" if status.disruptions_allowed > 0 else "False")
    ):
        return stored, False
    changed = StoredBudget(msgspec.structs.replace(stored.budget, status=status), stored.conditions)
    return with_allowed_condition(changed, now), True


class SizedSpec(msgspec.Struct, frozen=True):
    """The part of a spec that counts."""

    replicas: int | None = None


class SizedObject(msgspec.Struct, frozen=True, rename="camel"):
    """An object that may own pods."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: SizedSpec = SizedSpec()


class DiscoveredScales:
    """The sizes of a cluster's objects.

    ``known`` are groups, versions and kinds of others that the API server serves, with whether they have a scale.
    """

    def __init__(
        self, objects: Iterable[SizedObject], known: Mapping[tuple[str, str, str], bool] = MappingProxyType({})
    ) -> None:
        self._objects: dict[tuple[str, str, str, str], SizedObject] = {}
        self._scaled: dict[tuple[str, str, str], bool] = {}
        for each in objects:
            group, version = _parsed(each.api_version)
            self._objects[group, each.kind, each.metadata.namespace, each.metadata.name] = each
            key = (group, version, each.kind)
            self._scaled[key] = self._scaled.get(key, False) or each.spec.replicas is not None
        self._scaled.update(known)

    def scale_of(self, namespace: str, owner: OwnerReference) -> Scale | None:
        """Return the workload that ``owner`` counts as. Raises ``SyncError``."""
        group, version = _parsed(owner.api_version)
        if owner.kind == "ReplicaSet" and group in ("apps", "extensions"):
            found = self._found("apps", owner.kind, namespace, owner.name, owner.uid)
            above = controller_of(found.metadata) if found is not None else None
            if above is not None and above.kind == "Deployment":
                deployment = self._found("apps", above.kind, namespace, above.name, above.uid)
                if _parsed(above.api_version)[0] in ("apps", "extensions") and deployment is not None:
                    return _scale(deployment)
            elif found is not None:
                return _scale(found)
        if (group, owner.kind) not in WITHOUT_SCALE:
            is_known = (
                version == _VERSION if (group, owner.kind) in _OWN else (group, version, owner.kind) in self._scaled
            )
            if not is_known:
                raise SyncError(f'no matches for kind "{owner.kind}" in version "{owner.api_version}"')
        found = self._found(group, owner.kind, namespace, owner.name, owner.uid)
        if (group, owner.kind) not in _OWN and not self._scaled.get((group, version, owner.kind)):
            raise SyncError(f"{_resource(group, owner.kind)} does not implement the scale subresource")
        return _scale(found) if found is not None else None

    def _found(self, group: str, kind: str, namespace: str, name: str, uid: str) -> SizedObject | None:
        each = self._objects.get((group, kind, namespace, name))
        return each if each is not None and each.metadata.uid == uid else None


def _scale(each: SizedObject) -> Scale:
    replicas = 1 if each.spec.replicas is None else each.spec.replicas
    return Scale(each.metadata.namespace, each.kind, each.metadata.name, replicas)


def _parsed(api_version: str) -> tuple[str, str]:
    """Return group and version. Raises ``SyncError``."""
    if api_version.count("/") > 1:
        raise SyncError(f"unexpected GroupVersion string: {api_version}")
    group, _, version = api_version.rpartition("/")
    return group, version


def _resource(group: str, kind: str) -> str:
    """Return the resource of a kind, as the API server guesses its plural."""
    name = kind.lower()
    if name.endswith("s"):
        name += "es"
    elif name.endswith("y"):
        name = f"{name[:-1]}ies"
    else:
        name += "s"
    return f"{name}.{group}" if group else name
