"""The golden cases: a folder of ``fixtures/golden`` each, with a cluster, a pod and the output of kpreempt.

A folder holds ``snapshot.yaml``, ``pod.yaml``, optionally ``arguments`` (more options), and the expected outputs: the
existing ones of ``OUTPUTS``.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from unittest import mock

from kpreempt.cli import process

ROOT = Path(__file__).parents[2] / "fixtures" / "golden"
# The file of each output, by format.
OUTPUTS = {"text": "report.txt", "json": "verdict.json", "markdown": "report.md"}
NOW = "2026-11-21T03:12:00Z"


def case_names() -> list[str]:
    """All cases, by name."""
    return sorted(path.name for path in ROOT.iterdir() if (path / "snapshot.yaml").exists())


def expected_files(name: str) -> dict[str, Path]:
    """The expected output of each format in the case."""
    return {format_name: path for format_name, file in OUTPUTS.items() if (path := ROOT / name / file).exists()}


def explain_arguments(name: str) -> list[str]:
    """The arguments of the case."""
    case, extra = ROOT / name, ROOT / name / "arguments"
    arguments = ["explain", "-f", str(case / "pod.yaml"), "--snapshot", str(case / "snapshot.yaml"), "--now", NOW]
    return [*arguments, *(shlex.split(extra.read_text(encoding="utf-8")) if extra.exists() else [])]


def explain(name: str, folder: Path) -> dict[str, str]:
    """The current output of ``kpreempt explain -v`` for the case at 80 columns, through files in ``folder``."""
    written = {format_name: folder / file.name for format_name, file in expected_files(name).items()}
    arguments = [*explain_arguments(name), "-v"]
    arguments += [part for format_name, path in written.items() for part in ("-o", f"{format_name}={path}")]
    with mock.patch.dict(os.environ, {"COLUMNS": "80"}):
        code = process.run(arguments)
    if code:
        raise RuntimeError(f"golden case {name}: kpreempt ended with {code}")
    return {format_name: path.read_text(encoding="utf-8") for format_name, path in written.items()}
