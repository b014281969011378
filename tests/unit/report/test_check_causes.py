"""Findings with the same cause are reported once, with the fix and the waiver."""

from __future__ import annotations

import shlex
import tomllib

import pytest

from kpreempt.analysis.check.gate import waiver_of_option
from kpreempt.gate_rules import RuleId
from kpreempt.library.gate.config import parse_config
from kpreempt.report.answers import render_answer
from kpreempt.report.check.causes import advice_of, cause_phrase, causes, waive_tables
from kpreempt.report.check.github import render as render_github
from kpreempt.report.check.words import waive_option
from kpreempt.report.options import RenderOptions
from kpreempt.report.quoting import plain
from kpreempt.verdict.check import FindingStatus, GateFinding
from tests.checks import HOSTILE, finding, quiet_check, replaced


def bare(number: int, **fields: object) -> GateFinding:
    pod = f"batch/task-{number}"
    return finding(RuleId.LOST_PODS, f"Pod {pod}", amount=1, pods=[pod], fingerprint=f"f{number}", **fields)


def unknown(subject: str, detail: str) -> GateFinding:
    return finding(RuleId.UNMODELED_INPUT, subject, detail=detail, fingerprint=subject)


@pytest.mark.parametrize(
    ("findings", "sizes"),
    [
        pytest.param([bare(1), bare(2), bare(3)], [3], id="bare pods"),
        pytest.param([bare(1), bare(2, change="Deployment a/b")], [1, 1], id="of two changes"),
        pytest.param([bare(1), bare(2, status=FindingStatus.WAIVED)], [1, 1], id="one of them waived"),
        pytest.param([unknown("A a", "x"), unknown("B b", "y"), unknown("C c", "x")], [2, 1], id="the same words"),
        pytest.param(
            [finding(RuleId.MAX_VICTIMS_PER_WORKLOAD, f"Deployment a/{each}", amount=each) for each in (1, 2)],
            [1, 1],
            id="numbers without words",
        ),
    ],
)
def test_what_is_the_same_of_several_is_one_cause(findings: list[GateFinding], sizes: list[int]) -> None:
    assert [len(each.findings) for each in causes(findings)] == sizes


def test_the_sentence_names_the_others() -> None:
    (cause,) = causes([bare(each) for each in range(9)])
    reported = plain(cause_phrase(cause))
    assert reported.startswith("Pod batch/task-0 is evicted or deleted, and no controller recreates it")
    assert reported.endswith("; also Pod batch/task-1, Pod batch/task-2, Pod batch/task-3 and 5 more")


def test_verbose_names_all_of_a_cause_and_what_waives_each() -> None:
    findings = [unknown(f"Deployment shop/{each}", "the same") for each in range(9)]
    text = render_answer(replaced(quiet_check(), passed=False, findings=findings), "text", RenderOptions(verbose=True))
    reported = " ".join(text.partition("fix")[0].split())
    assert all(f"Deployment shop/{each}" in reported for each in range(9))
    assert all(f"'unmodeled-input=Deployment shop/{each}'" in " ".join(text.split()) for each in range(9))


def test_what_mends_an_object_comes_before_what_helps_with_the_rule() -> None:
    stuck = finding(RuleId.ROLLOUT_STUCK, "StatefulSet shop/db", detail="x", fix="Set the partition to 0.")
    assert advice_of(stuck) == "Set the partition to 0."
    assert advice_of(finding(RuleId.ROLLOUT_STUCK)) == RuleId.ROLLOUT_STUCK.row.advice


@pytest.mark.parametrize("subject", ["Deployment shop/api", "cluster", 'it\'s "so"\\', *HOSTILE])
def test_what_is_copied_waives_the_finding(subject: str) -> None:
    found = finding(RuleId.LOST_PODS, subject)
    (table,) = waive_tables([found])
    (waiver,) = parse_config(table.encode(), "kpreempt.toml").waivers
    assert waiver.is_about(RuleId.LOST_PODS, subject)
    _, text = shlex.split(waive_option(found))
    assert waiver_of_option(text).is_about(RuleId.LOST_PODS, subject)


def test_bare_pods_are_one_line_of_a_comment_and_one_annotation() -> None:
    check = replaced(quiet_check(), passed=False, findings=[bare(each) for each in range(30)])
    comment = render_answer(check, "markdown", RenderOptions())
    assert comment.count("**lost-pods:**") == 1
    assert "`--waive 'lost-pods=Pod batch/task-0'`" in comment
    block = comment.partition("<summary>Waivers for kpreempt.toml</summary>")[2].partition("</details>")[0]
    lines = block.partition("```text\n")[2].partition("```")[0]
    assert len(tomllib.loads(lines)["check"]["waive"]) == 30
    assert render_github(check, RenderOptions()).count("::error") == 1
