"""Redacted times: no date is left, and nothing that depends on a time is decided or shown differently."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.model.cluster import REDACTED_AT
from kpreempt.report.amounts import format_since
from kpreempt.snapshot.load import cluster_from_json
from kpreempt.snapshot.redact.times import Times
from tests.factories import NOW, redaction_of

_ZERO = datetime.min.replace(tzinfo=UTC)
_ages = st.one_of(
    st.timedeltas(timedelta(days=-2), timedelta(days=4000)),
    st.timedeltas(timedelta(0), timedelta(hours=3)),
    st.integers(-600, 10**6).map(lambda seconds: timedelta(seconds=seconds)),
    st.sampled_from((NOW - _ZERO, NOW - _ZERO - timedelta(days=365), timedelta(days=300_000))),
)
_seen = st.dictionaries(_ages.map(lambda age: NOW - age), st.booleans(), max_size=30)


def retimed(seen: dict[datetime, bool]) -> dict[datetime, datetime]:
    """What stands for each time; of those that are true only the order counts."""
    times = Times(NOW)
    for time, is_ordered_only in seen.items():
        times.collect(time, is_ordered_only=is_ordered_only)
    times.number()
    return {time: times.token(time, is_ordered_only=is_ordered_only) for time, is_ordered_only in seen.items()}


@given(_seen)
def test_order_and_equality_stay(seen: dict[datetime, bool]) -> None:
    new = [each for _, each in sorted(retimed({**seen, NOW: False}).items())]
    assert all(one < other for one, other in pairwise(new))
    assert all(each.utcoffset() == timedelta(0) for each in new)


@given(_seen)
def test_ages_that_decide_stay_exact_and_all_are_shown_as_before(seen: dict[datetime, bool]) -> None:
    for time, new in retimed(seen).items():
        if NOW - time < timedelta(days=400_000):
            assert seen[time] or REDACTED_AT - new == NOW - time
            assert format_since(time, NOW).startswith("since") or (
                format_since(new, REDACTED_AT) == format_since(time, NOW)
            )
            assert (time < NOW) == (new < REDACTED_AT)


def test_a_time_that_only_sorts_is_not_rounded_to_the_second() -> None:
    old = [NOW - timedelta(days=3, hours=5, minutes=number, seconds=17) for number in range(3)]
    new = retimed(dict.fromkeys(old, True))
    ages = [REDACTED_AT - new[time] for time in old]
    assert ages == [timedelta(days=3, hours=5, seconds=number) for number in range(3)]


def test_gos_zero_time_stays() -> None:
    assert retimed({_ZERO: False, NOW: False})[_ZERO] == _ZERO


def test_a_time_zone_is_not_reported() -> None:
    hostile = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))
    for time in (NOW.astimezone(timezone(timedelta(hours=2))), hostile):
        assert retimed({time: False})[time].utcoffset() == timedelta(0)


def written(**document: Any) -> dict[str, Any]:
    """The one object of a cluster as its redacted dump has it."""
    cluster = cluster_from_json([msgspec.json.encode({"apiVersion": "v1", **document})], "test")
    redaction = redaction_of(cluster)
    [record] = [*cluster.nodes, *cluster.pods, *cluster.persistent_volumes, *cluster.pod_disruption_budgets]
    found: dict[str, Any] = msgspec.to_builtins(redaction.record(record), enc_hook=str)
    return found


CREATED = "2026-11-18T12:34:56Z"


@pytest.mark.parametrize(
    ("kind", "parts", "expected"),
    [
        pytest.param("Node", {}, None, id="of a node nobody asks when it was made"),
        pytest.param("Pod", {}, "1999-12-29T12:34:56Z", id="a pending pod is as old as it was"),
        pytest.param(
            "Pod", {"spec": {"nodeName": "n"}}, "1999-12-29T13:00:00Z", id="one that has a node is so roughly"
        ),
    ],
)
def test_when_an_object_was_made(kind: str, parts: dict[str, Any], expected: str | None) -> None:
    found = written(kind=kind, metadata={"name": "x", "creationTimestamp": CREATED}, **parts)
    assert found["metadata"].get("creationTimestamp") == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param("Pod", "1999-12-29T12:34:56Z", id="of a pod it counts when"),
        pytest.param("PersistentVolume", "2000-01-01T00:00:00Z", id="of others that it is so"),
    ],
)
def test_when_an_object_is_to_go(kind: str, expected: str) -> None:
    found = written(kind=kind, metadata={"name": "x", "deletionTimestamp": CREATED}, spec={"nodeName": "n"})
    assert found["metadata"]["deletionTimestamp"] == expected


@pytest.mark.parametrize(
    ("text", "expected"), [(CREATED, "1999-12-29T12:34:56Z"), ("yesterday, in the canary's office", "none")]
)
def test_when_an_eviction_was_granted(text: str, expected: str) -> None:
    status = {"disruptedPods": {"x": text}}
    found = written(apiVersion="policy/v1", kind="PodDisruptionBudget", metadata={"name": "b"}, status=status)
    assert list(found["status"]["disruptedPods"].values()) == [expected]
