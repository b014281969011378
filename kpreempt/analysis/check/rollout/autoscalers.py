"""Workloads whose size a HorizontalPodAutoscaler sets: at which one a change is simulated.

Metrics are in no dump, so that an autoscaler leaves a workload at its size, within its bounds, or has it at the most
that it allows. Which it leaves alone is as in Kubernetes v1.36.3 ``pkg/controller/podautoscaler/horizontal.go``.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kpreempt.analysis.check.rollout.apply import last_applied
from kpreempt.analysis.check.rollout.kinds import group_of
from kpreempt.analysis.check.rollout.records import ManifestDocument, Reset
from kpreempt.analysis.document_reader import Document, describe, mapping_in
from kpreempt.model.meta import grouped
from kpreempt.verdict import Assumption, AssumptionKind

GROUP, KIND = "autoscaling", "HorizontalPodAutoscaler"
_SCALED = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
Target = tuple[str, str, str]


class Autoscaler(msgspec.Struct, frozen=True):
    """What one says: whom it scales, by kind, namespace and name, and between which numbers of replicas."""

    name: str
    target: Target
    least: int
    most: int


def is_autoscaler(document: Document) -> bool:
    """Whether the object is a HorizontalPodAutoscaler."""
    return (group_of(document), document.get("kind")) == (GROUP, KIND)


def autoscaler_of(document: Document) -> Autoscaler | None:
    """What it says, or ``None`` where it is none, or not what it should be."""
    spec, metadata = mapping_in(document, "spec"), mapping_in(document, "metadata")
    reference = mapping_in(spec, "scaleTargetRef")
    kind, name = reference.get("kind"), reference.get("name")
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas")
    if not is_autoscaler(document) or kind not in _SCALED or not isinstance(name, str):
        return None
    if type(least) is not int or type(most) is not int or not 0 <= least <= most or most == 0:
        return None
    return Autoscaler(describe(document), (kind, str(metadata.get("namespace")), name), least, most)


def minimum_sizes(documents: Iterable[Document]) -> dict[Target, int]:
    """The fewest replicas to which HorizontalPodAutoscalers scale each workload; ``documents`` may be of any kind.

    The last document of an autoscaler's name counts. Of several autoscalers for one workload, the lowest minimum does.
    """
    by_name = {describe(each): autoscaler_of(each) for each in documents if is_autoscaler(each)}
    found: dict[Target, int] = {}
    for each in by_name.values():
        if each is not None:
            found[each.target] = min(each.least, found.get(each.target, each.least))
    return found


class Autoscalers:
    """Those that there are once the change is applied."""

    def __init__(self, live: Iterable[Document], given: Iterable[Document], *, at_most: bool) -> None:
        """``at_most``: all that the change has under an autoscaler is simulated at the most replicas."""
        self._at_most = at_most
        by_name = {describe(each): autoscaler_of(each) for each in (*live, *given)}
        self._by_target = grouped((each for each in by_name.values() if each is not None), lambda each: each.target)

    def sized(self, given: ManifestDocument, current: int | None) -> tuple[ManifestDocument, list[Assumption]]:
        """The manifest with the size that it is simulated at, and what is to be told of that.

        ``current`` is the workload's size in the cluster, ``None`` where it is new. An autoscaler leaves alone what has
        no replicas, and so do several the same workload.
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
            size = max(each.most for each in found)
        elif len(found) == 1:
            size = min(max(size, found[0].least), found[0].most)
        told = []
        if written is not None:
            names = " and ".join(each.name for each in found)
            message = (
                f"says {written}, and {names} sets it again: simulated at {size}"
                if written != size
                else f"says {written}, which {names} sets: each apply takes back what it has set since the last"
            )
            told.append(Assumption(describe(document), "spec.replicas", message, AssumptionKind.INFORMATIONAL))
        return msgspec.structs.replace(given, document={**document, "spec": {**spec, "replicas": size}}), told

    def reset(self, given: ManifestDocument, current: int | None, before: Document | None) -> Reset | None:
        """What the apply itself does to the size of a workload, before its autoscaler sets it again.

        ``None`` where that is nothing. ``current`` is as in ``sized``, ``before`` what the cluster has. A size that was
        applied and is said no more is taken away, so that the API server's default comes in its place.
        """
        document, metadata = given.document, given.document["metadata"]
        found = self._by_target.get((document["kind"], metadata.get("namespace", ""), metadata["name"]), [])
        written = mapping_in(document, "spec").get("replicas")
        if written is None and before is not None and "replicas" in mapping_in(last_applied(before) or {}, "spec"):
            written = 1
        if len(found) != 1 or not current or type(written) is not int or written in (0, current):
            return None
        return Reset(describe(document), found[0].name, current, written)

    def what_is_not_known(self, document: Document, workloads: Iterable[Target]) -> str:
        """What is not known of an autoscaler that is new or changed; nothing if it scales a workload of the change.

        ``workloads`` are those of the change.
        """
        found = autoscaler_of(document)
        if found is None:
            return "what it scales is not evaluated: sizes stay as the workloads say"
        kind, namespace, name = found.target
        target = f"{kind} {namespace}/{name}"
        if found.target not in workloads:
            return f"is new or changed, and {target} is not in the change: how it scales is not simulated"
        # Its most replicas are simulated, here or apart.
        return ""

    def unsimulated(self, documents: Iterable[Document], workloads: Iterable[Target]) -> list[tuple[str, str]]:
        """Of autoscalers that are new or changed those that scale ``workloads``, with what they scale.

        None if all is simulated at the most replicas anyway.
        """
        found = [] if self._at_most else [each for document in documents if (each := autoscaler_of(document))]
        scaled = [(each.name, each.target) for each in found if each.target in workloads]
        return [(name, f"{kind} {namespace}/{own}") for name, (kind, namespace, own) in scaled]
