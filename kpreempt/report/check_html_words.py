"""The words of a check's page for what the records name by constants."""

from __future__ import annotations

from kpreempt.verdict.check import ChangeKind, GateFinding, GateStanding, RuleId
from kpreempt.verdict.play import PlayEnd, StrandedKind

_RULES = {
    RuleId.MAX_PDB_VIOLATIONS: "Victims that their budget does not allow to go",
    RuleId.MAX_VICTIMS: "Pods that have to go",
    RuleId.MAX_VICTIMS_PER_WORKLOAD: "Pods that have to go, of one workload",
    RuleId.FORBID_VICTIMS: "Pods that must not have to go",
    RuleId.REQUIRE_SCHEDULABLE: "Every pod of the change finds a node",
    RuleId.MAX_CASCADE_DEPTH: "Evictions that follow from one another",
    RuleId.MAX_PENDING: "Pods that ran, and wait in the end",
    RuleId.MAX_STRANDED: "What is left without something that it needs",
    RuleId.FORBID_LOOPS: "The rollout comes to an end",
    RuleId.MAX_SNAPSHOT_AGE: "Age of the snapshot, in seconds",
    RuleId.BUDGETS_UNREADABLE: "The budgets could be read",
    RuleId.OBJECTS_SET_ASIDE: "No object was left out",
    RuleId.FIELDS_NOT_MODELLED: "All that the input says is evaluated",
    RuleId.OUTCOME_UNCERTAIN: "What becomes of every pod can be told",
}
STANDINGS = {
    GateStanding.FAILS: ("fails", "bad"),
    GateStanding.NOT_NEW: ("not new", "warn"),
    GateStanding.ACCEPTED: ("accepted", "warn"),
    GateStanding.WAIVED: ("waived", "warn"),
}
CHANGES = {
    ChangeKind.CREATED: "created",
    ChangeKind.ROLLED: "rolled out",
    ChangeKind.SCALED: "scaled",
    ChangeKind.UPDATED: "updated",
    ChangeKind.DELETED: "deleted",
    ChangeKind.UNCHANGED: "unchanged",
}
STRANDED = {
    StrandedKind.AFFINITY: "has to be near a pod that is gone",
    StrandedKind.SERVICE: "has no ready pod",
    StrandedKind.DAEMON_SET: "cannot come back to its node",
}
ENDS = {
    PlayEnd.SETTLED: "comes to rest",
    PlayEnd.LOOP: "goes round for ever",
    PlayEnd.BROKEN_OFF: "broken off; more would happen",
}


def rule_title(rule: RuleId) -> str:
    """What the rule is about."""
    return _RULES[rule]


def finding_text(finding: GateFinding) -> str:
    """What is wrong, in a sentence."""
    measured = f": {finding.amount:,}, and {finding.limit:,} allowed" if finding.amount or finding.limit else ""
    told = f" ({finding.detail})" if finding.detail else ""
    return f"{finding.subject}: {rule_title(finding.rule)}{measured}{told}"


def clock(seconds: float) -> str:
    """A time from the start: ``0.5s``, ``35s``, ``4m05s``, ``2h10m``."""
    if seconds < 10 and seconds != round(seconds):
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def place(source: str, line: int, origin: str) -> str:
    """Where something is written: ``api.yaml:12``, with what a stream says that it came from."""
    at = f"{source}:{line}" if source and line else source
    return f"{origin} ({at})" if origin and at else origin or at
