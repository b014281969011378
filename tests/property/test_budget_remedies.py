"""Every remedy of an audit of PodDisruptionBudgets keeps its promise when it is applied, and they are not rare."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.budget_remedies import all_remedies, broken_promises, random_scenario, single_edits
from tests.tiers import Sample

LAWS = settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The share of findings with a remedy, of those that a single edit solves.
MIN_SHARE = 0.6


@LAWS
@given(st.integers(0, 2**32))
def test_every_remedy_keeps_its_promise(seed: int) -> None:
    scenario = random_scenario(seed)
    audit = scenario.audit()
    broken = [
        (seed, finding.id, finding.subject, remedy.changes, problem)
        for finding, remedy in all_remedies(audit)
        for problem in broken_promises(scenario, audit, finding, remedy)
    ]
    assert broken == []


def test_findings_that_a_single_edit_solves_mostly_have_a_remedy(sample: Sample) -> None:
    found = []
    for seed in sample(range(300)):
        scenario = random_scenario(seed)
        audit = scenario.audit()
        for finding in audit.findings:
            edits = single_edits(scenario, finding)
            if any(not [*broken_promises(scenario, audit, finding, each)] for each in edits):
                found.append(any(each.solves for each in finding.remedies))
    assert len(found) >= 10
    assert sum(found) >= MIN_SHARE * len(found)
