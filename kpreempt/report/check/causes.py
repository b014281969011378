"""Findings grouped by cause, so that each cause is reported once, with its fix and how to waive it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from kpreempt.gate_rules import RuleId
from kpreempt.report.amounts import agree, count, format_duration
from kpreempt.report.blocks import Phrase
from kpreempt.report.check.words import finding_phrase
from kpreempt.report.escape import is_hidden
from kpreempt.report.evidence import join_names
from kpreempt.report.quoting import names, plain
from kpreempt.report.remedies import action, interruptions, join_options, kubectl, losses, node_what_ifs, not_tried
from kpreempt.verdict.check import GateFinding
from kpreempt.verdict.remedies import ChangeKind, Remedy, RemedyStage

# Rules whose advice is what was tested, so that it is not repeated if nothing helps.
_TESTED_ADVICE = frozenset(
    {
        RuleId.REQUIRE_SCHEDULABLE,
        RuleId.MAX_PDB_VIOLATIONS,
        RuleId.MAX_VICTIMS,
        RuleId.MAX_VICTIMS_PER_WORKLOAD,
        RuleId.FORBID_VICTIMS,
        RuleId.MAX_CASCADE_DEPTH,
        RuleId.MAX_PENDING,
        RuleId.QUOTA_REJECTIONS,
        RuleId.VOLUME_ATTACHED_ELSEWHERE,
    }
)
# Changes that no command makes, or whose words have the command.
_WITHOUT_COMMAND = frozenset({ChangeKind.REPAIR, ChangeKind.ORDER})
# Changes whose words do not name the object.
_ABOUT_TEMPLATE = frozenset(
    {
        ChangeKind.REQUEST,
        ChangeKind.MAX_SKEW,
        ChangeKind.NODE_TAINTS_POLICY,
        ChangeKind.MATCH_LABEL_KEYS,
        ChangeKind.LABEL_VALUE,
        ChangeKind.TOLERATION,
        ChangeKind.PREFERENCE,
        ChangeKind.NODE_SELECTOR,
        ChangeKind.NODE_AFFINITY,
        ChangeKind.POD_AFFINITY,
        ChangeKind.POD_ANTI_AFFINITY,
        ChangeKind.SPREAD,
        ChangeKind.HOST_PORT,
    }
)
_SUBJECTS_SHOWN = 3
_REASON = "why this is acceptable"


class Cause(NamedTuple):
    """Findings of one rule with the same cause about different subjects; ``first`` represents all of them."""

    findings: list[GateFinding]

    @property
    def first(self) -> GateFinding:
        """The finding that is reported in full."""
        return self.findings[0]

    @property
    def pods(self) -> list[str]:
        """The pods of all findings, without duplicates."""
        return list(dict.fromkeys(pod for each in self.findings for pod in each.pods))


def causes(findings: Iterable[GateFinding]) -> list[Cause]:
    """Group findings that have the same status, object and text, keeping their order.

    Numbers differ between subjects, so findings without a detail text are not grouped, except pods that no controller
    owns.
    """
    found: dict[object, Cause] = {}
    for number, each in enumerate(findings):
        is_alone = not each.detail and each.rule is not RuleId.LOST_PODS
        key = number if is_alone else _key(each)
        found.setdefault(key, Cause([])).findings.append(each)
    return list(found.values())


def _key(finding: GateFinding) -> tuple[object, ...]:
    place = (finding.change, finding.source, finding.line, finding.origin)
    suppression = (finding.status, finding.reason, finding.by, finding.expires)
    remedies = advice_of(finding)
    return (finding.rule, finding.detail, remedies, finding.limit, finding.in_runs, *place, *suppression)


def cause_phrase(cause: Cause, *, limit: int | None = _SUBJECTS_SHOWN) -> Phrase:
    """The sentence about the first subject, and the others: ``…; also Pod shop/b and Pod shop/c``."""
    others = list(dict.fromkeys(each.subject for each in cause.findings[1:]))
    more: Phrase = ("; also ", *names(others, limit=limit)) if others else ()
    return (*finding_phrase(cause.first), *more)


def advice(finding: GateFinding) -> list[tuple[str, str]]:
    """What to do, each with its label: the remedies that were tested, or else what is known about the rule.

    Advice of a rule is left out if what it says was tested without success.
    """
    is_solved = any(each.solves for each in finding.remedies)
    found = [
        ("or" if index else "fix", remedy_sentence(each, leaves_others=is_solved and not each.solves))
        for index, each in enumerate(finding.remedies)
    ]
    if not found and finding.search.tried and finding.rule in _TESTED_ADVICE:
        number = count(finding.search.tried, "change")
        found = [("fix", f"Nothing found that helps and makes nothing else worse ({number} tested).")]
    elif not found:
        found = [("fix", finding.fix or finding.rule.row.advice)]
    if untried := not_tried(finding.search):
        found.append(("note", f"{untried}."))
    return found


def advice_of(finding: GateFinding) -> str:
    """What to do, as one text."""
    parts = [text if label != "or" else f"Or: {text}" for label, text in advice(finding)]
    return " ".join(parts)


def tested_advice(finding: GateFinding) -> str:
    """The remedies after a space, for formats that have a rule's general advice elsewhere; empty without remedies."""
    return f" {advice_of(finding)}" if finding.remedies else ""


