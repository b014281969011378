"""Rewrites the files that the program itself generates, or with ``--check`` says which are out of date.

``python -m tests.generated [--check]``: the examples in README.md, docs/volcano.md and docs/workloads.md, the tables in
docs/algorithms.md, docs/versions.md, the counts in docs/fidelity.md, outputs and tables in docs/writing-plugins.md, the
completions, the table of rules in docs/gate.md, and the JSON Schema of a verdict.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from kpreempt.cli.completion.scripts import FILES as COMPLETION_FILES
from kpreempt.gate_rules import RuleId
from kpreempt.report.schema import verdict_schema
from tests.algorithm_answers import with_answers
from tests.parity import fidelity
from tests.plugin_document import DOCUMENT as WRITING_PLUGINS
from tests.plugin_document import with_outputs
from tests.version_answers import DOCUMENT as VERSIONS
from tests.version_answers import document as versions_document

ROOT = Path(__file__).parent.parent
# Files with examples.
SHOWING = (ROOT / "README.md", ROOT / "docs" / "volcano.md", ROOT / "docs" / "workloads.md")
ALGORITHMS = ROOT / "docs" / "algorithms.md"
GATE = ROOT / "docs" / "gate.md"
SCHEMA = ROOT / "kpreempt" / "report" / "verdict.schema.json"
# A comment with a command, and the block of code after it that shows the command and what it prints.
_EXAMPLE = re.compile(r"(<!-- shows: (?P<command>.+?) -->\n)```console\n(?:(?!```).*\n)*```\n")

# The head of the table of rules, and its rows.
_RULES = re.compile(r"(\| rule \| default \| what it limits \|\n\|[-|]+\|\n)(?:\|.*\n)*")


def kpreempt(arguments: list[str], **environment: str) -> str:
    """What the program prints, at 80 columns and without colour."""
    run = subprocess.run(
        [sys.executable, "-m", "kpreempt", *arguments],
        cwd=ROOT,
        check=False,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        env={"PATH": os.environ.get("PATH", ""), "COLUMNS": "80", "NO_COLOR": "1", **environment},
    )
    # A gate that fails is an answer, too.
    if run.returncode not in (0, 1):
        raise SystemExit(run.stderr)
    return run.stdout


def with_examples(text: str) -> str:
    """A file with every example as the program prints it now."""

    def example(match: re.Match[str]) -> str:
        program, *arguments = shlex.split(match["command"])
        if program != "kpreempt":
            raise SystemExit(f"an example shows {program}, which is not ours")
        return f"{match[1]}```console\n$ {match['command']}\n{kpreempt(arguments).rstrip()}\n```\n"

    return _EXAMPLE.sub(example, text)


def with_rules(text: str) -> str:
    """docs/gate.md with a row for each rule."""
    rows = "".join(f"| `{rule}` | {rule.row.default_text} | {rule.row.meaning} |\n" for rule in RuleId)
    return _RULES.sub(lambda match: f"{match[1]}{rows}", text)


def wanted() -> dict[Path, str]:
    """Every generated file with its content."""
    files = {ROOT / "completions" / name: kpreempt(["completion", shell]) for shell, name in COMPLETION_FILES.items()}
    files[SCHEMA] = json.dumps(verdict_schema(), indent=2, sort_keys=True) + "\n"
    files |= {path: with_examples(path.read_text(encoding="utf-8")) for path in SHOWING}
    files[WRITING_PLUGINS] = with_outputs(WRITING_PLUGINS.read_text(encoding="utf-8"))
    files[GATE] = with_rules(GATE.read_text(encoding="utf-8"))
    scores = json.loads(fidelity.SCORES.read_text(encoding="utf-8"))
    files[fidelity.DOCUMENT] = fidelity.with_scores(fidelity.DOCUMENT.read_text(encoding="utf-8"), scores)
    files[VERSIONS] = versions_document()
    files[ALGORITHMS] = with_answers(ALGORITHMS.read_text(encoding="utf-8"))
    return files


def main() -> int:
    """Rewrite or check; 1 where a file is out of date."""
    stale = {
        path: text for path, text in wanted().items() if not path.exists() or path.read_text(encoding="utf-8") != text
    }
    for path, text in stale.items():
        if "--check" in sys.argv[1:]:
            sys.stderr.write(f"{path.relative_to(ROOT)} is out of date: run `make generated`\n")
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
