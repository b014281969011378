"""What breaks each rule, and who brings it about."""

from __future__ import annotations

import pytest

from kpreempt.analysis.check.gate import Facts, ForbiddenVictims, Override, PodFacts, StaticFinding, passes
from kpreempt.gate_rules import RuleSeverity
from kpreempt.model.labels import LabelSelector
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.check import Change, ChangeKind, FindingStatus, RuleId
from kpreempt.verdict.simulation import (
    BrokenDependency,
    BrokenDependencyKind,
    BudgetMinimum,
    SimulatedWorkload,
    Simulation,
    SimulationEnd,
    SimulationStep,
    StepKind,
)
from tests.unit.analysis.gate.simulations import (
    API,
    STEPS,
    leaves,
    put,
    reported,
    simulation,
    stranded_service,
    victim,
    waits,
)

BUDGET = "shop/db"
PDB = RuleId.MAX_PDB_VIOLATIONS
DB, CACHE = "StatefulSet shop/db", "Deployment shop/cache"
CHAIN = (
    victim("shop/cache-1-a", CACHE, becomes="shop/cache-1-new-3"),
    victim("shop/db-0", DB, of="shop/cache-1-new-3", depth=2, becomes="shop/db-0"),
    victim("shop/log", "Pod shop/log", of="shop/db-0", depth=3),
)
TWO_OF_DB = (
    victim("shop/db-0", DB, violated=BUDGET),
    victim("shop/db-1", DB, violated=BUDGET, of="shop/web-2-new-2"),
)
ONE_WAITS = [waits("shop/api-2-new-1", "")]
DB_WAITS = [waits("shop/db-0", DB, was_running=True)]


def case(found: Simulation, limits: dict[RuleId, int | None], expected: list[str], sentence: str) -> object:
    return pytest.param(found, limits, expected, id=sentence)


