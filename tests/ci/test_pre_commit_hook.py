"""``.pre-commit-hooks.yaml``: the hook's command, assembled and run like pre-commit does."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ci.places import ROOT, git

(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
_DOCUMENT = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")


def _documented() -> dict[str, Any]:
    """The hook as documented for a ``.pre-commit-config.yaml``."""
    (block,) = (each for each in re.findall(r"```yaml\n(.*?)```", _DOCUMENT, re.DOTALL) if each.startswith("repos:"))
    (repository,) = yaml.safe_load(block)["repos"]
    (hook,) = repository["hooks"]
    return dict(hook)


def run(
    checkout: Path, job: dict[str, str], hook: dict[str, Any], staged: list[str]
) -> subprocess.CompletedProcess[str]:
    """Run the entry, the arguments, and the files that match if the hook wants them."""
    merged = {**HOOK, **hook}
    names = [name for name in staged if re.search(merged["files"], name)]
    command = [*shlex.split(merged["entry"]), *merged.get("args", []), *(names if merged["pass_filenames"] else [])]
    return subprocess.run(command, cwd=checkout, env=job, capture_output=True, text=True, check=False)


def commit(folder: Path) -> None:
    """Turn the folder into a repository, and commit its content."""
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "before")


def test_the_hook_of_the_document_checks_the_whole_folder(checkout: Path, job: dict[str, str]) -> None:
    hook = _documented()
    commit(checkout)
    assert hook["id"] == HOOK["id"]
    (checkout / "manifests" / "namespace.yaml").write_text(
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n", encoding="utf-8"
    )
    ended = run(checkout, job, hook, ["manifests/namespace.yaml"])
    assert ended.returncode == 1
    assert "manifests/rollout.yaml:2" in ended.stdout


@pytest.mark.slow
def test_the_hook_takes_its_rules_from_the_last_commit_and_not_from_the_one_that_it_judges(
    checkout: Path, job: dict[str, str]
) -> None:
    commit(checkout)
    rules = '[check]\nmax-cascade-depth = "off"\nmax-broken-dependencies = "off"\n'
    (checkout / "kpreempt.toml").write_text(rules, encoding="utf-8")
    git(checkout, "add", "--all")
    assert run(checkout, job, _documented(), ["manifests/rollout.yaml"]).returncode == 1
    git(checkout, "commit", "--quiet", "--message", "rules")
    assert run(checkout, job, _documented(), ["manifests/rollout.yaml"]).returncode == 0
    # In CI the last commit is checked: an argument names another one.
    git(checkout, "branch", "trusted", "HEAD~1")
    hook = {**_documented(), "args": [*_documented()["args"], "--config-from=trusted"]}
    assert run(checkout, job, hook, ["manifests/rollout.yaml"]).returncode == 1


def test_no_annotation_of_the_commit_waives_a_rule(checkout: Path, job: dict[str, str]) -> None:
    commit(checkout)
    path = checkout / "manifests" / "rollout.yaml"
    waived = '{kpreempt.io/waive: "max-cascade-depth,max-broken-dependencies", kpreempt.io/waive-reason: trust me}'
    text = path.read_text(encoding="utf-8").replace("metadata:\n", f"metadata:\n  annotations: {waived}\n", 1)
    path.write_text(text, encoding="utf-8")
    assert run(checkout, job, _documented(), ["manifests/rollout.yaml"]).returncode == 1


def test_a_hook_without_arguments_reports_the_missing_ones(checkout: Path, job: dict[str, str]) -> None:
    commit(checkout)
    ended = run(checkout, job, {}, ["manifests/rollout.yaml"])
    assert ended.returncode == 2
    assert "no manifests given" in ended.stderr


@pytest.mark.parametrize(
    ("path", "runs"),
    [
        ("manifests/api.yaml", True),
        ("manifests/api.yml", True),
        ("api.json", True),
        ("kpreempt.toml", True),
        ("teams/shop/kpreempt.toml", True),
        ("pyproject.toml", False),
        ("not-kpreempt.toml", False),
        ("README.md", False),
        ("api.yaml.bak", False),
    ],
)
def test_the_hook_runs_for_manifests_and_rules(path: str, runs: bool) -> None:
    assert bool(re.search(HOOK["files"], path)) is runs


def test_pre_commit_can_install_it_and_runs_it_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert shlex.split(HOOK["entry"])[0] in project["scripts"]
    assert (HOOK["language"], HOOK["pass_filenames"], HOOK["require_serial"]) == ("python", False, True)
