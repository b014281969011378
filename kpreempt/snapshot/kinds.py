"""The kinds of object that a snapshot or a recording has, by name and as users name them."""

from __future__ import annotations

from collections.abc import Iterable

from kpreempt.errors import UsageError, nearest
from kpreempt.model.cluster import SHORT_NAMES
from kpreempt.model.kinds import KINDS, Kind
from kpreempt.model.meta import ObjectMeta

_ADMISSION = ("admissionregistration.k8s.io",)
# No scheduler reads these, and no snapshot has records of them. A change may be about them, or they act on the pods
# that it makes: their documents are what it is compared with.
COMPARED: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("CronJob", "cron_jobs", ObjectMeta, ("batch",)),
        Kind("HorizontalPodAutoscaler", "horizontal_pod_autoscalers", ObjectMeta, ("autoscaling",)),
        Kind(
            *("MutatingWebhookConfiguration", "mutating_webhook_configurations", ObjectMeta, _ADMISSION),
            is_namespaced=False,
        ),
        Kind(*("MutatingAdmissionPolicy", "mutating_admission_policies", ObjectMeta, _ADMISSION), is_namespaced=False),
    )
}

# The kinds that a recording has.
RECORDED: dict[str, Kind] = {**KINDS, **COMPARED}


def plural_of(kind: Kind) -> str:
    """The kind's name in paths and in rules of roles."""
    return kind.field.replace("_", "")


def resource_of(kind: Kind) -> str:
    """The kind as ``kubectl auth can-i list`` takes it: ``poddisruptionbudgets.policy``."""
    return ".".join(filter(None, (plural_of(kind), kind.groups[0])))


def parse_kinds(texts: Iterable[str], option: str) -> frozenset[str]:
    """The recorded kinds that ``texts`` name as kubectl takes them: ``pdb``, ``PriorityClass``, ``hpa.autoscaling``.

    Raises ``UsageError``, which names the ``option``, for a text that names none of them.
    """
    by_word = {
        word.lower(): kind.name
        for kind in RECORDED.values()
        for word in (kind.name, plural_of(kind), resource_of(kind), SHORT_NAMES.get(kind.name, kind.name))
    }
    found = set()
    for text in texts:
        kind = by_word.get(text.strip().lower())
        if kind is None:
            near = nearest(text.strip(), by_word)
            raise UsageError(f"{option} {text}: unknown kind", hint=near if near in by_word else ", ".join(RECORDED))
        found.add(kind)
    return frozenset(found)


def find_kind(name: str, api_version: str) -> Kind | None:
    """The kept kind of that name in that group, or ``None``. Without a version the name decides alone."""
    kind = KINDS.get(name)
    if kind is None or not api_version:
        return kind
    group, slash, version = api_version.rpartition("/")
    return kind if (group if slash else "") in kind.groups and kind.version in ("", version) else None
