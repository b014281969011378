from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_readme_completions_and_schema_are_what_the_program_makes_now() -> None:
    command = [sys.executable, "-m", "tests.generated", "--check"]
    run = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert (run.returncode, run.stderr) == (0, "")
