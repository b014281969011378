"""What commands that simulate and put rules to it are asked, each declared once: runs, rules, and their files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from kpreempt.cli.options import MAX_RUNS, After, AnswerRequest, Group
from kpreempt.errors import UsageError
from kpreempt.gate_rules import RuleId, Takes
from kpreempt.library.gate.flags import GateFlags

if TYPE_CHECKING:
    from kpreempt.report.options import RenderOptions

_Text = str | None
_Texts = list[str] | None
# What stands in links as it is: no white space, quotes, or signs that mean something in Markdown or in HTML.
_WEB_ADDRESS = re.compile(r"https?://[A-Za-z0-9._~:/@%+,;=-]+", re.ASCII)


def _option(rule: RuleId) -> Any:
    """The option of a rule as Typer reads it off a parameter."""
    row = rule.row
    if row.takes is Takes.PODS:
        return Annotated[_Texts, Option(f"--{rule}", metavar=row.takes.value, help=row.option)]
    words = f"{row.option}  [{row.default_text}]"
    if row.takes is Takes.SWITCH:
        return Annotated[bool | None, Option(f"--{rule}/--no-{rule}", help=words)]
    return Annotated[_Text, Option(f"--{rule}", metavar=row.takes.value, help=words)]


_PARAMETERS = {rule: rule.replace("-", "_") for rule in RuleId if rule.row.takes is not Takes.NOTHING}
_FILES: dict[str, Any] = {
    "config": Annotated[
        _Text,
        Option(
            "--config",
            metavar="FILE",
            help="The rules' file, not the kpreempt.toml of this folder or of one above it in the repository.",
        ),
    ],
    "config_from": Annotated[
        _Text,
        Option(
            "--config-from",
            metavar="REF|DIR",
            help="Read the rules' file and the baseline from a commit, such as HEAD^1, or a folder (./DIR), and not "
            "as they are here.",
        ),
    ],
}
_OTHERS: dict[str, Any] = {
    "severity": Annotated[
        _Texts,
        Option(
            "--severity",
            metavar="RULE=error|warn|off",
            help="What a rule counts for: an error shuts the gate, a warning does not. Repeatable.",
        ),
    ],
    "report_only": Annotated[
        bool | None, Option("--report-only", help="Tell what breaks the rules, as warnings, and exit 0.")
    ],
    "waive": Annotated[
        _Texts,
        Option(
            "--waive",
            metavar="RULE[=SUBJECT]",
            help="Let a rule pass, or what it says of a subject: max-pending='Deployment dev/*'. Repeatable.",
        ),
    ],
    "no_annotation_waivers": Annotated[
        bool | None,
        Option("--no-annotation-waivers", help="No annotation of the manifests waives a rule."),
    ],
    "baseline": Annotated[
        _Text, Option("--baseline", metavar="FILE", help="What is accepted, as --write-baseline wrote it.")
    ],
    "write_baseline": Annotated[
        _Text,
        Option("--write-baseline", metavar="FILE", help="Write what fails now to FILE, to be accepted until then."),
    ],
    "expires": Annotated[
        _Text, Option("--expires", metavar="DATE", help="The last day on which the new baseline counts: 2026-12-31.")
    ],
}


def gate_flags(values: Mapping[str, Any]) -> GateFlags:
    """The flags that the options were given as; ``None`` where one was not."""
    given = {name: value for name, value in values.items() if value is not None}
    rules = {rule: given.pop(name) for rule, name in _PARAMETERS.items() if name in given}
    return GateFlags(rules=rules, **given)


def _options(command: str) -> dict[str, Any]:
    rules = {name: _option(rule) for rule, name in _PARAMETERS.items() if command in rule.row.commands}
    return {**_FILES, **rules, **_OTHERS}


Gate = Annotated[GateFlags, Group(_options("check"), gate_flags)]
DrainGate = Annotated[GateFlags, Group(_options("drain"), gate_flags)]


class GatedRequest(AnswerRequest):
    """A simulation of what happens to the cluster, to which the rules of a gate are put."""

    seed: Annotated[int, After("extensions"), Option(metavar="NUMBER", help="What chance starts from.")] = 0
    runs: Annotated[
        int | None,
        Option(
            metavar="N",
            min=1,
            max=MAX_RUNS,
            help="Run it N times with other draws; the worst counts. By default once where nothing is drawn, every "
            "choice where these are few, else up to 20 times.",
        ),
    ] = None
    worst_case: Annotated[
        bool, Option("--worst-case", help="Simulate every choice that chance leaves; the worst counts.")
    ] = False
    max_plays: Annotated[
        int,
        Option(metavar="N", min=1, max=MAX_RUNS, help="With --worst-case: at most so many; more leave it uncertain."),
    ] = 100
    stream_name: Annotated[
        str,
        Option(
            "--stream-name",
            metavar="FILE",
            help="The file that SARIF and GitLab name for a stream without # Source: comments.",
        ),
    ] = "kpreempt-input.yaml"
    docs_url: Annotated[
        str,
        Option(
            "--docs-url",
            metavar="URL",
            help="Where kpreempt's docs are to be read: findings link to the pages of their rules there.",
        ),
    ] = ""
    outputs: Annotated[
        list[str],
        Option(
            "-o",
            "--output",
            metavar="FORMAT[=FILE]",
            help="text (default), json, yaml, jsonl, name, markdown, html, junit, sarif, github or gitlab, into FILE "
            "if given. Repeatable. Or, as kubectl has them, jsonpath=TEMPLATE and custom-columns=HEADER:PATH,...",
        ),
    ] = []

    def lengthened_for_log(self, options: RenderOptions) -> RenderOptions:
        """The report: a pipeline's log keeps what the gate found."""
        import msgspec

        from kpreempt.report.options import Extent

        return msgspec.structs.replace(self.lengthened(options), extent=Extent.REPORT)

    def refuse_contradictions(self) -> None:
        """Raise ``UsageError`` where these options contradict each other or are none."""
        if self.worst_case and (self.runs or 1) > 1:
            raise UsageError("--worst-case looks at all choices, and --runs draws some of them: one of both")
        if self.docs_url and not _WEB_ADDRESS.fullmatch(self.docs_url):
            raise UsageError("--docs-url is no address of a web page", hint="https://wiki.example/kpreempt/docs")
