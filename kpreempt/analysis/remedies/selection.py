"""Which of the proven remedies are shown, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpreempt.verdict.remedies import ChangeKind, Remedy, RemedyStage

_KINDS = {kind: index for index, kind in enumerate(ChangeKind)}
_STAGES = {stage: index for index, stage in enumerate(RemedyStage)}


def selected(found: Iterable[Remedy], most: int) -> list[Remedy]:
    """The minimal ones of the remedies, in the order in which an expert would try them, up to ``most``.

    Remedies that are equally good keep their order.
    """
    ordered = sorted(found, key=_order)
    minimal: list[Remedy] = []
    for index, each in enumerate(ordered):
        # Of remedies that make each other redundant, the first is shown.
        later = (other for other in ordered[index + 1 :] if not _makes_redundant(each, other))
        if not any(_makes_redundant(other, each) for other in (*minimal, *later)):
            minimal.append(each)
    return minimal[:most]


def _order(remedy: Remedy) -> tuple[object, ...]:
    is_partial = remedy.scheduled < remedy.pods
    kind = max((_KINDS[change.kind] for change in remedy.changes), default=0)
    # What ends a rollout deadlock comes before changes to the pod.
    stage = _STAGES[remedy.stage], not remedy.stops
    evicts = bool(remedy.interrupted), bool(remedy.evicted)
    return not remedy.solves, is_partial, *evicts, *stage, len(remedy.changes), kind


def _makes_redundant(smaller: Remedy, larger: Remedy) -> bool:
    """Whether the larger remedy does everything that the smaller one does, and more, for no better result."""
    if smaller is larger or not _is_as_good(smaller, larger):
        return False
    keys, larger_keys = (
        {(change.kind, change.subject, change.field) for change in each.changes} for each in (smaller, larger)
    )
    if keys != larger_keys:
        return keys < larger_keys
    # The same changes with other amounts: the one that changes less, or else the first.
    amounts, larger_amounts = map(_amounts, (smaller, larger))
    return all(first <= second for first, second in zip(amounts, larger_amounts, strict=True))


def _amounts(remedy: Remedy) -> Sequence[int]:
    ordered = sorted(remedy.changes, key=lambda change: (change.kind, change.subject, change.field))
    return [abs((change.after or 0) - (change.before or 0)) for change in ordered]


def _is_as_good(first: Remedy, second: Remedy) -> bool:
    return (
        first.solves >= second.solves
        and first.scheduled - first.pods >= second.scheduled - second.pods
        and len(first.evicted) <= len(second.evicted)
        and len(first.interrupted) <= len(second.interrupted)
        and first.pending <= second.pending
    )
