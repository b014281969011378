"""Tries candidates one by one, and then in pairs if none of them helps alone."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, TypeVar

import msgspec

from kpreempt.analysis.remedies.selection import selected
from kpreempt.verdict.remedies import Change, ObjectEdit, Remedy, RemedySearch, RemedyStage

_Found = TypeVar("_Found")
_STAGES = list(RemedyStage)
MOST_SHOWN = 4
# How many candidates are combined in pairs.
_MOST_COMBINED = 6


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """Changes that may help. ``is_alone`` means that it is not combined with others, because it excludes them.

    The other fields are those of the ``Remedy`` that it becomes once it is proven.
    """

    stage: RemedyStage
    changes: Sequence[Change]
    options: Sequence[str] = ()
    edits: Sequence[ObjectEdit] = ()
    manager: str = ""
    is_alone: bool = False

    def __add__(self, other: Candidate) -> Candidate:
        """Both sets of changes together; the later stage is that of the combination."""
        return Candidate(
            stage=max(self.stage, other.stage, key=_STAGES.index),
            changes=[*self.changes, *other.changes],
            options=[*self.options, *other.options],
            edits=[*self.edits, *other.edits],
            manager=self.manager or other.manager,
        )

    def remedy(self, **outcome: object) -> Remedy:
        """The remedy, with its proven outcome."""
        fields = {name: getattr(self, name) for name in ("stage", "manager")}
        lists = {name: list(getattr(self, name)) for name in ("changes", "options", "edits")}
        return Remedy(**{**fields, **lists, **outcome})


# Returns the remedy with its outcome, or None if the candidate does not help or makes something worse.
Prove = Callable[[Candidate], Remedy | None]


def search(
    candidates: Iterable[Candidate],
    prove: Prove,
    *,
    has_time: Callable[[], bool],
    most_tried: int,
    most_shown: int = MOST_SHOWN,
    is_enough: Callable[[Remedy], bool] = lambda remedy: remedy.solves,
) -> tuple[list[Remedy], RemedySearch]:
    """Prove the candidates, and pairs of them if none helps alone; also returns how thorough the search was.

    At most ``most_tried`` combinations are tried, and none once ``has_time`` is false. Pairs are not tried if one of
    the remedies ``is_enough``.
    """
    unique = {_key(each): each for each in reversed([*candidates])}
    singles = list(reversed(unique.values()))
    found: list[Remedy] = []
    tried = 0

    def try_all(trials: Sequence[Candidate]) -> int:
        """Try each; returns the number that were not tried."""
        nonlocal tried
        for index, each in enumerate(trials):
            if tried >= most_tried or not has_time():
                return len(trials) - index
            tried += 1
            remedy = prove(each)
            if remedy is not None:
                found.append(remedy)
        return 0

    untried = try_all(singles)
    if not any(map(is_enough, found)) and not untried:
        combined = [each for each in singles if not each.is_alone][:_MOST_COMBINED]
        pairs = [first + second for first, second in combinations(combined, 2) if not _overlap(first, second)]
        untried = try_all(pairs)
    reason = "" if not untried else "limit" if tried >= most_tried else "time"
    return selected(found, most_shown), RemedySearch(tried, untried, reason)


def first_step(steps: int, candidate_at: Callable[[int], _Found | None]) -> _Found | None:
    """The first of ``steps`` steps that has a result, if all after it have one, too; the last one is tried first."""
    if steps <= 0 or (best := candidate_at(steps - 1)) is None:
        return None
    low, high = 0, steps - 1
    while low < high:
        middle = (low + high) // 2
        found = candidate_at(middle)
        if found is None:
            low = middle + 1
        else:
            high, best = middle, found
    return best


def similar_name(name: str, names: Iterable[str]) -> str:
    """The name that is most similar, if any is similar enough to be what was meant; else empty."""
    return next(iter(difflib.get_close_matches(name, sorted(names), n=1)), "")


def _key(candidate: Candidate) -> bytes:
    return msgspec.json.encode([candidate.changes, candidate.options, candidate.edits])


def _overlap(first: Candidate, second: Candidate) -> bool:
    """Whether both change the same, so that one of them would have no effect."""
    keys = [{(change.kind, change.subject, change.field) for change in each.changes} for each in (first, second)]
    fields = [{(edit.object, *path) for edit in each.edits for path in _paths(edit.patch)} for each in (first, second)]
    return not keys[0].isdisjoint(keys[1]) or not fields[0].isdisjoint(fields[1])


def _paths(patch: Any) -> Iterator[tuple[str, ...]]:
    """The paths of the fields that a merge patch sets; a list is set in full."""
    if not isinstance(patch, dict):
        yield ()
        return
    for key, value in patch.items():
        yield from ((key, *path) for path in _paths(value))
