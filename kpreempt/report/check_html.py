"""A check as a page: one file that needs nothing else, runs no script, and reads on a screen and on paper."""

from __future__ import annotations

from kpreempt.report.amounts import count
from kpreempt.report.check_html_markup import Html, join, tag, unfolded, void
from kpreempt.report.check_html_nodes import node_maps
from kpreempt.report.check_html_rules import rules
from kpreempt.report.check_html_style import POLICY, STYLE
from kpreempt.report.check_html_tables import assumptions, budgets, changes, outcomes, stranded, waiting, workloads
from kpreempt.report.check_html_timeline import timeline
from kpreempt.report.check_html_tree import displacement
from kpreempt.report.durations import format_time
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.check import Check

_HEAD_LINES = (
    void("meta", charset="utf-8"),
    void("meta", http_equiv="Content-Security-Policy", content=POLICY),
    void("meta", name="referrer", content="no-referrer"),
    void("meta", name="viewport", content="width=device-width, initial-scale=1"),
    void("meta", name="robots", content="noindex"),
)


def render(check: Check, options: RenderOptions) -> str:
    """The whole document, below 2 MB whatever the check holds: what is cut says so. Equal checks give equal bytes.

    With ``verbose`` everything is unfolded. Otherwise ``options`` do not matter: a page fits its window, has its own
    colours, and tells times as they are.
    """
    parts = [
        ("rules", "Rules", rules(check)),
        ("changes", "What changes", changes(check)),
        ("timeline", "Timeline", timeline(check.play)),
        ("victims", "Who has to go", displacement(check.play)),
        ("nodes", "Nodes", node_maps(check.nodes, check.spare)),
        ("budgets", "Budgets", budgets(check.play)),
        ("workloads", "Workloads", workloads(check.play)),
        ("waiting", "Waiting", waiting(check.play)),
        ("stranded", "Stranded", stranded(check.play)),
        ("outcomes", "Outcomes", outcomes(check)),
        ("assumptions", "Assumptions", assumptions(check.assumptions)),
    ]
    links = (tag("li", tag("a", words, href=f"#{anchor}")) for anchor, words, markup in parts if markup)
    contents = tag("nav", tag("ul", *links), aria_label="Contents") + Html("\n")
    style = Html(f"<style>{STYLE}</style>")
    title = tag("title", f"kpreempt check: {_verdict(check)}")
    head = tag("head", Html("\n"), join([*_HEAD_LINES, title, style], Html("\n")), Html("\n"))
    main = tag("main", Html("\n"), _banner(check), contents, *(markup for _, _, markup in parts))
    body = tag("body", Html("\n"), main, Html("\n"), _footer(check), Html("\n"))
    page = tag("html", Html("\n"), head, Html("\n"), body, lang="en")
    if options.verbose:
        page = unfolded(page)
    return f"<!DOCTYPE html>\n{page}\n"


def _verdict(check: Check) -> str:
    return "passed" if check.passed else "failed"


def _banner(check: Check) -> Html:
    tone, sign = ("good", "✓") if check.passed else ("bad", "✗")
    title = tag("h1", "kpreempt check: ", tag("span", f"{sign} {_verdict(check)}"))
    numbers = join(_number(label, number, is_bad) for label, number, is_bad in _counts(check))
    facts = tag("p", _facts(check), class_="facts")
    banner = tag("header", title, tag("dl", numbers, class_="counts"), facts, class_=f"banner {tone}")
    return banner + Html("\n")


def _counts(check: Check) -> list[tuple[str, int, bool]]:
    play = check.play
    failures = sum(rule.failures for rule in check.rules)
    violations = sum(budget.violations for budget in play.budgets)
    waits = sum(pod.was_running for pod in play.waiting)
    known = sum(rule.waived + rule.accepted + rule.not_new for rule in check.rules)
    counts = [
        ("rules fail", sum(rule.failures > 0 for rule in check.rules), failures > 0),
        ("findings", failures, failures > 0),
        ("known or waived", known, False),
        ("pods have to go", len(play.displaced), False),
        ("against budgets", violations, violations > 0),
        ("evictions in a row", play.depth, False),
        ("that ran wait in the end", waits, waits > 0),
    ]
    return [(label, number, is_bad) for label, number, is_bad in counts if number or label != "known or waived"]


def _number(label: str, number: int, is_bad: bool) -> Html:
    return tag("div", tag("dt", label), tag("dd", f"{number:,}"), class_="bad" if is_bad else None)


def _facts(check: Check) -> str:
    cluster = check.cluster
    facts = [f"{count(cluster.nodes, 'node')}, {count(cluster.pods, 'pod')}"]
    if cluster.version:
        facts.append(f"Kubernetes {cluster.version}")
    facts.append(f"algorithm {check.algorithm}")
    if cluster.taken_at is not None:
        facts.append(f"snapshot of {format_time(cluster.taken_at)}")
    if check.at is not None:
        facts.append(f"for {format_time(check.at)}")
    if check.runs > 1:
        facts.append(f"the worst of {check.runs:,} runs (seed {check.seed:,})")
    return " · ".join(facts)


def _footer(check: Check) -> Html:
    return tag("footer", f"Written by kpreempt check ({check.api_version}). -o json has everything that is cut here.")
