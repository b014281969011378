"""Run the ``run`` steps of GitHub actions and workflows like its runner: expressions, variables, files, bash."""

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
    """A step that ran: its exit code, output, and outputs."""

    code: int
    log: str
    outputs: dict[str, str]


def load(path: Path) -> dict[str, Any]:
    """Load an action or a workflow. YAML 1.1 reads the key ``on`` as true."""
    document: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {("on" if key is True else key): value for key, value in document.items()}


def step(steps: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the step with that id or name."""
    (found,) = (each for each in steps if name in (each.get("id"), each.get("name")))
    return found


def evaluated(text: str, contexts: Mapping[str, Any]) -> str:
    """Replace each expression in a text; only names such as ``steps.base.outputs.folder`` are supported.

    Raises ``KeyError`` for an unknown context or input. Outputs that no step has set are empty.
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
    """Return the commands that the runner reads from a log with their messages, without those that end a stop."""
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
    """Return all scripts of an action or a workflow."""
    lists = [document["runs"]["steps"]] if "runs" in document else [job["steps"] for job in document["jobs"].values()]
    return [each["run"] for steps in lists for each in steps if "run" in each]


def used(document: Mapping[str, Any]) -> list[str]:
    """Return the actions that it uses."""
    lists = [document["runs"]["steps"]] if "runs" in document else [job["steps"] for job in document["jobs"].values()]
    return [each["uses"] for steps in lists for each in steps if "uses" in each]
