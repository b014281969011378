"""``deploy/ci/Containerfile``: its instructions, and its last installation, run without a network."""

from __future__ import annotations

import fnmatch
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.ci.installing import essence, makefile_installs
from tests.ci.places import OUTAGE, ROOT

_TEXT = (ROOT / "deploy" / "ci" / "Containerfile").read_text(encoding="utf-8")
_PYTHON = "/opt/kpreempt/bin/python"


class Instruction(NamedTuple):
    name: str
    text: str


def _instructions() -> list[Instruction]:
    lines = "\n".join(line for line in _TEXT.splitlines() if line and not line.startswith("#"))
    return [Instruction(*line.split(maxsplit=1)) for line in re.sub(r"\\\n\s*", "", lines).splitlines()]


ALL = _instructions()
_LAST = max(index for index, each in enumerate(ALL) if each.name == "FROM")
BUILD, FINAL = ALL[:_LAST], ALL[_LAST:]


def _copied() -> list[tuple[list[str], str]]:
    """Return sources and target of each ``COPY`` from the repository."""
    found = [shlex.split(each.text) for each in ALL if each.name == "COPY" and not each.text.startswith("--from=")]
    return [(words[:-1], words[-1]) for words in found]


def _installs() -> list[list[str]]:
    """Return the arguments of ``-m pip`` of each command."""
    found = [shlex.split(each.text) for each in ALL if each.name == "RUN" and " -m pip " in each.text]
    assert all(words[:3] == [_PYTHON, "-m", "pip"] for words in found)
    return [words[3:] for words in found]


def test_it_installs_by_the_commands_of_the_makefile() -> None:
    assert [essence(each) for each in _installs()] == makefile_installs()


def test_it_runs_as_a_user_that_owns_nothing() -> None:
    assert [each.text for each in FINAL if each.name == "USER"] == ["65532:65532"]
    after = FINAL[[each.name for each in FINAL].index("USER") + 1 :]
    assert {each.name for each in after} <= {"ENTRYPOINT", "CMD"}
    assert not any("--chown" in each.text or "--chmod" in each.text for each in FINAL)


def test_what_builds_stays_behind() -> None:
    copies = [each.text for each in FINAL if each.name == "COPY"]
    assert copies == ["--from=build /opt/kpreempt /opt/kpreempt"]
    assert ALL[1].text == "${BASE} AS build"


def test_the_base_can_be_named_and_is_no_moving_target() -> None:
    (argument,) = (each.text for each in ALL if each.name == "ARG")
    name, _, image = argument.partition("=")
    assert name == "BASE"
    repository, _, tag = image.partition(":")
    # No host: the machine that builds decides where the image comes from.
    assert "/" not in repository
    assert re.fullmatch(r"3\.1[1-4](\.\d+)?-\S+", tag)
    assert {each.text.split()[0] for each in ALL if each.name == "FROM"} == {"${BASE}"}


def test_nothing_is_fetched_but_by_pip_and_apt() -> None:
    assert not any(each.name == "ADD" for each in ALL)
    assert re.findall(r"\w+://|\bcurl\b|\bwget\b", "".join(each.text for each in ALL)) == []


def test_the_entry_is_the_program() -> None:
    assert [each.text for each in FINAL if each.name == "ENTRYPOINT"] == ['["kpreempt"]']
    assert any('PATH="/opt/kpreempt/bin:${PATH}"' in each.text for each in FINAL if each.name == "ENV")


def test_what_is_sent_to_the_build_is_what_it_copies() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    assert lines[0] == "*"
    kept = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert kept == {source for sources, _ in _copied() for source in sources}
    assert any(fnmatch.fnmatch("kpreempt/cli/__pycache__", line) for line in lines[1:] if not line.startswith("!"))


@pytest.mark.slow
def test_what_it_copies_is_enough_to_install_from_and_to_run(tmp_path: Path) -> None:
    source, target = tmp_path / "src", tmp_path / "installed"
    for sources, to in _copied():
        for name in sources:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, source / to, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                (source / to).mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, source / to / name)
    words = [*_installs()[-1], "--target", str(target)]
    environment = {"PATH": "", "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null", "HOME": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-m", "pip", *words], cwd=source, env=environment, check=False, capture_output=True, text=True
    )
    assert (run.returncode, run.stderr) == (0, "")
    code = f"import sys; sys.path.insert(0, {str(target)!r}); import kpreempt.cli as c; print(c.__file__); c.main()"
    words = ["check", "-f", str(OUTAGE / "rollout.yaml"), "--snapshot", str(OUTAGE / "cluster.yaml"), "-o", "github"]
    checked = subprocess.run(
        [sys.executable, "-I", "-c", code, *words], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert checked.returncode == 1
    location, *annotations = checked.stdout.splitlines()
    assert Path(location).is_relative_to(target)
    assert [each.partition(" ")[0] for each in annotations] == ["::error", "::error"]


@pytest.mark.parametrize(
    "path",
    [
        "action.yml",
        ".dockerignore",
        ".pre-commit-hooks.yaml",
        "docs/ci.md",
        *(f"deploy/ci/{each.name}" for each in sorted((ROOT / "deploy" / "ci").iterdir())),
    ],
)
def test_no_registry_is_named(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert re.findall(r"\b(?!kpreempt\.io/)[\w-]+\.(?:io|org|com)/\S*|index-url|pypi|docker\.io|ghcr", text) == []