@pytest.mark.parametrize(
    ("found", "limits", "expected"),
    [
        case(simulation(), {}, [], "a simulation in which nothing happens breaks no rule"),
        case(
            simulation(victim("shop/db-0", DB, violated=BUDGET)),
            {},
            ["max-pdb-violations PodDisruptionBudget shop/db 1>0 by Deployment shop/api"],
            "a victim that its budget does not allow to go is one too many",
        ),
        case(
            simulation(*TWO_OF_DB),
            {RuleId.MAX_PDB_VIOLATIONS: 2},
            [],
            "as many violations as are allowed are no finding",
        ),
        case(
            simulation(
                victim("shop/db-0", DB, violated=BUDGET), victim("shop/log", "Pod shop/log", violated="shop/log")
            ),
            {RuleId.MAX_PDB_VIOLATIONS: 1},
            [
                "max-pdb-violations PodDisruptionBudget shop/db 1>1 by Deployment shop/api",
                "max-pdb-violations PodDisruptionBudget shop/log 1>1 by Deployment shop/api",
            ],
            "violations of several budgets count together",
        ),
        case(
            simulation(budgets=[BudgetMinimum(budget=BUDGET, before=1, min=0, after=0, violations=2)]),
            {},
            ["max-pdb-violations PodDisruptionBudget shop/db 2>0 by none"],
            "violations for pods that waited before count, and are no change's",
        ),
        case(simulation(*TWO_OF_DB), {RuleId.MAX_PDB_VIOLATIONS: None}, [], "a rule that is off finds nothing"),
        case(simulation(*CHAIN[:1]), {}, [], "victims are allowed where nothing is said"),
        case(
            simulation(*TWO_OF_DB),
            {RuleId.MAX_VICTIMS: 1, RuleId.MAX_PDB_VIOLATIONS: None},
            ["max-victims cluster 2>1 by Deployment shop/api"],
            "more victims than are allowed in all are one finding",
        ),
        case(
            simulation(*TWO_OF_DB, *CHAIN[:1]),
            {RuleId.MAX_VICTIMS_PER_WORKLOAD: 1, RuleId.MAX_PDB_VIOLATIONS: None},
            ["max-victims-per-workload StatefulSet shop/db 2>1 by Deployment shop/api"],
            "victims are counted by workload",
        ),
        case(
            simulation(*CHAIN),
            {},
            ["max-cascade-depth Deployment shop/api 3>1 by Deployment shop/api"],
            "evictions that follow from one another are one finding for the change that comes first",
        ),
        case(
            simulation(waiting=ONE_WAITS),
            {},
            ["require-schedulable Deployment shop/api 1>0 by Deployment shop/api"],
            "a new pod of the change that has no node in the end is one too many",
        ),
        case(
            simulation(waiting=[waits("shop/old", "Pod shop/old", pending_before=True)]),
            {},
            [],
            "a pod of something else that waited before is nobody's fault",
        ),
        case(
            simulation(waiting=[waits("shop/run-1", "Job shop/run")]),
            {},
            ["require-schedulable Job shop/run 1>0 by none"],
            "a new pod of something that the change does not name counts, too",
        ),
        case(
            simulation(
                workloads=[
                    SimulatedWorkload(
                        workload=API.object, is_changed=True, is_done=False, desired_after=3, ready_after=1
                    )
                ]
            ),
            {},
            ["require-schedulable Deployment shop/api 2>0 by Deployment shop/api"],
            "a change that does not come about in the end counts, whoever waits",
        ),
        case(
            simulation(waiting=DB_WAITS),
            {},
            ["max-pending StatefulSet shop/db 1>0 by none"],
            "a pod that ran and waits in the end is one too many",
        ),
        case(
            simulation(stranded=[stranded_service()]),
            {},
            ["max-broken-dependencies Service shop/front 1>0 by none"],
            "a service without a ready pod in the end is stranded",
        ),
        case(
            simulation(stranded=[stranded_service(until=40)]),
            {},
            ["max-broken-dependencies Service shop/front 1>0 by none"],
            "a service without a ready pod for a while is stranded, too",
        ),
        case(
            simulation(stranded=[stranded_service(until=313, ready_before=1)]),
            {},
            ["max-broken-dependencies Service shop/front 1>0 by none"],
            "after more than five minutes, it is down",
        ),
        case(
            simulation(stranded=[stranded_service(ready_before=1)]),
            {},
            ["max-broken-dependencies Service shop/front 1>0 by none"],
            "if its only pod does not return, it is down",
        ),
        case(
            simulation(
                victim("shop/db-0", DB),
                stranded=[
                    BrokenDependency(
                        kind=BrokenDependencyKind.AFFINITY, subject="shop/api-2-new-1", missing=["shop/db-0"]
                    )
                ],
            ),
            {},
            ["max-broken-dependencies Deployment shop/api 1>0 by Deployment shop/api"],
            "stranded pods count under their workload, and lead back to who evicted what they need",
        ),
        case(
            simulation(victim("shop/db-0", DB), end=SimulationEnd.LOOP, loop=[DB]),
            {},
            ["forbid-loops StatefulSet shop/db 1>0 by Deployment shop/api"],
            "pods that go round without end are a finding",
        ),
        case(
            simulation(end=SimulationEnd.LOOP),
            {},
            ["forbid-loops cluster 1>0 by none"],
            "a loop of nobody known is one, too",
        ),
        case(
            simulation(end=SimulationEnd.ABORTED),
            {},
            ["outcome-uncertain cluster 1>0 by none"],
            "a simulation that is broken off leaves the outcome open",
        ),
    ],
)
def test_rules(found: Simulation, limits: dict[RuleId, int | None], expected: list[str]) -> None:
    results, findings = put(found, limits)
    assert reported(findings) == expected
    assert passes(results) is (not expected)


@pytest.mark.parametrize(
    ("forbidden", "is_found"),
    [
        pytest.param(ForbiddenVictims(namespace="shop"), True, id="by its namespace"),
        pytest.param(ForbiddenVictims(namespace="kube-*"), False, id="not by another one"),
        pytest.param(ForbiddenVictims(selector=LabelSelector({"tier": "data"})), True, id="by a label"),
        pytest.param(ForbiddenVictims(selector=LabelSelector({"tier": "web"})), False, id="not by another one's value"),
        pytest.param(ForbiddenVictims(priority_class="gold"), True, id="by its priority class"),
        pytest.param(ForbiddenVictims(priority_class="silver"), False, id="not by another class"),
        pytest.param(
            ForbiddenVictims(namespace="shop", priority_class="silver"), False, id="only if all holds that is given"
        ),
    ],
)
def test_pods_are_forbidden_as_victims(forbidden: ForbiddenVictims, is_found: bool) -> None:
    facts = Facts(is_live=True, pods={"shop/db-0": PodFacts({"tier": "data"}, "gold")})
    _, findings = put(simulation(victim("shop/db-0", DB)), facts=facts, forbidden=[forbidden])
    expected = ["forbid-victims StatefulSet shop/db 1>0 by Deployment shop/api"]
    assert (reported(findings), [each.detail for each in findings]) == (
        (expected, [forbidden.name]) if is_found else ([], [])
    )


