"""A check in a cluster whose nodes, or not all of whose pods, could be read: only what needs no scheduler is known."""

from __future__ import annotations

from msgspec.structs import replace

from kpreempt.gate_rules import RuleId
from kpreempt.verdict.check import Check, Range
from kpreempt.verdict.simulation import SimulationEnd

# The rules that depend on where pods land, and on what is evicted for them.
_SIMULATED = frozenset(
    (
        RuleId.MAX_PDB_VIOLATIONS,
        RuleId.MAX_VICTIMS,
        RuleId.MAX_VICTIMS_PER_WORKLOAD,
        RuleId.FORBID_VICTIMS,
        RuleId.REQUIRE_SCHEDULABLE,
        RuleId.MAX_CASCADE_DEPTH,
        RuleId.MAX_PENDING,
        RuleId.MAX_BROKEN_DEPENDENCIES,
        RuleId.BRIEF_INTERRUPTION,
        RuleId.LOST_PODS,
        RuleId.FORBID_LOOPS,
        RuleId.MIN_READY,
        RuleId.DRAIN_INCOMPLETE,
        RuleId.AUTOSCALED_MAXIMUM,
        RuleId.ROLLOUT_STUCK,
        RuleId.VOLUME_ATTACHED_ELSEWHERE,
        RuleId.OUTCOME_UNCERTAIN,
    )
)


def without_simulation(check: Check) -> Check:
    """Return the check without what depends on the scheduler; it never passes.

    Rules that depend on it are not evaluated. Quotas are checked only as far as controllers create pods without ready
    ones, so they are evaluated only if they reject a pod.
    """
    findings = [each for each in check.findings if each.rule not in _SIMULATED]
    violated = {each.rule for each in findings}
    unknown = _SIMULATED | ({RuleId.QUOTA_REJECTIONS} - violated)
    simulation = replace(
        check.simulation,
        end=SimulationEnd.NOT_SIMULATED,
        seconds=0,
        depth=0,
        starts_at={},
        displaced=[],
        pending=[],
        budgets=[],
        workloads=[],
        broken_dependencies=[],
        loop=[],
        steps=[],
    )
    return replace(
        check,
        passed=False,
        rules=[
            replace(each, is_evaluated=False, amount=0, failures=0, warnings=0, waived=0, accepted=0, not_new=0)
            if each.rule in unknown
            else each
            for each in check.rules
        ],
        findings=findings,
        simulation=simulation,
        failing_runs=0,
        failing_share=0.0,
        outcomes=[],
        explored_all=False,
        evictions=Range(),
        nodes=[],
        free={},
    )
