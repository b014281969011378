"""``make test``, ``make test-rest`` and ``make test-all``: what each runs, and which skips CI accepts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import CANNOT_INSTALL, Tier, is_accepted, quick_indexes, share

ROOT = Path(__file__).parents[3]
CONFTEST = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
TESTS = """
import pytest
from hypothesis import given, settings, strategies

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", range(5))
def test_cases(case): pass

def test_plain(): pass

def test_suite(sample): print("took", len(sample(range(100))))

@settings(max_examples=50)
@given(strategies.integers())
def test_property(number): print("example")

def test_skipped(): pytest.skip("fish is not installed")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_all.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow:\n  sampled(count):\n", encoding="utf-8")
    return tmp_path


def run(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    own = {"PYTHONPATH": str(ROOT), "CI": "true", "PYTHONDONTWRITEBYTECODE": "1", CANNOT_INSTALL: ""}
    environment = {**os.environ, **own}
    command = [sys.executable, "-m", "pytest", "-v", "-s", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tier", "summary", "scenarios", "examples"),
    [
        ("quick", "5 passed, 1 skipped, 4 deselected", 30, 5),
        ("rest", "6 passed, 4 deselected", 70, 50),
        ("all", "9 passed, 1 skipped", 100, 50),
    ],
)
def test_the_quick_tier_and_the_rest_are_all_tests(
    project: Path, tier: str, summary: str, scenarios: int, examples: int
) -> None:
    ended = run(project, "--tier", tier)
    assert ended.returncode == 0
    assert summary in ended.stdout
    assert f"took {scenarios}\n" in ended.stdout
    assert ended.stdout.count("example\n") == examples


def test_the_quick_tier_reports_what_it_leaves_out_and_why_tests_were_skipped(project: Path) -> None:
    ended = run(project, "--tier", "quick", "--numprocesses", "2")
    assert (
        "Left out: 1 slow, 3 further cases; 70 recorded scenarios; and all but 5 examples of 1 properties. "
        "`make test-all` runs them, too.\nSkipped: 1 because fish is not installed.\n"
    ) in ended.stdout


def test_in_ci_a_skip_that_can_be_avoided_fails_the_run(project: Path) -> None:
    ended = run(project, "--fail-on-skips", "--numprocesses", "2")
    assert ended.returncode == 1
    assert "Not accepted by ACCEPTED_SKIPS in tests/tiers.py: fish is not installed\n" in ended.stdout


@pytest.mark.parametrize(
    ("reason", "accepted"),
    [("kubectl is not installed", True), ("fish is not installed", False), ("Go is not installed", True)],
)
def test_some_skips_are_accepted(monkeypatch: pytest.MonkeyPatch, reason: str, accepted: bool) -> None:
    monkeypatch.delenv(CANNOT_INSTALL, raising=False)
    assert is_accepted(reason) is accepted


def test_what_ci_cannot_install_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CANNOT_INSTALL, "fish chromium")
    reasons = [
        "fish is not installed",
        "there is no Chromium here (Debian's package is chromium)",
        "zsh is not installed",
    ]
    assert list(map(is_accepted, reasons)) == [True, True, False]


@pytest.mark.parametrize("total", [0, 1, 29, 30, 31, 59, 100, 2200])
def test_a_sample_has_30_or_all_from_the_first_to_the_last(total: int) -> None:
    quick = share(range(total), Tier.QUICK)
    assert len(quick) == min(total, 30)
    assert quick[:1] + quick[-1:] == [*range(total)][:1] + [*range(total)][-1:]
    assert sorted(quick + share(range(total), Tier.REST)) == share(range(total), Tier.ALL) == [*range(total)]


def test_one_of_many_is_the_first() -> None:
    assert quick_indexes(9, 1) == {0}