def test_what_takes_the_place_of_a_pod_is_forbidden_as_that_is() -> None:
    found = simulation(CHAIN[0], victim("shop/cache-1-new-3", CACHE, of="shop/web-2-new-2"))
    facts = Facts(is_live=True, pods={"shop/cache-1-a": PodFacts({}, "gold")})
    _, findings = put(found, facts=facts, forbidden=[ForbiddenVictims(priority_class="gold")])
    assert [each.pods for each in findings] == [["shop/cache-1-a", "shop/cache-1-new-3"]]
    assert put(found, facts=facts, forbidden=[ForbiddenVictims(priority_class="silver")])[1] == []


def test_a_victim_of_which_nothing_is_known_is_taken_to_be_forbidden() -> None:
    _, findings = put(simulation(victim("shop/db-0", DB)), forbidden=[ForbiddenVictims(priority_class="gold")])
    assert [each.detail for each in findings] == ["priority class gold: its labels and priority class are unknown"]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(Facts(snapshot_age=3600), [], id="a snapshot as old as is allowed is not too old"),
        pytest.param(
            Facts(snapshot_age=3601), ["max-snapshot-age cluster 3601>3600 by none"], id="a second more is too much"
        ),
        pytest.param(Facts(), ["max-snapshot-age cluster 0>3600 by none"], id="one that does not say is too old"),
        pytest.param(Facts(is_live=True), [], id="a live cluster has no age"),
    ],
)
def test_the_age_of_the_snapshot(facts: Facts, expected: list[str]) -> None:
    _, findings = put(simulation(), {RuleId.MAX_SNAPSHOT_AGE: 3600}, facts=facts)
    assert reported(findings) == expected
    assert put(simulation(), facts=facts)[1] == []


def of_kind(kind: AssumptionKind, subject: str = "Node n1", field: str = "spec") -> Assumption:
    return Assumption(subject, field, "is not known", kind)


@pytest.mark.parametrize(
    ("assumption", "expected"),
    [
        pytest.param(
            Assumption("scheduler", "extenders[0]", "is not asked"),
            "unmodeled-input scheduler 1>0 by none",
            id="what is not modelled",
        ),
        pytest.param(
            of_kind(AssumptionKind.UNREADABLE, "PodDisruptionBudget", "list"),
            "pdbs-unreadable PodDisruptionBudget 1>0 by none",
            id="budgets that may not be listed",
        ),
        pytest.param(
            of_kind(AssumptionKind.ABSENT, "PodDisruptionBudget", "list"),
            "absent-kinds PodDisruptionBudget 1>0 by none",
            id="a kind that the dump has none of",
        ),
        pytest.param(
            of_kind(AssumptionKind.UNREADABLE, "PriorityClass", "list"),
            "skipped-objects PriorityClass 1>0 by none",
            id="other objects that may not be listed",
        ),
        pytest.param(of_kind(AssumptionKind.SKIPPED), "skipped-objects Node n1 1>0 by none", id="objects that are bad"),
        pytest.param(
            of_kind(AssumptionKind.UNCERTAIN),
            "outcome-uncertain Node n1 1>0 by none",
            id="what could go one way or another",
        ),
        pytest.param(
            of_kind(AssumptionKind.UNCERTAIN, "Pod shop/api-2-new-1"),
            "outcome-uncertain Deployment shop/api 1>0 by Deployment shop/api",
            id="what is assumed about a pod is about its workload",
        ),
        pytest.param(
            Assumption("Pod", "", "something was assumed", AssumptionKind.SKIPPED),
            "skipped-objects Pod 1>0 by none",
            id="a pod of which a redacted dump does not say which",
        ),
        pytest.param(of_kind(AssumptionKind.INFORMATIONAL), "", id="nothing for what only the telling rests on"),
    ],
)
def test_the_gate_fails_closed_for(assumption: Assumption, expected: str) -> None:
    _, findings = put(simulation(), facts=Facts(is_live=True, assumptions=[assumption]))
    assert reported(findings) == ([expected] if expected else [])


