"""What holds of every gate."""

from __future__ import annotations

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from kpreempt.analysis.check.gate import (
    Facts,
    ForbiddenVictims,
    GateRules,
    Override,
    Suppressions,
    Waiver,
    baseline_text,
    measured,
    passes,
    read_baseline,
)
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.check import FindingStatus, GateFinding, RuleId
from kpreempt.verdict.simulation import BrokenDependency, BrokenDependencyKind, Displaced, Simulation, SimulationEnd
from tests.unit.analysis.gate.simulations import API, STEPS, TODAY, WEB, put, simulation, waits

WORKLOADS = ("Deployment shop/cache", "StatefulSet shop/db", "Pod ops/log")
ROOTS = tuple(step.pod for step in STEPS[2:])
LIMITED = (
    RuleId.MAX_PDB_VIOLATIONS,
    RuleId.MAX_VICTIMS,
    RuleId.MAX_VICTIMS_PER_WORKLOAD,
    RuleId.MAX_CASCADE_DEPTH,
    RuleId.MAX_PENDING,
    RuleId.MAX_BROKEN_DEPENDENCIES,
)


@st.composite
def displaced(draw: st.DrawFn) -> list[Displaced]:
    """Lines of evictions, depth first."""
    found: list[Displaced] = []
    for _ in range(draw(st.integers(0, 4))):
        cause = draw(st.sampled_from(ROOTS))
        for depth in range(1, draw(st.integers(1, 3)) + 1):
            workload = draw(st.sampled_from(WORKLOADS))
            number = len(found)
            namespace = workload.partition(" ")[2].partition("/")[0]
            budgets = draw(st.lists(st.sampled_from(["shop/db", "ops/log"]), unique=True, max_size=2))
            each = Displaced(
                pod=f"{namespace}/p-{number}",
                priority=0,
                node="n1",
                cause=cause,
                depth=depth,
                workload=workload,
                violated=budgets,
                replacement=f"{namespace}/r-{number}",
            )
            found.append(each)
            cause = each.replacement
    return found


@st.composite
def simulations(draw: st.DrawFn) -> Simulation:
    victims = draw(displaced())
    waiting = [waits(each.replacement, each.workload, was_running=True) for each in victims if draw(st.booleans())]
    waiting += [waits(root, "") for root in draw(st.lists(st.sampled_from(ROOTS), unique=True))]
    stranded = draw(st.lists(st.sampled_from(["shop/front", "ops/front"]), unique=True))
    return simulation(
        *victims,
        end=draw(st.sampled_from(SimulationEnd)),
        waiting=waiting,
        stranded=[BrokenDependency(kind=BrokenDependencyKind.SERVICE, subject=each) for each in stranded],
        loop=draw(st.lists(st.sampled_from(WORKLOADS), unique=True)),
    )


@st.composite
def limits(draw: st.DrawFn) -> dict[RuleId, int | None]:
    return {rule: draw(st.none() | st.integers(0, 4)) for rule in draw(st.sets(st.sampled_from(LIMITED)))}


@st.composite
def rule_sets(draw: st.DrawFn) -> GateRules:
    overrides = [
        Override(
            namespace=draw(st.sampled_from(["", "shop", "*"])),
            workload=draw(st.sampled_from(["", "Pod *", WORKLOADS[0]])),
            limits=draw(limits()),
        )
        for _ in range(draw(st.integers(0, 2)))
    ]
    forbidden = draw(st.lists(st.sampled_from([ForbiddenVictims(namespace="ops"), ForbiddenVictims(namespace="x")])))
    return GateRules(limits=draw(limits()), overrides=overrides, forbidden=forbidden)


@st.composite
def waivers(draw: st.DrawFn) -> list[Waiver]:
    return [
        Waiver(
            rule=draw(st.sampled_from(RuleId)),
            subject=draw(st.sampled_from(["", "*shop*", "cluster"])),
            change=draw(st.sampled_from(["", API.object, WEB.object])),
            by="here",
            lacks_reason=draw(st.booleans()),
        )
        for _ in range(draw(st.integers(0, 4)))
    ]


def facts() -> Facts:
    said = [Assumption("Node n1", "spec", "is not known", kind) for kind in AssumptionKind]
    return Facts(is_live=True, assumptions=said)


def judged(
    found: Simulation, rules: GateRules, suppressions: Suppressions, assumed: Facts | None = None
) -> list[GateFinding]:
    return put(
        found,
        dict(rules.limits),
        facts=assumed or facts(),
        suppressions=suppressions,
        overrides=rules.overrides,
        forbidden=rules.forbidden,
    )[1]


