"""``tools/check_commits.py``: which messages and histories it accepts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.check_commits import check_history, main, problems, reason_to_skip

ACCEPTED = [
    "Add a rule",
    "pending: count pods per queue pass\n\nEach pass counted them again.\n",
    "Bring nodes up to date",
    "Pass the version to controllers",
    "Bypass the cache",
    "Fix a hang # of threads\n# Please enter the commit message\n",
    f"Add {'x' * 68}",
]
REJECTED = {
    f"Add {'x' * 69}": "73 characters",
    "Added a rule": "not an imperative",
    "Adding a rule": "not an imperative",
    "docs: adds a rule": "not an imperative",
    "The rules are shorter": "not a verb",
    "Add a rule.": "ends with a period",
    "Add a rule\nwith a body": "second line must be blank",
    "WIP rules": "temporary",
    "fixup! Add a rule": "temporary",
    "\n# only a comment\n": "empty",
}


@pytest.mark.parametrize("message", ACCEPTED)
def test_good_messages_pass(message: str) -> None:
    assert list(problems(message)) == []


@pytest.mark.parametrize(("message", "problem"), REJECTED.items())
def test_bad_messages_fail(message: str, problem: str) -> None:
    (found,) = problems(message)
    assert problem in found


def test_the_hook_checks_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "COMMIT_EDITMSG"
    file.write_text("Added a rule\n", encoding="utf-8")
    assert main(["--message", str(file)]) == 1
    assert "'Added' is not an imperative" in capsys.readouterr().err
    file.write_text("Add a rule\n", encoding="utf-8")
    assert main(["--message", str(file)]) == 0


def git(folder: Path, *arguments: str) -> None:
    author = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *author, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a bad message before the check was added, and a good one after it."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--initial-branch=main")
    git(folder, "commit", "--allow-empty", "--message=Broken before the check.")
    (folder / "check.py").write_text("", encoding="utf-8")
    git(folder, "add", "check.py")
    git(folder, "commit", "--message=Adds the check")
    git(folder, "commit", "--allow-empty", "--message=Add a rule")
    return folder


def test_commits_after_the_one_that_added_the_check_are_checked(repository: Path) -> None:
    assert list(check_history(repository, "check.py")) == []
    git(repository, "commit", "--allow-empty", "--message=Added a rule")
    (found,) = check_history(repository, "check.py")
    assert found.endswith("'Added' is not an imperative; write what the commit does, such as Add, Fix or Remove")


def test_merge_commits_fail(repository: Path) -> None:
    git(repository, "switch", "--create", "private", "HEAD~1")
    git(repository, "commit", "--allow-empty", "--message=Fix a rule")
    git(repository, "merge", "--no-ff", "main")
    (found,) = check_history(repository, "check.py")
    assert found.endswith(": merge commit; rebase instead")


def test_without_a_complete_history_the_check_is_skipped_with_a_reason(repository: Path, tmp_path: Path) -> None:
    assert reason_to_skip(repository) == ""
    git(tmp_path, "clone", "--depth=1", repository.as_uri(), "shallow")
    assert reason_to_skip(tmp_path / "shallow") == "the repository is a shallow clone"
    (tmp_path / "archive").mkdir()
    assert reason_to_skip(tmp_path / "archive") == "this is not a Git repository"
