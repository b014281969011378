"""Laws of every session of Volcano's scheduler, for any cluster and configuration."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kpreempt.admission import apply_cluster_defaults
from kpreempt.errors import KpreemptError
from kpreempt.model.cluster import REDACTED_AT, ClusterSnapshot
from kpreempt.schedulers.volcano import VolcanoConfiguration, configuration_of, run_session
from kpreempt.schedulers.volcano.session import Chance
from kpreempt.snapshot.documents import parse_document
from kpreempt.snapshot.load import cluster_from_json
from kpreempt.snapshot.minimize import minimized
from kpreempt.snapshot.write import dump_pieces
from kpreempt.verdict.volcano import OperationKind, SessionVerdict, StatementOutcome
from tests.conformance.cases import NOW
from tests.factories import redaction_of
from tests.parity.volcano_scenarios import volcano_scenarios
from tests.property.test_redaction import HEADER, reread

LAW = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
UNDOES = {
    OperationKind.UNEVICT: OperationKind.EVICT,
    OperationKind.UNPIPELINE: OperationKind.PIPELINE,
    OperationKind.UNALLOCATE: OperationKind.ALLOCATE,
}
Scenario = dict[str, Any]


def requested(scenario: Scenario) -> tuple[ClusterSnapshot, VolcanoConfiguration]:
    """The cluster and the configuration; scenarios with an invalid configuration are skipped."""
    raw = [msgspec.Raw(msgspec.json.encode(each)) for each in scenario["objects"]]
    cluster = apply_cluster_defaults(cluster_from_json(raw, "scenario"))
    try:
        document = parse_document(scenario["conf"], "conf") if scenario.get("conf") else None
        return cluster, configuration_of(document)
    except KpreemptError:
        assume(False)
        raise


def session(scenario: Scenario, chance: Chance | None = None) -> tuple[ClusterSnapshot, SessionVerdict]:
    """The cluster, and a session on it."""
    cluster, configuration = requested(scenario)
    return cluster, run_session(cluster, configuration, now=NOW, chance=chance)


def dumped(cluster: ClusterSnapshot) -> bytes:
    """The cluster as written to a file."""
    return b"".join(dump_pieces(cluster, HEADER, lambda record: record, as_lines=False))


@LAW
@given(volcano_scenarios(), st.none() | st.integers(0, 5))
def test_a_session_changes_nothing_and_is_the_same_again(scenario: Scenario, seed: int | None) -> None:
    cluster, configuration = requested(scenario)
    before = dumped(cluster)
    first, again = (
        run_session(cluster, configuration, now=NOW, chance=None if seed is None else random.Random(seed))
        for _ in range(2)
    )
    assert first == again
    assert dumped(cluster) == before


@LAW
@given(volcano_scenarios(), st.none() | st.integers(0, 5))
def test_what_is_done_adds_up(scenario: Scenario, seed: int | None) -> None:
    cluster, verdict = session(scenario, None if seed is None else random.Random(seed))
    pods = {pod.key: pod for pod in cluster.pods}
    for action in verdict.actions:
        counts = Counter((kind, task) for kind, task, _, _ in action.trace)
        for (kind, task), times in counts.items():
            # Nothing is undone more often than it was done, and earlier nominations are never undone.
            assert counts[UNDOES.get(kind, kind), task] >= times
        evicted = [each.task for each in action.evictions]
        assert len(set(evicted)) == len(evicted)
        # Only running pods are evicted, and only pods without a node are placed.
        assert all(pods[each.task].spec.node_name == each.node for each in action.evictions)
        assert not any(pods[each.task].spec.node_name for each in (*action.binds, *action.pipelined, *action.allocated))
        for statement in action.statements:
            done = Counter((kind, task) for kind, task, _, _ in statement.operations)
            if statement.outcome is StatementOutcome.DISCARDED:
                assert all(counts[undo, task] for (kind, task) in done for undo, does in UNDOES.items() if does == kind)


@LAW
@given(volcano_scenarios())
def test_victims_were_candidates_allowed_by_the_votes(scenario: Scenario) -> None:
    _, verdict = session(scenario)
    for action in verdict.actions:
        for attempt in action.attempts:
            for node in attempt.nodes:
                assert set(node.evicted) <= set(node.victims) <= set(node.candidates)
                deciding = [vote for vote in node.votes if vote.tier == node.deciding_tier]
                assert node.victims == (deciding[-1].remaining if deciding else [])


@LAW
@given(volcano_scenarios())
def test_a_redacted_cluster_has_the_same_outcome(scenario: Scenario) -> None:
    cluster, configuration = requested(scenario)
    redaction = redaction_of(cluster)
    names = dict(redaction.pairs())
    plain = run_session(reread(cluster, minimized), configuration, now=NOW)
    hidden = run_session(reread(cluster, redaction.record), configuration, now=REDACTED_AT)

    def named(key: str) -> str:
        return "/".join(names.get(part, part) for part in key.split("/"))

    def ends(verdict: SessionVerdict, name: Any) -> list[Any]:
        return [
            (
                [(name(each.task), name(each.node)) for each in action.evictions],
                [(name(each.task), name(each.node)) for each in action.pipelined],
                [(name(each.task), name(each.node)) for each in action.binds],
                [name(key) for key in action.enqueued or ()],
            )
            for action in verdict.actions
        ]

    assert plain.panics == hidden.panics
    assert ends(plain, lambda key: key) == ends(hidden, named)
