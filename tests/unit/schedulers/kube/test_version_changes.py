"""What changed between neighbouring versions: each change has its sentence, and its cluster where one can show it."""

from __future__ import annotations

from functools import cache

import pytest

from kpreempt.analysis.compare.upgrade import Versions, versions_between
from kpreempt.scheduler_table import RELEASES
from kpreempt.schedulers.kube.history import Concern, DescribedChange, changes_between, changes_in, partly
from kpreempt.schedulers.kube.versions import behavior
from tests.version_answers import DOCUMENT, FIXTURES, PAIRS, answers_on, document, fixture_of

_CHANGES = [(before, after, change) for before, after in PAIRS for change in changes_in(after)]
_SHOWN = [each for each in _CHANGES if fixture_of(each[2]) is not None]


@cache
def _versions(before: str, after: str) -> Versions:
    return versions_between(f"kube-{before}", after)


@pytest.mark.parametrize(
    ("before", "after", "change"), _SHOWN, ids=[f"{after}-{change.name}" for _, after, change in _SHOWN]
)
def test_two_versions_answer_otherwise_on_the_cluster_of_a_change_and_it_is_the_change_that_does_it(
    before: str, after: str, change: DescribedChange
) -> None:
    fixture = fixture_of(change)
    assert fixture is not None
    versions = _versions(before, after)
    ours, theirs = answers_on(fixture, versions.base, versions.target)
    assert ours != theirs
    by_itself = answers_on(fixture, versions.base, versions.with_changes([change]))
    assert by_itself[0] != by_itself[1]
    if change.concern is Concern.DECISIONS:
        assert by_itself == (ours, theirs)


def test_every_change_that_alters_decisions_has_a_cluster_that_shows_it() -> None:
    assert [change.name for _, _, change in _CHANGES if change.concern is Concern.DECISIONS] == [
        change.name for _, _, change in _SHOWN if change.concern is Concern.DECISIONS
    ]


def test_every_cluster_is_one_of_a_change() -> None:
    assert {path.stem for path in FIXTURES.iterdir()} == {change.name for _, _, change in _SHOWN}


def test_the_document_has_the_answers_of_today() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document()


@pytest.mark.parametrize("minor", RELEASES)
def test_every_change_has_a_sentence_of_its_own(minor: str) -> None:
    sentences = [change.sentence for change in changes_in(minor)]
    assert len(set(sentences)) == len(sentences)
    assert all(each.endswith(".") for each in sentences)


@pytest.mark.parametrize(("before", "after"), [*PAIRS, (next(iter(RELEASES)), list(RELEASES)[-1])])
def test_all_changes_together_make_the_newer_version(before: str, after: str) -> None:
    older, newer = behavior(before), behavior(after)
    made = partly(older, newer, changes_between(older, newer))
    assert made._replace(version=after) == newer


def test_a_fix_that_was_carried_back_is_no_change_to_a_release_that_has_it() -> None:
    names = [change.name for change in changes_between(behavior("1.30.7"), behavior("1.32"))]
    assert "sorts-victims-again" not in names
    assert "sorts-victims-again" in [each.name for each in changes_between(behavior("1.30.6"), behavior("1.32"))]
