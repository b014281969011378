"""The rules of the gate for a terminal, and a page of each for ``docs/rules/``."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kpreempt.gate_rules import RuleId, RuleSeverity, Takes
from kpreempt.report.blocks import Block, Code, Report, Rows, Section, Sentence, Table, Words, columns, strong
from kpreempt.report.escape import printable
from kpreempt.report.options import RenderOptions

_LINK = """
[The gate](../gate.md) says how limits are set and what lets a finding pass.
"""


class GateRule(msgspec.Struct, frozen=True, rename="camel"):
    """A rule as ``-o json`` has it: its name, default and severity, and all that is said about it.

    One of one's own has no example.
    """

    name: str
    default: str
    severity: RuleSeverity
    promise: str
    meaning: str
    advice: str
    example: str
    fails: str
    fix: str
    options: list[str]


class GateRuleList(msgspec.Struct, frozen=True, rename="camel"):
    """Rules in the order of the gate."""

    items: list[GateRule]


def rules_of(rules: Iterable[RuleId]) -> GateRuleList:
    """What there is to say about these rules."""
    return GateRuleList(
        [
            GateRule(
                name=rule,
                default=rule.row.default_text,
                severity=rule.row.severity,
                promise=rule.row.promise,
                meaning=rule.row.meaning,
                advice=rule.row.advice,
                example=rule.row.example.story,
                fails=rule.row.example.fails,
                fix=rule.row.example.fix,
                options=list(rule.row.example.options),
            )
            for rule in rules
        ]
    )


def report(rules: GateRuleList, _options: RenderOptions) -> Report:
    """All in a table; one alone is explained."""
    if len(rules.items) != 1:
        rows: list[list[Words]] = [
            [strong(each.name), each.default, each.severity, each.promise] for each in rules.items
        ]
        table = Table(columns("RULE", "DEFAULT", "SEVERITY", ""), rows, noun="rule")
        return Report(lead="", sections=[Section("", blocks=[table])], is_whole=True)
    [rule] = rules.items
    asked = f"with {' '.join(rule.options)}, " if rule.options else ""
    facts = [("default", rule.default), ("severity", rule.severity), ("what helps", rule.advice)]
    example: list[Block] = [
        block
        for label, text in ((f"{asked}this fails:", rule.fails), (f"{asked}this passes:", rule.fix))
        for block in (Sentence(label), Code(text.splitlines()))
    ]
    return Report(
        lead=(strong(rule.name), f"  {rule.promise}"),
        sections=[
            Section("MEANING", rule.meaning, [Rows(facts)]),
            Section("EXAMPLE", rule.example.replace("`", ""), example if rule.fails else []),
        ],
        is_whole=True,
    )


def rule_page(rule: RuleId, *, is_alone: bool = False, output: str = "") -> str:
    """The page of a rule in Markdown; without links to others where it ``is_alone``.

    ``output`` is what is printed where it fails, if that is to be shown.
    """
    if rule.is_custom:
        return f"# {rule}\n\nA rule of kpreempt.toml. This must be true:\n\n    {printable(rule.row.promise)}\n"
    row, example = rule.row, rule.row.example
    language = "" if example.is_of_commands else "yaml"
    options = f" With `{' '.join(example.options)}`:" if example.options else ""
    option = f"`--{rule}`" if row.takes is not Takes.NOTHING else "none: it can only warn or be waived"
    files = "".join(
        f"\n`{name}`:\n\n{_block(text, 'python' if name.endswith('.py') else 'yaml')}"
        for name, text in example.files.items()
    )
    said = f"\n`kpreempt {row.commands[0]}` says:\n\n{_block(output, '')}" if output else ""
    return f"""# {rule}

{row.meaning}

| default | severity | option |
|---|---|---|
| {row.default_text} | {row.severity} | {option} |

What helps: {row.advice}

Kubernetes' documentation: <{row.concept_url}>

## Example

{example.story}{options}

{_block(example.fails, language)}{said}
This passes:

{_block(example.fix, language)}{files}{"" if is_alone else _LINK}"""


def _block(text: str, language: str) -> str:
    return f"```{language}\n{text}```\n"
