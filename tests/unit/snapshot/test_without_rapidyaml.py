"""Where rapidyaml is not installed PyYAML reads all YAML, to the same answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
NOTE = "rapidyaml is not installed; reading YAML with PyYAML, which is slower\n"


def explained(*before: str, snapshot: str = "fixtures/demo/cluster.yaml") -> subprocess.CompletedProcess[str]:
    code = "\n".join([*before, "from kpreempt.cli import main", "main()"])
    words = ["explain", "-f", "fixtures/demo/api.yaml", "--snapshot", snapshot, "--now", "2026-11-21T12:00:00Z"]
    command = [sys.executable, "-c", code, *words, "-o", "json"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True)


def test_the_answer_is_the_same_and_a_note_says_why_it_takes_longer() -> None:
    with_it, without = explained(), explained("import sys", "sys.modules['ryml'] = None")
    assert (without.returncode, without.stdout) == (with_it.returncode, with_it.stdout)
    assert (with_it.stderr, without.stderr) == ("", NOTE)
