"""A pull request that tries to excuse itself, put to the pipelines that ship: action, workflow, GitLab's job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ci import actions, test_gitlab_job
from tests.ci.attacks import ATTACKS, attacked
from tests.ci.places import ROOT, as_list, cluster_documents

ACTION = actions.load(ROOT / "action.yml")
GATE = actions.load(ROOT / "deploy" / "ci" / "github-workflow.yml")
Job = dict[str, str]


def action(repository: Path, programs: Path, temporary: Path, job: Job, **inputs: str) -> actions.Ended:
    """The action's check of a repository with these inputs."""
    given = {name: each.get("default", "") for name, each in ACTION["inputs"].items()} | inputs
    installed = {"install": {"outputs": {"kpreempt": str(programs / "kpreempt")}}}
    contexts = {"inputs": given, "steps": installed, "github": {"action_repository": "", "action_ref": ""}}
    step = actions.step(ACTION["runs"]["steps"], "check")
    return actions.run_step(step, contexts, repository, temporary, job)


def workflow(repository: Path, programs: Path, temporary: Path, job: Job, snapshot: str) -> int:
    """The check of ``github-workflow.yml``, with the inputs that stand there."""
    done: dict[str, Any] = {"base": {"outputs": {}}, "snapshot": {"outputs": {"file": snapshot}}}
    given = actions.step(GATE["jobs"]["check"]["steps"], "check")["with"]
    inputs = {name: actions.evaluated(text, {"env": GATE["env"], "steps": done}) for name, text in given.items()}
    return action(repository, programs, temporary, {**job, **GATE["env"]}, **inputs).code


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    path = tmp_path / "cluster.json"
    path.write_text(as_list(cluster_documents()), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_no_pull_request_excuses_itself(
    attack: Callable[[Path], None], tmp_path: Path, programs: Path, temporary: Path, job: Job, snapshot: str
) -> None:
    attacked(repository := tmp_path / "repository", attack)
    assert workflow(repository, programs, temporary, job, snapshot) in (1, 3)
    inputs = {"files": "manifests", "snapshot": snapshot, "baseline": "kpreempt-baseline.json", "config-from": "HEAD^1"}
    assert action(repository, programs, temporary, job, **inputs).code in (1, 3)
    assert test_gitlab_job.run(repository, job, SNAPSHOT=snapshot).returncode in (1, 3)


def test_an_action_that_takes_the_rules_of_a_pull_request_warns_of_it(
    tmp_path: Path, programs: Path, temporary: Path, job: Job, snapshot: str
) -> None:
    attacked(repository := tmp_path / "repository", ATTACKS["rules that are off"])
    event = {**job, "GITHUB_EVENT_NAME": "pull_request"}
    ended = action(repository, programs, temporary, event, files="manifests", snapshot=snapshot)
    assert ended.code == 0
    assert tuple(kind for kind, _ in actions.commands(ended.log))[:2] == ("warning", "stop-commands")
    assert "off: max-cascade-depth and max-stranded" in ended.log
    trusted = action(repository, programs, temporary, event, files="manifests", snapshot=snapshot, **{"config-from": "HEAD^1"})  # fmt: skip  # noqa: E501
    assert "warning" not in [kind for kind, _ in actions.commands(trusted.log)]


def test_what_the_target_branch_allows_is_allowed(
    tmp_path: Path, programs: Path, temporary: Path, job: Job, snapshot: str
) -> None:
    lax = '[check]\nmax-cascade-depth = "off"\nmax-stranded = "off"\n'
    attacked(repository := tmp_path / "repository", lambda _: None, {"kpreempt.toml": lax})
    assert workflow(repository, programs, temporary, job, snapshot) == 0
    ended = test_gitlab_job.run(repository, job, SNAPSHOT=snapshot)
    assert ended.returncode == 0
    assert "rules of refs/remotes/origin/main:kpreempt.toml" in " ".join(ended.stdout.split())
