"""Recording the verdicts again gives the same result."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kpreempt.scheduler_table import RELEASES
from tests.conformance.cases import FIXTURES
from tests.parity.kept import FOLDER
from tests.parity.record import kept_text, recorded, requested_version, suite_text
from tests.parity.reference import Genuine, version_of

VERSION = "v1.36.3"


@pytest.mark.go
def test_recording_again_changes_nothing(reference: Path) -> None:
    assert version_of(reference) == VERSION
    suite = FIXTURES / "mixed.jsonl.gz"
    with Genuine(reference) as real:
        assert suite_text(suite, real.answer, VERSION) == gzip.decompress(suite.read_bytes()).decode()
        for path in (each for each in FOLDER.glob("*.json") if RELEASES[requested_version(each)] == VERSION[1:]):
            assert kept_text(path, real.answer, VERSION) == path.read_text(encoding="utf-8")


def test_every_file_says_which_version_it_is_from() -> None:
    texts = [gzip.decompress(path.read_bytes()).decode() for path in FIXTURES.glob("*.jsonl.gz")]
    lines = [line for text in texts for line in text.splitlines()]
    assert lines
    assert all(f"kube-scheduler {VERSION}" in line for line in lines)
    for path in FOLDER.glob("*.json"):
        assert f"kube-scheduler v{RELEASES[requested_version(path)]}" in path.read_text(encoding="utf-8")


def test_an_equivalent_result_keeps_the_record() -> None:
    scenario = {"name": "s", "pod": {}, "expect": {"feasibleNodes": ["a", "b"], "message": "m"}}
    shuffled = {"verdict": {"message": "m", "feasibleNodes": ["b", "a"], "candidates": []}}
    keys = ("feasibleNodes", "message", "candidates")
    assert recorded(scenario, lambda _: shuffled, "v", keys)["expect"] == scenario["expect"]
    other = {"verdict": {"message": "n", "feasibleNodes": ["b", "a"]}}
    assert recorded(scenario, lambda _: other, "v", keys)["expect"] == other["verdict"]
    assert recorded(scenario, lambda _: {"error": {"message": "e"}}, "v", keys)["expect"] == {"error": {"message": "e"}}
