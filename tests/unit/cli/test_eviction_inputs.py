"""What ended pods survives kpreempt's own snapshots, redacted or not; audit logs are read line by line."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kpreempt.analysis.evictions.queries import all_evictions
from kpreempt.errors import InputError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.audit_log import read_audit_log
from kpreempt.snapshot.load import load_snapshot

Kpreempt = Callable[..., Any]
FIXTURES = Path(__file__).parents[3] / "fixtures" / "evictions"
CLUSTER = FIXTURES / "cluster.yaml"
AUDIT = FIXTURES / "audit.log"


def causes_in(cluster: ClusterSnapshot) -> list[tuple[str, str]]:
    """The causes and the clients, by pod."""
    items = [(each.victim.pod, item) for each in all_evictions(cluster, "").items for item in each.items]
    return sorted((str(item.cause), item.client.name if item.client else "") for _, item in items)


@pytest.mark.parametrize("options", [[], ["--redact"]], ids=["complete", "redacted"])
def test_causes_are_the_same_in_a_snapshot(kpreempt: Kpreempt, tmp_path: Path, options: list[str]) -> None:
    written = tmp_path / "cluster.json"
    run = kpreempt("snapshot", "--snapshot", str(CLUSTER), "--to", str(written), *options)
    assert run.returncode == 0, run.stderr
    assert causes_in(load_snapshot([str(written)]).cluster) == causes_in(load_snapshot([str(CLUSTER)]).cluster)
    if options:
        text = written.read_text(encoding="utf-8")
        assert not any(name in text for name in ("node-a", "loop-0", "pressure", "app "))


def test_an_audit_log_may_be_packed(tmp_path: Path) -> None:
    packed = tmp_path / "audit.log.gz"
    packed.write_bytes(gzip.compress(AUDIT.read_bytes()))
    found = read_audit_log([str(packed)], InputLimits())
    assert found == read_audit_log([str(AUDIT)], InputLimits())
    assert {each.verb for each in found.requests} == {"create", "delete"}
    assert found.since is not None
    assert found.until is not None
    assert (found.since.isoformat(), found.until.isoformat()) == (
        "2026-11-21T02:30:00+00:00",
        "2026-11-21T03:11:50+00:00",
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param('{"kind": "Pod", "verb": "delete"}\n', 1, id="another kind"),
        pytest.param(f'{AUDIT.read_text(encoding="utf-8")}{{"verb": "delete"', 10, id="a line that ends early"),
        pytest.param("I1121 03:00:00 delete the pod\n", 1, id="another kind of log"),
    ],
)
def test_a_line_that_is_no_request_is_an_error(text: str, line: int, tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="is not a request of an audit log") as caught:
        read_audit_log([str(log)], InputLimits())
    assert caught.value.line == line
