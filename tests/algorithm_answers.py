"""The result of each version's scheduler on the fixtures of ``fixtures/algorithms``, in a few words.

A fixture is a small cluster with the pending pod ``shop/new``. ``docs/algorithms.md`` shows the results in tables,
which ``tests/generated.py`` writes.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.explain.pods import explain_pods
from kpreempt.analysis.pod_inputs import input_in_cluster, pod_in_cluster
from kpreempt.analysis.what_if import Overrides
from kpreempt.scheduler_table import DEFAULT_ALGORITHM
from kpreempt.snapshot.decode import decode_object
from kpreempt.snapshot.load import load_snapshot
from kpreempt.verdict import Outcome, Verdict

# The old schedulers, and the default one of those that share an engine.
SHOWN = ("kube-1.8", "kube-1.13", "kube-1.18", DEFAULT_ALGORITHM)

FIXTURES = Path(__file__).parent.parent / "fixtures" / "algorithms"
# A comment that names a fixture, and the table after it.
TABLE = re.compile(r"(<!-- answers: (?P<fixture>\S+) -->\n)(?:\|.*\n)*")
_NOW = datetime(2026, 11, 21, tzinfo=UTC)
_POD = "shop/new"
_CLEARED = "clearNomination"


def fixture_names() -> list[str]:
    """All fixtures, by name."""
    return sorted(path.stem for path in FIXTURES.glob("*.yaml"))


def verdicts_on(fixture: str) -> dict[str, Verdict]:
    """The verdict of each algorithm on the pod of a fixture."""
    cluster = load_snapshot([str(FIXTURES / f"{fixture}.yaml")]).cluster
    found = pod_in_cluster(cluster, "new", "shop")
    request = input_in_cluster(found, Overrides(), decode_object)
    return {
        algorithm: explain_pods(AnalysisContext(request.cluster, scheduler_for(algorithm), _NOW), request.inputs)[0]
        for algorithm in SHOWN
    }


def answers_on(fixture: str) -> list[str]:
    """The results of the algorithms, in order, in words."""
    return [words(verdict) for verdict in verdicts_on(fixture).values()]


def words(verdict: Verdict) -> str:
    """Where the pod is placed and which pods it evicts, or whether it tries; and which pods lose a nomination."""
    cleared = [effect.target.removeprefix("pod ") for effect in verdict.effects if effect.action == _CLEARED]
    losses = [
        "loses its nomination" if key == _POD else f"clears the nomination of {key.partition('/')[2]}"
        for key in cleared
    ]
    return ", ".join([_decision(verdict), *losses])


def _decision(verdict: Verdict) -> str:
    if verdict.outcome == Outcome.LANDS:
        return f"lands on {' or '.join(verdict.lands_on)}"
    if verdict.nominated_nodes:
        return " or ".join(f"{node}: evicts {_victims(verdict, node)}" for node in verdict.nominated_nodes)
    if verdict.eligibility is None or not verdict.eligibility.eligible:
        return "cannot preempt"
    return f"stays pending, tries {' and '.join(verdict.potential_nodes) or 'no node'}"


def _victims(verdict: Verdict, node: str) -> str:
    return " and ".join(victim.pod.partition("/")[2] for victim in verdict.victims[node])


def with_answers(text: str) -> str:
    """A document with the current results after every ``<!-- answers: FIXTURE -->``."""

    def table(match: re.Match[str]) -> str:
        rows = [[name.removeprefix("kube-") for name in SHOWN], ["---"] * len(SHOWN), answers_on(match["fixture"])]
        return match[1] + "".join(f"| {' | '.join(cells)} |\n" for cells in rows)

    return TABLE.sub(table, text)
