"""The audit of PodDisruptionBudgets for CI systems: SARIF, JUnit XML, GitHub annotations, GitLab Code Quality.

The formats are those of ``check`` and share its writers. An error is a budget that blocks drains permanently or that
pending pods would violate. An object kind that could not be read is an error, too, because then nothing is certain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kpreempt.report.amounts import count
from kpreempt.report.budgets.text import finding_text, fix_in_words
from kpreempt.report.check.facts import digest
from kpreempt.report.check.github import Annotation, command, commands
from kpreempt.report.check.gitlab import report_of
from kpreempt.report.check.junit import suite, xml_text
from kpreempt.report.check.sarif import FINGERPRINT, log_of
from kpreempt.report.escape import printable
from kpreempt.report.options import RenderOptions
from kpreempt.report.quoting import plain, shortened
from kpreempt.verdict import AssumptionKind
from kpreempt.verdict.budgets import BudgetAudit, FindingId, Severity
from kpreempt.verdict.unread import assumption_text

_TITLE = "kpreempt budgets"
_LONGEST = 4000
_UNREAD = "not-read"
_MEANINGS: dict[str, str] = {
    FindingId.VIOLATED_BY_PREEMPTION: "Pending pods would evict more pods than the budget allows.",
    FindingId.NEVER_ALLOWS: "The budget allows no disruptions even if all its pods are healthy.",
    FindingId.MIN_AVAILABLE_ABOVE_PODS: "minAvailable exceeds the expected pods, so no disruption is ever allowed.",
    FindingId.OVERLAP: "Pods have several budgets, so the eviction API rejects their eviction.",
    FindingId.NO_SCALE: "The disruption controller cannot compute the budget: a controller has no scale.",
    FindingId.INVALID_AMOUNT: "The amount is neither a number nor a percentage.",
    FindingId.INVALID_SELECTOR: "The selector is invalid and selects no pod.",
    FindingId.ALLOWS_NONE_NOW: "The budget allows no disruptions now.",
    FindingId.ALLOWS_NONE_AT_HPA_MINIMUM: "The budget allows no disruptions at the minReplicas of an autoscaler.",
    FindingId.UNMANAGED_PODS: "Pods without a controller do not count for the budget.",
    FindingId.SELECTS_EVERY_POD: "The empty selector selects all pods for the eviction API, none for the scheduler.",
    FindingId.NULL_SELECTOR: "The budget has no selector and selects no pod.",
    FindingId.SELECTS_NOTHING: "The budget selects no pod.",
    FindingId.STALE_STATUS: "The status is older than the spec.",
    FindingId.NO_STATUS: "The budget has no status.",
    FindingId.SEVERAL_WORKLOADS: "Several workloads share the budget.",
    FindingId.PROTECTS_NOTHING: "The budget allows all its pods to be disrupted simultaneously.",
    FindingId.NO_BUDGET: "A workload with several replicas has no budget.",
    _UNREAD: "An object kind that the audit requires was not read.",
}
_RULES = list(_MEANINGS)
_GITHUB = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_GITLAB = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.NOTE: "info"}


class _Issue(NamedTuple):
    """A finding: its rule, its subject, the problem, and the fix."""

    rule: str
    severity: Severity
    subject: str
    text: str
    fix: str

    @property
    def message(self) -> str:
        """The problem and the fix, on one line, escaped."""
        return shortened(plain((f"{self.text}{f'. Fix: {self.fix}' if self.fix else ''}",)), _LONGEST)

    @property
    def fingerprint(self) -> str:
        return digest(self.rule, self.subject)


def _issues(audit: BudgetAudit) -> list[_Issue]:
    """All findings, worst first."""
    return [*_unread(audit), *_found(audit)]


def _unread(audit: BudgetAudit) -> Iterator[_Issue]:
    for each in audit.assumptions:
        if each.kind in (AssumptionKind.UNREADABLE, AssumptionKind.ABSENT):
            yield _Issue(_UNREAD, Severity.ERROR, each.subject, assumption_text(each), "")


def _found(audit: BudgetAudit) -> Iterator[_Issue]:
    items = {item.budget: item for item in audit.items}
    for finding in audit.findings:
        kind, _, bare = finding.subject.partition(" ")
        subject = f"{kind} {finding.namespace}/{bare}"
        item = items.get(f"{finding.namespace}/{bare}") if finding.id is not FindingId.NO_BUDGET else None
        text = f"{subject}: {finding_text(finding, item)}"
        yield _Issue(str(finding.id), finding.severity, subject, text, fix_in_words(finding))


def _tally(audit: BudgetAudit) -> str:
    found = _issues(audit)
    numbers = [count(sum(each.severity is severity for each in found), severity) for severity in Severity]
    return f"{count(len(audit.items), 'budget')}: {', '.join(numbers)}"


def render_sarif(audit: BudgetAudit, options: RenderOptions) -> str:
    """A result per finding. Cluster objects have no file, so ``options.stream_name`` stands for it."""
    rules = [
        {
            "id": rule,
            "name": "".join(part.capitalize() for part in rule.split("-")),
            "shortDescription": {"text": meaning},
            "fullDescription": {"text": meaning},
            "help": {"text": meaning},
            "properties": {"tags": ["kubernetes", "PodDisruptionBudget"]},
        }
        for rule, meaning in _MEANINGS.items()
    ]
    results = [_result(issue, options.stream_name) for issue in _issues(audit)]
    properties = {"algorithm": printable(audit.algorithm), "summary": _tally(audit)}
    return log_of(rules, results, audit.assumptions, properties)


def _result(issue: _Issue, stream_name: str) -> dict[str, Any]:
    return {
        "ruleId": issue.rule,
        "ruleIndex": _RULES.index(issue.rule),
        "level": str(issue.severity),
        "message": {"text": f"{issue.message}."},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": printable(stream_name)}},
                "logicalLocations": [
                    {"fullyQualifiedName": shortened(printable(issue.subject), _LONGEST), "kind": "resource"}
                ],
                "message": {"text": "A cluster object, which has no file."},
            }
        ],
        "partialFingerprints": {FINGERPRINT: issue.fingerprint},
    }


def render_junit(audit: BudgetAudit, _options: RenderOptions) -> str:
    """A test per kind of finding; errors fail it, and warnings and notes are only printed."""
    found = _issues(audit)
    cases = [_case(rule, meaning, [each for each in found if each.rule == rule]) for rule, meaning in _MEANINGS.items()]
    return suite(_TITLE, cases, {"algorithm": audit.algorithm}, _tally(audit))


def _case(rule: str, meaning: str, found: Sequence[_Issue]) -> str:
    start = f'    <testcase classname="kpreempt.budgets" name="{xml_text(f"{rule}: {meaning}")}"'
    if not found:
        return f"{start}/>"
    body = xml_text("\n".join(each.message for each in found))
    failing = [each for each in found if each.severity is Severity.ERROR]
    if failing:
        more = f" (and {count(len(failing) - 1, 'more finding')})" if len(failing) > 1 else ""
        inner = f'<failure type="{rule}" message="{xml_text(f"{failing[0].message}{more}")}">{body}</failure>'
    else:
        inner = f"<system-out>{found[0].severity}: {body}</system-out>"
    return f"{start}>\n      {inner}\n    </testcase>"


def render_github(audit: BudgetAudit, _options: RenderOptions) -> str:
    """Errors, warnings and notices, as many of each as GitHub shows; a notice if there are no findings."""
    found, facts = _issues(audit), _tally(audit)
    lines: list[str] = []
    for severity, kind in _GITHUB.items():
        annotations = [Annotation(each.rule, {}, each.message) for each in found if each.severity is severity]
        lines += commands(kind, annotations, _TITLE, facts)
    return "\n".join(lines or [command("notice", {"title": _TITLE}, facts)]) + "\n"


def render_gitlab(audit: BudgetAudit, options: RenderOptions) -> str:
    """An issue per finding. Cluster objects have no file, so ``options.stream_name`` stands for it."""
    return report_of(
        [
            {
                "description": issue.message,
                "check_name": issue.rule,
                "fingerprint": issue.fingerprint,
                "severity": _GITLAB[issue.severity],
                "location": {"path": printable(options.stream_name), "lines": {"begin": 1}},
            }
            for issue in _issues(audit)
        ]
    )
