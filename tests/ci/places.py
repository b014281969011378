"""Stand-ins for a CI system: a folder with a change, a repository, and programs on the path."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.documents import read_documents

ROOT = Path(__file__).parents[2]
OUTAGE = ROOT / "fixtures" / "check" / "outage"
_RUN_FROM_HERE = "import sys; sys.path.insert(0, {root!r}); from kpreempt.cli import main; main()"


def cluster_documents() -> list[dict[str, Any]]:
    """The objects of the example's cluster; kubectl's version output is not one."""
    return [each for each in read_documents(OUTAGE / "cluster.yaml") if "kind" in each]


def as_list(documents: Iterable[Mapping[str, Any]]) -> str:
    """Objects as ``kubectl get -o json`` prints them."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)})


def lay_out(folder: Path) -> None:
    """A checkout with ``manifests/`` that cascade on ``cluster.json``."""
    (folder / "manifests").mkdir(parents=True)
    shutil.copy(OUTAGE / "rollout.yaml", folder / "manifests" / "rollout.yaml")
    (folder / "cluster.json").write_text(as_list(cluster_documents()), encoding="utf-8")


def program(folder: Path, name: str, body: str) -> Path:
    """Create a shell script ``name`` in ``folder``, for a path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def kpreempt_program(folder: Path) -> Path:
    """``kpreempt`` like an installed one: it imports no module from the working directory."""
    code = _RUN_FROM_HERE.format(root=str(ROOT))
    return program(folder, "kpreempt", f'exec {shlex.quote(sys.executable)} -I -c {shlex.quote(code)} "$@"')


def noting(folder: Path, name: str, log: Path, answer: str = "") -> Path:
    """A program that records its arguments, one per line plus a blank line, and runs the script ``answer``."""
    return program(folder, name, f'printf "%s\\n" "$@" "" >> {shlex.quote(str(log))}\n{answer}')


def noted(log: Path) -> list[list[str]]:
    """The arguments of each recorded call of a ``noting`` program."""
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    return [call.splitlines() for call in text.split("\n\n") if call]


def environment(programs: Path, home: Path, **more: str) -> dict[str, str]:
    """A job's environment, with ``programs`` before the system's own, and nothing of the user who runs the tests."""
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    home.mkdir(exist_ok=True)
    return {"PATH": path, "HOME": str(home), "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **more}


def git(folder: Path, *words: str) -> str:
    """Run git in ``folder`` without user settings, and return its output."""
    settings = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.com", "-c", "commit.gpgsign=false"]
    ours = {"PATH": os.environ.get("PATH", os.defpath), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", str(folder), *settings, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=ours).stdout.strip()


def pull_request(folder: Path, *, base_has_manifests: bool) -> None:
    """A repository whose HEAD merges a pull request with the outage into ``main``, which is its first parent.

    If the base has manifests, they have the same effect: the change introduces nothing new.
    """
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "README.md").write_text("Manifests.\n", encoding="utf-8")
    if base_has_manifests:
        (folder / "manifests").mkdir()
        text = (OUTAGE / "rollout.yaml").read_text(encoding="utf-8")
        (folder / "manifests" / "rollout.yaml").write_text(text.replace("1.5.0", "1.4.9"), encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "base")
    git(folder, "checkout", "--quiet", "-b", "change")
    (folder / "manifests").mkdir(exist_ok=True)
    shutil.copy(OUTAGE / "rollout.yaml", folder / "manifests" / "rollout.yaml")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "change")
    git(folder, "checkout", "--quiet", "main")
    git(folder, "merge", "--quiet", "--no-ff", "--message", "merge", "change")
