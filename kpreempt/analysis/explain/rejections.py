"""Pods of manifests that the API server rejects, so that no scheduler ever sees them.

An object is decoded and validated like a new one in a change (``check.rollout.review``); if the cluster has it, an
update may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kpreempt.admission.defaults import with_defaults
from kpreempt.admission.schema import decoded
from kpreempt.admission.validation import Problem, Server, problems_of
from kpreempt.analysis.algorithms import AnalysisContext
from kpreempt.analysis.document_reader import Document, describe
from kpreempt.analysis.explain.pods import summed_up
from kpreempt.analysis.workload_pods import WORKLOAD_KINDS, PodTemplate
from kpreempt.model.documents import Path, mapping_in
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.verdict import Outcome, PodSummary, Verdict

# Returns the line of the field at a path in the object that begins on a line of a text.
LineOf = Callable[[bytes, int, Path], int]
# The kinds of objects that can reject a pod with an expression.
POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
_PROBLEMS_SHOWN = 3


class Rejection(NamedTuple):
    """Why an object is rejected, and the line of the first problem."""

    line: int
    reason: str


def rejection_of(text: bytes, line: int, found: Sequence[Problem], line_of: LineOf) -> Rejection:
    """Return the line of the first problem of an object, and all its problems as one text.

    The object begins on ``line`` of its source's ``text``, which is empty if it is not available.
    """
    problems = sorted((line_of(text, line, each.path) if text else line, str(each)) for each in found[:_PROBLEMS_SHOWN])
    first = problems[0][0]
    shown = [problem if at == first else f"line {at}: {problem}" for at, problem in problems]
    if more := len(found) - len(shown):
        shown.append(f"and {more:,} more")
    return Rejection(first, "; ".join(shown))


def rejected_template(document: Document, source: str, line: int, text: bytes, line_of: LineOf) -> PodTemplate | None:
    """Return the empty pod of an object with pods that every version of the API server rejects, with the reason."""
    found = decoded(document)[1] if document.get("kind") in WORKLOAD_KINDS else []
    if not found:
        return None
    metadata = mapping_in(document, "metadata")
    namespace, name = (each if isinstance(each := metadata.get(key), str) else "" for key in ("namespace", "name"))
    at, reason = rejection_of(text, line, found, line_of)
    return PodTemplate(
        kind=str(document["kind"]),
        name=name,
        namespace=namespace or DEFAULT_NAMESPACE,
        document={"metadata": {"name": name, "namespace": namespace or DEFAULT_NAMESPACE}, "spec": {}},
        origin=describe(document),
        source=source,
        line=at,
        rejection=f"{source}:{at}: {reason}" if at else reason,
    )


def rejection_of_manifest(template: PodTemplate, minor: int | None, assumed: int, line_of: LineOf) -> str:
    """Return why the API server rejects the object of a pod template, with its position; empty if it is accepted.

    ``minor`` is the minor version of the API server; if it is unknown, the rules of ``assumed`` apply.
    """
    if template.rejection or template.manifest is None:
        return template.rejection
    document, found = decoded(template.manifest, minor)
    found = found or list(problems_of(with_defaults(document), None, Server(assumed if minor is None else minor)))
    if not found:
        return ""
    line, reason = rejection_of(template.text, template.line, found, line_of)
    return f"{template.source}:{line}: {reason}" if line else reason


def is_policy(document: Document) -> bool:
    """Return whether an object is a ValidatingAdmissionPolicy or a binding of one."""
    return document.get("kind") in POLICIES


def in_its_namespace(document: Document, namespace: str) -> Document:
    """Return a copy of an object with the namespace in which it is created."""
    return {**document, "metadata": {**mapping_in(document, "metadata"), "namespace": namespace}}


def rejected_verdict(template: PodTemplate, reason: str, context: AnalysisContext) -> Verdict:
    """Return the verdict on a pod that the API server rejects."""
    return Verdict(
        algorithm=context.scheduler.algorithm,
        outcome=Outcome.REJECTED,
        reason=reason,
        pod=PodSummary(namespace=template.namespace, name=template.name, origin=template.origin),
        cluster=summed_up(context.cluster, context.now),
        assumptions=list(context.assumptions),
    )
