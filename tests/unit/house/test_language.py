"""``tools/language.py``: each pattern rejects a bad sentence, and accepts the wording that replaces it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools import language

GOOD = """\
Raises ``InputError`` if the file is missing. Which pods does it evict, and where do they land? It evicts no pod.
The outcome depends on the cache. Up to N evictions may violate a PodDisruptionBudget. The node next to it is full.
Lists are read again. A minute in total. The fix is verified. A custom plugin runs, too.
Each pod runs through the scheduler. The answer is compared with the record. What the change amounts to is shown.
The drain is blocked forever.
Behavior that is not modeled is reported. The color is gray; the neighbor is canceled.
"""


@pytest.mark.parametrize("pattern", language.PATTERNS, ids=lambda pattern: pattern.name)
def test_each_pattern_rejects_its_example(pattern: language.Pattern) -> None:
    found = list(language.find(f"A line.\n{pattern.example}\n", "README.md", [pattern]))
    assert found
    assert {(each.path, each.line, each.pattern.name) for each in found} == {("README.md", 2, pattern.name)}


def test_plain_english_is_accepted() -> None:
    assert list(language.find(GOOD, "README.md", language.PATTERNS)) == []


@pytest.mark.parametrize("identifier", ["asked_for", "is_told", "tell_node", "beside", "_colour", "colour_of"])
def test_identifiers_are_found(identifier: str) -> None:
    assert list(language.find(f"    {identifier} = 1\n", "kpreempt/module.py", language.PATTERNS))


def test_exceptions_apply_to_their_files_only() -> None:
    assert list(language.find("It evicts nobody.", language.ALLOWED[0].files, language.PATTERNS)) == []
    assert list(language.find("It evicts nobody.", "README.md", language.PATTERNS))


@pytest.mark.parametrize(
    ("path", "is_checked"),
    [
        ("kpreempt/cli/app.py", True),
        ("README.md", True),
        ("fixtures/golden-check/outage.md", True),
        ("tools/structure.py", True),
        ("fixtures/conformance/README.md", False),
        ("tests/unit/house/test_language.py", False),
    ],
)
def test_code_docs_and_goldens_are_checked(path: str, is_checked: bool) -> None:
    assert language.is_checked(path) is is_checked


def test_all_patterns_are_clean_and_counts_are_printed() -> None:
    tool = [sys.executable, language.__file__]
    checked = subprocess.run([*tool, "--check"], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    counts = subprocess.run([*tool, "docs"], capture_output=True, text=True, check=True).stdout
    assert [line[:22].strip() for line in counts.splitlines()] == [each.name for each in language.PATTERNS]


def test_rejected_text_fails_with_its_place_and_a_better_wording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").write_text("Fine.\nThe order hangs on the cache.\n", encoding="utf-8")
    monkeypatch.setattr(language, "ROOT", tmp_path)
    assert language.main(["--check"]) == 1
    assert capsys.readouterr().err == "README.md:2: 'hangs on': write depends on\n"
