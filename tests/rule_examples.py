"""The examples of the gate's rules as commands that run, and what these print for the rules' pages."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from kpreempt.gate_rules import Example, RuleId
from tests.program import run_kpreempt

ROOT = Path(__file__).parents[1]
CLUSTER = ROOT / "fixtures" / "check" / "rules" / "cluster.yaml"
_NOW = "2026-11-21T00:00:00Z"


def lay_out(folder: Path, example: Example, *, mends: bool) -> None:
    """Write the files that the commands of an example name into a folder."""
    shutil.copy(CLUSTER, folder / "cluster.yaml")
    for name, text in example.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    if not example.uses_commands:
        (folder / "change.yaml").write_text(example.fix if mends else example.fails, encoding="utf-8")


def arguments_of(example: Example, *, mends: bool) -> list[str]:
    """What follows ``kpreempt`` in the command."""
    asked = ["check", "-f", "change.yaml", "--snapshot", "cluster.yaml", *example.options]
    if example.uses_commands:
        program, *asked = shlex.split((example.fix if mends else example.fails).replace("\\\n", ""))
        assert program == "kpreempt"
    return asked if "--now" in asked else [*asked, "--now", _NOW]


def output_of(rule: RuleId) -> str:
    """What the command of the example that fails prints, as far as it is about the rule."""
    with TemporaryDirectory() as folder:
        lay_out(Path(folder), rule.row.example, mends=False)
        run = run_kpreempt(arguments_of(rule.row.example, mends=False), Path(folder))
    if run.returncode != 1:
        raise SystemExit(f"the example of {rule} ends with {run.returncode}: {run.stderr}")
    return part_about(rule, run.stdout)


def part_about(rule: RuleId, text: str) -> str:
    """What a report says first, and the part about a rule: as much as a page shows of it."""
    head, *sections = text.split("\n\n")
    label, *lines = next(
        each for each in sections if each.startswith(("FINDINGS", "WARNINGS")) and rule in each
    ).splitlines()
    shown: list[str] = []
    is_about = False
    for line in lines:
        # What belongs to a finding is further to the right.
        is_about = is_about if line.startswith("    ") else line.startswith((f"  ✗ {rule}  ", f"  ! {rule}  "))
        shown += [line] if is_about else []
    return "\n".join([head, "", label, *shown]) + "\n"
