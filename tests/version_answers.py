"""The results of two adjacent versions of Kubernetes on the fixtures of ``fixtures/versions``, one line each.

A fixture is named after the change that it shows: a small cluster with the pending pod ``shop/new``. The first line of
the file describes it. ``docs/versions.md`` is generated from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from kpreempt.admission import admit, complete_cluster
from kpreempt.analysis.algorithms import api_server_rules
from kpreempt.analysis.compare.upgrade import versions_between
from kpreempt.analysis.questions import pod_in_cluster
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
# Why no cluster shows a change.
_WITHOUT: dict[Concern, str] = {
    Concern.WORDS: "Only words: no decision is another.",
    Concern.SCORES_REPORTED: "Only scores that are told; sums change for resource claims alone.",
    Concern.QUEUE: "Only the scheduling queue: when a pod is tried, not what becomes of it.",
    Concern.EFFECTS: "Only what the scheduler does to carry a decision out.",
    Concern.API_SERVER: "Only what the API server writes into pods, beside what decides about them.",
    Concern.CONTROLLERS: "Only controllers: which pods there are, not where they go.",
    Concern.CONFIGURATION: "Only which configurations are taken, and what is said of others.",
    Concern.UNUSUAL: "By default no cluster shows these: they take a gate, a configuration, a plugin or an extender.",
    Concern.NOT_MODELLED: "Not modelled, so that nothing here shows them.",
}


def fixture_of(change: DescribedChange) -> Path | None:
    """The cluster that shows a change, if there is one."""
    path = FIXTURES / f"{change.name}.yaml"
    return path if path.exists() else None


def verdict_on(fixture: Path, scheduler: KubeScheduler) -> Verdict:
    """The verdict on the pod of a fixture."""
    loaded = load_snapshot([str(fixture)]).cluster
    cluster, _ = complete_cluster(pod_in_cluster(loaded, "new", "shop").cluster)
    pod = admit(pod_in_cluster(loaded, "new", "shop").pod, cluster, api_server_rules(scheduler.settings)).pod
    return scheduler.decide(scheduler.prepare(cluster, now=_NOW), pod)


def answers_on(fixture: Path, older: KubeScheduler, newer: KubeScheduler) -> tuple[str, str]:
    """The results of two schedulers: the pod's outcome or, if equal, the assumptions and messages."""
    verdicts = [verdict_on(fixture, each) for each in (older, newer)]
    ours, theirs = map(_decision, verdicts)
    if ours != theirs:
        return ours, theirs
    return tuple(f"{ours}: “{each.message}”" if each.message else f"{ours}, with no message" for each in verdicts)


def _decision(verdict: Verdict) -> str:
    if verdict.outcome == Outcome.UNSCHEDULABLE and verdict.eligibility is None and verdict.pre_filter is None:
        return f"an error of the scheduler: “{verdict.message}”"
    return words(verdict)


def with_change(change: DescribedChange, before: str, after: str) -> tuple[KubeScheduler, KubeScheduler]:
    """The older of two versions with one change, and the newer one."""
    versions = versions_between(f"kube-{before}", after)
    return versions.with_changes([change]), versions.target


def document() -> str:
    """``docs/versions.md``."""
    return "\n".join([_HEAD, *(line for before, after in PAIRS for line in _pair(before, after))])


_HEAD = f"""# What changed from Kubernetes {PAIRS[0][0]} to {PAIRS[-1][1]}

Written by the program (`make generated`) and checked with every change. `kpreempt --algorithm kube-1.34` answers by the
rules of a version, and a version stands for one of its releases: {", ".join(f"v{each}" for each in RELEASES.values())}.

Under each change that alters decisions stands what the two versions answer on one small cluster,
`fixtures/versions/NAME.yaml`, in which the pod `new` is created. To see a whole answer, and what kpreempt makes of an
upgrade:

    kpreempt explain new -n shop --snapshot fixtures/versions/scores-change-of-balance.yaml --algorithm kube-1.35
    kpreempt compare --upgrade-to 1.36 --algorithm kube-1.35 --snapshot fixtures/versions/scores-change-of-balance.yaml

Where it is the API server that changes, it does so for new pods alone: give the pod's manifest to `-f`.

"In vain" means that the pod stays pending and nobody is evicted; the nodes that are tried are those on which the
scheduler looks for victims. Where what becomes of the pod is the same, its message is quoted. Changes that no cluster
shows come last, each with what it is about. Behind each is the file of Kubernetes in which to see it, and the older
releases to which it was carried back.
"""


def _pair(before: str, after: str) -> Iterator[str]:
    versions = versions_between(f"kube-{before}", after)
    changes = changes_in(after)
    shown = [(change, fixture) for change in changes if (fixture := fixture_of(change)) is not None]
    yield f"## {before} to {after}\n"
    if all(change.concern is not Concern.DECISIONS for change, _ in shown):
        yield "Nothing that is modelled decides otherwise.\n"
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
