"""``deploy/ci/gitlab-ci.yml``: the job's script, run in a repository like GitLab's runner does."""

from __future__ import annotations

import json
import string
import subprocess
from pathlib import Path
from typing import Any

import pytest
import xmlschema
import yaml

from tests.ci.places import ROOT, as_list, cluster_documents, git, pull_request
from tests.fake_api import FakeApi, FakeCluster, objects_by_kind

JOB: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "ci" / "gitlab-ci.yml").read_text(encoding="utf-8"))["kpreempt"]
REPORTS = JOB["artifacts"]["reports"]


def run(
    repository: Path, job: dict[str, str], *, shell: str = "sh", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the script with the variables of the job and the pipeline, in the image's shell."""
    given = {
        "CI_PROJECT_DIR": str(repository),
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": git(repository, "rev-parse", "HEAD^1"),
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
    }
    # The runner fetches all branches if GIT_DEPTH is 0.
    git(repository, "update-ref", "refs/remotes/origin/main", "HEAD^1")
    own = {name: string.Template(text).safe_substitute(given) for name, text in JOB["variables"].items()}
    script = "\n".join(["set -e", *JOB["script"]])
    return subprocess.run(
        [shell, "-c", script],
        cwd=repository,
        env={**job, **given, **own, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    path = tmp_path / "the cluster.json"
    path.write_text(as_list(cluster_documents()), encoding="utf-8")
    return str(path)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_new_folder_that_breaks_rules_fails_and_leaves_the_reports(
    shell: str, tmp_path: Path, job: dict[str, str], snapshot: str
) -> None:
    pull_request(repository := tmp_path / "repository", base_has_manifests=False)
    ended = run(repository, job, shell=shell, SNAPSHOT=snapshot)
    assert ended.returncode == 1
    assert "  2 rules violated: max-cascade-depth, max-broken-dependencies." in ended.stdout
    findings = json.loads((repository / REPORTS["codequality"]).read_text(encoding="utf-8"))
    assert [(each["check_name"], each["location"]["path"]) for each in findings] == [
        ("max-cascade-depth", "manifests/rollout.yaml"),
        ("max-broken-dependencies", "manifests/rollout.yaml"),
    ]
    xmlschema.XMLSchema(ROOT / "tests" / "schemas" / "junit-10.xsd").validate(str(repository / REPORTS["junit"]))
    kept = [repository / path for path in JOB["artifacts"]["paths"]]
    left = git(repository, "status", "--porcelain", "--untracked-files=all").splitlines()
    assert len(left) == 3
    assert all(any((repository / line[3:]).is_relative_to(each) for each in kept) for line in left)


def test_existing_violations_in_the_target_branch_pass_with_reports(
    tmp_path: Path, job: dict[str, str], snapshot: str
) -> None:
    pull_request(repository := tmp_path / "repository", base_has_manifests=True)
    ended = run(repository, job, SNAPSHOT=snapshot)
    assert ended.returncode == 0
    findings = json.loads((repository / REPORTS["codequality"]).read_text(encoding="utf-8"))
    assert {each["severity"] for each in findings} == {"info"}


def test_without_a_file_the_cluster_of_the_context_is_read(tmp_path: Path, job: dict[str, str]) -> None:
    pull_request(repository := tmp_path / "repository", base_has_manifests=False)
    with FakeApi(FakeCluster(objects_by_kind(cluster_documents()))) as server:
        config = {
            "clusters": [{"name": "agent", "cluster": {"server": server.url}}],
            "contexts": [{"name": "some/where:agent", "context": {"cluster": "agent"}}],
        }
        (tmp_path / "kubeconfig").write_text(json.dumps(config), encoding="utf-8")
        kubeconfig = str(tmp_path / "kubeconfig")
        ended = run(repository, job, KUBECONFIG=kubeconfig, KUBE_CONTEXT="some/where:agent")
        other = run(repository, job, KUBECONFIG=kubeconfig, KUBE_CONTEXT="another")
    assert (ended.returncode, other.returncode) == (1, 2)
    assert "  2 rules violated: max-cascade-depth, max-broken-dependencies." in ended.stdout


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["$(touch x)", "a b", "`touch x`", "; touch x", "-h", "--write-baseline=x", "*"])
def test_a_variable_is_a_path_whatever_it_looks_like(name: str, tmp_path: Path, job: dict[str, str]) -> None:
    pull_request(repository := tmp_path / "repository", base_has_manifests=True)
    ended = run(repository, job, MANIFESTS=name, SNAPSHOT=name)
    assert ended.returncode == 3
    assert f"{name}: cannot read" in ended.stderr
    assert not (repository / "x").exists()


def test_reports_are_kept_if_the_check_fails() -> None:
    assert JOB["artifacts"]["when"] == "always"
    assert JOB.get("allow_failure", False) is False


def test_the_image_has_a_shell_in_the_place_of_kpreempt() -> None:
    assert JOB["image"]["entrypoint"] == [""]
    assert JOB["image"]["name"] == "$KPREEMPT_IMAGE"
    assert not JOB["variables"]["KPREEMPT_IMAGE"].endswith(":latest")
