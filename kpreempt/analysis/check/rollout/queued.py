"""What Kueue is to admit: its pods come when there is quota for them, which no simulation of controllers knows."""

from __future__ import annotations

from collections.abc import Iterator

from kpreempt.analysis.document_reader import Document, mapping_in
from kpreempt.model.kueue import QUEUE_LABEL
from kpreempt.verdict import Assumption
from kpreempt.verdict.check import Change, ChangeKind

_MESSAGE = (
    "Kueue is to admit it, which is not simulated: {}; kpreempt explain -f FILE --algorithm kueue-0.19 says whether it "
    "is admitted, and whom Kueue preempts for it"
)
_MADE = "its pods are made as if it was admitted at once"
_SUSPENDED = "it is suspended here, and its pods come once it is admitted"


def admission_assumed(document: Document, change: Change) -> Iterator[Assumption]:
    """That an object of the change with a LocalQueue is admitted at once, or never; of one that stays nothing."""
    spec = mapping_in(document, "spec")
    owners = (document, mapping_in(spec, "jobTemplate"))
    labels = [mapping_in(mapping_in(each, "metadata"), "labels") for each in owners]
    if change.kind is not ChangeKind.UNCHANGED and any(each.get(QUEUE_LABEL) for each in labels):
        message = _MESSAGE.format(_SUSPENDED if spec.get("suspend") else _MADE)
        yield Assumption(change.object, f"metadata.labels[{QUEUE_LABEL}]", message)
