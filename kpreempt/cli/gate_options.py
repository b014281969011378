"""The options of a gate, each declared once: one for each rule, and those for files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from typer import Option

from kpreempt.cli.options import Group
from kpreempt.gate_rules import RuleId, Takes

_Text = str | None
_Texts = list[str] | None


class GateFlags(NamedTuple):
    """The options as they were given; ``rules`` has what is given of rules: a text, whether it is on, or a list."""

    config: str | None = None
    config_from: str | None = None
    no_annotation_waivers: bool = False
    rules: Mapping[RuleId, Any] = {}
    severity: Sequence[str] = ()
    report_only: bool = False
    waive: Sequence[str] = ()
    baseline: str | None = None
    write_baseline: str | None = None
    expires: str | None = None


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
