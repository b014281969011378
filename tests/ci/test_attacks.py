"""Harmful changes that try to hide or excuse it, run through the shipped pipelines: all fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.ci import actions, test_gitlab_job, test_pre_commit_hook
from tests.ci.attacks import ATTACKS, DELETIONS, HARMLESS, LAX, Attack, cluster, repository
from tests.ci.places import ROOT

ACTION = actions.load(ROOT / "action.yml")
GATE = actions.load(ROOT / "deploy" / "ci" / "github-workflow.yml")


class Runner(NamedTuple):
    """The environment of a pipeline: the programs on its path, its variables, and a file of the cluster."""

    programs: Path
    temporary: Path
    job: dict[str, str]
    snapshot: str


@pytest.fixture
def runner(tmp_path: Path, programs: Path, job: dict[str, str]) -> Runner:
    (temporary := tmp_path / "temporary").mkdir()
    (snapshot := tmp_path / "cluster.json").write_text(cluster(), encoding="utf-8")
    return Runner(programs, temporary, job, str(snapshot))


def action(repository: Path, runner: Runner, **inputs: str) -> actions.Ended:
    """Run the action's check of a repository with these inputs."""
    given = {name: each.get("default", "") for name, each in ACTION["inputs"].items()} | inputs
    installed = {"install": {"outputs": {"kpreempt": str(runner.programs / "kpreempt")}}}
    contexts = {"inputs": given, "steps": installed, "github": {"action_repository": "", "action_ref": ""}}
    step = actions.step(ACTION["runs"]["steps"], "check")
    return actions.run_step(step, contexts, repository, runner.temporary, runner.job)


def github(repository: Path, runner: Runner, *, prunes: bool = False, **variables: str) -> int:
    """Run the check of ``github-workflow.yml`` with its inputs."""
    env = {**GATE["env"], **variables}
    job = {**runner.job, **env}
    base = actions.run_step(actions.step(GATE["jobs"]["check"]["steps"], "base"), {}, repository, runner.temporary, job)
    done: dict[str, Any] = {"base": {"outputs": base.outputs}, "snapshot": {"outputs": {"file": runner.snapshot}}}
    given = actions.step(GATE["jobs"]["check"]["steps"], "check")["with"]
    inputs = {name: actions.evaluated(text, {"env": env, "steps": done}) for name, text in given.items()}
    if prunes:
        inputs["arguments"] = "--prune"
    return action(repository, runner._replace(job=job), **inputs).code


def gitlab(repository: Path, runner: Runner, *, prunes: bool = False, **variables: str) -> int:
    """Run the job of ``gitlab-ci.yml``."""
    variables |= {"SNAPSHOT": runner.snapshot, **({"PRUNE": "true"} if prunes else {})}
    return test_gitlab_job.run(repository, runner.job, **variables).returncode


def pre_commit(repository: Path, runner: Runner, **variables: str) -> int:
    """Run the hook, as before the change is committed."""
    arguments = [
        "--filename=manifests",
        f"--snapshot={runner.snapshot}",
        *(f"--applied-by={each}" for each in variables.values()),
    ]
    return test_pre_commit_hook.run(repository, runner.job, {"args": arguments}, ["manifests/evil.yaml"]).returncode


Pipeline = Callable[..., int]
PIPELINES: dict[str, Pipeline] = {"GitHub": github, "GitLab": gitlab, "pre-commit": pre_commit}


# kubectl apply deletes nothing by itself, and the hook compares with no base.
TABLE = [
    pytest.param(pipeline, name, attack, id=f"{system}: {name}")
    for name, attack in ATTACKS.items()
    for system, pipeline in PIPELINES.items()
    if name not in DELETIONS or pipeline is not pre_commit
]


@pytest.mark.sampled(20)
@pytest.mark.parametrize(("pipeline", "name", "attack"), TABLE)
def test_no_attack_passes(pipeline: Pipeline, name: str, attack: Attack, tmp_path: Path, runner: Runner) -> None:
    folder = repository(tmp_path / "repository", attack, is_merged=pipeline is not pre_commit)
    prunes = {"prunes": True} if name in DELETIONS else {}
    assert pipeline(folder, runner, **prunes) in (1, 3)


@pytest.mark.parametrize("pipeline", PIPELINES.values(), ids=PIPELINES)
def test_a_harmless_change_passes(pipeline: Pipeline, tmp_path: Path, runner: Runner) -> None:
    folder = repository(tmp_path / "repository", HARMLESS, is_merged=pipeline is not pre_commit)
    assert pipeline(folder, runner) == 0


def test_an_action_that_takes_the_rules_of_a_pull_request_warns_of_it(tmp_path: Path, runner: Runner) -> None:
    folder = repository(tmp_path / "repository", ATTACKS["rules that are off"])
    runner = runner._replace(job={**runner.job, "GITHUB_EVENT_NAME": "pull_request"})
    inputs = {"files": "manifests", "snapshot": runner.snapshot}
    ended = action(folder, runner, **inputs)
    assert ended.code == 0
    assert tuple(kind for kind, _ in actions.commands(ended.log))[:2] == ("warning", "stop-commands")
    assert "off: max-pdb-violations" in ended.log
    trusted = action(folder, runner, **inputs, **{"config-from": "HEAD^1"})
    assert "warning" not in [kind for kind, _ in actions.commands(trusted.log)]


def test_a_baseline_of_the_pull_request_is_none(tmp_path: Path, runner: Runner) -> None:
    folder = repository(tmp_path / "repository", ATTACKS["a baseline"])
    inputs = {"files": "manifests", "snapshot": runner.snapshot, "baseline": "kpreempt-baseline.json"}
    assert action(folder, runner, **inputs, **{"config-from": "HEAD^1"}).code == 3


@pytest.mark.parametrize("pipeline", PIPELINES.values(), ids=PIPELINES)
def test_what_the_target_branch_allows_is_allowed(pipeline: Pipeline, tmp_path: Path, runner: Runner) -> None:
    attack, is_merged = ATTACKS["attributes of git"], pipeline is not pre_commit
    folder = repository(tmp_path / "repository", attack, base={"kpreempt.toml": LAX}, is_merged=is_merged)
    assert pipeline(folder, runner) == 0


@pytest.mark.parametrize("pipeline", PIPELINES.values(), ids=PIPELINES)
@pytest.mark.parametrize("has_file", [True, False], ids=["by the file of the target branch", "by the pipeline"])
def test_hooks_count_if_the_target_branch_or_the_pipeline_declares_the_tool(
    pipeline: Pipeline, has_file: bool, tmp_path: Path, runner: Runner
) -> None:
    attack, is_merged = ATTACKS["a test of Helm"], pipeline is not pre_commit
    base = {"kpreempt.toml": '[check]\napplied-by = "helm"\n'} if has_file else {}
    folder = repository(tmp_path / "repository", attack, base=base, is_merged=is_merged)
    assert pipeline(folder, runner, **({} if has_file else {"APPLIED_BY": "helm"})) == 0


def test_pipelines_run_for_every_change() -> None:
    """A required check with a filtered workflow is skipped on very large changes."""
    assert "paths" not in GATE["on"]["pull_request"]
    assert "edited" in GATE["on"]["pull_request"]["types"]
    assert [sorted(each) for each in test_gitlab_job.JOB["rules"]] == [["if"]]
