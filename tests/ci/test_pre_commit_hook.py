"""``.pre-commit-hooks.yaml``: the hook's command, put together and run as pre-commit does."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ci.places import ROOT

(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
_DOCUMENT = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")


def _documented() -> dict[str, Any]:
    """The hook as the document has it in a ``.pre-commit-config.yaml``."""
    (block,) = (each for each in re.findall(r"```yaml\n(.*?)```", _DOCUMENT, re.DOTALL) if each.startswith("repos:"))
    (repository,) = yaml.safe_load(block)["repos"]
    (hook,) = repository["hooks"]
    return dict(hook)


def run(
    checkout: Path, job: dict[str, str], hook: dict[str, Any], staged: list[str]
) -> subprocess.CompletedProcess[str]:
    """The entry, the arguments, and the files that match if the hook wants them."""
    merged = {**HOOK, **hook}
    names = [name for name in staged if re.search(merged["files"], name)]
    command = [*shlex.split(merged["entry"]), *merged.get("args", []), *(names if merged["pass_filenames"] else [])]
    return subprocess.run(command, cwd=checkout, env=job, capture_output=True, text=True, check=False)


def test_the_hook_of_the_document_checks_the_whole_folder(checkout: Path, job: dict[str, str]) -> None:
    hook = _documented()
    assert hook["id"] == HOOK["id"]
    (checkout / "manifests" / "namespace.yaml").write_text(
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n", encoding="utf-8"
    )
    ended = run(checkout, job, hook, ["manifests/namespace.yaml"])
    assert ended.returncode == 1
    assert "manifests/rollout.yaml:2" in ended.stdout


def test_the_hook_passes_where_the_rules_let_the_change_pass(checkout: Path, job: dict[str, str]) -> None:
    (checkout / "kpreempt.toml").write_text(
        '[check]\nmax-cascade-depth = "off"\nmax-stranded = "off"\n', encoding="utf-8"
    )
    assert run(checkout, job, _documented(), ["manifests/rollout.yaml"]).returncode == 0


def test_a_hook_without_arguments_says_which_are_missing(checkout: Path, job: dict[str, str]) -> None:
    ended = run(checkout, job, {}, ["manifests/rollout.yaml"])
    assert ended.returncode == 2
    assert "no change is given" in ended.stderr


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
