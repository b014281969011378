"""The decisions of consecutive Kubernetes versions on the fixtures of ``fixtures/versions``, in one line each.

A fixture is named after the change that it shows. It is a small cluster in which the pod ``shop/new`` is pending. The
first line of the file describes the situation. ``docs/versions.md`` is generated from the fixtures.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from kpreempt.admission import admit, complete_cluster
from kpreempt.analysis.algorithms import api_server_rules
from kpreempt.analysis.compare.upgrade import versions_between
from kpreempt.analysis.pod_inputs import pod_in_cluster
from kpreempt.scheduler_table import RELEASES
from kpreempt.schedulers.kube.history import Concern, DescribedChange, changes_in
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.snapshot.load import load_snapshot
from kpreempt.verdict import Outcome, Verdict
from tests.algorithm_answers import words

FIXTURES = Path(__file__).parent.parent / "fixtures" / "versions"
DOCUMENT = Path(__file__).parent.parent / "docs" / "versions.md"
_NOW = datetime(2026, 11, 21, tzinfo=UTC)
PAIRS = list(pairwise(RELEASES))
# The headings of changes that no cluster shows.
_WITHOUT: dict[Concern, str] = {
    Concern.WORDS: "Changed texts, without an effect on decisions:",
    Concern.SCORES_REPORTED: "Changed scores in reports. The sums change only for resource claims:",
    Concern.QUEUE: "Changes to the scheduling queue, which affect when a pod is tried but not the decision:",
    Concern.EFFECTS: "Changes to how the scheduler carries out a decision:",
    Concern.API_SERVER: "Changes to fields that the API server sets in pods, without an effect on decisions:",
    Concern.CONTROLLERS: "Changes to controllers, which affect which pods exist but not where they land:",
    Concern.CONFIGURATION: "Changes to which configurations are valid, and to the messages about invalid ones:",
    Concern.UNUSUAL: "Changes that need a feature gate, a configuration, a plugin or an extender:",
    Concern.UNMODELED: "Changes that are not modeled:",
}


def fixture_of(change: DescribedChange) -> Path | None:
    """The cluster that shows a change, if one exists."""
    path = FIXTURES / f"{change.name}.yaml"
    return path if path.exists() else None


def verdict_on(fixture: Path, scheduler: KubeScheduler) -> Verdict:
    """The verdict for the pod of a fixture."""
    loaded = load_snapshot([str(fixture)]).cluster
    cluster, _ = complete_cluster(pod_in_cluster(loaded, "new", "shop").cluster)
    pod = admit(pod_in_cluster(loaded, "new", "shop").pod, cluster, api_server_rules(scheduler.settings)).pod
    return scheduler.decide(scheduler.prepare(cluster, now=_NOW), pod)


def answers_on(fixture: Path, older: KubeScheduler, newer: KubeScheduler) -> tuple[str, str]:
    """The outcomes of two schedulers, with the message if both are the same."""
    verdicts = [verdict_on(fixture, each) for each in (older, newer)]
    ours, theirs = map(_decision, verdicts)
    if ours != theirs:
        return ours, theirs
    return tuple(f"{ours}: “{each.message}”" if each.message else f"{ours}, with no message" for each in verdicts)


def _decision(verdict: Verdict) -> str:
    if verdict.outcome == Outcome.UNSCHEDULABLE and verdict.eligibility is None and verdict.pre_filter is None:
        return f"scheduler error: “{verdict.message}”"
    return words(verdict)


def with_change(change: DescribedChange, before: str, after: str) -> tuple[KubeScheduler, KubeScheduler]:
    """The older of two versions with a single change, and the newer version."""
    versions = versions_between(f"kube-{before}", after)
    return versions.with_changes([change]), versions.target


def document() -> str:
    """``docs/versions.md``."""
    return "\n".join([_HEAD, *(line for before, after in PAIRS for line in _pair(before, after))])


_HEAD = f"""# What changed from Kubernetes {PAIRS[0][0]} to {PAIRS[-1][1]}

`make generated` writes this page, and tests check it. `kpreempt --algorithm kube-1.34` uses the rules of a version.
Each version is represented by one of its releases: {", ".join(f"v{each}" for each in RELEASES.values())}.

For each change that affects decisions, a table shows the decisions of the two versions on one small cluster,
`fixtures/versions/NAME.yaml`, in which the pod `new` is created. To see a full answer, or the effect of an upgrade:

    kpreempt explain new -n shop --snapshot fixtures/versions/scores-change-of-balance.yaml --algorithm kube-1.35
    kpreempt compare --upgrade-to 1.36 --algorithm kube-1.35 --snapshot fixtures/versions/scores-change-of-balance.yaml

Changes in the API server affect only new pods: use `-f` with the pod's manifest.

"Stays pending" means that no pod is evicted. The scheduler "tries" a node if it searches for victims there. If both
versions have the same outcome, the table quotes the message. Changes without a cluster are listed at the end of each
section. Each change names the upstream source file, and the patch releases with the backport.
"""


def _pair(before: str, after: str) -> Iterator[str]:
    versions = versions_between(f"kube-{before}", after)
    changes = changes_in(after)
    shown = [(change, fixture) for change in changes if (fixture := fixture_of(change)) is not None]
    yield f"## {before} to {after}\n"
    if all(change.concern is not Concern.DECISIONS for change, _ in shown):
        yield "No modeled decision changes.\n"
    for change, fixture in shown:
        yield f"**{change.sentence}** {_where(change)}\n"
        yield f"`{fixture.stem}`: {_story(fixture)}\n"
        ours, theirs = answers_on(fixture, versions.base, versions.target)
        yield f"| {before} | {after} |\n| --- | --- |\n| {_cell(ours)} | {_cell(theirs)} |\n"
    for concern, words_of_it in _WITHOUT.items():
        others = [each for each in changes if each.concern is concern and fixture_of(each) is None]
        if others:
            yield f"{words_of_it}\n"
            yield "".join(f"- {each.sentence} {_where(each)}\n" for each in others)


def _where(change: DescribedChange) -> str:
    also = f"; also in {', '.join(change.also_in)}" if change.also_in else ""
    return f"(`{change.source}`{also})"


def _story(fixture: Path) -> str:
    return fixture.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
