"""What is shipped: the programs, the Krew manifest, and what goes into the single file."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from kpreempt.cli import program_name
from tools import krew_manifest, single_file

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/usr/local/bin/kpreempt", "kpreempt"),
        ("/usr/local/bin/kubectl-kpreempt", "kubectl kpreempt"),
        ("kubectl-kpreempt", "kubectl kpreempt"),
        ("C:\\tools\\kubectl-kpreempt.exe", "kubectl kpreempt"),
        ("/opt/kubectl-kpreempt/bin/kpreempt", "kpreempt"),
        ("/opt/kpreempt/__main__.py", "kpreempt"),
        ("", "kpreempt"),
    ],
)
def test_the_program_calls_itself_what_it_was_started_as(path: str, name: str) -> None:
    assert program_name(path) == name


def test_there_is_a_program_for_kubectl_and_one_that_it_asks_for_candidates() -> None:
    assert {"kpreempt", "kubectl-kpreempt", "kubectl_complete-kpreempt"} == set(PROJECT["scripts"])


def manifest(tmp_path: Path, *systems: str) -> dict[str, Any]:
    for system in systems:
        (tmp_path / f"kpreempt-1.2.3-{system}.pex").write_bytes(system.encode())
    assert krew_manifest.main([str(tmp_path), "https://kpreempt.example", "https://kpreempt.example/v1.2.3"]) == 0
    text = (tmp_path / "kpreempt.yaml").read_text(encoding="utf-8")
    assert not re.search(r"[{}]", text)
    document: dict[str, Any] = yaml.safe_load(text)
    return document


def test_the_manifest_has_what_krew_insists_on(tmp_path: Path) -> None:
    document = manifest(tmp_path, "linux-x86_64", "linux-arm64", "darwin-x86_64", "darwin-arm64")
    assert (document["apiVersion"], document["kind"]) == ("krew.googlecontainertools.github.com/v1alpha2", "Plugin")
    assert document["metadata"] == {"name": "kpreempt"}
    spec = document["spec"]
    assert re.fullmatch(r"v\d+\.\d+\.\d+", spec["version"])
    # Krew's own limits for its index: a short description of 50 characters, without a full stop.
    assert len(spec["shortDescription"]) <= 50
    assert not spec["shortDescription"].endswith(".")
    assert spec["description"].strip()
    for platform in spec["platforms"]:
        assert set(platform) == {"selector", "uri", "sha256", "bin"}
        assert set(platform["selector"]["matchLabels"]) == {"os", "arch"}
        assert re.fullmatch(r"[0-9a-f]{64}", platform["sha256"])
        assert platform["uri"].startswith("https://")
        assert platform["uri"].endswith(".tar.gz")
    chosen = [tuple(each["selector"]["matchLabels"].values()) for each in spec["platforms"]]
    assert sorted(chosen) == [("darwin", "amd64"), ("darwin", "arm64"), ("linux", "amd64"), ("linux", "arm64")]


def test_a_platform_without_a_file_is_not_in_the_manifest(tmp_path: Path) -> None:
    (platform,) = manifest(tmp_path, "linux-arm64")["spec"]["platforms"]
    assert platform["selector"]["matchLabels"] == {"os": "linux", "arch": "arm64"}
    assert platform["uri"] == "https://kpreempt.example/v1.2.3/kpreempt-1.2.3-linux-arm64.tar.gz"


def test_the_same_files_give_the_same_archives(tmp_path: Path) -> None:
    sums = [manifest(tmp_path, "linux-x86_64")["spec"]["platforms"][0]["sha256"] for _ in range(2)]
    assert sums[0] == sums[1]


@pytest.mark.parametrize("files", [[], ["kpreempt-1-linux-x86_64.pex", "kpreempt-2-linux-arm64.pex"]])
def test_a_manifest_needs_files_of_one_version(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in files:
        (tmp_path / name).touch()
    assert krew_manifest.main([str(tmp_path), "h", "u"]) == 1
    assert "single files of one version are expected" in capsys.readouterr().err


def test_the_single_file_has_what_runs_and_not_what_builds() -> None:
    names = set(re.findall(r"^([A-Za-z0-9._-]+)==", single_file.locked_runtime(), re.M))
    assert {re.split(r"[<>=]", each)[0] for each in PROJECT["dependencies"]} <= names
    assert names.isdisjoint({"hatchling", "editables", "pex", "pytest"})


def test_the_single_file_takes_no_wheel_that_older_systems_cannot_run() -> None:
    compatible = single_file.complete_platform("3.12")["compatible_tags"]
    assert isinstance(compatible, list)
    assert all(
        tag.partition("-")[0] in ("cp312", "py312", "py3") or "abi3" in tag or "none" in tag for tag in compatible
    )
    assert not any("-linux_" in tag for tag in compatible)
    assert "py3-none-any" in compatible


def test_the_pythons_of_the_single_file_begin_where_the_project_does() -> None:
    assert f">={single_file.supported_pythons()[0]}" == PROJECT["requires-python"]
