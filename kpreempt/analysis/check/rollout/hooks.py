"""Hooks of Helm and Argo CD: objects that are made at a moment of an installation, and perhaps never by this change.

Helm v3 ``pkg/release/hook.go`` and ``pkg/action/hooks.go``, Argo CD v3 ``gitops-engine/pkg/sync`` (``hook``,
``syncwaves``, ``sync_tasks.go``): which moments there are, that a hook which is there is deleted before it is made anew
unless its policy says otherwise, and in which order everything is applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kpreempt.analysis.document_reader import Document, describe, mapping_in
from kpreempt.model.labels import parse_int64
from kpreempt.verdict import Assumption, AssumptionKind

_HELM, _HELM_POLICY = "helm.sh/hook", "helm.sh/hook-delete-policy"
_ARGO, _ARGO_POLICY = "argocd.argoproj.io/hook", "argocd.argoproj.io/hook-delete-policy"
# Moments that an installation or upgrade that goes well does not have.
_OTHER_MOMENTS = {
    _HELM: {
        *("test", "test-success", "test-failure"),
        *("pre-delete", "post-delete", "pre-rollback", "post-rollback"),
    },
    _ARGO: {"Skip", "SyncFail", "PreDelete", "PostDelete"},
}
_MADE_ANEW = {_HELM: (_HELM_POLICY, "before-hook-creation"), _ARGO: (_ARGO_POLICY, "BeforeHookCreation")}
_HELM_WEIGHT, _WAVE = "helm.sh/hook-weight", "argocd.argoproj.io/sync-wave"
# What comes before everything else, with it, and after it.
_PHASES = {
    _HELM: {
        **dict.fromkeys(("pre-install", "pre-upgrade"), -1),
        **dict.fromkeys(("post-install", "post-upgrade"), 1),
    },
    _ARGO: {"PreSync": -1, "Sync": 0, "PostSync": 1},
}
# Of all other kinds Helm does not wait for anything.
_WAITED_FOR = ("Job", "Pod")


class Order(msgspec.Struct, frozen=True):
    """In which stages the objects of a change are applied.

    ``of`` is the stage of each, by its name (``Job shop/migrate``); ``last`` is that of what it does not name, such as
    deletions. ``awaited`` says of each stage whether the next waits for it. ``hooks`` are the objects that are one.
    """

    awaited: tuple[bool, ...] = (True,)
    of: dict[str, int] = {}
    last: int = 0
    assumptions: list[Assumption] = []
    hooks: frozenset[str] = frozenset()


def order_of(documents: Sequence[Document]) -> Order:
    """The order of a change by its annotations; one stage where there are none.

    Those of Argo CD count where there are any: it takes Helm's hooks for its own. Its waves wait for one another. Helm
    runs its hooks one by one, waits for Jobs and Pods of them to end, and for nothing else. Only what makes pods is
    looked at: all other objects are there at once.
    """
    if any(_ARGO in each or _WAVE in each for each in map(_annotations, documents)):
        return _order_of_argo(documents)
    if any(_phase(each) for each in documents):
        return _order_of_helm(documents)
    return Order()


def _order_of_argo(documents: Sequence[Document]) -> Order:
    places = {describe(each): (_phase(each), _number(each, _WAVE, _HELM_WEIGHT)) for each in documents}
    stages = {place: stage for stage, place in enumerate(sorted(set(places.values())))}
    of = {name: stages[place] for name, place in places.items()}
    return Order((True,) * len(stages), of, len(stages) - 1, list(_twice(documents)), _hooks(documents))


def _order_of_helm(documents: Sequence[Document]) -> Order:
    of: dict[str, int] = {}
    awaited: list[bool] = []
    last = 0
    for phase in (-1, 0, 1):
        own = [each for each in documents if _phase(each) == phase]
        if not phase:
            last = len(awaited)
            of.update((describe(each), last) for each in own)
            awaited.append(False)
            continue
        for each in sorted(own, key=lambda hook: (_number(hook, _HELM_WEIGHT), str(hook["metadata"]["name"]))):
            of[describe(each)] = len(awaited)
            awaited.append(each["kind"] in _WAITED_FOR)
    return Order(tuple(awaited), of, last, list(_twice(documents)), _hooks(documents))


def _hooks(documents: Sequence[Document]) -> frozenset[str]:
    return frozenset(describe(each) for each in documents if hook_of(each)[1])


def _twice(documents: Sequence[Document]) -> Iterator[Assumption]:
    """That an object is made at several moments that lie apart, and simulated at the first."""
    for each in documents:
        sign, moments = hook_of(each)
        phases = {_PHASES[sign][moment] for moment in moments if moment in _PHASES[sign]} if sign else set()
        if len(phases) > 1:
            message = f"runs at {', '.join(moments)}; simulated at the first of these moments alone"
            field = f"metadata.annotations.{sign}"
            yield Assumption(describe(each), field, message, AssumptionKind.UNCERTAIN)


def _phase(document: Document) -> int:
    sign, moments = hook_of(document)
    return min((_PHASES[sign][each] for each in moments if each in _PHASES[sign]), default=0) if sign else 0


def _number(document: Document, *annotations: str) -> int:
    """The number in the first of the annotations that is there; 0 where it is none."""
    there = _annotations(document)
    text = next((there[each] for each in annotations if each in there), "")
    return (parse_int64(text) if isinstance(text, str) else None) or 0


def other_moments(document: Document) -> tuple[str, str]:
    """The annotation and the moments of a hook that no installation or upgrade runs, else empty texts.

    Where both Argo CD and Helm are told, Argo CD's counts, as Argo CD has it.
    """
    sign, moments = hook_of(document)
    return (sign, ", ".join(moments)) if moments and _OTHER_MOMENTS[sign].issuperset(moments) else ("", "")


def is_made_anew(document: Document) -> bool:
    """Whether the object is a hook that is deleted, if it is there, and made again."""
    sign, moments = hook_of(document)
    if not moments:
        return False
    annotation, policy = _MADE_ANEW[sign]
    policies = _listed(_annotations(document).get(annotation))
    return not policies or policy in policies


def hook_of(document: Document) -> tuple[str, list[str]]:
    """The annotation that makes the object a hook, and its moments; empty for one that is none."""
    annotations = _annotations(document)
    for sign in (_ARGO, _HELM):
        if moments := _listed(annotations.get(sign)):
            return sign, moments
    return "", []


def _annotations(document: Document) -> Document:
    return mapping_in(mapping_in(document, "metadata"), "annotations")


def _listed(value: object) -> list[str]:
    return [each for part in value.split(",") if (each := part.strip())] if isinstance(value, str) else []
