"""The comment on a pull request: what it says, and that no name breaks out of it."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from kpreempt.report.answers import render_answer
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.check import Check, RuleId
from kpreempt.verdict.simulation import BudgetMinimum, StepKind
from tests.checks import HOSTILE, failed, finding, hostile, of_many, passed, replaced

_OWN_BLOCK = re.compile(r"(<details><summary>[\w .]+</summary>|</details>)\s*")
_LONGEST_COMMENT = 65_536


def comment(check: Check) -> str:
    return render_answer(check, "markdown", RenderOptions())


def tokens(text: str) -> list[Token]:
    """All tokens of the Markdown, those inside of others, too."""
    parsed = MarkdownIt("commonmark").enable("table").parse(text)
    return [each for token in parsed for each in (token, *(token.children or []))]


def test_a_comment_says_first_whether_the_change_passes() -> None:
    assert comment(passed()).splitlines()[:5] == [
        "### kpreempt check: passed",
        "",
        "Harmless: 3 pods are replaced; no pod is evicted. All enabled rules pass.",
        "",
        "no pod evicted · settled<br>",
    ]
    assert comment(failed()).startswith(
        "### kpreempt check: failed\n\nIn the worst of 20 runs, `PodDisruptionBudget shop/api` allowed 0"
    )
    assert f" {len(RuleId)} rules violated" in comment(failed())


def test_rules_that_are_off_are_left_out() -> None:
    assert "`max-victims`" not in comment(passed())
    row = next(line for line in comment(passed()).splitlines() if line.startswith("| `max-pdb-violations`"))
    assert [cell.strip() for cell in row.split("|")[2:-1]] == ["✓ passes", "0 (limit 0)", "no known budget is violated"]


def test_findings_have_names_as_code_and_say_where_they_are() -> None:
    assert (
        "**max-pdb-violations:** budget `batch/worker`: 2 evictions beyond its allowed disruptions (limit 0):"
        " `batch/worker-a` and `batch/worker-b`\n\n- fix: Add capacity first, or let the change request less or have"
        " a lower priority.\n- object: `Deployment shop/api`, `./deploy/api v2.yaml:12`\n"
    ) in comment(failed())


def test_what_does_not_count_stands_apart_and_says_why() -> None:
    after = comment(failed()).partition("Not counted:")[2]
    assert "(limit 1)\n\n- why: accepted by `baseline.json` until `2027-01-01`: old debt\n" in after


def test_victims_are_a_tree_that_is_folded() -> None:
    text = comment(failed())
    folded = text.partition("<details><summary>What would happen</summary>")[2]
    assert (
        "\n  - **batch/crunch-66b-9** (priority 0, `Deployment batch/crunch`) is evicted from `node-b` for"
        " `shop/web-5d8f-new-1`; `batch/crunch-66b-new-3` **stays pending**\n"
    ) in folded


@pytest.mark.parametrize("text", HOSTILE, ids=[f"hostile name {number}" for number in range(len(HOSTILE))])
def test_no_name_is_markup_a_link_or_a_command(text: str) -> None:
    written = comment(hostile([text]))
    for token in tokens(written):
        assert not token.type.startswith(("link", "image"))
        if token.type == "html_inline":
            assert token.content in ("<code>", "</code>", "<br>")
        elif token.type == "html_block":
            assert _OWN_BLOCK.fullmatch(token.content)
    assert not [line for line in written.splitlines() if line.startswith("/")]
    assert len(re.findall("^<details>", written, re.M)) == len(re.findall("^</details>$", written, re.M))


@pytest.mark.parametrize("text", HOSTILE, ids=[f"hostile name {number}" for number in range(len(HOSTILE))])
def test_every_row_of_a_table_has_as_many_cells_as_its_head(text: str) -> None:
    tables: list[list[int]] = []
    for token in tokens(comment(hostile([text]))):
        if token.type == "table_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append(0)
        elif token.type in ("th_open", "td_open"):
            tables[-1][-1] += 1
    assert all(len(set(widths)) == 1 for widths in tables)


def test_a_pipe_after_a_backslash_does_not_end_a_cell() -> None:
    # A backslash before it counts as escaped itself on GitHub, and the pipe then ends the cell.
    written = comment(replaced(failed(), findings=[finding(RuleId.FORBID_LOOPS, "a\\|`b")]))
    assert "<code>a&#92;&#124;&#96;b</code>" in written


def test_no_person_and_no_issue_is_mentioned_outside_of_code() -> None:
    found = finding(RuleId.FORBID_LOOPS, "@team/a #12 | @b")
    is_code = False
    for token in tokens(comment(replaced(failed(), findings=[found], assumptions=[]))):
        if token.type == "html_inline":
            is_code = token.content == "<code>"
        elif token.type == "text":
            assert not re.search(r"@\w" if is_code else r"@\w|#\d", token.content)


def test_a_comment_stays_below_what_github_takes_and_says_what_is_cut() -> None:
    base = failed()
    check = replaced(
        hostile(),
        findings=[finding(RuleId.FORBID_LOOPS, f"Deployment {'ä' * 300}/{number}") for number in range(3000)],
        changes=base.changes * 3000,
        simulation=hostile().simulation,
    )
    written = comment(check)
    assert len(written.encode()) < _LONGEST_COMMENT
    assert re.search(r"… and [\d,]+ more findings", written)
    assert len(re.findall("^<details>", written, re.M)) == len(re.findall("^</details>$", written, re.M))


def test_fifty_pods_that_do_the_same_are_one_row() -> None:
    base = failed()
    simulation = replaced(
        base.simulation,
        steps=of_many(50, at=0.0, kind=StepKind.BOUND),
        budgets=[BudgetMinimum(budget="a", before=0, min=0, after=0)],
    )
    pods = "`shop/api-old-000`, `shop/api-old-001`, `shop/api-old-002` and 47 more"
    assert f"- `0s` {pods} land on node-0, node-1 and 3 more\n" in comment(replaced(base, simulation=simulation))
