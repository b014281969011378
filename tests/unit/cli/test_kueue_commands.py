"""``pending``, ``compare``, ``at-risk`` and ``who-evicted`` where Kueue decides."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FIXTURES = Path(__file__).parents[3] / "fixtures" / "kueue"
NOW = ("--now", "2026-11-22T12:00:00Z")
BUSY = ("--snapshot", str(FIXTURES / "busy.yaml"), *NOW)
KUEUE = ("--algorithm", "kueue-0.19")


def _pending(kpreempt: Callable[..., Any], *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kpreempt("pending", *KUEUE, *BUSY, "-o", "json", *options).stdout)
    return found


def test_pending_workloads_come_in_the_order_of_heads(kpreempt: Callable[..., Any]) -> None:
    items = _pending(kpreempt)["items"]
    heads = [each["headIn"] for each in items if each["headIn"]]
    assert heads == sorted(heads)
    assert len(heads) > 2
    # Whoever is never head comes last.
    assert [each["headIn"] for each in items[len(heads) :]] == [0] * (len(items) - len(heads))


def test_each_pending_workload_has_kueues_own_message_or_its_flavors(kpreempt: Callable[..., Any]) -> None:
    items = {each["workload"]: each["outcome"] for each in _pending(kpreempt)["items"]}
    assert {key: each["outcome"] for key, each in items.items()} == {
        "team/job-urgent": "Preempts",
        "team/job-small": "Admitted",
        "team/job-huge": "Pending",
        "team/job-later": "Pending",
        "team/job-lost": "NotQueued",
    }
    assert "insufficient quota for cpu in flavor on-demand" in items["team/job-huge"]["message"]
    assert items["team/job-lost"]["message"] == "LocalQueue 'nowhere' does not exist in namespace team"
    assert [each["workload"] for each in items["team/job-urgent"]["targets"]] == ["team/job-borrower"]


@pytest.mark.parametrize(("options", "count"), [(("-n", "team"), 5), (("-n", "other"), 0), (("-l", "tier=gold"), 1)])
def test_pending_workloads_are_selected(kpreempt: Callable[..., Any], options: tuple[str, ...], count: int) -> None:
    assert len(_pending(kpreempt, *options)["items"]) == count


@pytest.mark.parametrize("options", [("-w",), ("--plugin", "x:Y"), ("--feature-gates", "A=true")])
def test_options_that_say_nothing_to_kueue_are_refused(kpreempt: Callable[..., Any], options: tuple[str, ...]) -> None:
    run = kpreempt("pending", *KUEUE, *BUSY, *options)
    assert run.returncode == 2
    assert "does not apply to kueue-0.19" in run.stderr


def _compare(kpreempt: Callable[..., Any], path: Path | str, *options: str) -> Any:
    return kpreempt("compare", "--algorithms", f"kueue-0.19,kueue-0.19@{path}", *BUSY, *options)


def test_another_borrowing_limit_is_compared(kpreempt: Callable[..., Any], tmp_path: Path) -> None:
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "speech"},
        "spec": {
            "cohortName": "research",
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": ["cpu"],
                    "flavors": [
                        {
                            "name": "on-demand",
                            "resources": [{"name": "cpu", "nominalQuota": 4, "borrowingLimit": 0}],
                        }
                    ],
                }
            ],
        },
    }
    path = tmp_path / "limit.json"
    path.write_text(json.dumps(queue))
    answer = json.loads(_compare(kpreempt, path, "-o", "json").stdout)
    differing = {each["workload"]: [fate["outcome"] for fate in each["outcomes"]] for each in answer["items"]}
    assert differing["team/job-small"] == ["Admitted", "Pending"]
    assert _compare(kpreempt, path, "--fail-on-difference").returncode == 1


def test_the_same_quota_decides_alike(kpreempt: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("kind: Configuration\n")
    assert "all configurations agree" in _compare(kpreempt, path).stdout


@pytest.mark.parametrize(
    ("algorithms", "message"),
    [
        ("kueue-0.19,kube-1.36", "can only be compared with itself"),
        ("kueue-0.19", "--algorithms needs two or more configurations"),
        ("kueue-0.19,kueue-0.19", "is listed twice"),
        ("kueue-0.19,kueue-0.19@", "expected kueue-0.19@FILE"),
    ],
)
def test_what_cannot_be_compared_is_refused(kpreempt: Callable[..., Any], algorithms: str, message: str) -> None:
    run = kpreempt("compare", "--algorithms", algorithms, *BUSY)
    assert run.returncode == 2
    assert message in run.stderr


def test_a_file_of_something_else_is_refused(kpreempt: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")
    assert "a Pod" in _compare(kpreempt, path).stderr


def _at_risk(kpreempt: Callable[..., Any], *options: str) -> dict[str, Any]:
    found = json.loads(kpreempt("at-risk", *KUEUE, *BUSY, "-n", "team", "-o", "json", *options).stdout)
    return {each["workload"]: each for each in found["items"]}


def test_a_borrower_is_at_risk_of_who_lends(kpreempt: Callable[..., Any]) -> None:
    items = _at_risk(kpreempt)
    assert list(items) == ["team/job-borrower", "team/job-steady"]
    threats = [(each["workload"], each["reason"]) for each in items["team/job-borrower"]["threats"]]
    assert threats == [("team/job-urgent", "InCohortReclamation")]
    assert items["team/job-borrower"]["borrowed"] == [
        {"flavorResource": "on-demand/cpu", "amount": "5", "reclaimers": ["vision"]}
    ]
    assert items["team/job-steady"]["threats"] == []


def test_a_limited_number_is_listed(kpreempt: Callable[..., Any]) -> None:
    assert list(_at_risk(kpreempt, "--limit", "1")) == ["team/job-borrower"]


def test_conditions_say_who_preempted_a_workload(kpreempt: Callable[..., Any]) -> None:
    run = kpreempt("who-evicted", "workload/job-done", "-n", "team", *KUEUE, *BUSY, "-o", "json")
    (found,) = json.loads(run.stdout)["preemptions"]
    assert (found["preemptor"], found["state"], found["reason"]) == (
        "team/job-urgent",
        "Pending",
        "InCohortReclamation",
    )
    assert found["at"] == "2026-11-22T06:30:00Z"


def test_a_workload_that_was_never_preempted_says_so(kpreempt: Callable[..., Any]) -> None:
    run = kpreempt("who-evicted", "job-steady", "-n", "team", *KUEUE, *BUSY)
    assert run.stdout == ("Workload team/job-steady (Admitted): no condition or event shows that it was\npreempted.\n")


def test_a_preemptor_that_is_gone_goes_by_its_uid(kpreempt: Callable[..., Any], tmp_path: Path) -> None:
    text = (FIXTURES / "busy.yaml").read_text().replace("UID: u-3, JobUID", "UID: u-99, JobUID")
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    run = kpreempt("who-evicted", "job-done", "-n", "team", *KUEUE, "--snapshot", str(path), *NOW)
    assert "not in the cluster (UID u-99" in run.stdout


def test_events_report_preemptions_and_each_is_reported_once(kpreempt: Callable[..., Any], tmp_path: Path) -> None:
    said = "Preempted to accommodate a workload (UID: u-3, JobUID: UNKNOWN) due to reclamation within the cohort"

    def event(name: str, at: str) -> dict[str, Any]:
        workload = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "namespace": "team", "name": "job-done"}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": "team"},
            "involvedObject": workload,
            "reason": "Preempted",
            "message": said,
            "lastTimestamp": at,
        }

    items = [event("a", "2026-11-22T06:30:01Z"), event("b", "2026-11-22T10:00:00Z")]
    path = tmp_path / "events.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    run = kpreempt(*("who-evicted", "job-done", "-n", "team", *KUEUE, *BUSY, "--snapshot", str(path), "-o", "json"))
    found = json.loads(run.stdout)["preemptions"]
    assert [(each["at"], each["source"]) for each in found] == [
        ("2026-11-22T10:00:00Z", "Event"),
        ("2026-11-22T06:30:00Z", "Condition"),
    ]


def test_a_dump_of_kpreempts_own_has_what_kueue_reads(kpreempt: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    text = (FIXTURES / "busy.yaml").read_text().replace("{name: c, resources", "{name: c, command: [s3cret], resources")
    busy = tmp_path / "busy.yaml"
    busy.write_text(text)
    kpreempt("snapshot", "--snapshot", str(busy), "--to", str(path))
    assert "s3cret" not in path.read_text()
    from_dump = json.loads(kpreempt("pending", *KUEUE, "--snapshot", str(path), *NOW, "-o", "json").stdout)
    before = _pending(kpreempt)
    assert from_dump["items"] == before["items"]
    # There are no cohorts and no checks, and that is known.
    assert not [each for each in from_dump["assumptions"] if each["field"] == "snapshot"]


def test_who_waits_behind_many_that_never_fit_is_admitted_all_the_same(
    kpreempt: Callable[..., Any], tmp_path: Path
) -> None:
    def workload(name: str, cpu: int, minute: int) -> dict[str, Any]:
        container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
        created = f"2026-11-22T10:{minute:02}:00Z"
        return {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {"name": name, "namespace": "team", "uid": name, "creationTimestamp": created},
            "spec": {
                "queueName": "vision",
                "podSets": [{"name": "main", "template": {"spec": {"containers": [container]}}}],
            },
        }

    items = [*(workload(f"giant-{at}", 30 + at, at) for at in range(6)), workload("giant-same", 30, 30)]
    path = tmp_path / "more.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items, workload("little", 1, 40)]}))
    run = kpreempt("pending", *KUEUE, *BUSY, "--snapshot", str(path), "-o", "json")
    fates = {each["workload"]: each["outcome"] for each in json.loads(run.stdout)["items"]}
    assert fates["team/little"]["outcome"] == "Admitted"
    # It is parked with its equal, and Kueue says nothing about it.
    assert fates["team/giant-same"]["outcome"] == "Pending"
    assert fates["team/giant-same"]["message"].startswith("it never reaches the head")


def test_a_redacted_dump_has_kueues_objects_under_other_names(kpreempt: Callable[..., Any], tmp_path: Path) -> None:
    dump = tmp_path / "redacted.json"
    kpreempt("snapshot", "--snapshot", str(FIXTURES / "busy.yaml"), "--redact", "--to", str(dump), "-q")
    text = dump.read_text(encoding="utf-8")
    assert not any(name in text for name in ("team", "vision", "speech", "research", "on-demand", "urgent", "gold"))
    found = json.loads(kpreempt("pending", *KUEUE, "--snapshot", str(dump), "-o", "json").stdout)
    expected = _pending(kpreempt)["items"]
    assert [each["outcome"]["outcome"] for each in found["items"]] == [each["outcome"]["outcome"] for each in expected]
    assert len(found["items"][0]["outcome"]["targets"]) == 1
