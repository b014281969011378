"""Kueue's decisions on a redacted cluster equal those on the original, except for names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.kueue.objects import KUEUE_EXTRAS, kueue_objects, recorded_kueue, redactable
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kinds import KINDS
from kpreempt.schedulers.kueue import KueueConfiguration, run_cycles
from kpreempt.snapshot.decode import decode_document
from kpreempt.snapshot.redact import Redaction, redaction_of, unlisted_fields
from kpreempt.snapshot.redact.kueue_rules import KINDS as KUEUE_KINDS
from tests.conformance.cases import read_lines
from tests.conformance.test_kueue import FOLDER, SUITES
from tests.kueue_scenarios import kueue_snapshot

EVERY = 6
# Previous messages, which a redacted cluster does not have.
SAID_BEFORE = re.compile(r"Previously: .*", re.DOTALL)


def redacted(cluster: ClusterSnapshot, redaction: Redaction) -> ClusterSnapshot:
    fields = {kind.field: list(map(redaction.record, getattr(cluster, kind.field))) for kind in KINDS.values()}
    keys = {each.kind: each.key for each in KUEUE_EXTRAS.kinds}
    documents: dict[str, list[dict[str, Any]]] = {}
    for each in recorded_kueue(cluster, decode_document, redaction.record):
        documents.setdefault(keys[each["kind"]], []).append(each)
    return msgspec.structs.replace(cluster, documents=documents, **fields)


def decided(cluster: ClusterSnapshot, scenario: dict[str, Any], now: datetime, only: str) -> str:
    config = msgspec.convert(scenario.get("config") or {}, type=KueueConfiguration)
    objects = kueue_objects(cluster, decode_document)
    found = run_cycles(objects, config, now=now, cycles=scenario["cycles"], only=[only] if only else ())
    return json.dumps([found.cycles, found.alternatives])


def plain(value: Any) -> Any:
    """The result without previous messages, and with the names of domains spelled out."""
    if isinstance(value, dict) and "roots" in value:
        return [f"{value.get('prefix', '')}{each}{value.get('suffix', '')}" for each in value["roots"]]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return list(map(plain, value))
    return SAID_BEFORE.sub("", value) if isinstance(value, str) else value


def translated(value: Any, names: Mapping[str, str]) -> Any:
    """The result with the original names."""
    tokens = re.compile("|".join(sorted(map(re.escape, names), key=len, reverse=True)))
    return json.loads(tokens.sub(lambda found: names[found[0]], json.dumps(value)))


@pytest.mark.parametrize("suite", SUITES)
def test_decisions_on_a_redacted_cluster_equal_the_cluster(suite: str) -> None:
    for scenario in list(read_lines(FOLDER / f"{suite}.jsonl.gz"))[::EVERY]:
        now = datetime.fromisoformat(scenario["now"].replace("Z", "+00:00"))
        cluster = kueue_snapshot(scenario["objects"])
        queueing = redactable(cluster, decode_document)
        redaction = redaction_of(cluster, now, b"key", lambda images: images, queueing=queueing)
        only = "" if scenario["workload"] == "all" else scenario["workload"]
        namespace, _, name = only.partition("/")
        other = "/".join(redaction.key("Workload", namespace, name)) if only else ""
        again = decided(redacted(cluster, redaction), scenario, redaction.time(now), other)
        names = dict(redaction.pairs())
        found = translated(plain(json.loads(again)), names)
        assert found == plain(json.loads(decided(cluster, scenario, now, only))), scenario["name"]


@pytest.mark.parametrize("record", KUEUE_KINDS)
def test_every_field_with_text_is_known_to_redaction(record: type[msgspec.Struct]) -> None:
    assert unlisted_fields(record) == []
