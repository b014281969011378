# ruff: noqa: E501 - a message reads better in one piece
"""``--config-from``: rules and baseline as a commit or another folder has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpreempt.cli.gate_options import gate_flags
from kpreempt.errors import InputError, UsageError
from kpreempt.gate_rules import RuleId
from kpreempt.library.gate.settings import GateSettings, gate_settings
from tests.ci.places import git
from tests.unit.library.test_gate_settings import NOW

THREE, FOUR = "[check]\nmax-victims = 3\n", "[check]\nmax-victims = 4\n"


def settings(folder: Path, **flags: object) -> GateSettings:
    return gate_settings(gate_flags(flags), NOW, folder)


def limit(found: GateSettings) -> int | None:
    return found.rules.general(RuleId.MAX_VICTIMS)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """``main`` has a limit of 3 at its root; the work tree has 4."""
    folder = tmp_path / "repository"
    (folder / "teams" / "shop").mkdir(parents=True)
    git(tmp_path, "init", "--quiet", "--initial-branch=main", str(folder))
    (folder / "kpreempt.toml").write_text(THREE)
    (folder / "linked.toml").symlink_to("kpreempt.toml")
    (folder / "teams" / "shop" / "other.toml").write_text(THREE)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "one")
    (folder / "kpreempt.toml").write_text(FOUR)
    return folder


def test_a_commit_counts_and_the_work_tree_does_not(repository: Path) -> None:
    found = settings(repository, config_from="main")
    assert (limit(found), found.config) == (3, "main:kpreempt.toml")
    assert limit(settings(repository)) == 4


def test_a_folder_of_the_repository_has_the_nearest_file_above_it(repository: Path) -> None:
    shop = repository / "teams" / "shop"
    assert settings(shop, config_from="HEAD").config == "HEAD:kpreempt.toml"
    named = settings(shop, config_from="HEAD", config="other.toml")
    assert (limit(named), named.config) == (3, "HEAD:teams/shop/other.toml")
    assert settings(shop, config_from="HEAD", config="../../kpreempt.toml").config == "HEAD:kpreempt.toml"


def test_a_folder_that_is_named_like_a_ref_is_not_meant(repository: Path) -> None:
    (repository / "main").mkdir()
    (repository / "main" / "kpreempt.toml").write_text(FOUR)
    assert limit(settings(repository, config_from="main")) == 3
    found = settings(repository, config_from="./main")
    assert (limit(found), found.config) == (4, "main/kpreempt.toml")


def test_a_commit_without_rules_has_those_by_default(repository: Path) -> None:
    git(repository, "rm", "--quiet", "--cached", "kpreempt.toml")
    git(repository, "commit", "--quiet", "--message", "two")
    found = settings(repository, config_from="HEAD")
    assert (limit(found), found.config) == (None, "")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"config_from": "gone"}, "--config-from gone: commit not found"),
        ({"config_from": "--help"}, "--config-from --help: commit not found"),
        ({"config_from": "HEAD", "config": "/etc/passwd"}, "--config-from HEAD: /etc/passwd is not a path below the current directory"),
        ({"config_from": "HEAD", "config": "../x"}, "--config-from HEAD: ../x is not in the repository"),
        ({"config_from": "HEAD", "config": "linked.toml"}, "HEAD:linked.toml: not a regular file"),
        ({"config_from": "HEAD", "config": "teams"}, "HEAD:teams: not a regular file"),
        ({"config_from": "HEAD", "config": "*.toml"}, "HEAD:*.toml: not in commit "),
        ({"config_from": "HEAD", "baseline": "b.json"}, "HEAD:b.json: not in commit "),
        ({"config_from": "./gone"}, "--config-from ./gone: not a directory"),
    ],
    ids=["no commit", "an option", "a path from elsewhere", "a path out of it", "a link", "a folder", "a pattern", "no baseline", "no folder"],
)  # fmt: skip
def test_what_cannot_be_had_is_bad_input(flags: dict[str, str], message: str, repository: Path) -> None:
    with pytest.raises(InputError) as caught:
        settings(repository, **flags)
    assert caught.value.message.startswith(message)


def test_where_there_is_no_repository_git_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^--config-from HEAD: not a git repository"):
        settings(tmp_path, config_from="HEAD")


def test_nothing_is_neither(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--config-from: commit or directory missing$"):
        settings(tmp_path, config_from=" ")


def test_without_git_there_is_one_message(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    with pytest.raises(InputError, match=r"^--config-from HEAD: needs git, which is not in PATH$"):
        settings(repository, config_from="HEAD")
