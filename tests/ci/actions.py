"""Runs the ``run`` steps of GitHub's actions and workflows as its runner does: expressions, variables, files, bash."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_COMMAND = re.compile(r"::([a-z-]+)(?: [^:]*)?::(.*)")


class Ended(NamedTuple):
    """A step that ran: its exit code, what it printed, and the outputs that it set."""

    code: int
    log: str
    outputs: dict[str, str]


def load(path: Path) -> dict[str, Any]:
    """The document of an action or a workflow. YAML 1.1 takes the key ``on`` for true."""
    document: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {("on" if key is True else key): value for key, value in document.items()}


def step(steps: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """The step with that id or name."""
    (found,) = (each for each in steps if name in (each.get("id"), each.get("name")))
    return found


def evaluated(text: str, contexts: Mapping[str, Any]) -> str:
    """A text with each expression replaced; only names such as ``steps.base.outputs.folder`` are known.

    Raises ``KeyError`` for a context or an input that is not there. Outputs that no step has set are empty.
    """

    def value(match: re.Match[str]) -> str:
        first, *rest = match[1].split(".")
        found = contexts[first]
        for name in rest:
            found = found.get(name, "") if first in ("steps", "env") and isinstance(found, Mapping) else found[name]
        return str(found or "")

    return _EXPRESSION.sub(value, text)


def run_step(
    of: Mapping[str, Any], contexts: Mapping[str, Any], folder: Path, temporary: Path, environment: Mapping[str, str]
) -> Ended:
    """Run a step with a script in ``folder``, as the runner starts ``shell: bash``. Its summary is ``summary.md``."""
    assert of["shell"] == "bash"
    given = {name: evaluated(str(text), contexts) for name, text in of.get("env", {}).items()}
    script, outputs = temporary / "script.sh", temporary / "outputs"
    script.write_text(of["run"], encoding="utf-8")
    outputs.write_text("", encoding="utf-8")
    files = {"GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(temporary / "summary.md")}
    run = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
        cwd=folder,
        env={**environment, **given, **files, "RUNNER_TEMP": str(temporary)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    lines = outputs.read_text(encoding="utf-8").splitlines()
    return Ended(run.returncode, run.stdout, dict(line.split("=", 1) for line in lines))


def commands(log: str) -> Iterator[tuple[str, str]]:
    """The commands that the runner takes from a log, with what they say; those that end a stop are left out."""
    token = ""
    for line in log.splitlines():
        if token:
            token = "" if line.strip() == f"::{token}::" else token
        elif match := _COMMAND.match(line.strip()):
            if match[1] == "stop-commands":
                token = match[2]
            yield match[1], match[2]
    assert not token, "commands stay stopped"


def scripts(document: Mapping[str, Any]) -> list[str]:
    """All scripts of an action or a workflow."""
    lists = [document["runs"]["steps"]] if "runs" in document else [job["steps"] for job in document["jobs"].values()]
    return [each["run"] for steps in lists for each in steps if "run" in each]


def used(document: Mapping[str, Any]) -> list[str]:
    """The actions that it uses."""
    lists = [document["runs"]["steps"]] if "runs" in document else [job["steps"] for job in document["jobs"].values()]
    return [each["uses"] for steps in lists for each in steps if "uses" in each]
