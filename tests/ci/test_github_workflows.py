"""``deploy/ci/github-*.yml``: the permissions of their jobs, and their scripts, run one after the other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ci import actions
from tests.ci.places import ROOT, as_list, cluster_documents, noted, noting, pull_request

FOLDER = ROOT / "deploy" / "ci"
GATE = actions.load(FOLDER / "github-workflow.yml")
SNAPSHOT = actions.load(FOLDER / "github-snapshot.yml")
ACTION = actions.load(ROOT / "action.yml")
ALL = {"action.yml": ACTION, "github-workflow.yml": GATE, "github-snapshot.yml": SNAPSHOT}


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", ALL)
def test_no_expression_is_in_a_script(name: str) -> None:
    assert [script for script in actions.scripts(ALL[name]) if "${{" in script] == []


@pytest.mark.parametrize("name", ALL)
def test_other_actions_are_named_by_commit(name: str) -> None:
    others = [each for each in actions.used(ALL[name]) if not each.startswith("OWNER/")]
    assert others
    assert [each for each in others if not re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40}", each)] == []


def test_jobs_have_only_the_permissions_they_need() -> None:
    assert (GATE["permissions"], SNAPSHOT["permissions"]) == ({}, {})
    assert {name: job.get("permissions") for name, job in GATE["jobs"].items()} == {
        "check": {"actions": "read", "contents": "read"},
        "report": {"actions": "read", "contents": "read", "pull-requests": "write", "security-events": "write"},
    }
    assert "permissions" not in SNAPSHOT["jobs"]["snapshot"]


def test_what_a_pull_request_brings_meets_no_secret_and_no_token_that_may_write() -> None:
    assert set(GATE["on"]) == {"pull_request"}
    assert set(SNAPSHOT["on"]) == {"schedule"}
    text = (FOLDER / "github-workflow.yml").read_text(encoding="utf-8")
    assert "secrets." not in text
    checkouts = [each for job in GATE["jobs"].values() for each in job["steps"] if "checkout" in each.get("uses", "")]
    assert [each["with"]["persist-credentials"] for each in checkouts] == [False]
    assert not any("checkout" in each.get("uses", "") for each in GATE["jobs"]["report"]["steps"])


def test_the_action_is_handed_inputs_that_it_has_and_outputs_that_there_are() -> None:
    steps = GATE["jobs"]["check"]["steps"]
    assert set(actions.step(steps, "check")["with"]) <= set(ACTION["inputs"])
    text = (FOLDER / "github-workflow.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"steps\.check\.outputs\.([a-z-]+)", text)) <= set(ACTION["outputs"])


# Reports run 42 as the newest, and downloads the files of the previous run.
_GH = """
case "$1 $2" in
  "run list") echo 42 ;;
  "run download") mkdir -p "${9}"; cp -R "$FILES/." "${9}" ;;
  "api --paginate") printf "%s" "$BEFORE" ;;
