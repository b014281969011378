"""Waivers, the baseline and the simulation without the change: what lets a finding pass, and what does not."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from kpreempt.analysis.check.gate import (
    Baseline,
    Facts,
    GateRules,
    StaticFinding,
    Suppressions,
    Waiver,
    baseline_text,
    evaluate,
    measured,
    passes,
    read_baseline,
    waiver_of_option,
    waivers_of_object,
)
from kpreempt.errors import InputError, UsageError
from kpreempt.verdict import Assumption
from kpreempt.verdict.check import FindingStatus, RuleId
from kpreempt.verdict.simulation import Simulation
from tests.unit.analysis.gate.simulations import API, LIVE, TODAY, WEB, put, reported, simulation, victim

BUDGET, DB = "shop/db", "StatefulSet shop/db"
OF_API = victim("shop/db-0", DB, violated=BUDGET)
OF_WEB = victim("shop/db-1", DB, violated=BUDGET, of="shop/web-2-new-2")
PDB = RuleId.MAX_PDB_VIOLATIONS
SUBJECT = "PodDisruptionBudget shop/db"


def annotated(rules: str, reason: str = "agreed", *, name: str = API.object) -> list[Waiver]:
    annotations = {"kpreempt.io/waive": rules, "kpreempt.io/waive-reason": reason}
    return waivers_of_object(name, annotations, source="k8s/api.yaml", line=7)


def excused(waivers: list[Waiver], *, today: date = TODAY) -> Suppressions:
    return Suppressions(today=today, waivers=waivers)


@pytest.mark.parametrize(
    ("waivers", "standing"),
    [
        pytest.param([waiver_of_option("max-pdb-violations")], FindingStatus.WAIVED, id="of the rule"),
        pytest.param([waiver_of_option(f"max-pdb-violations={SUBJECT}")], FindingStatus.WAIVED, id="of the subject"),
        pytest.param([waiver_of_option("max-pdb-violations=*shop/*")], FindingStatus.WAIVED, id="with stars"),
        pytest.param(
            [waiver_of_option("max-pdb-violations=*ship/*")], FindingStatus.FAILS, id="not of another subject"
        ),
        pytest.param([waiver_of_option("max-victims")], FindingStatus.FAILS, id="not of another rule"),
        pytest.param(annotated("max-victims, max-pdb-violations"), FindingStatus.WAIVED, id="on the object behind it"),
        pytest.param(annotated("max-pdb-violations", name=WEB.object), FindingStatus.FAILS, id="not on another object"),
        pytest.param(annotated("max-pdb-violations", " "), FindingStatus.FAILS, id="not without its reason"),
        pytest.param([Waiver(rule=PDB, expires=TODAY)], FindingStatus.WAIVED, id="on its last day"),
        pytest.param(
            [Waiver(rule=PDB, expires=TODAY - timedelta(days=1))], FindingStatus.FAILS, id="not a day after it"
        ),
    ],
)
def test_a_waiver_counts(waivers: list[Waiver], standing: FindingStatus) -> None:
    results, (finding,) = put(simulation(OF_API), suppressions=excused(waivers))
    assert finding.status is standing
    assert passes(results) is (standing is FindingStatus.WAIVED)


def test_a_waived_finding_says_why_where_and_until_when() -> None:
    _, (first,) = put(simulation(OF_API), suppressions=excused(annotated("max-pdb-violations")))
    assert (first.reason, first.by, first.expires) == ("agreed", "k8s/api.yaml:7", "")
    waiver = Waiver(rule=PDB, reason="moving", by="kpreempt.toml", expires=date(2026, 12, 1))
    _, (second,) = put(simulation(OF_API), suppressions=excused([waiver]))
    assert (second.reason, second.by, second.expires) == ("moving", "kpreempt.toml", "2026-12-01")


def test_a_finding_says_why_a_waiver_does_not_count() -> None:
    over = Waiver(rule=PDB, by="kpreempt.toml", expires=date(2026, 10, 1))
    _, (finding,) = put(simulation(OF_API), suppressions=excused([*annotated("max-pdb-violations", ""), over]))
    assert finding.detail == (
        "k8s/api.yaml:7: kpreempt.io/waive is ignored without kpreempt.io/waive-reason; "
        "waiver of kpreempt.toml expired on 2026-10-01"
    )
    assert (finding.by, finding.reason) == ("", "")


@pytest.mark.parametrize("turned", [False, True])
def test_of_several_waivers_one_that_counts_is_enough_wherever_it_stands(turned: bool) -> None:
    waivers = [*annotated("max-pdb-violations", ""), Waiver(rule=PDB, reason="moving", by="kpreempt.toml")]
    _, (finding,) = put(simulation(OF_API), suppressions=excused(waivers[::-1] if turned else waivers))
    assert (finding.status, finding.by, finding.detail) == (FindingStatus.WAIVED, "kpreempt.toml", "")


def test_an_object_waives_only_what_it_brings_about_itself() -> None:
    found = simulation(OF_API, OF_WEB)
    _, (finding,) = put(found, suppressions=excused(annotated("max-pdb-violations")))
    assert (finding.status, finding.amount, finding.change) == (FindingStatus.FAILS, 2, WEB.object)
    both = [*annotated("max-pdb-violations"), *annotated("max-pdb-violations", "so, too", name=WEB.object)]
    _, (finding,) = put(found, suppressions=excused(both))
    assert (finding.status, finding.reason) == (FindingStatus.WAIVED, "agreed; so, too")


def test_what_is_waived_does_not_count_against_the_limit_of_the_rest() -> None:
    limits: dict[RuleId, int | None] = {RuleId.MAX_VICTIMS: 1, PDB: None}
    found = simulation(OF_API, OF_WEB)
    assert not passes(put(found, limits)[0])
    results, (finding,) = put(found, limits, suppressions=excused(annotated("max-victims")))
    assert passes(results)
    assert (finding.status, finding.amount, finding.by) == (FindingStatus.WAIVED, 2, "k8s/api.yaml:7")


def test_what_is_left_of_a_sum_is_no_finding_where_it_is_within_the_limit() -> None:
    log = victim("shop/log", "Pod shop/log", violated="shop/log", of="shop/web-2-new-2")
    results, findings = put(
        simulation(OF_API, log), {PDB: 1}, suppressions=excused([waiver_of_option(f"{PDB}={SUBJECT}")])
    )
    assert passes(results)
    assert reported(findings) == [f"{PDB} {SUBJECT} 1>1 by {API.object} Waived"]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        pytest.param(
            "max-pdb-violation",
            '--waive max-pdb-violation: unknown rule "max-pdb-violation"',
            "max-pdb-violations",
            id="a rule that is almost one",
        ),
        pytest.param("x", '--waive x: unknown rule "x"', ", ".join(RuleId), id="a rule that is none"),
        pytest.param(
            "max-victims=",
            "--waive max-victims=: missing subject",
            "--waive max-victims='Deployment shop/*'",
            id="an empty subject",
        ),
    ],
)
def test_wrong_waivers_are_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        waiver_of_option(text)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_an_annotation_that_names_no_rule_is_bad_input() -> None:
    with pytest.raises(InputError) as caught:
        annotated("max-victims, forbid-loop")
    assert caught.value.message == (
        'k8s/api.yaml:7: Deployment shop/api: metadata.annotations[kpreempt.io/waive]: unknown rule "forbid-loop"'
    )
    assert caught.value.hint == "forbid-loops"


def accepting(found: Simulation, expires: date = TODAY) -> Baseline:
    """The baseline that a run writes, as the next one reads it."""
    return read_baseline(baseline_text(put(found)[1], expires).encode(), "baseline.json")


def test_what_a_baseline_accepts_passes_until_it_expires() -> None:
    baseline = accepting(simulation(OF_API))
    results, (finding,) = put(simulation(OF_API), suppressions=Suppressions(today=TODAY, baseline=baseline))
    assert passes(results)
    assert (finding.status, finding.expires, finding.by) == (FindingStatus.ACCEPTED, "2026-11-21", "--baseline")
    later = Suppressions(today=TODAY + timedelta(days=1), baseline=baseline)
    results, (finding,) = put(simulation(OF_API), suppressions=later)
    assert not passes(results)
    assert finding.detail == "baseline entry expired on 2026-11-21"


def test_a_baseline_accepts_nothing_that_has_become_worse() -> None:
    worse = simulation(OF_API, victim("shop/db-1", DB, violated=BUDGET))
    _, (finding,) = put(worse, suppressions=Suppressions(today=TODAY, baseline=accepting(simulation(OF_API))))
    assert (finding.status, finding.detail) == (FindingStatus.FAILS, "baseline accepts up to 1")
    _, (finding,) = put(simulation(OF_API), suppressions=Suppressions(today=TODAY, baseline=accepting(worse)))
    assert finding.status is FindingStatus.ACCEPTED


def test_a_baseline_accepts_nothing_of_another_change() -> None:
    _, (finding,) = put(
        simulation(OF_WEB), suppressions=Suppressions(today=TODAY, baseline=accepting(simulation(OF_API)))
    )
    assert finding.status is FindingStatus.FAILS


def test_an_unknown_age_is_not_accepted_by_a_baseline_of_an_old_snapshot() -> None:
    limits: dict[RuleId, int | None] = {RuleId.MAX_SNAPSHOT_AGE: 60}
    findings = put(simulation(), limits, facts=Facts(snapshot_age=100))[1]
    baseline = read_baseline(baseline_text(findings, TODAY).encode(), "b")
    _, (finding,) = put(simulation(), limits, facts=Facts(), suppressions=Suppressions(today=TODAY, baseline=baseline))
    assert finding.status is FindingStatus.FAILS


def test_a_baseline_is_the_same_text_for_the_same_findings_in_any_order() -> None:
    findings = put(simulation(OF_API, OF_WEB), {RuleId.MAX_VICTIMS: 0})[1]
    text = baseline_text(findings, TODAY)
    assert text == baseline_text(findings[::-1], TODAY)
    assert text.startswith('{\n  "apiVersion": "kpreempt.io/v1alpha1",\n  "kind": "CheckBaseline",\n')
    assert text.endswith("}\n")
    assert [each.rule for each in read_baseline(text.encode(), "b").accepted] == [PDB, RuleId.MAX_VICTIMS]


def test_a_baseline_written_again_keeps_what_it_accepts_and_leaves_out_what_is_gone() -> None:
    old = accepting(simulation(OF_API))
    findings = put(simulation(OF_API), {RuleId.MAX_VICTIMS: 0}, suppressions=Suppressions(today=TODAY, baseline=old))[1]
    later = TODAY + timedelta(days=30)
    new = read_baseline(baseline_text(findings, later, before=old).encode(), "b")
    assert [(each.rule, each.expires) for each in new.accepted] == [(PDB, TODAY), (RuleId.MAX_VICTIMS, later)]
    assert read_baseline(baseline_text([], later, before=old).encode(), "b").accepted == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"{", "b.json: invalid JSON: input data was truncated", id="half a file"),
        pytest.param(b"\xff", "b.json: invalid JSON: ", id="bytes"),
        pytest.param(b"[]", "b.json: expected `object`, got `array`", id="a list"),
        pytest.param(b'{"kind": "List"}', "b.json: not a baseline: kpreempt.io/v1alpha1 List", id="something else"),
        pytest.param(
            b'{"accepted": [{"rule": "max-victim", "subject": "a", "amount": 1, "fingerprint": "x",'
            b' "expires": "2026-12-31"}]}',
            'b.json: accepted[0].rule: unknown rule "max-victim"',
            id="a rule that does not exist",
        ),
        pytest.param(
            b'{"accepted": [{"rule": "max-victims", "subject": "cluster", "amount": 1, "fingerprint": "x"}]}',
            "b.json: accepted[0]: object missing required field `expires`",
            id="an entry that never expires",
        ),
        pytest.param(b'{"acepted": []}', "b.json: object contains unknown field `acepted`", id="a key that is wrong"),
    ],
)
def test_files_that_are_no_baseline_are_refused(content: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_baseline(content, "b.json")
    assert caught.value.message.startswith(message)


def without(found: Simulation) -> Suppressions:
    """The excuse that a simulation of the manifests before gives."""
    return Suppressions(today=TODAY, base=measured(found, (API, WEB), LIVE, GateRules()), base_option="--base")


def test_what_is_there_without_the_change_is_not_new() -> None:
    results, (finding,) = put(simulation(OF_API), suppressions=without(simulation(OF_API)))
    assert (passes(results), finding.status, finding.by) == (True, FindingStatus.NOT_NEW, "--base")


def test_what_the_change_makes_worse_is_new() -> None:
    worse = simulation(OF_API, victim("shop/db-1", DB, violated=BUDGET))
    _, (finding,) = put(worse, suppressions=without(simulation(OF_API)))
    assert (finding.status, finding.amount) == (FindingStatus.FAILS, 2)
    assert passes(put(simulation(OF_API), suppressions=without(worse))[0])


def test_only_what_the_change_adds_counts_against_a_limit() -> None:
    limits: dict[RuleId, int | None] = {RuleId.MAX_VICTIMS: 1, PDB: None}
    assert passes(put(simulation(OF_API, OF_WEB), limits, suppressions=without(simulation(OF_API)))[0])
    assert not passes(
        put(simulation(OF_API, OF_WEB), {**limits, RuleId.MAX_VICTIMS: 0}, suppressions=without(simulation(OF_API)))[0]
    )


def test_what_is_within_the_limits_without_the_change_is_not_new_either() -> None:
    limits: dict[RuleId, int | None] = {PDB: 1}
    log = victim("shop/log", "Pod shop/log", violated="shop/log", of="shop/web-2-new-2")
    assert passes(put(simulation(OF_API, log), limits, suppressions=without(simulation(OF_API)))[0])


def test_what_is_not_known_is_not_excused_by_not_having_been_known_before() -> None:
    facts = Facts(assumptions=[Assumption("scheduler", "extenders[0]", "is not asked")])
    limits: dict[RuleId, int | None] = {RuleId.MAX_SNAPSHOT_AGE: 60}
    base = measured(simulation(), (API,), facts, GateRules(limits=limits))
    _, findings = put(simulation(), limits, facts=facts, suppressions=Suppressions(today=TODAY, base=base))
    assert [each.status for each in findings] == [FindingStatus.FAILS, FindingStatus.FAILS]


def test_a_change_does_not_waive_the_damage_that_it_does() -> None:
    static_finding = StaticFinding(RuleId.MAX_DELETIONS, "Deployment shop/web", "it is deleted", change=API.object)
    waivers = annotated("max-deletions")
    _, findings = evaluate(simulation(), [API], Facts(static_findings=[static_finding]), GateRules(), excused(waivers))
    assert [each.status for each in findings] == [FindingStatus.FAILS]
    assert "kpreempt.io/waive cannot waive max-deletions" in findings[0].detail
    assert not measured(simulation(), [API], Facts(static_findings=[static_finding]), GateRules())