def remedy_sentence(remedy: Remedy, *, leaves_others: bool = False) -> str:
    """What to change, and what else that means, such as ``Set strategy.type: Recreate in Deployment shop/db.``.

    ``leaves_others``: other findings remain, which another remedy solves, too.
    """
    if remedy.clears_after is not None:
        wait = format_duration(remedy.clears_after) if remedy.clears_after else "a moment"
        return f"Nothing to do: the rejected pods are created after about {wait}, when old pods are gone."
    removed = [each.object for each in remedy.edits if each.deletes and not each.in_cluster]
    text = f"remove {join_names(removed)} from the manifests" if removed else action(remedy)
    objects = list(dict.fromkeys(each.object for each in remedy.edits))
    if len(objects) == 1 and any(each.kind in _ABOUT_TEMPLATE for each in remedy.changes):
        text += f" {'from' if text.startswith('drop') else 'in'} {objects[0]}"
    number = len(remedy.evicted)
    effects = (
        [f"{count(number, 'pod')} {agree(number, 'is')} evicted and {agree(number, 'runs')} again"] if number else []
    )
    for workload, ready in remedy.least_ready.items():
        is_named = objects == [workload]
        pods = f"{ready:,} of its pods" if is_named else f"{count(ready, 'pod')} of {workload}"
        none = f"{'it' if is_named else workload} has no ready pod for a while"
        effects.append(f"at worst, {pods} {agree(ready, 'is')} ready" if ready else none)
    effects += [*interruptions(remedy), *losses(remedy)]
    if remedy.stage is RemedyStage.DELETION and any(
        each.deletes and each.object.startswith("Pod ") for each in remedy.edits
    ):
        effects.append("its controller creates it again")
    effects += ["other findings remain"] if leaves_others else []
    effects += [f"{remedy.manager} may revert it: change it there"] if remedy.manager else []
    effects += [f"to try it: {join_options(options)}"] if (options := node_what_ifs(remedy)) else []
    more = f" ({'; '.join(effects)})" if effects else ""
    how = [f": {each}" for each in _commands(remedy)[:1]]
    return plain((f"{text[:1].upper()}{text[1:]}{more}{''.join(how) or '.'}",))


def _commands(remedy: Remedy) -> list[str]:
    """The command for a remedy that changes the cluster, if it is a single one."""
    edits = [each for each in remedy.edits if each.in_cluster]
    kinds = {each.kind for each in remedy.changes}
    if len(edits) != len(remedy.edits) or len(edits) != 1 or kinds & _WITHOUT_COMMAND:
        return []
    return [kubectl(edits[0])]


def waive_tables(findings: Iterable[GateFinding]) -> list[str]:
    """Entries of ``kpreempt.toml`` that waive the findings, without duplicates; the author fills in the reasons."""
    subjects = dict.fromkeys((str(each.rule), each.subject) for each in findings)
    return [
        f"[[check.waive]]\nrule = {_toml(rule)}\nsubject = {_toml(subject)}\nreason = {_toml(_REASON)}\n"
        for rule, subject in subjects
    ]


def _toml(text: str) -> str:
    """A basic TOML string in which hidden characters and CI commands are escaped."""
    quoted = json.dumps(text, ensure_ascii=False).replace("##", "\\u0023#")
    return "".join(map(_toml_character, quoted))


def _toml_character(character: str) -> str:
    # TOML does not allow lone surrogates; "*" matches any text.
    if "\ud800" <= character <= "\udfff":
        return "*"
    code = ord(character)
    if not is_hidden(character):
        return character
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