def test_pods_of_one_workload_of_which_the_same_is_assumed_are_one_finding() -> None:
    said = [of_kind(AssumptionKind.UNCERTAIN, f"Pod shop/{name}") for name in ("api-2-new-1", "web-2-new-2", "one")]
    said.append(of_kind(AssumptionKind.UNCERTAIN, "Pod shop/one", "status"))
    _, findings = put(simulation(), facts=Facts(is_live=True, assumptions=[*said, said[0]]))
    assert [(each.subject, each.amount, each.detail) for each in findings] == [
        ("Deployment shop/api", 1, "is not known"),
        ("Deployment shop/web", 1, "is not known"),
        ("Pod shop/one", 1, "is not known"),
        ("Pod shop/one", 1, "is not known"),
    ]


def test_a_finding_tells_the_line_of_evictions_from_the_pod_of_the_change_to_the_last_victim() -> None:
    _, (finding,) = put(simulation(*CHAIN, steps=[leaves("shop/log", 31.5, of="shop/db-0")]))
    assert finding.chain == [
        "shop/api-2-new-1",
        "shop/cache-1-a → shop/cache-1-new-3",
        "shop/db-0 → shop/db-0",
        "shop/log",
    ]
    assert (finding.source, finding.line, finding.since) == ("k8s/api.yaml", 7, 31.5)


def test_each_change_has_its_own_longest_chain() -> None:
    short = (
        victim("shop/x", "Pod shop/x", of="shop/web-2-new-2", becomes="shop/x-new-4"),
        victim("shop/y", "Pod shop/y", of="shop/x-new-4", depth=2),
    )
    _, findings = put(simulation(*CHAIN, *short))
    assert reported(findings) == [
        "max-cascade-depth Deployment shop/api 3>1 by Deployment shop/api",
        "max-cascade-depth Deployment shop/web 2>1 by Deployment shop/web",
    ]
    assert findings[1].chain == ["shop/web-2-new-2", "shop/x → shop/x-new-4", "shop/y"]


def test_victims_are_named_in_the_order_in_which_they_go() -> None:
    steps = [leaves("shop/db-1", 2, of="shop/web-2-new-2"), leaves("shop/db-0", 5)]
    _, (finding,) = put(simulation(*TWO_OF_DB, steps=steps))
    assert (finding.pods, finding.since) == (["shop/db-1", "shop/db-0"], 2)


def test_a_victim_leads_back_to_the_change_over_all_that_followed() -> None:
    _, findings = put(simulation(*CHAIN), {RuleId.MAX_VICTIMS_PER_WORKLOAD: 0, RuleId.MAX_CASCADE_DEPTH: None})
    assert {(each.subject, each.change) for each in findings} == {
        (workload, API.object) for workload in (CACHE, DB, "Pod shop/log")
    }


def test_old_owners_are_looked_up_where_the_play_does_not_tell_them() -> None:
    steps = [SimulationStep(at=0, kind=StepKind.CREATED, pod="shop/run-1-x", owner="Job run-1")]
    found = simulation(victim("shop/db-0", DB, of="shop/run-1-x", violated=BUDGET), steps=steps)
    run = Change(object="CronJob shop/run", kind=ChangeKind.UPDATED, source="run.yaml")
    facts = Facts(is_live=True, workloads={"Job shop/run-1": run.object})
    _, (finding,) = put(found, changes=(run,), facts=facts)
    assert (finding.change, finding.source) == (run.object, "run.yaml")


def test_the_schedulers_message_is_the_detail_of_who_waits() -> None:
    steps = [SimulationStep(at=4, kind=StepKind.PENDING, pod="shop/api-2-new-1")]
    _, (finding,) = put(simulation(waiting=ONE_WAITS, steps=steps))
    assert (finding.detail, finding.since, finding.pods) == ("0/3 nodes are available.", 4, ["shop/api-2-new-1"])


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        pytest.param(Override(namespace="shop", limits={RuleId.MAX_PDB_VIOLATIONS: 2}), [], id="a namespace's limit"),
        pytest.param(
            Override(namespace="sh*p", limits={RuleId.MAX_PDB_VIOLATIONS: None}), [], id="a namespace with a star"
        ),
        pytest.param(
            Override(namespace="ship", limits={RuleId.MAX_PDB_VIOLATIONS: 2}),
            ["max-pdb-violations PodDisruptionBudget shop/db 2>0 by Deployment shop/api"],
            id="not another namespace's",
        ),
        pytest.param(
            Override(workload=DB, limits={RuleId.MAX_VICTIMS: 1}),
            [
                "max-pdb-violations PodDisruptionBudget shop/db 2>0 by Deployment shop/api",
                "max-victims StatefulSet shop/db 2>1 by Deployment shop/api",
            ],
            id="a workload's limit where there is none else",
        ),
    ],
)
def test_overrides_set_other_limits(override: Override, expected: list[str]) -> None:
    assert reported(put(simulation(*TWO_OF_DB), overrides=[override])[1]) == expected


