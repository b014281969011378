"""The examples of the gate's rules as commands, and their output for the rules' pages."""

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
    """Write the files that the commands of an example name to a folder."""
    shutil.copy(CLUSTER, folder / "cluster.yaml")
    for name, text in example.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    if not example.uses_commands:
        (folder / "change.yaml").write_text(example.fix if mends else example.fails, encoding="utf-8")


def arguments_of(example: Example, *, mends: bool) -> list[str]:
    """The arguments after ``kpreempt`` in the command."""
    request = ["check", "-f", "change.yaml", "--snapshot", "cluster.yaml", *example.options]
    if example.uses_commands:
        program, *request = shlex.split((example.fix if mends else example.fails).replace("\\\n", ""))
        assert program == "kpreempt"
    return request if "--now" in request else [*request, "--now", _NOW]


def output_of(rule: RuleId) -> str:
    """The output of the failing command of the example, as far as it is about the rule."""
    with TemporaryDirectory() as folder:
        lay_out(Path(folder), rule.row.example, mends=False)
        run = run_kpreempt(arguments_of(rule.row.example, mends=False), Path(folder))
    if run.returncode != 1:
        raise SystemExit(f"the example of {rule} ends with {run.returncode}: {run.stderr}")
    return part_about(rule, run.stdout)


def part_about(rule: RuleId, text: str) -> str:
    """The head of a report, and the part about a rule: as much as a page shows."""
    head, *sections = text.split("\n\n")
    label, *lines = next(
        each for each in sections if each.startswith(("FINDINGS", "WARNINGS")) and rule in each
    ).splitlines()
    shown: list[str] = []
    is_about = False
    for line in lines:
        # Parts of a finding are indented more.
        is_about = is_about if line.startswith("    ") else line.startswith((f"  ✗ {rule}  ", f"  ! {rule}  "))
        shown += [line] if is_about else []
    return "\n".join([head, "", label, *shown]) + "\n"
