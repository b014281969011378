"""Where each kind is listed, and what right that takes."""

from __future__ import annotations

from kpreempt.model.meta import ObjectMeta
from kpreempt.model.wanted import ObjectKind, Wanted
from kpreempt.model.workloads import Job
from kpreempt.snapshot.filing import is_kept_anyway
from kpreempt.snapshot.kinds import KINDS, Kind, plural_of

# They tell what has happened, which few questions are about, and there are many of them.
EVENTS = KINDS["Event"]
# No scheduler reads these, and no snapshot has them; a change may be about them.
CRON_JOBS = Kind("CronJob", "cron_jobs", Job, ("batch",))
# Without these nothing can be said.
INDISPENSABLE = ("Pod", "Node")
# Where the API server does not know these, Volcano is not installed, and there are none.
CUSTOM = ("PodGroup", "Queue")

# The versions of a group before v1 that clusters of the last years serve; all else has been v1 since 1.24.
_OLDER = {"resource.k8s.io": ("v1beta2", "v1beta1"), "policy": ("v1beta1",)}


def label_of(kind: Kind) -> str:
    """What messages call a kind; of one that only plugins read its group is told, too."""
    return f"{kind.name}.{kind.groups[0]}" if _is_of_plugins(kind) and kind.groups[0] else kind.name


def is_custom(kind: Kind) -> bool:
    """Whether there are simply none where the API server does not know the kind."""
    return kind.name in CUSTOM or _is_of_plugins(kind)


def _is_of_plugins(kind: Kind) -> bool:
    return KINDS.get(kind.name) is not kind and kind is not CRON_JOBS


def kinds_of_plugins(wanted: Wanted) -> list[Kind]:
    """The kinds that only plugins read, as they are listed; those without a version are not, as nothing says where."""
    return [_listed(kind) for kind in _beyond_snapshots(wanted) if _has_place(kind)]


def kinds_without_place(wanted: Wanted) -> list[str]:
    """The keys of wanted kinds that cannot be listed, because no plugin says in which version."""
    return [kind.key for kind in _beyond_snapshots(wanted) if not _has_place(kind)]


def _beyond_snapshots(wanted: Wanted) -> list[ObjectKind]:
    return [kind for kind in wanted.kinds if not is_kept_anyway(kind)]


def _has_place(kind: ObjectKind) -> bool:
    """Whether it is known where the kind is listed; the core group has one version only."""
    return bool(kind.version) or not kind.group or _is_cron_job(kind)


def _is_cron_job(kind: ObjectKind) -> bool:
    return (kind.kind, (kind.group,)) == (CRON_JOBS.name, CRON_JOBS.groups)


def _listed(kind: ObjectKind) -> Kind:
    if _is_cron_job(kind):
        return CRON_JOBS
    return Kind(
        kind.kind, kind.resource, ObjectMeta, (kind.group,), is_namespaced=kind.is_namespaced, version=kind.version
    )


def api_versions_of(kind: Kind) -> list[str]:
    """The ``apiVersion`` values under which the kind is looked for, the best first."""
    group = kind.groups[0]
    versions = (kind.version,) if kind.version else ("v1", *_OLDER.get(group, ()))
    return [f"{group}/{version}" if group else version for version in versions]


def path_of(kind: Kind, api_version: str) -> str:
    """The path of all objects of the kind, in all namespaces."""
    return f"/{'apis' if '/' in api_version else 'api'}/{api_version}/{plural_of(kind)}"


def kinds_to_read() -> list[Kind]:
    """All kinds that decide about scheduling, those with the most objects first, so that nothing waits for them."""
    return [KINDS["Pod"], *(kind for kind in KINDS.values() if kind.name not in ("Pod", EVENTS.name))]
