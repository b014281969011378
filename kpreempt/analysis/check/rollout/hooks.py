"""Hooks of Helm and Argo CD: objects that are made at a moment of an installation, and perhaps never by this change.

Helm v3 ``pkg/release/hook.go`` and ``pkg/action/hooks.go``, Argo CD v3 ``gitops-engine/pkg/sync/hook``: which moments
there are, and that a hook which is there is deleted before it is made anew unless its policy says otherwise.
"""

from __future__ import annotations

from kpreempt.analysis.document_reader import Document, mapping_in

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


def other_moments(document: Document) -> tuple[str, str]:
    """The annotation and the moments of a hook that no installation or upgrade runs, else empty texts.

    Where both Argo CD and Helm are told, Argo CD's counts, as Argo CD has it.
    """
    sign, moments = _hook(document)
    return (sign, ", ".join(moments)) if moments and _OTHER_MOMENTS[sign].issuperset(moments) else ("", "")


def is_made_anew(document: Document) -> bool:
    """Whether the object is a hook that is deleted, if it is there, and made again."""
    sign, moments = _hook(document)
    if not moments:
        return False
    annotation, policy = _MADE_ANEW[sign]
    policies = _listed(mapping_in(mapping_in(document, "metadata"), "annotations").get(annotation))
    return not policies or policy in policies


def _hook(document: Document) -> tuple[str, list[str]]:
    annotations = mapping_in(mapping_in(document, "metadata"), "annotations")
    for sign in (_ARGO, _HELM):
        if moments := _listed(annotations.get(sign)):
            return sign, moments
    return "", []


def _listed(value: object) -> list[str]:
    return [each for part in value.split(",") if (each := part.strip())] if isinstance(value, str) else []
