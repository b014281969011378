"""Sizes of workloads that a HorizontalPodAutoscaler scales.

Dumps have no metrics, so a workload is simulated at its current size, within the autoscaler's bounds, or at the
maximum. Which workloads an autoscaler ignores follows Kubernetes v1.36.3
``pkg/controller/podautoscaler/horizontal.go``.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kpreempt.analysis.check.rollout.apply import last_applied
from kpreempt.analysis.check.rollout.kinds import SCALED_KINDS
from kpreempt.analysis.check.rollout.records import ManifestDocument, Reset
from kpreempt.analysis.document_reader import Document, describe
from kpreempt.model.documents import group_of, mapping_in
from kpreempt.model.meta import grouped
from kpreempt.verdict import Assumption, AssumptionKind

GROUP, KIND = "autoscaling", "HorizontalPodAutoscaler"
Target = tuple[str, str, str]


class Autoscaler(msgspec.Struct, frozen=True):
    """The workload that an autoscaler scales (kind, namespace and name), and its bounds."""

    name: str
    target: Target
    min: int
    max: int


def is_autoscaler(document: Document) -> bool:
    """Whether the object is a HorizontalPodAutoscaler."""
    return (group_of(document), document.get("kind")) == (GROUP, KIND)


def autoscaler_of(document: Document) -> Autoscaler | None:
    """Read an autoscaler; ``None`` if the document is another kind or invalid."""
    spec, metadata = mapping_in(document, "spec"), mapping_in(document, "metadata")
    reference = mapping_in(spec, "scaleTargetRef")
    kind, name = reference.get("kind"), reference.get("name")
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas")
    if not is_autoscaler(document) or kind not in SCALED_KINDS or not isinstance(name, str):
        return None
    if type(least) is not int or type(most) is not int or not 0 <= least <= most or most == 0:
        return None
    return Autoscaler(describe(document), (kind, str(metadata.get("namespace")), name), least, most)


def minimum_sizes(documents: Iterable[Document]) -> dict[Target, int]:
    """The minimum replicas of each workload with a HorizontalPodAutoscaler; ``documents`` may be of any kind.

    The last document of each name counts. If several autoscalers scale a workload, the lowest minimum counts.
    """
    by_name = {describe(each): autoscaler_of(each) for each in documents if is_autoscaler(each)}
    found: dict[Target, int] = {}
    for each in by_name.values():
        if each is not None:
            found[each.target] = min(each.min, found.get(each.target, each.min))
    return found


class Autoscalers:
    """The autoscalers after the change is applied."""

    def __init__(self, live: Iterable[Document], given: Iterable[Document], *, uses_max: bool) -> None:
        """With ``uses_max``, all autoscaled workloads of the change are simulated at their maximum."""
        self._at_most = uses_max
        by_name = {describe(each): autoscaler_of(each) for each in (*live, *given)}
        self._by_target = grouped((each for each in by_name.values() if each is not None), lambda each: each.target)

    def sized(self, given: ManifestDocument, current: int | None) -> tuple[ManifestDocument, list[Assumption]]:
        """The manifest with the simulated size, and the resulting assumptions.

        ``current`` is the workload's size in the cluster, ``None`` if new. Autoscalers ignore workloads without
        replicas, and several autoscalers of one workload block each other.
        """
        document, metadata = given.document, given.document["metadata"]
        found = self._by_target.get((document["kind"], metadata.get("namespace", ""), metadata["name"]), [])
        spec = mapping_in(document, "spec")
        written = spec.get("replicas")
        is_number = written is None or (type(written) is int and written >= 0)
        if not found or not is_number or current == 0 or written == 0:
            return given, []
        size = (written or 1) if current is None else current
        if self._at_most:
            size = max(each.max for each in found)
        elif len(found) == 1:
            size = min(max(size, found[0].min), found[0].max)
        assumptions = []
        if written is not None:
            names = " and ".join(each.name for each in found)
            message = (
                f"the manifest sets {written}, but {names} overrides it; simulated with {size}"
                if written != size
                else f"the manifest sets {written}, so each apply resets the replicas that {names} has set"
            )
            assumptions.append(Assumption(describe(document), "spec.replicas", message, AssumptionKind.INFORMATIONAL))
        return msgspec.structs.replace(given, document={**document, "spec": {**spec, "replicas": size}}), assumptions

    def reset(self, given: ManifestDocument, current: int | None, before: Document | None) -> Reset | None:
        """How the apply itself changes the replicas of a workload, until its autoscaler changes them back.

        Returns ``None`` if it does not. ``current`` is as in ``sized``, ``before`` is the object in the cluster. If the
        replicas were applied before and are now missing, the API server's default replaces them.
        """
        document, metadata = given.document, given.document["metadata"]
        found = self._by_target.get((document["kind"], metadata.get("namespace", ""), metadata["name"]), [])
        written = mapping_in(document, "spec").get("replicas")
        if written is None and before is not None and "replicas" in mapping_in(last_applied(before) or {}, "spec"):
            written = 1
        if len(found) != 1 or not current or type(written) is not int or written in (0, current):
            return None
        return Reset(describe(document), found[0].name, current, written)

    def unknown_effect(self, document: Document, workloads: Iterable[Target]) -> str:
        """What is unknown about a new or changed autoscaler; empty if it scales one of the change's ``workloads``."""
        found = autoscaler_of(document)
        if found is None:
            return "its target is not evaluated; workloads keep the replicas they specify"
        kind, namespace, name = found.target
        target = f"{kind} {namespace}/{name}"
        if found.target not in workloads:
            return f"{target} is not in the change, so its scaling by this new or changed autoscaler is not simulated"
        # Its maximum is simulated, here or separately.
        return ""

    def unsimulated(self, documents: Iterable[Document], workloads: Iterable[Target]) -> list[tuple[str, str]]:
        """The new or changed autoscalers that scale ``workloads``, each with its target.

        Empty if everything is simulated at the maximum anyway.
        """
        found = [] if self._at_most else [each for document in documents if (each := autoscaler_of(document))]
        scaled = [(each.name, each.target) for each in found if each.target in workloads]
        return [(name, f"{kind} {namespace}/{own}") for name, (kind, namespace, own) in scaled]
