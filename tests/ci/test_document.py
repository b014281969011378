"""``docs/ci.md``: its commands run, in order, and its other code matches the files it describes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ci.places import ROOT, cluster_documents, noted, noting
from tests.fake_api import FakeApi, FakeCluster, objects_by_kind

_TEXT = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
_COMMANDS = re.findall(r"<!-- ends with (\d) -->\n```sh\n(.*?)```", _TEXT, re.DOTALL)

# The container's view: the files below /manifests, read by the image's program.
_PODMAN = '[ "$1" = build ] || { while [ "$1" != kpreempt ]; do shift; done; shift; exec kpreempt "$@"; }'


def _files() -> list[str]:
    paths = [ROOT / "action.yml", *sorted((ROOT / "deploy" / "ci").iterdir())]
    return [textwrap.dedent(path.read_text(encoding="utf-8")) for path in paths]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A kubeconfig of the example's cluster."""
    with FakeApi(FakeCluster(objects_by_kind(cluster_documents()))) as server:
        config = {
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "contexts": [{"name": "c", "context": {"cluster": "c"}}],
            "current-context": "c",
        }
        (tmp_path / "kubeconfig").write_text(json.dumps(config), encoding="utf-8")
        yield str(tmp_path / "kubeconfig")


@pytest.mark.slow
def test_every_command_ends_as_the_document_says(
    checkout: Path, programs: Path, tmp_path: Path, job: dict[str, str], cluster: str
) -> None:
    shutil.copytree(ROOT / "deploy", checkout / "deploy")
    noting(programs, "kubectl", tmp_path / "kubectl-calls")
    noting(programs, "podman", tmp_path / "podman-calls", _PODMAN)
    ended = []
    for _, script in _COMMANDS:
        run = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script],
            cwd=checkout,
            env={**job, "KUBECONFIG": cluster},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        ended.append(run)
    assert [str(each.returncode) for each in ended] == [code for code, _ in _COMMANDS]
    # The snapshot has everything that the change needs, and its time.
    assert "\n  2 rules violated: max-cascade-depth, max-broken-dependencies.\n" in ended[0].stdout
    assert {each[0] for each in noted(tmp_path / "kubectl-calls")} == {"apply", "create"}
    assert [each[0] for each in noted(tmp_path / "podman-calls")] == ["build", "run"]
    assert "accepted" in ended[-1].stdout


def test_a_snapshot_equals_its_dump(checkout: Path, job: dict[str, str]) -> None:
    script = (
        "kpreempt snapshot --snapshot cluster.json --to less.json; kpreempt check -f manifests --snapshot less.json"
    )
    run = subprocess.run(["bash", "-c", script], cwd=checkout, env=job, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "\n  2 rules violated: max-cascade-depth, max-broken-dependencies.\n" in run.stdout


def test_every_block_is_run_or_taken_from_a_file() -> None:
    blocks = re.findall(r"```(\w*)\n(.*?)```", _TEXT, re.DOTALL)
    assert [text for language, text in blocks if language == "sh"] == [script for _, script in _COMMANDS]
    others = [(language, text) for language, text in blocks if language != "sh"]
    # The pre-commit configuration is tested in test_pre_commit_hook.py.
    assert [text for language, text in others if language == "yaml" and text.startswith("repos:")]
    left = [text for _, text in others if not text.startswith("repos:")]
    assert left
    assert [text for text in left if not any(text in each for each in _files())] == []


def test_every_file_that_it_names_is_there_and_every_example_is_named() -> None:
    named = set(re.findall(r"`((?:deploy|docs)/[\w./-]+|action\.yml|\.pre-commit-hooks\.yaml)`", _TEXT))
    assert [name for name in named if not (ROOT / name).is_file()] == []
    assert {f"deploy/ci/{each.name}" for each in (ROOT / "deploy" / "ci").iterdir()} <= named