def test_the_last_override_that_matches_wins() -> None:
    strict, lax = ({RuleId.MAX_PDB_VIOLATIONS: limit} for limit in (0, 5))
    overrides = [Override(namespace="shop", limits=strict), Override(namespace="*", limits=lax)]
    assert put(simulation(*TWO_OF_DB), overrides=overrides)[1] == []
    assert len(put(simulation(*TWO_OF_DB), overrides=overrides[::-1])[1]) == 1


def test_a_chain_is_as_deep_as_the_last_victims_limit_says() -> None:
    lax = Override(workload="Pod shop/*", limits={RuleId.MAX_CASCADE_DEPTH: 3})
    _, (finding,) = put(simulation(*CHAIN), overrides=[lax])
    assert (finding.amount, finding.limit, finding.chain[-1]) == (2, 1, "shop/db-0")


def test_the_same_finding_has_the_same_fingerprint_whatever_new_pods_are_called() -> None:
    def renamed(text: str) -> str:
        return text.replace("new-1", "new-9").replace("new-3", "new-8")

    other = [victim(renamed(each.pod), each.workload, of=renamed(each.cause), depth=each.depth) for each in CHAIN]
    steps = [SimulationStep(at=1, kind=StepKind.CREATED, pod="shop/api-2-new-9", owner=STEPS[2].owner)]
    first, second = put(simulation(*CHAIN))[1], put(simulation(*other, steps=steps))[1]
    assert first[0].fingerprint == second[0].fingerprint
    assert first[0].chain != second[0].chain


def test_findings_of_another_rule_subject_or_change_have_other_fingerprints() -> None:
    everything = {RuleId.MAX_VICTIMS: 0, RuleId.MAX_VICTIMS_PER_WORKLOAD: 0}
    mine = put(simulation(*CHAIN[:2]), everything)[1]
    theirs = put(simulation(victim("shop/cache-1-a", CACHE, of="shop/web-2-new-2")), everything)[1]
    fingerprints = [each.fingerprint for each in (*mine, *theirs)]
    assert len(set(fingerprints)) == len(fingerprints) == 6
    assert all(len(each) == 32 for each in fingerprints)


def test_every_rule_has_a_result_with_what_it_allows_and_the_most_that_was_measured() -> None:
    results, _ = put(simulation(*TWO_OF_DB))
    assert [each.rule for each in results] == [rule for rule in RuleId if "check" in rule.row.commands]
    by_rule = {each.rule: each for each in results}
    pdb, victims = by_rule[RuleId.MAX_PDB_VIOLATIONS], by_rule[RuleId.MAX_VICTIMS]
    assert (pdb.is_on, pdb.limit, pdb.amount, pdb.failures) == (True, 0, 2, 1)
    assert (victims.is_on, victims.limit, victims.amount, victims.failures) == (False, None, 2, 0)
    assert (by_rule[RuleId.REQUIRE_SCHEDULABLE].is_on, by_rule[RuleId.REQUIRE_SCHEDULABLE].limit) == (True, None)
    assert not by_rule[RuleId.FORBID_VICTIMS].is_on


def test_a_chain_of_ten_thousand_evictions_is_followed() -> None:
    chain = [
        victim(
            f"shop/p-{depth}", f"Pod shop/p-{depth}", of=f"shop/r-{depth - 1}", depth=depth, becomes=f"shop/r-{depth}"
        )
        for depth in range(2, 10_001)
    ]
    first = victim("shop/p-1", "Pod shop/p-1", becomes="shop/r-1")
    _, (finding,) = put(simulation(first, *chain))
    assert (finding.amount, len(finding.chain), finding.change) == (10_000, 10_001, API.object)


