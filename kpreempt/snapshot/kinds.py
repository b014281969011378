"""The kinds of objects in a snapshot or recording, by name and by the words that users have for them."""

from __future__ import annotations

from collections.abc import Iterable

from kpreempt.errors import UsageError, nearest
from kpreempt.model.cluster import SHORT_NAMES
from kpreempt.model.kinds import KINDS, Kind
from kpreempt.model.meta import ObjectMeta

_ADMISSION = ("admissionregistration.k8s.io",)
# No scheduler reads these kinds, and no snapshot has records of them. But a change may include them, or they act on the
# pods that it creates; their documents are what manifests are compared with.
COMPARED_KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("CronJob", "cron_jobs", ObjectMeta, ("batch",)),
        Kind("HorizontalPodAutoscaler", "horizontal_pod_autoscalers", ObjectMeta, ("autoscaling",)),
        Kind(
            *("MutatingWebhookConfiguration", "mutating_webhook_configurations", ObjectMeta, _ADMISSION),
            is_namespaced=False,
        ),
        Kind(*("MutatingAdmissionPolicy", "mutating_admission_policies", ObjectMeta, _ADMISSION), is_namespaced=False),
        Kind(
            *("ValidatingWebhookConfiguration", "validating_webhook_configurations", ObjectMeta, _ADMISSION),
            is_namespaced=False,
        ),
        Kind(
            *("ValidatingAdmissionPolicy", "validating_admission_policies", ObjectMeta, _ADMISSION),
            is_namespaced=False,
        ),
        Kind(
            *("ValidatingAdmissionPolicyBinding", "validating_admission_policy_bindings", ObjectMeta, _ADMISSION),
            is_namespaced=False,
        ),
        Kind("ServiceAccount", "service_accounts", ObjectMeta, ("",)),
    )
}

# The kinds in a recording.
RECORDED: dict[str, Kind] = {**KINDS, **COMPARED_KINDS}


def plural_of(kind: Kind) -> str:
    """Return the kind's name in paths and RBAC rules."""
    return kind.field.replace("_", "")


def resource_of(kind: Kind) -> str:
    """Return the kind as ``kubectl auth can-i list`` takes it: ``poddisruptionbudgets.policy``."""
    return ".".join(filter(None, (plural_of(kind), kind.groups[0])))


def parse_kinds(texts: Iterable[str], option: str) -> frozenset[str]:
    """Return the recorded kinds that ``texts`` name like kubectl (``pdb``, ``PriorityClass``, ``hpa.autoscaling``).

    Raises ``UsageError`` with the name of the ``option`` for an unknown kind.
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
    """Return the kept kind of that name in that group, or ``None``. Without a version, only the name counts."""
    kind = KINDS.get(name)
    if kind is None or not api_version:
        return kind
    group, slash, version = api_version.rpartition("/")
    return kind if (group if slash else "") in kind.groups and kind.version in ("", version) else None
