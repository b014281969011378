"""The shared search for remedies: which candidates are combined, and which of equally good remedies are shown."""

from __future__ import annotations

from kpreempt.analysis.remedies.edits import edited_documents
from kpreempt.analysis.remedies.search import Candidate, first_step, search
from kpreempt.verdict.remedies import Change, ChangeKind, ObjectEdit, Remedy, RemedyStage


def candidate(field: str, patch: dict[str, object], value: object = 1) -> Candidate:
    change = Change(ChangeKind.SET, "Queue a", field=field, value=value)
    return Candidate(stage=RemedyStage.LIMIT, changes=[change], edits=[ObjectEdit("Queue a", patch)])


def tried(*candidates: Candidate) -> list[list[str]]:
    """The fields of each combination that is tried if none of them helps."""
    found: list[list[str]] = []

    def prove(each: Candidate) -> Remedy | None:
        found.append([change.field for change in each.changes])
        return None

    search(candidates, prove, has_time=lambda: True, most_tried=100)
    return found


def test_edits_that_replace_the_same_list_are_not_combined() -> None:
    quota, limit = candidate("quota", {"spec": {"groups": [1]}}), candidate("limit", {"spec": {"groups": [2]}})
    policy = candidate("policy", {"spec": {"policy": "Any"}})
    assert tried(quota, limit, policy)[3:] == [["quota", "policy"], ["limit", "policy"]]


def test_of_equally_good_remedies_the_first_is_kept() -> None:
    lower, anything = candidate("policy", {"policy": "Lower"}, "Lower"), candidate("policy", {"policy": "Any"}, "Any")
    found, _ = search([lower, anything], Candidate.remedy, has_time=lambda: True, most_tried=100)
    assert [each.changes[0].value for each in found] == ["Lower"]


def test_the_first_step_is_found_with_few_trials() -> None:
    trials: list[int] = []

    def at(step: int) -> int | None:
        trials.append(step)
        return step if step >= 37 else None

    assert first_step(100, at) == 37
    assert len(trials) <= 8
    assert first_step(30, at) is None
    assert first_step(0, at) is None


def test_an_object_can_be_created() -> None:
    new = {"kind": "Queue", "metadata": {"name": "b"}}
    assert edited_documents([], [ObjectEdit("Queue b", new, creates=True)]) == [new]
