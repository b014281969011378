"""Rewrite the files that the program itself generates, or with ``--check`` print which are out of date.

``python -m tests.generated [--check]``: the examples in README.md and docs/, help included, the tables in
docs/algorithms.md, docs/versions.md, the counts in docs/fidelity.md, outputs and tables in docs/writing-plugins.md, the
completions, the tables of docs/naming.md, the table of rules in docs/gate.md, a page for each in docs/rules/, the JSON
Schema of a verdict, and in all of them the latest modeled version.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from functools import cache
from pathlib import Path
from textwrap import fill

from kpreempt.cli.completion.scripts import FILES as COMPLETION_FILES
from kpreempt.gate_rules import RuleId
from kpreempt.report.rules import rule_page
from kpreempt.report.schema import verdict_schema
from kpreempt.scheduler_table import LATEST_VERSION, RELEASES
from tests.algorithm_answers import with_answers
from tests.naming_document import DOCUMENT as NAMING
from tests.naming_document import with_names
from tests.parity import fidelity
from tests.plugin_document import DOCUMENT as WRITING_PLUGINS
from tests.plugin_document import with_outputs
from tests.program import run_kpreempt
from tests.rule_examples import output_of
from tests.version_answers import DOCUMENT as VERSIONS
from tests.version_answers import document as versions_document

ROOT = Path(__file__).parent.parent
# Files that users read.
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
ALGORITHMS = ROOT / "docs" / "algorithms.md"
INDEX = ROOT / "docs" / "README.md"
RULE_PAGES = ROOT / "docs" / "rules"
GATE = ROOT / "docs" / "gate.md"
SCHEMA = ROOT / "kpreempt" / "report" / "verdict.schema.json"
# A comment with a command, and the code block after it with the command and its output.
EXAMPLE = re.compile(r"(<!-- shows: (?P<command>.+?) -->\n)```console\n(?:(?!```).*\n)*```\n")

# The list item with the links to the pages of the rules.
_RULE_LINKS = re.compile(r"(?m)^- Each rule, with an example: .*\n(?:  \[.*\n)*")
_FIRST_VERSION = next(iter(RELEASES))
# The modeled versions of kube-scheduler in sentences; "up to" is for other ranges.
_VERSIONS = re.compile(rf"({re.escape(_FIRST_VERSION)}`? to\s`?(?:kube-)?)1\.\d+")
# The head of the table of rules, and its rows.
_RULES = re.compile(r"(\| rule \| default \| what it limits \|\n\|[-|]+\|\n)(?:\|.*\n)*")


@cache
def kpreempt(*arguments: str) -> str:
    """The program's output, at 80 columns and without color."""
    run = run_kpreempt(arguments)
    # A failing check has output, too.
    if run.returncode not in (0, 1):
        raise SystemExit(run.stderr)
    return run.stdout


def with_examples(text: str) -> str:
    """A file with the current output of every example."""

    def example(match: re.Match[str]) -> str:
        program, *arguments = shlex.split(match["command"])
        if program != "kpreempt":
            raise SystemExit(f"an example shows {program}, which is not ours")
        return f"{match[1]}```console\n$ {match['command']}\n{kpreempt(*arguments).rstrip()}\n```\n"

    return EXAMPLE.sub(example, text)


def with_rules(text: str) -> str:
    """docs/gate.md with a row for each rule."""
    rows = "".join(
        f"| [`{rule}`](rules/{rule}.md) | {rule.row.default_text} | {rule.row.meaning} |\n" for rule in RuleId
    )
    return _RULES.sub(lambda match: f"{match[1]}{rows}", text)


def _link(rule: RuleId) -> str:
    return f"[{rule}](rules/{rule}.md)"


def _rule_links() -> str:
    """The list item with a link to each rule's page, wrapped like other text."""
    text = f"- Each rule, with an example: {', '.join(map(_link, RuleId))}"
    return fill(text, width=130, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) + "\n"


def wanted() -> dict[Path, str]:
    """Every generated file with its content."""
    files = {ROOT / "completions" / name: kpreempt("completion", shell) for shell, name in COMPLETION_FILES.items()}
    files[SCHEMA] = json.dumps(verdict_schema(), indent=2, sort_keys=True) + "\n"
    for path in PAGES:
        text = with_examples(path.read_text(encoding="utf-8"))
        files[path] = _VERSIONS.sub(lambda match: match[1] + LATEST_VERSION, text)
    files[WRITING_PLUGINS] = with_outputs(files[WRITING_PLUGINS])
    files[GATE] = with_rules(files[GATE])
    files[NAMING] = with_names(files[NAMING])
    files[INDEX] = _RULE_LINKS.sub(lambda _: _rule_links(), files[INDEX])
    files |= {RULE_PAGES / f"{rule}.md": rule_page(rule, output=output_of(rule)) for rule in RuleId}
    scores = json.loads(fidelity.SCORES.read_text(encoding="utf-8"))
    files[fidelity.DOCUMENT] = fidelity.with_scores(files[fidelity.DOCUMENT], scores)
    files[VERSIONS] = versions_document()
    files[ALGORITHMS] = with_answers(files[ALGORITHMS])
    return files


def main() -> int:
    """Rewrite or check; return 1 if a file is out of date."""
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
