"""Hooks of Helm and Argo CD: objects that are created at a certain point of an installation, if at all.

Follows Helm v3 ``pkg/release/hook.go``, ``pkg/releaseutil/manifest_sorter.go`` and ``pkg/action/hooks.go``, and Argo CD
v3 ``gitops-engine/pkg/sync`` (``hook``, ``reconcile.go``, ``syncwaves``, ``sync_tasks.go``): the hook points, the
deletion of an existing hook before it is recreated unless its policy differs, and the order in which objects are
applied. Annotations only matter to the tool that reads them, and a change does not show which tool applies it;
``kubectl`` applies a hook like any other object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec

from kpreempt.analysis.document_reader import Document, describe
from kpreempt.analysis.naming import some_of
from kpreempt.model.documents import mapping_in
from kpreempt.model.labels import parse_int64
from kpreempt.verdict import Assumption, AssumptionKind

_HELM, _HELM_POLICY = "helm.sh/hook", "helm.sh/hook-delete-policy"
_ARGO, _ARGO_POLICY = "argocd.argoproj.io/hook", "argocd.argoproj.io/hook-delete-policy"
# Hook points that a successful installation or upgrade does not run.
_UNUSED_EVENTS = {
    _HELM: {
        *("test", "test-success", "test-failure"),
        *("pre-delete", "post-delete", "pre-rollback", "post-rollback"),
    },
    _ARGO: {"Skip", "SyncFail", "PreDelete", "PostDelete"},
}
_RECREATION_POLICIES = {_HELM: (_HELM_POLICY, "before-hook-creation"), _ARGO: (_ARGO_POLICY, "BeforeHookCreation")}
_HELM_WEIGHT, _WAVE = "helm.sh/hook-weight", "argocd.argoproj.io/sync-wave"
# Before, together with, and after everything else.
_PHASES = {
    _HELM: {
        **dict.fromkeys(("pre-install", "pre-upgrade"), -1),
        **dict.fromkeys(("post-install", "post-upgrade"), 1),
    },
    _ARGO: {"PreSync": -1, "Sync": 0, "PostSync": 1},
}
_ANNOTATIONS = ("metadata", "annotations")
# Helm does not wait for hooks of other kinds.
_AWAITED_KINDS = ("Job", "Pod")


class Applier(StrEnum):
    """The tool that applies a change."""

    KUBECTL = "kubectl"
    HELM = "helm"
    ARGOCD = "argocd"


# Display names.
_NAMES = {Applier.KUBECTL: "kubectl", Applier.HELM: "Helm", Applier.ARGOCD: "Argo CD"}

# The hook annotations that each tool reads; Argo CD also runs Helm's hooks.
_HOOKS_OF = {Applier.KUBECTL: (), Applier.HELM: (_HELM,), Applier.ARGOCD: (_ARGO, _HELM)}
# The tool to suggest if the annotation exists but is not read.
_TOOL_OF = {_HELM: Applier.HELM, _ARGO: Applier.ARGOCD, _WAVE: Applier.ARGOCD}


class Order(msgspec.Struct, frozen=True):
    """The stages in which the objects of a change are applied.

    ``of`` maps objects (``Job shop/migrate``) to stages; ``last`` is the stage of all others, such as deletions.
    ``awaited`` is true for each stage that must finish before the next one starts. ``hooks`` are the objects that are
    hooks.
    """

    awaited: tuple[bool, ...] = (True,)
    of: dict[str, int] = {}
    last: int = 0
    assumptions: list[Assumption] = []
    hooks: frozenset[str] = frozenset()


def order_of(documents: Sequence[Document], applier: Applier) -> Order:
    """The order in which a tool applies a change, from the annotations it reads; one stage if there are none.

    Argo CD waits for each wave. Helm runs its hooks one by one, and waits only for hooks that are Jobs and Pods. Only
    objects with pods matter here: all others are ready at once.
    """
    hooks = frozenset(describe(each) for each in documents if hook_of(each, applier)[0])
    assumptions = list(_repeated_hooks(documents, applier))
    if applier is Applier.HELM and hooks:
        of: dict[str, int] = {}
        awaited: list[bool] = []
        last = 0
        for phase in (-1, 0, 1):
            own = [each for each in documents if _phase(each, Applier.HELM) == phase]
            if not phase:
                last = len(awaited)
                of.update((describe(each), last) for each in own)
                awaited.append(False)
                continue
            for each in sorted(own, key=lambda hook: (_number(hook, _HELM_WEIGHT), str(hook["metadata"]["name"]))):
                of[describe(each)] = len(awaited)
                awaited.append(each["kind"] in _AWAITED_KINDS)
        return Order(tuple(awaited), of, last, assumptions, hooks)
    if applier is Applier.ARGOCD and (hooks or any(_WAVE in mapping_in(each, *_ANNOTATIONS) for each in documents)):
        keys = {
            describe(each): (_phase(each, Applier.ARGOCD), _number(each, _WAVE, _HELM_WEIGHT)) for each in documents
        }
        stages = {place: stage for stage, place in enumerate(sorted(set(keys.values())))}
        of = {name: stages[place] for name, place in keys.items()}
        return Order((True,) * len(stages), of, len(stages) - 1, assumptions, hooks)
    return Order()


def _repeated_hooks(documents: Sequence[Document], applier: Applier) -> Iterator[Assumption]:
    """The assumption for hooks that run at several points and are simulated only at the first."""
    for each in documents:
        sign, events = hook_of(each, applier)
        phases = {_PHASES[sign][moment] for moment in events if moment in _PHASES[sign]} if sign else set()
        if len(phases) > 1:
            message = f"runs at {', '.join(events)}; only the first run is simulated"
            yield Assumption(describe(each), f"metadata.annotations.{sign}", message, AssumptionKind.UNCERTAIN)


def _phase(document: Document, applier: Applier) -> int:
    sign, events = hook_of(document, applier)
    return min((_PHASES[sign][each] for each in events if each in _PHASES[sign]), default=0) if sign else 0


def _number(document: Document, *annotations: str) -> int:
    """The number in the first annotation that exists; 0 if there is none."""
    annotations_of_object = mapping_in(document, *_ANNOTATIONS)
    text = next((annotations_of_object[each] for each in annotations if each in annotations_of_object), "")
    return (parse_int64(text) if isinstance(text, str) else None) or 0


def is_omitted(document: Document, applier: Applier) -> bool:
    """Whether the object is a hook that no installation or upgrade by the tool creates."""
    sign, events = hook_of(document, applier)
    return bool(sign) and not any(each in _PHASES[sign] for each in events)


def skipped_hook(document: Document, applier: Applier) -> Assumption:
    """The assumption for a hook that is left out."""
    sign, events = hook_of(document, applier)
    when = f"that only runs at {', '.join(events)}" if events else f"without an event that {_NAMES[applier]} knows"
    message = f"a hook {when}; skipped, because {_NAMES[applier]} does not run it during a rollout"
    return Assumption(describe(document), f"metadata.annotations.{sign}", message, AssumptionKind.INFORMATIONAL)


def not_applied_as_hooks(documents: Iterable[Document]) -> list[Assumption]:
    """The assumption that hooks and waves count as ordinary objects, because no other tool was specified."""
    marked = [(each, sign) for each in documents for sign in _TOOL_OF if sign in mapping_in(each, *_ANNOTATIONS)]
    if not marked:
        return []
    first, sign = marked[0]
    names = list(dict.fromkeys(describe(each) for each, _ in marked))
    tool = _TOOL_OF[sign]
    message = (
        f"treated as applied by kubectl, which ignores hooks and waves: {some_of(names)};"
        f" if {_NAMES[tool]} applies the change, use --applied-by {tool}"
    )
    return [Assumption(describe(first), f"metadata.annotations.{sign}", message, AssumptionKind.INFORMATIONAL)]


def deletion_by_hook(document: Document, applier: Applier) -> str:
    """The reason why an object that becomes a hook is deleted as an ordinary object."""
    sign, _ = hook_of(document, applier)
    value = mapping_in(document, *_ANNOTATIONS)[sign]
    tool = "Helm" if applier is Applier.HELM else "Argo CD, if it prunes"
    return f"{tool}, because {sign}: {value} makes it a hook"


def is_recreated(document: Document, applier: Applier) -> bool:
    """Whether the object is a hook that is deleted, if it exists, and created again."""
    sign, _ = hook_of(document, applier)
    if not sign:
        return False
    annotation, policy = _RECREATION_POLICIES[sign]
    policies = _listed(mapping_in(document, *_ANNOTATIONS).get(annotation))
    return not policies or policy in policies


def is_marked(document: Document) -> bool:
    """Whether any tool treats the object as a hook."""
    return bool(_UNUSED_EVENTS.keys() & mapping_in(document, *_ANNOTATIONS).keys())


def hook_of(document: Document, applier: Applier) -> tuple[str, list[str]]:
    """The annotation that makes the object a hook of the tool, and the hook points the tool knows; else empty.

    Helm skips a hook with an unknown hook point; Argo CD ignores the unknown point, and reads Helm's points if it has
    none of Argo CD's.
    """
    annotations = mapping_in(document, *_ANNOTATIONS)
    found: tuple[str, list[str]] = ("", [])
    for sign in _HOOKS_OF[applier]:
        if sign not in annotations or found[1]:
            continue
        events = _listed(annotations[sign])
        if sign == _HELM:
            events = [each.lower() for each in events]
        known = [each for each in events if each in _PHASES[sign] or each in _UNUSED_EVENTS[sign]]
        if applier is Applier.HELM and known != events:
            known = []
        if known or not found[0]:
            found = sign, known
    return found


def _listed(value: object) -> list[str]:
    return [each for part in value.split(",") if (each := part.strip())] if isinstance(value, str) else []
