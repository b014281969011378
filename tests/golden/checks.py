"""The golden files of ``kpreempt check``: ``fixtures/golden-check``, on changes in ``fixtures/check``."""

from __future__ import annotations

import os
from contextlib import chdir
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from kpreempt.cli import process
from tests.golden.cases import NOW

PROJECT = Path(__file__).parents[2]
ROOT = PROJECT / "fixtures" / "golden-check"
_OUTAGE = ["-f", "fixtures/check/outage/rollout.yaml", "--snapshot", "fixtures/check/outage/cluster.yaml"]
_RELEASE = ["-f", "fixtures/check/release/release.yaml", "--snapshot", "fixtures/check/release/cluster.yaml"]
_NO_EFFECT = ["-f", "fixtures/check/without-effect/settings.yaml", "--snapshot", "fixtures/on-call/cluster.yaml"]
NODE_HEALTH = [
    *("-f", "fixtures/check/node-health/rollout.yaml", "--snapshot", "fixtures/screens/node-health.yaml"),
    *("--assume-none", "quota"),
]

# The arguments of each golden file, its format and its exit code.
ANSWERS: dict[str, tuple[list[str], str, int]] = {
    "outage.txt": (_OUTAGE, "text", 1),
    "outage-verbose.txt": ([*_OUTAGE, "--verbose"], "text", 1),
    "outage.json": (_OUTAGE, "json", 1),
    "outage.sarif": (_OUTAGE, "sarif", 1),
    "outage.junit.xml": (_OUTAGE, "junit", 1),
    "outage.github.txt": (_OUTAGE, "github", 1),
    "outage.gitlab.json": (_OUTAGE, "gitlab", 1),
    "outage.md": (_OUTAGE, "markdown", 1),
    "outage-report-only.txt": ([*_OUTAGE, "--report-only"], "text", 0),
    "outage-report-only.md": ([*_OUTAGE, "--report-only"], "markdown", 0),
    "release-verbose.txt": ([*_RELEASE, "--verbose"], "text", 0),
    "release.json": (_RELEASE, "json", 0),
    "release.md": (_RELEASE, "markdown", 0),
    "release-without-victims.txt": ([*_RELEASE, "--max-victims", "0"], "text", 1),
    "release-waived.sarif": ([*_RELEASE, "--max-victims", "0", "--waive", "max-victims"], "sarif", 0),
    "release-runs.txt": ([*_RELEASE, "--runs", "20"], "text", 0),
    "without-effect.txt": (_NO_EFFECT, "text", 0),
    "node-health.txt": ([*NODE_HEALTH, "--algorithm", "kube-1.36"], "text", 1),
    "release-1.13.txt": ([*_RELEASE, "--algorithm", "kube-1.13"], "text", 1),
}


def answer(name: str, _folder: Path) -> str:
    """The current output of kpreempt at 80 columns, through a file."""
    arguments, format_name, expected = ANSWERS[name]
    code, texts = _answers(tuple(arguments))
    if code != expected:
        raise RuntimeError(f"golden answer {name}: kpreempt ended with {code}, not {expected}")
    return texts[format_name]


@cache
def _answers(arguments: tuple[str, ...]) -> tuple[int, dict[str, str]]:
    """The exit code, and the output in each format that ``ANSWERS`` has for it: one run writes all of them."""
    formats = [format_name for given, format_name, _ in ANSWERS.values() if tuple(given) == arguments]
    # Run in the project's root, so that file names do not contain its path.
    with TemporaryDirectory() as folder, chdir(PROJECT), mock.patch.dict(os.environ, {"COLUMNS": "80"}):
        outputs = [word for each in formats for word in ("-o", f"{each}={folder}/{each}")]
        code = process.run(["check", *arguments, "--now", NOW, *outputs])
        return code, {each: (Path(folder) / each).read_text(encoding="utf-8") for each in formats}
