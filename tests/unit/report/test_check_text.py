"""The answer of check in a terminal."""

from __future__ import annotations

import re

import msgspec
import pytest
from rich.cells import cell_len

from kpreempt.report.answers import render_answer
from kpreempt.report.escape import is_hidden
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.check import Check, Range, RuleId
from kpreempt.verdict.simulation import StepKind
from tests.checks import failed, finding, hostile, of_many, passed, replaced


def lines_of(check: Check, *, width: int = 100, verbose: bool = False) -> list[str]:
    return render_answer(check, "text", RenderOptions(width=width, verbose=verbose)).splitlines()


def headings(lines: list[str]) -> list[str]:
    return [line.split("  ")[0] for line in lines if line and line.split()[0].isupper() and line[0] != " "]


def test_a_pass_is_short_and_says_what_changes() -> None:
    assert lines_of(passed()) == [
        "PASS  harmless: 3 pods are replaced; no pod is evicted.",
        "  All enabled rules pass.",
        "  no pod evicted · settled",
        "  3 nodes · 12 pods · kube-1.36",
        "",
        "CHANGES       1 object, 1 unchanged",
        "  Deployment shop/api  rolled (RollingUpdate), 2 → 3 replicas  deploy/api v2.yaml:12",
        "",
        "TIMELINE      everything happens at once",
        "  0s  Deployment api scales shop/api-6 to 3 replicas",
        "      ReplicaSet api-6 creates shop/api-new-1",
        "      shop/api-new-1 lands on node-a, picked at random from 2 nodes",
        "",
        "WORKLOADS     ready pods before, at worst, and at the end",
        "  WORKLOAD             BEFORE  WORST  AFTER  STATUS",
        "  Deployment shop/api       2      2      3  changed",
        "",
        "FREE CAPACITY cpu 2.5, memory 3Gi",
        "",
        "RULES         2 rules passed, 1 off",
        "  passed: max-pdb-violations, require-schedulable",
    ]


def test_the_verdict_comes_first_then_what_fails_then_what_would_happen() -> None:
    lines = lines_of(failed())
    start = lines.index("FINDINGS")
    assert f" {len(RuleId)} rules violated: max-pdb-violations," in " ".join(lines[:start])
    assert any("  3 pods evicted · 1 budget violation · cascade depth 2" in line for line in lines[:start])
    assert headings(lines) == [
        "FAIL",
        "FINDINGS",
        "NOT COUNTED",
        "CHANGES",
        "TIMELINE",
        "EVICTED",
        "BUDGETS",
        "WORKLOADS",
        "BROKEN DEPENDENCIES",
        "OUTCOMES",
        "FREE CAPACITY cpu 2.2, memory 10Gi, pods 298",
        "RULES",
        "ASSUMED",
    ]


def test_a_rule_that_fails_has_its_findings_where_they_are_written_and_what_helps() -> None:
    check = replaced(failed(), findings=failed().findings[:1])
    lines = lines_of(check)
    start = lines.index("FINDINGS")
    assert lines[start + 1 : start + 5] == [
        "  ✗ max-pdb-violations  budget batch/worker: 2 evictions beyond its allowed disruptions (limit 0):",
        "    batch/worker-a and batch/worker-b",
        "    fix     Add capacity first, or let the change request less or have a lower priority.",
        "    object  Deployment shop/api, deploy/api v2.yaml:12",
    ]
    rules = lines[lines.index("  RULE                RESULT       MEASURED     REQUIREMENT") + 1]
    assert rules == "  max-pdb-violations  ✗ 1 finding  2 (limit 0)  no known budget is violated"


def test_what_follows_from_an_eviction_stands_below_it() -> None:
    lines = lines_of(failed())
    start = lines.index("EVICTED       3 in total, up to 2 in a chain")
    assert lines[start + 1 : start + 5] == [
        "  shop/web-5d8f-1 is evicted from node-a, violating budget shop/web; shop/web-5d8f-new-1 lands on",
        "  node-b",
        "  └── batch/crunch-66b-9 is evicted from node-b; batch/crunch-66b-new-3 stays pending",
        "  shop/web-5d8f-2 is evicted from node-a; shop/web-5d8f-new-2 lands on node-c",
    ]


def test_when_pods_have_stopped_is_reported_with_verbose_only() -> None:
    gone = "batch/crunch-66b-9 has terminated on node-b"
    assert not [line for line in lines_of(failed()) if gone in line]
    assert [line for line in lines_of(failed(), verbose=True) if gone in line]


def test_long_sections_are_cut_and_say_so_and_verbose_shows_all() -> None:
    base = failed()
    steps = [step for at in range(30) for step in of_many(3, at=float(at), kind=StepKind.BOUND)]
    check = replaced(
        base,
        changes=base.changes * 5,
        findings=[finding(RuleId.FORBID_LOOPS, f"Deployment shop/a-{number}") for number in range(20)],
        simulation=replaced(
            base.simulation, steps=steps, displaced=base.simulation.displaced * 9, budgets=base.simulation.budgets * 9
        ),
    )
    short = "\n".join(lines_of(check))
    for rest in (
        "… and 10 more findings (-v)",
        "… and 7 more objects (-v)",
        "… and 18 more steps (-v)",
        "… and 9 more victims (-v)",
        "… and 12 more budgets (-v)",
    ):
        assert rest in short
    whole = "\n".join(lines_of(check, verbose=True))
    assert "(-v)" not in whole
    assert "Deployment shop/a-19 never settles" in whole


def test_verbose_shows_the_nodes_the_fields_and_the_rules_that_hold() -> None:
    text = "\n".join(lines_of(replaced(failed(), findings=[]), verbose=True))
    assert "  node-c          1 → 5   4         1Gi → 3Gi  8Gi  2 → 3  110" in text
    assert "Deployment shop/api: spec.replicas and spec.template.spec.containers[0].image" in text
    row = text.partition("\n  max-victims\n")[2].splitlines()[0]
    assert re.split(" {2,}", row.strip()) == ["✗ 1 finding", "2 (limit 0)", "few pods are evicted"]


def test_several_runs_say_how_often_each_outcome_comes_up() -> None:
    lines = lines_of(failed(), width=120)
    start = lines.index("OUTCOMES      2 outcomes, 1 to 3 evictions; others are possible")
    assert lines[start + 2].startswith("  ✗ in 7 of 20 runs (first with seed 4): settled, 3 pods evicted")
    assert "worst of 20 runs, seed 4" in "\n".join(lines[:8])
    certain = msgspec.structs.replace(failed(), explored_all=True, evictions=Range(min=3, max=3))
    assert "OUTCOMES      2 outcomes, 3 evictions; all possible outcomes" in lines_of(certain)


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("verbose", [False, True], ids=["short", "verbose"])
def test_lines_keep_to_the_width(width: int, verbose: bool) -> None:
    for check in (passed(), failed()):
        assert [line for line in lines_of(check, width=width, verbose=verbose) if cell_len(line) > width] == []


def test_no_hidden_character_of_a_name_reaches_the_terminal() -> None:
    text = render_answer(hostile(), "text", RenderOptions(verbose=True))
    assert {character for character in text if is_hidden(character)} == {"\n"}


def test_colour_adds_to_the_text_and_changes_nothing() -> None:
    coloured = render_answer(failed(), "text", RenderOptions(color=True))
    assert "\x1b[" in coloured
    assert "FAIL" in coloured