def failing(findings: list[GateFinding]) -> set[str]:
    return {each.fingerprint for each in findings if each.status is FindingStatus.FAILS}


@given(found=simulations(), rules=rule_sets(), suppressions=waivers(), rule=st.sampled_from(LIMITED), data=st.data())
def test_a_laxer_limit_never_makes_more_failures(
    found: Simulation, rules: GateRules, suppressions: list[Waiver], rule: RuleId, data: st.DataObject
) -> None:
    strict = rules.general(rule)
    lax = None if strict is None else data.draw(st.none() | st.integers(strict, strict + 3))
    laxer = msgspec.structs.replace(rules, limits={**rules.limits, rule: lax})
    given_excuses = Suppressions(today=TODAY, waivers=suppressions)
    assert failing(judged(found, laxer, given_excuses)) <= failing(judged(found, rules, given_excuses))


@given(found=simulations(), rules=rule_sets(), suppressions=waivers(), more=waivers())
def test_another_waiver_never_makes_more_failures(
    found: Simulation, rules: GateRules, suppressions: list[Waiver], more: list[Waiver]
) -> None:
    few = failing(judged(found, rules, Suppressions(today=TODAY, waivers=[*suppressions, *more])))
    assert few <= failing(judged(found, rules, Suppressions(today=TODAY, waivers=suppressions)))


@given(found=simulations(), rules=rule_sets())
def test_nothing_fails_where_all_is_waived(found: Simulation, rules: GateRules) -> None:
    everything = Suppressions(today=TODAY, waivers=[Waiver(rule=rule) for rule in RuleId])
    assert failing(judged(found, rules, everything)) == set()


@given(found=simulations(), rules=rule_sets())
def test_nothing_fails_that_the_baseline_of_the_same_run_accepts(found: Simulation, rules: GateRules) -> None:
    findings = judged(found, rules, Suppressions(today=TODAY))
    baseline = read_baseline(baseline_text(findings, TODAY).encode(), "b")
    again = judged(found, rules, Suppressions(today=TODAY, baseline=baseline))
    assert failing(again) == set()
    assert len(again) == len(findings)


@given(found=simulations(), rules=rule_sets())
def test_nothing_that_happens_is_new_where_the_same_happens_without_the_change(
    found: Simulation, rules: GateRules
) -> None:
    known = Facts(is_live=True)
    assume(found.end is not SimulationEnd.ABORTED)
    base = measured(found, (API, WEB), known, rules)
    assert failing(judged(found, rules, Suppressions(today=TODAY, base=base), known)) == set()


@given(found=simulations(), rules=rule_sets(), suppressions=waivers(), data=st.data())
def test_findings_do_not_depend_on_the_order_of_what_is_handed_in(
    found: Simulation, rules: GateRules, suppressions: list[Waiver], data: st.DataObject
) -> None:
    def story(findings: list[GateFinding]) -> list[tuple[object, ...]]:
        return [(each.rule, each.subject, each.amount, each.change, each.status, each.detail) for each in findings]

    mixed = msgspec.structs.replace(
        found,
        pending=data.draw(st.permutations(found.pending)),
        broken_dependencies=data.draw(st.permutations(found.broken_dependencies)),
        loop=data.draw(st.permutations(found.loop)),
    )
    assumed = facts()
    turned = Facts(is_live=True, assumptions=data.draw(st.permutations(assumed.assumptions)))
    one = judged(found, rules, Suppressions(today=TODAY, waivers=suppressions), assumed)
    other = judged(mixed, rules, Suppressions(today=TODAY, waivers=data.draw(st.permutations(suppressions))), turned)
    assert story(one) == story(other)


@given(found=simulations(), rules=rule_sets(), suppressions=waivers())
def test_the_results_count_the_findings_and_the_gate_is_open_only_without_failures(
    found: Simulation, rules: GateRules, suppressions: list[Waiver]
) -> None:
    results, findings = put(
        found,
        dict(rules.limits),
        facts=facts(),
        suppressions=Suppressions(today=TODAY, waivers=suppressions),
        overrides=rules.overrides,
        forbidden=rules.forbidden,
    )
    counted = sum(each.failures + each.warnings + each.waived + each.accepted + each.not_new for each in results)
    assert counted == len(findings)
    assert passes(results) is (failing(findings) == set())
    assert {each.rule for each in findings} <= {each.rule for each in results if each.is_on}