esac
"""


def _run(job: str, name: str, contexts: dict[str, Any], folder: Path, at: Path, env: dict[str, str]) -> actions.Ended:
    known = {"github": {"token": "token", "event": {"pull_request": {"number": 7}}}, **contexts}
    return actions.run_step(actions.step(GATE["jobs"][job]["steps"], name), known, folder, at, env)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("base_has_manifests", "code"), [(True, 0), (False, 1)], ids=["as it was", "all is new"])
def test_the_change_is_compared_with_its_target_branch(
    base_has_manifests: bool, code: int, tmp_path: Path, programs: Path, temporary: Path, job: dict[str, str]
) -> None:
    pull_request(repository := tmp_path / "repository", base_has_manifests=base_has_manifests)
    (files := tmp_path / "files").mkdir()
    (files / "cluster.json").write_text(as_list(cluster_documents()), encoding="utf-8")
    noting(programs, "gh", tmp_path / "calls", _GH)
    job |= {"GITHUB_REPOSITORY": "some/where", "FILES": str(files), **GATE["env"]}
    done: dict[str, Any] = {"install": {"outputs": {"kpreempt": str(programs / "kpreempt")}}}
    for name in ("base", "snapshot"):
        ended = _run("check", name, {"steps": done}, repository, temporary, job)
        assert ended.code == 0
        done[name] = {"outputs": ended.outputs}
    if base_has_manifests:
        (before,) = Path(done["base"]["outputs"]["folder"]).iterdir()
        assert "checkout:1.4.9" in before.read_text(encoding="utf-8")
    given = actions.step(GATE["jobs"]["check"]["steps"], "check")["with"]
    contexts = {"env": GATE["env"], "steps": done}
    inputs = {name: each.get("default", "") for name, each in ACTION["inputs"].items()}
    inputs |= {name: actions.evaluated(text, contexts) for name, text in given.items()}
    check = actions.step(ACTION["runs"]["steps"], "check")
    given = {"inputs": inputs, "steps": done, "github": {"action_repository": "", "action_ref": ""}}
    assert actions.run_step(check, given, repository, temporary, job).code == code
    listed, downloaded = noted(tmp_path / "calls")
    # A pull request can run a workflow with this name, but not on a schedule.
    assert [listed[listed.index(word) + 1] for word in ("--workflow", "--event", "--status")] == [
        "kpreempt-snapshot.yml",
        "schedule",
        "success",
    ]
    assert downloaded[2] == "42"


def test_without_a_snapshot_there_is_no_answer(
    tmp_path: Path, programs: Path, temporary: Path, job: dict[str, str]
) -> None:
    noting(programs, "gh", tmp_path / "calls")
    ended = _run("check", "snapshot", {}, tmp_path, temporary, {**job, "GITHUB_REPOSITORY": "some/where"})
    assert ended.code == 1
    assert [kind for kind, _ in actions.commands(ended.log)] == ["error"]


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("", ["--method", "POST", "repos/some/where/issues/7/comments"]),
        ("11\n12", ["--method", "PATCH", "repos/some/where/issues/comments/12"]),
    ],
    ids=["a comment", "the last comment anew"],
)
def test_the_markdown_becomes_a_comment(
    before: str, words: list[str], tmp_path: Path, programs: Path, temporary: Path, job: dict[str, str]
) -> None:
    (files := tmp_path / "files").mkdir()
    (files / "kpreempt.md").write_text("### kpreempt check: failed\n", encoding="utf-8")
    noting(programs, "gh", tmp_path / "calls", _GH)
    job |= {"GITHUB_REPOSITORY": "some/where", "GITHUB_RUN_ID": "9", "FILES": str(files), "BEFORE": before}
    assert _run("report", "Download the report", {}, tmp_path, temporary, job).code == 0
    assert _run("report", "Create or update the comment", {}, tmp_path, temporary, job).code == 0
    downloaded, _, written = noted(tmp_path / "calls")
    assert downloaded[:3] == ["run", "download", "9"]
    assert written == ["api", "--silent", *words, "--field", f"body=@{temporary}/report/kpreempt.md"]
    assert (temporary / "report" / "kpreempt.md").is_file()


def test_the_report_is_what_the_check_has_uploaded() -> None:
    (upload,) = (each for each in GATE["jobs"]["check"]["steps"] if "upload-artifact" in each.get("uses", ""))
    assert upload["with"]["name"] == "kpreempt"
    assert upload["with"]["path"] == "${{ steps.check.outputs.directory }}"
    (sarif,) = (each for each in GATE["jobs"]["report"]["steps"] if "upload-sarif" in each.get("uses", ""))
    assert sarif["with"]["sarif_file"] == "${{ runner.temp }}/report/kpreempt.sarif"


# Resources of Volcano and Kueue are only for commands that no gate uses.
QUEUEING = {"scheduling.volcano.sh", "kueue.x-k8s.io"}


def test_a_snapshot_has_all_that_the_role_may_list(
    tmp_path: Path, programs: Path, temporary: Path, job: dict[str, str]
) -> None:
    role = yaml.safe_load((ROOT / "deploy" / "cluster-role.yaml").read_text(encoding="utf-8"))
    listed = {
        ".".join(filter(None, (resource, *rule["apiGroups"])))
        for rule in role["rules"]
        if not QUEUEING & set(rule.get("apiGroups", [])) and not rule.get("resourceNames")
        for resource in rule.get("resources", [])
    }
    # A server that lacks some of them, and has others.
    served = {*listed, "widgets.example.com"} - {each for each in listed if each.endswith("resource.k8s.io")}
    (tmp_path / "served").write_text("\n".join(sorted(served)) + "\n", encoding="utf-8")
    answer = f'cat "$KUBECONFIG" > seen; if [ "$1" = get ]; then echo "{{}}"; else cat "{tmp_path}/served"; fi'
    noting(programs, "kubectl", tmp_path / "calls", answer)
    steps = SNAPSHOT["jobs"]["snapshot"]["steps"]
    secret = "clusters: []\nuser: $(touch x)"
    contexts = {"secrets": {"KUBECONFIG": secret}}
    step = actions.step(steps, "What the schedulers look at")
    assert actions.run_step(step, contexts, tmp_path, temporary, job).code == 0
    request, call = noted(tmp_path / "calls")
    assert request == ["api-resources", "--verbs=list", "--output", "name"]
    assert set(call[call.index("get") + 1].split(",")) == served - {"events", "widgets.example.com"}
    assert "--all-namespaces" in call
    assert (tmp_path / "seen").read_text(encoding="utf-8") == f"{secret}\n"
    written = temporary / "snapshot" / "cluster.json"
    assert (written.read_text(encoding="utf-8"), oct(written.stat().st_mode & 0o777)) == ("{}\n", "0o600")
    assert not (temporary / "kubeconfig").exists()
    assert not (tmp_path / "x").exists()
    (upload,) = (each["with"] for each in steps if "upload-artifact" in each.get("uses", ""))
    assert (upload["name"], upload["retention-days"]) == ("kpreempt-snapshot", 1)
    assert upload["path"] == "${{ runner.temp }}/snapshot/cluster.json"
