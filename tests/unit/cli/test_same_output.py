# ruff: noqa: E501 - a row of the table is one case
"""What is written for the same input is the same in every process, however Python's sets and hashes are ordered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kpreempt.cli.runner import time_of_answer
from kpreempt.report.answers import ANSWER_FORMATS, CHECK_FORMATS, VERDICT_FORMATS

ROOT = Path(__file__).parents[3]
# Runs commands in one process, each with all its formats, and prints what they write.
_PROGRAM = """
import json, sys
from kpreempt.cli import process
for words in json.loads(sys.argv[1]):
    print(words, process.run(words), flush=True)
"""
PAGES = (*ANSWER_FORMATS, "html")
ON_CALL = ["--snapshot", "fixtures/on-call/cluster.yaml"]
COMMANDS: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "explain": (["explain", "-f", "fixtures/demo/api.yaml", "--snapshot", "fixtures/demo/cluster.yaml"], VERDICT_FORMATS),
    "aftermath": (["explain", "-f", "fixtures/demo/api.yaml", "--aftermath", "--snapshot", "fixtures/demo/cluster.yaml"], VERDICT_FORMATS),
    "workload": (["explain", "deploy/web", "-n", "shop", "--capacity", "--snapshot", "fixtures/workloads/cluster.yaml"], ("text", "json", "html")),
    "kueue": (["explain", "-f", "fixtures/kueue/train.yaml", "--algorithm", "kueue-0.19", "--snapshot", "fixtures/kueue/cluster.yaml"], ANSWER_FORMATS),
    "pending": (["pending", "-A", *ON_CALL], (*PAGES, "wide")),
    "check": (["check", "-f", "fixtures/check/outage/rollout.yaml", "--snapshot", "fixtures/check/outage/cluster.yaml"], CHECK_FORMATS),
    "release": (["check", "-f", "fixtures/check/release/release.yaml", "--snapshot", "fixtures/check/release/cluster.yaml"], CHECK_FORMATS),
    "drain": (["drain", "n1", "--ignore-daemonsets", "--snapshot", "fixtures/drain/cluster.yaml"], CHECK_FORMATS),
    "at-risk": (["at-risk", "-A", *ON_CALL], ANSWER_FORMATS),
    "budgets": (["budgets", "-A", "--snapshot", "fixtures/budgets/cluster.yaml"], (*ANSWER_FORMATS, "sarif", "junit")),
    "queue": (["queue", *ON_CALL], ANSWER_FORMATS),
    "compare": (["compare", "-f", "fixtures/compare/api.yaml", "--algorithms", "kube-1.18,kube-1.36", "--snapshot", "fixtures/compare/cluster.yaml"], PAGES),
    "compare pending": (["compare", "--algorithms", "kube-1.13,kube-1.36", *ON_CALL], PAGES),
    "volcano": (["volcano", "--snapshot", "fixtures/volcano/shared-cluster.yaml"], ANSWER_FORMATS),
    "who-evicted": (["who-evicted", "encode-1", "-n", "batch", *ON_CALL], PAGES),
}  # fmt: skip


def write(seed: int, commands: list[list[str]]) -> None:
    """Run the commands in a process with that hash seed."""
    environment = {**os.environ, "PYTHONHASHSEED": str(seed), "COLUMNS": "80"}
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps(commands)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        check=True,
        text=True,
    )
    found = run.stdout.splitlines()
    assert all(line.endswith((" 0", " 1")) for line in found), (found, run.stderr)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Folders with all outputs of processes with different hash seeds, the last two without a time."""
    folders = []
    for seed, times in (
        (1, ["--now", "2026-11-21T12:00:00Z"]),
        (2, ["--now", "2026-11-21T12:00:00Z"]),
        (3, []),
        (4, []),
    ):
        folder = tmp_path_factory.mktemp(f"seed-{seed}")
        outputs = {
            name: [word for each in formats for word in ("-o", f"{each}={folder}/{name}.{each}")]
            for name, (_, formats) in COMMANDS.items()
        }
        write(seed, [[*words, *times, *outputs[name]] for name, (words, _) in COMMANDS.items()])
        folders.append(folder)
    return folders


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_every_format_is_the_same_in_every_process(runs: list[Path], name: str) -> None:
    for format_name in COMMANDS[name][1]:
        first, second = ((folder / f"{name}.{format_name}").read_bytes() for folder in runs[:2])
        assert first or format_name in ("name", "jsonl")
        assert first == second, format_name


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, (_, formats) in COMMANDS.items() if "html" in formats])
def test_a_page_does_not_say_when_it_was_made(runs: list[Path], name: str) -> None:
    first, second = ((folder / f"{name}.html").read_bytes() for folder in runs[2:])
    assert first == second


def test_the_clock_is_read_in_whole_seconds() -> None:
    assert not any(time_of_answer(None).microsecond for _ in range(3))