@pytest.mark.parametrize(
    ("rules", "standings", "is_open"),
    [
        pytest.param({}, ["Fails"], False, id="an error shuts the gate"),
        pytest.param({"severities": {PDB: RuleSeverity.WARN}}, ["Warns"], True, id="a warning is told only"),
        pytest.param({"severities": {PDB: RuleSeverity.OFF}}, [], True, id="what is off is not looked at"),
        pytest.param({"report_only": True}, ["Warns"], True, id="with report only everything warns"),
        pytest.param(
            {
                "severities": {PDB: RuleSeverity.OFF},
                "overrides": [Override(namespace="shop", limits={PDB: 0})],
                "report_only": True,
            },
            [],
            True,
            id="what is off is off in overrides, too",
        ),
    ],
)
def test_what_a_rule_counts_for(rules: dict[str, object], standings: list[str], is_open: bool) -> None:
    results, findings = put(simulation(*TWO_OF_DB), **rules)
    assert ([str(each.status) for each in findings], passes(results)) == (standings, is_open)


def test_a_warning_does_not_hide_what_fails_next_to_it() -> None:
    results, findings = put(simulation(*TWO_OF_DB), {RuleId.MAX_VICTIMS: 0}, severities={PDB: RuleSeverity.WARN})
    assert [(str(each.rule), str(each.status)) for each in findings] == [
        ("max-pdb-violations", "Warns"),
        ("max-victims", "Fails"),
    ]
    assert not passes(results)


def ready(before: int, least: int, wanted: int | None, workload: str = API.object) -> SimulatedWorkload:
    return SimulatedWorkload(
        workload=workload, is_changed=True, desired_after=wanted, ready_before=before, ready_min=least
    )


@pytest.mark.parametrize(
    ("workload", "limit", "is_found"),
    [
        pytest.param(ready(3, 0, 3), 0, True, id="from three to none"),
        pytest.param(ready(3, 1, 3), 0, False, id="one stays ready"),
        pytest.param(ready(3, 1, 3), 50, True, id="one of three is below half"),
        pytest.param(ready(4, 2, 4), 50, True, id="half is not more than half"),
        pytest.param(ready(4, 3, 4), 50, False, id="three of four are more than half"),
        pytest.param(ready(4, 2, 2), 50, False, id="of those that are to be left all stay"),
        pytest.param(ready(1, 0, 1), 0, False, id="one pod alone is not replaced without a gap"),
        pytest.param(ready(3, 0, 0), 0, True, id="scaled to none"),
        pytest.param(ready(3, 0, None), 0, False, id="deleted"),
        pytest.param(ready(3, 0, 3, "Job shop/once"), 0, False, id="the pods of a Job end"),
        pytest.param(ready(9, 0, 9, "DaemonSet shop/agent"), 0, False, id="every node has a gap"),
        pytest.param(ready(3, 0, 3), None, False, id="switched off"),
    ],
)
def test_how_few_pods_may_stay_ready(workload: SimulatedWorkload, limit: int | None, is_found: bool) -> None:
    _, findings = put(simulation(workloads=[workload]), {RuleId.MIN_READY: limit})
    assert [(str(each.rule), each.change) for each in findings] == [("min-ready", API.object)] * is_found


def test_a_service_without_pods_is_reported_once() -> None:
    found = simulation(victim("shop/db-0", DB), workloads=[ready(2, 0, 2, DB)], stranded=[stranded_service()])
    _, findings = put(found)
    assert [str(each.rule) for each in findings] == ["max-broken-dependencies"]


def test_while_its_only_pod_moves_a_service_is_interrupted() -> None:
    results, (finding,) = put(simulation(stranded=[stranded_service(until=40, ready_before=1)]))
    assert passes(results)
    assert (finding.rule, finding.status) == (RuleId.BRIEF_INTERRUPTION, FindingStatus.WARNS)
    assert finding.detail == "for at least 28s, until its new pod is ready"


def test_who_evicts_the_pods_of_a_workload_is_behind_it() -> None:
    _, findings = put(simulation(victim("shop/db-0", DB), workloads=[ready(2, 0, 2, DB)]))
    assert [(each.subject, each.change, each.amount) for each in findings] == [(DB, API.object, 2)]


def test_an_objection_is_about_its_object() -> None:
    against = StaticFinding(RuleId.PDB_BLOCKS_DRAIN, "PodDisruptionBudget shop/db", "it allows no disruptions")
    results, (finding,) = put(simulation(), facts=Facts(is_live=True, static_findings=[against]))
    assert (finding.rule, finding.detail) == (RuleId.PDB_BLOCKS_DRAIN, "it allows no disruptions")
    assert not passes(results)
