"""The rules of the gate for a terminal, and a page on each for ``docs/rules/``."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kpreempt.gate_rules import OptionType, RuleId, RuleSeverity
from kpreempt.gate_rules.rejections import Topic
from kpreempt.report.blocks import (
    Block,
    Code,
    Listing,
    Report,
    Rows,
    Section,
    Sentence,
    Table,
    Words,
    columns,
    strong,
)
from kpreempt.report.escape import printable
from kpreempt.report.options import RenderOptions

_LINK = """
[The gate](../gate.md) explains how to set limits and waive findings.
"""


class RuleTopic(msgspec.Struct, frozen=True, rename="camel"):
    """What a rule checks or does not check in one respect: a heading, a first sentence if any, and a list."""

    heading: str
    lead: str
    items: list[str]


class GateRule(msgspec.Struct, frozen=True, rename="camel"):
    """A rule in ``-o json``: its name, default, severity, and description.

    Custom rules have no example. Rules that need no more explanation have no ``topics``.
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
    topics: list[RuleTopic] = []


class GateRuleList(msgspec.Struct, frozen=True, rename="camel"):
    """Rules in the order of the gate."""

    items: list[GateRule]


def rules_of(rules: Iterable[RuleId]) -> GateRuleList:
    """The records of these rules."""
    return GateRuleList(
        [
            GateRule(
                name=rule,
                default=rule.row.default_text,
                severity=rule.row.severity,
                promise=rule.row.promise,
                meaning=rule.row.meaning,
                advice=rule.row.advice,
                example=rule.row.example.explanation,
                fails=rule.row.example.fails,
                fix=rule.row.example.fix,
                options=list(rule.row.example.options),
                topics=[RuleTopic(each.heading, each.lead, [*each.items]) for each in rule.row.topics],
            )
            for rule in rules
        ]
    )


def report(rules: GateRuleList, _options: RenderOptions) -> Report:
    """A table of the rules; a single rule is explained."""
    if len(rules.items) != 1:
        rows: list[list[Words]] = [
            [strong(each.name), each.default, each.severity, each.promise] for each in rules.items
        ]
        table = Table(columns("RULE", "DEFAULT", "SEVERITY", ""), rows, noun="rule")
        return Report(lead="", sections=[Section("", blocks=[table])], is_complete=True)
    [rule] = rules.items
    with_options = f"with {' '.join(rule.options)}, " if rule.options else ""
    facts = [("default", rule.default), ("severity", rule.severity), ("fix", rule.advice)]
    example: list[Block] = [
        block
        for label, text in ((f"{with_options}this fails:", rule.fails), (f"{with_options}this passes:", rule.fix))
        for block in (Sentence(label), Code(text.splitlines()))
    ]
    return Report(
        lead=(strong(rule.name), f"  {rule.promise}"),
        sections=[
            Section("MEANING", rule.meaning, [Rows(facts)]),
            Section("EXAMPLE", _plain(rule.example), example if rule.fails else []),
            *map(_topic, rule.topics),
        ],
        is_complete=True,
    )


def _topic(topic: RuleTopic) -> Section:
    items = [(f"- {_plain(each)}",) for each in topic.items]
    return Section(topic.heading.upper(), _plain(topic.lead), [Listing(items)], heading=topic.heading)


def _plain(text: str) -> str:
    return text.replace("`", "")


def rule_page(rule: RuleId, *, is_alone: bool = False, output: str = "") -> str:
    """The page on a rule in Markdown; without links to other pages if it ``is_alone``.

    ``output`` is kpreempt's output when the rule fails, if it is to be shown.
    """
    if rule.is_custom:
        return f"# {rule}\n\nA custom rule in kpreempt.toml. This must be true:\n\n    {printable(rule.row.promise)}\n"
    row, example = rule.row, rule.row.example
    language = "" if example.uses_commands else "yaml"
    options = f" With `{' '.join(example.options)}`:" if example.options else ""
    option = f"`--{rule}`" if row.takes is not OptionType.NOTHING else "none (change its severity or waive it)"
    files = "".join(
        f"\n`{name}`:\n\n{_block(text, 'python' if name.endswith('.py') else 'yaml')}"
        for name, text in example.files.items()
    )
    topics = "".join(f"\n{_topic_on_page(each)}" for each in row.topics)
    printed = f"\n`kpreempt {row.commands[0]}` prints:\n\n{_block(output, '')}" if output else ""
    return f"""# {rule}

{row.meaning}

| default | severity | option |
|---|---|---|
| {row.default_text} | {row.severity} | {option} |

Fix: {row.advice}

Kubernetes' documentation: <{row.concept_url}>

## Example

{example.explanation}{options}

{_block(example.fails, language)}{printed}
This passes:

{_block(example.fix, language)}{files}{topics}{"" if is_alone else _LINK}"""


def _topic_on_page(topic: Topic) -> str:
    lead = f"{topic.lead}\n\n" if topic.lead else ""
    items = "".join(f"- {each}\n" for each in topic.items)
    return f"## {topic.heading}\n\n{lead}{items}"


def _block(text: str, language: str) -> str:
    return f"```{language}\n{text}```\n"
