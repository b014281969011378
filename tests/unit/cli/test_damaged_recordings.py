"""Every command that reads recordings names the segment and the line that kpreempt did not write."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from tests.damaged_recordings import CHANGE, READERS, damaged, recorded, rewritten
from tests.unit.cli.conftest import Kpreempt

NOW = ("--now", "2026-11-21T03:05:00Z")
WITHOUT_CLOCK = ("history", "verify", "record", "snapshot")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("recording") / "past")


@pytest.fixture(scope="module")
def one_segment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("recording") / "past", timedelta(hours=1))


@pytest.fixture(params=["whole"])
def past(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(request.getfixturevalue(request.param), tmp_path / "past")
    (tmp_path / "change.yaml").write_text(json.dumps(CHANGE), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "past"


def words_of(reader: tuple[str, ...]) -> tuple[str, ...]:
    return reader if reader[0] in WITHOUT_CLOCK else (*reader, *NOW)


@pytest.mark.parametrize("reader", READERS, ids=" ".join)
def test_a_whole_recording_is_read(reader: tuple[str, ...], past: Path, kpreempt: Kpreempt) -> None:
    run = kpreempt(*words_of(reader))
    assert run.returncode in (0, 1), run.stderr


@pytest.mark.parametrize("reader", READERS, ids=" ".join)
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param(b'"kind":"List"', b'"kind":5', ":1: contains data", id="a header that is none"),
        pytest.param(b'{"apiVersion":"v1","kind":"List"', b"", ":1: ", id="a header that is cut"),
        pytest.param(b"kpreempt.io/kpreempt-version", b"x", ":1: ", id="a header of something else"),
        pytest.param(b"kpreempt.io/taken-at\":\"", b"kpreempt.io/taken-at\":\"x", ":1: ", id="a header without a time"),
        pytest.param(b'"name":"node-a"', b'"name":7', ":2: contains data", id="a name"),
        pytest.param(b'"cpu":"3"', b'"cpu":"3 \xff"', ":2: is not UTF-8", id="no UTF-8"),
        pytest.param(b'"cpu":"3"', b'"cpu":"many"', ":2: Node node-a: status.allocatable.cpu: ", id="a quantity"),
        pytest.param(b'"apiVersion":"v1","kind":"Node"', b'"apiVersion":"x/v1","kind":"Node"', "is not a recorded", id="a group"),  # noqa: E501
        pytest.param(b'"kind":"Node"', b'"kind":"Nod"', "is not a recorded", id="a kind"),
        pytest.param(b'"priority":2000', b'"priority":{}', ":4: Pod shop/agent: spec.priority: ", id="a base's pod"),
        pytest.param(b'"minAvailable":1', b'"minAvailable":[]', ": PodDisruptionBudget shop/api: ", id="a budget"),
        pytest.param(b'"versions":{', b'"versions":{"":', ": contains data", id="a base's end"),
        pytest.param(b'"what":"ADDED"', b'"what":"Added"', ": contains data", id="a change of no kind"),
        pytest.param(b'"object":{"apiVersion"', b'"object":{"apiversion"', ": contains data", id="an object"),
        pytest.param(b'"priority":1000', b'"priority":"1000"', ": Pod shop/api: spec.priority: ", id="a pod"),
        pytest.param(
            b'"namespace":"shop","name":"api","version"',
            b'"namespace":"shop","name":"apis","version"',
            ": Pod shop/apis: object: is another object",
            id="a change of another object",
        ),
        pytest.param(b'"seen":"2026', b'"seen":"9999-12-31T23:59:59Z","x":"', ": a time is before", id="a late time"),
        pytest.param(b'"seen":"2026', b'"seen":"2026-11-21","x":"', ": contains data", id="no time"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("past", ["one_segment"], indirect=True)
def test_what_is_wrong_has_its_segment_and_line(
    reader: tuple[str, ...], old: bytes, new: bytes, words: str, past: Path, kpreempt: Kpreempt
) -> None:
    (segment,) = past.glob("*.kprec")
    segment.write_bytes(rewritten(segment.read_bytes(), lambda lines: [each.replace(old, new, 1) for each in lines]))
    run = kpreempt(*words_of(reader))
    assert run.returncode == 3, run.stdout + run.stderr
    assert run.complaint.startswith("past/2026"), run.stderr
    assert ".kprec:" in run.stderr
    assert words in run.stderr


@pytest.mark.parametrize("name", ["20261321T030000000000Z", "00000000T000000000000Z", "99999999T999999999999Z"])
@pytest.mark.parametrize("reader", READERS, ids=" ".join)
def test_a_segment_that_is_not_named_after_a_time_is_named(
    reader: tuple[str, ...], name: str, past: Path, kpreempt: Kpreempt
) -> None:
    min(past.glob("*.kprec")).rename(past / f"{name}.kprec")
    run = kpreempt(*words_of(reader))
    assert (run.returncode, run.stdout) == (3, "")
    assert run.complaint.startswith(f"past/{name}.kprec: is not named after a time")


@pytest.mark.sampled(15)
@pytest.mark.parametrize("seed", range(60))
def test_no_damage_is_a_bug(seed: int, past: Path, kpreempt: Kpreempt) -> None:
    random = Random(seed)
    for segment in sorted(past.glob("*.kprec")):
        if random.random() < 0.7:
            segment.write_bytes(damaged(segment.read_bytes(), random))
    for reader in READERS:
        run = kpreempt(*words_of(reader))
        assert run.returncode in (0, 1, 3), (reader, run.stderr)
        shutil.rmtree("redacted", ignore_errors=True)
