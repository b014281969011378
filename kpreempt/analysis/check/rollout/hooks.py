"""Hooks of Helm and Argo CD: objects that are created at a moment of an installation, and perhaps never by this change.

Helm v3 ``pkg/release/hook.go``, ``pkg/releaseutil/manifest_sorter.go`` and ``pkg/action/hooks.go``, Argo CD v3
``gitops-engine/pkg/sync`` (``hook``, ``reconcile.go``, ``syncwaves``, ``sync_tasks.go``): which moments there are, that
an existing hook is deleted before it is created again unless its policy says otherwise, and in which order everything
is applied. Annotations mean something only to the tool that reads them, and which tool applies a change is not for the
change to say: ``kubectl`` applies a hook as any other object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec

from kpreempt.analysis.document_reader import Document, describe, mapping_in
from kpreempt.analysis.naming import some_of
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
_ANNOTATIONS = ("metadata", "annotations")
# Of all other kinds Helm does not wait for anything.
_WAITED_FOR = ("Job", "Pod")


class Applier(StrEnum):
    """The tool that applies a change."""

    KUBECTL = "kubectl"
    HELM = "helm"
    ARGOCD = "argocd"


# Their names in a sentence.
_NAMES = {Applier.KUBECTL: "kubectl", Applier.HELM: "Helm", Applier.ARGOCD: "Argo CD"}

# The annotations of hooks that each tool reads; Argo CD takes Helm's hooks for its own.
_HOOKS_OF = {Applier.KUBECTL: (), Applier.HELM: (_HELM,), Applier.ARGOCD: (_ARGO, _HELM)}
# And the tool to name if they are there and count for nothing.
_TOOL_OF = {_HELM: Applier.HELM, _ARGO: Applier.ARGOCD, _WAVE: Applier.ARGOCD}


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


def order_of(documents: Sequence[Document], applier: Applier) -> Order:
    """The order in which a tool applies a change, by its annotations; one stage if there are none that it reads.

    The waves of Argo CD wait for one another. Helm runs its hooks one by one, waits for Jobs and Pods of them to end,
    and for nothing else. Only what makes pods is looked at: all other objects are there at once.
    """
    hooks = frozenset(describe(each) for each in documents if hook_of(each, applier)[0])
    twice = list(_twice(documents, applier))
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
                awaited.append(each["kind"] in _WAITED_FOR)
        return Order(tuple(awaited), of, last, twice, hooks)
    if applier is Applier.ARGOCD and (hooks or any(_WAVE in mapping_in(each, *_ANNOTATIONS) for each in documents)):
        places = {
            describe(each): (_phase(each, Applier.ARGOCD), _number(each, _WAVE, _HELM_WEIGHT)) for each in documents
        }
        stages = {place: stage for stage, place in enumerate(sorted(set(places.values())))}
        of = {name: stages[place] for name, place in places.items()}
        return Order((True,) * len(stages), of, len(stages) - 1, twice, hooks)
    return Order()


def _twice(documents: Sequence[Document], applier: Applier) -> Iterator[Assumption]:
    """That an object is made at several moments that lie apart, and simulated at the first."""
    for each in documents:
        sign, moments = hook_of(each, applier)
        phases = {_PHASES[sign][moment] for moment in moments if moment in _PHASES[sign]} if sign else set()
        if len(phases) > 1:
            message = f"runs at {', '.join(moments)}; simulated at the first of these moments alone"
            yield Assumption(describe(each), f"metadata.annotations.{sign}", message, AssumptionKind.UNCERTAIN)


def _phase(document: Document, applier: Applier) -> int:
    sign, moments = hook_of(document, applier)
    return min((_PHASES[sign][each] for each in moments if each in _PHASES[sign]), default=0) if sign else 0


def _number(document: Document, *annotations: str) -> int:
    """The number in the first of the annotations that is there; 0 where it is none."""
    there = mapping_in(document, *_ANNOTATIONS)
    text = next((there[each] for each in annotations if each in there), "")
    return (parse_int64(text) if isinstance(text, str) else None) or 0


def is_omitted(document: Document, applier: Applier) -> bool:
    """Whether the object is a hook that no installation or upgrade by the tool creates."""
    sign, moments = hook_of(document, applier)
    return bool(sign) and not any(each in _PHASES[sign] for each in moments)


def left_out(document: Document, applier: Applier) -> Assumption:
    """What to report about a hook that is left out."""
    sign, moments = hook_of(document, applier)
    when = f"that runs at {', '.join(moments)} only" if moments else f"without a moment that {_NAMES[applier]} knows"
    message = f"a hook {when}: left out, as {_NAMES[applier]} leaves it out of a rollout"
    return Assumption(describe(document), f"metadata.annotations.{sign}", message, AssumptionKind.INFORMATIONAL)


def not_applied_as_hooks(documents: Iterable[Document]) -> list[Assumption]:
    """That hooks and waves count as ordinary objects, because nothing says that another tool applies them."""
    marked = [(each, sign) for each in documents for sign in _TOOL_OF if sign in mapping_in(each, *_ANNOTATIONS)]
    if not marked:
        return []
    first, sign = marked[0]
    names = list(dict.fromkeys(describe(each) for each, _ in marked))
    tool = _TOOL_OF[sign]
    message = (
        f"counted as applied by kubectl, which knows neither hooks nor waves: {some_of(names)};"
        f" if {_NAMES[tool]} applies the change: --applied-by {tool}"
    )
    return [Assumption(describe(first), f"metadata.annotations.{sign}", message, AssumptionKind.INFORMATIONAL)]


def deletion_by_hook(document: Document, applier: Applier) -> str:
    """What deletes an object that was none of the tool's hooks and becomes one."""
    sign, _ = hook_of(document, applier)
    value = mapping_in(document, *_ANNOTATIONS)[sign]
    tool = "Helm" if applier is Applier.HELM else "Argo CD, if it prunes"
    return f"{tool}, since {sign}: {value} makes it a hook"


def is_recreated(document: Document, applier: Applier) -> bool:
    """Whether the object is a hook that is deleted, if it is there, and made again."""
    sign, _ = hook_of(document, applier)
    if not sign:
        return False
    annotation, policy = _MADE_ANEW[sign]
    policies = _listed(mapping_in(document, *_ANNOTATIONS).get(annotation))
    return not policies or policy in policies


def is_marked(document: Document) -> bool:
    """Whether any tool takes the object for a hook."""
    return bool(_OTHER_MOMENTS.keys() & mapping_in(document, *_ANNOTATIONS).keys())


def hook_of(document: Document, applier: Applier) -> tuple[str, list[str]]:
    """The annotation by which the tool takes the object for a hook, and the moments that it knows; else empty.

    Helm skips a hook with a moment that it does not know; Argo CD passes over the moment, and reads the moments of Helm
    if there is none of its own.
    """
    annotations = mapping_in(document, *_ANNOTATIONS)
    found: tuple[str, list[str]] = ("", [])
    for sign in _HOOKS_OF[applier]:
        if sign not in annotations or found[1]:
            continue
        moments = _listed(annotations[sign])
        if sign == _HELM:
            moments = [each.lower() for each in moments]
        known = [each for each in moments if each in _PHASES[sign] or each in _OTHER_MOMENTS[sign]]
        if applier is Applier.HELM and known != moments:
            known = []
        if known or not found[0]:
            found = sign, known
    return found


def _listed(value: object) -> list[str]:
    return [each for part in value.split(",") if (each := part.strip())] if isinstance(value, str) else []
