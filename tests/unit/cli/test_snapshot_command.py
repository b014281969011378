from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kpreempt import __version__
from kpreempt.cli import process, snapshot
from kpreempt.snapshot.load import load_snapshot
from kpreempt.snapshot.write import ENDS
from tests.golden import cases

ROOT = Path(__file__).parents[3]
CLUSTER = str(ROOT / "fixtures/demo/cluster.yaml")
API = str(ROOT / "fixtures/demo/api.yaml")
NOW = ["--now", "2026-11-21T03:12:00Z"]
FROM = ["snapshot", "--snapshot", CLUSTER]
_TIMES = re.compile(r'"(?:takenAt|ageSeconds)": [^,\n]*')

Kpreempt = Callable[..., Any]


def without_times(verdict: str) -> str:
    """The verdict but for when the cluster was dumped."""
    return _TIMES.sub("", verdict)


@pytest.mark.parametrize("end", ENDS)
def test_a_dump_in_every_form_is_answered_from_as_the_original(end: str, tmp_path: Path, kpreempt: Kpreempt) -> None:
    target = str(tmp_path / f"cluster{end}")
    assert kpreempt(*FROM, "--to", target).returncode == 0
    ask = ["explain", "-f", API, *NOW, "-o", "json", "--snapshot"]
    assert without_times(kpreempt(*ask, target).stdout) == without_times(kpreempt(*ask, CLUSTER).stdout)


@pytest.mark.parametrize("name", cases.case_names())
def test_a_dump_of_any_cluster_is_answered_from_as_the_original(name: str, tmp_path: Path, kpreempt: Kpreempt) -> None:
    source = str(cases.ROOT / name / "snapshot.yaml")
    first, second = str(tmp_path / "first.json"), str(tmp_path / "second.json")
    assert kpreempt("snapshot", "--snapshot", source, "--to", first).returncode == 0
    assert kpreempt("snapshot", "--snapshot", first, "--to", second).returncode == 0
    assert Path(first).read_bytes() == Path(second).read_bytes()
    ask = ["explain", "-f", str(cases.ROOT / name / "pod.yaml"), *NOW, "-o", "json", "--snapshot"]
    assert without_times(kpreempt(*ask, first).stdout) == without_times(kpreempt(*ask, source).stdout)


def test_what_was_written_is_said_on_standard_error(tmp_path: Path, kpreempt: Kpreempt) -> None:
    target = tmp_path / "cluster.json.zst"
    code, stdout, stderr = kpreempt(*FROM, "--to", str(target))
    assert (code, stdout) == (0, "")
    assert re.fullmatch(rf"wrote {target} \([0-9.]+ kB\): Node 8, Pod 33, PodDisruptionBudget 4, [^\n]*\n", stderr), (
        stderr
    )


def test_quiet_says_nothing(tmp_path: Path, kpreempt: Kpreempt) -> None:
    assert kpreempt(*FROM, "--to", str(tmp_path / "cluster.json"), "-q") == (0, "", "")


def test_a_dash_writes_json_to_standard_output(kpreempt: Kpreempt) -> None:
    run = kpreempt(*FROM, "--to", "-", "-q")
    annotations = json.loads(run.stdout)["metadata"]["annotations"]
    assert annotations["kpreempt.io/kpreempt-version"] == __version__
    assert datetime.fromisoformat(annotations["kpreempt.io/taken-at"]) <= datetime.now(UTC)


def test_the_time_of_a_dump_stays_that_of_the_first(tmp_path: Path, kpreempt: Kpreempt) -> None:
    header = {"annotations": {"kpreempt.io/taken-at": "2026-11-20T10:00:00Z", "kpreempt.io/server-version": "v1.36.1"}}
    source = json.dumps({"apiVersion": "v1", "kind": "List", "metadata": header, "items": []})
    run = kpreempt("snapshot", "--snapshot", "-", "--to", "-", "-q", stdin=source)
    annotations = json.loads(run.stdout)["metadata"]["annotations"]
    assert annotations["kpreempt.io/taken-at"] == "2026-11-20T10:00:00Z"
    assert annotations["kpreempt.io/server-version"] == "v1.36.1"


def test_what_was_set_aside_is_assumed_of_the_dump_too(tmp_path: Path, kpreempt: Kpreempt) -> None:
    source, target = tmp_path / "cluster.json", str(tmp_path / "dump.json")
    bad = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bad"}, "spec": {"priority": "high"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "1"}}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": {}}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}}
    source.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [bad, node, budget, event]}))
    assert kpreempt("snapshot", "--snapshot", str(source), "--to", target, "--skip-bad-objects").returncode == 0
    ask = ["explain", "--cpu", "1", *NOW, "--algorithm", "kube-1.36", "-o", "json", "--skip-bad-objects", "--snapshot"]
    answer = kpreempt(*ask, target).stdout
    assert without_times(answer) == without_times(kpreempt(*ask, str(source)).stdout)
    assert [(each["subject"], each["kind"]) for each in json.loads(answer)["assumptions"]] == [
        ("Pod bad", "Skipped"),
        ("PodDisruptionBudget default/b", "Informational"),
        ("Pod", "Absent"),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param([*FROM], "kpreempt snapshot: missing option '--to'", id="no target"),
        pytest.param(["snapshot", "--to", "c.json"], "no cluster given", id="no cluster"),
        pytest.param([*FROM, "--to", "c.yaml"], "--to c.yaml: unknown file extension", id="another form"),
        pytest.param([*FROM, "--to", "-", "--redact-map", "m"], "--redact-map needs --redact", id="a needless map"),
        pytest.param(
            [*FROM, "--to", "m.json", "--redact", "--redact-map", "./m.json"],
            "--redact-map and --to use the same file",
            id="a map over the dump",
        ),
        pytest.param(
            [*FROM, "--to", "m.json", "--redact", "--redact-map", "-"],
            "--redact-map: file name missing",
            id="a shown map",
        ),
        pytest.param([*FROM, "--to", "-", "-n", "shop"], "--namespace needs a manifest", id="a needless -n"),
        pytest.param(
            ["snapshot", "--snapshot", "-", "-f", "-", "--to", "-"],
            "standard input is used twice",
            id="stdin twice",
        ),
    ],
)
def test_wrong_usage_is_one_message(arguments: list[str], message: str, kpreempt: Kpreempt) -> None:
    code, stdout, stderr = kpreempt(*arguments)
    assert (code, stdout) == (2, "")
    assert stderr.startswith(f"error: {message}")


@pytest.mark.parametrize("target", ["absent/c.json", "folder.json"])
def test_a_target_that_cannot_be_written_is_one_message(target: str, tmp_path: Path, kpreempt: Kpreempt) -> None:
    (tmp_path / "folder.json").mkdir()
    path = tmp_path / target
    names = tmp_path / "names.json"
    code, stdout, stderr = kpreempt(*FROM, "--to", str(path), "--redact", "--redact-map", str(names))
    assert (code, stdout) == (3, "")
    assert stderr.startswith(f"error: {path}: cannot write: ")
    assert stderr.count("\n") == 1
    assert [each.name for each in tmp_path.iterdir()] == ["folder.json"]


def test_a_disk_that_fills_up_leaves_the_old_files_and_nothing_else(
    tmp_path: Path, kpreempt: Kpreempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    def filling(pieces: Iterable[bytes], _: object) -> Iterator[bytes]:
        yield next(iter(pieces))
        raise OSError(28, "No space left on device")

    target, names = tmp_path / "cluster.json", tmp_path / "names.json"
    target.write_text("old")
    monkeypatch.setattr(snapshot, "packed", filling)
    code, _, stderr = kpreempt(*FROM, "--to", str(target), "--redact", "--redact-map", str(names))
    assert (code, stderr) == (3, f"error: {target}: cannot write: No space left on device\n")
    assert target.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["cluster.json"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_under_standard_output_is_one_message() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "kpreempt", *FROM, "--to", "-"]
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, run.stderr) == (3, "error: standard output: No space left on device\n")


def test_a_reader_that_has_gone_away_is_no_failure() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, "-m", "kpreempt", *FROM, "--to", "-"]
        run = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writer)
    assert (run.returncode, run.stderr) == (0, "")


def test_a_redacted_dump_says_no_name_and_the_map_leads_back(tmp_path: Path, kpreempt: Kpreempt) -> None:
    target, names_file = tmp_path / "cluster.json", tmp_path / "names.json"
    old_mask = os.umask(0)
    try:
        run = kpreempt(*FROM, "-f", API, "--to", str(target), "--redact", "--redact-map", str(names_file))
    finally:
        os.umask(old_mask)
    assert run.returncode == 0
    assert stat.S_IMODE(names_file.stat().st_mode) == 0o600
    written = json.loads(names_file.read_text())
    names = written["names"] | written["times"]
    text = target.read_text()
    assert "2026" not in text
    assert not [name for name in ("shop", "report-29385", "node-a", "dedicated", "registry") if f'"{name}' in text]
    # Its last line says how to explain the pod of the manifest.
    ask = run.complaint.splitlines()[-1].partition(": kpreempt ")[2].split()
    answer = kpreempt(*ask, *NOW, "-o", "json")
    plain = kpreempt("explain", "-f", API, "--snapshot", CLUSTER, *NOW, "-o", "json")
    found, expected = json.loads(answer.stdout), json.loads(plain.stdout)
    tokens = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
    for part in ("outcome", "nominatedNodes", "victims", "message", "effects", "selection"):
        back = tokens.sub(lambda match: names[match[0]], json.dumps(found[part]))
        assert json.loads(back) == expected[part], part


def test_the_pods_of_a_manifest_go_along_pending(tmp_path: Path, kpreempt: Kpreempt) -> None:
    target = str(tmp_path / "cluster.json")
    run = kpreempt(*FROM, "-f", API, "-n", "team", "--to", target)
    assert f"to explain team/api-new: kpreempt explain pod/api-new -n team --snapshot {target}\n" in run.stderr
    [pod] = [each for each in load_snapshot([target]).cluster.pods if each.metadata.namespace == "team"]
    assert (pod.status.phase, pod.spec.node_name, pod.spec.priority) == ("Pending", "", 1000)


def test_what_kubectl_s_plugin_proposes_is_a_command_of_kubectl(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "prod cluster.json"
    assert process.run([*FROM, "-f", API, "--to", str(target)], program="kubectl kpreempt") == 0
    *_, said = capsys.readouterr().err.splitlines()
    assert said == f"to explain shop/api-new: kubectl kpreempt explain pod/api-new -n shop --snapshot '{target}'"


def test_hostile_names_reach_neither_the_terminal_nor_a_redacted_file(tmp_path: Path, kpreempt: Kpreempt) -> None:
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(
        '{apiVersion: v1, kind: Pod, metadata: {name: "a\\e[31mb", namespace: "x\\ny"}, spec: {priority: 1}}'
    )
    target = tmp_path / "cluster.json"
    run = kpreempt(*FROM, "-f", str(manifest), "--to", str(target), "--redact")
    assert run.returncode == 0
    assert "\x1b" not in run.stderr
    assert "to explain x\\x0ay/a\\x1b[31mb: kpreempt explain pod/pod-0001 " in run.stderr
    assert "u001b" not in target.read_text()


@pytest.mark.parametrize(("options", "mode"), [((), 0o600), (("--redact",), 0o644)], ids=["as it is", "redacted"])
def test_only_a_redacted_dump_may_be_read_by_others(
    kpreempt: Kpreempt, tmp_path: Path, options: tuple[str, ...], mode: int
) -> None:
    target = tmp_path / "cluster.json"
    mask = os.umask(0o022)
    try:
        assert kpreempt(*FROM, "--to", str(target), *options).returncode == 0
    finally:
        os.umask(mask)
    assert stat.S_IMODE(target.stat().st_mode) == mode


def objects_of_a_rollout() -> list[dict[str, Any]]:
    """A cluster as an API server has it, with environments that are secret, and the objects that act on its pods."""
    pod_template = {
        "metadata": {"labels": {"app": "api"}},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "shop/api:1",
                    "resources": {"requests": {"cpu": "1"}},
                    "env": [{"name": "PASSWORD", "value": "hunter2"}],
                    "args": ["--token=hunter2"],
                }
            ]
        },
    }
    metadata = {"name": "api", "namespace": "shop"}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "api"}}, "template": pod_template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    of_job = {**pod_template, "spec": {**pod_template["spec"], "restartPolicy": "Never"}}
    job = {"jobTemplate": {"spec": {"template": of_job}}, "schedule": "@daily"}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}
    scaled = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 4}
    plain = {"containers": pod_template["spec"]["containers"], "nodeName": "n"}
    return [
        deployment,
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": job},
        {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": scaled},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": "shop"}, "spec": plain},
    ]


def cluster_with(objects: list[dict[str, Any]]) -> str:
    room = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "20"}}
    kept = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": room}, *objects]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": kept})


@pytest.mark.parametrize(
    ("replace", "changes"),
    [
        (("", ""), ["Unchanged"] * 4),
        (("shop/api:1", "shop/api:2"), ["Rolled", "Updated", "Unchanged", "Updated"]),
        (("hunter2", "hunter3"), ["Rolled", "Updated", "Unchanged", "Rejected"]),
        (('"replicas": 2', '"replicas": 3'), ["Unchanged"] * 4),
        (('"maxReplicas": 4', '"maxReplicas": 5'), ["Unchanged", "Unchanged", "Updated", "Unchanged"]),
    ],
    ids=["nothing", "images", "environments", "a size that an autoscaler sets", "an autoscaler"],
)
def test_a_change_is_checked_against_a_dump_as_against_the_original(
    replace: tuple[str, str], changes: list[str], tmp_path: Path, kpreempt: Kpreempt
) -> None:
    source, target, change = (tmp_path / f"{name}.json" for name in ("source", "target", "change"))
    objects = objects_of_a_rollout()
    source.write_text(cluster_with(objects))
    assert kpreempt("snapshot", "--snapshot", str(source), "--to", str(target)).returncode == 0
    assert "hunter2" not in target.read_text()
    change.write_text("\n---\n".join(json.dumps(each).replace(*replace) for each in objects))
    answers = [
        kpreempt("check", "-f", str(change), "--snapshot", str(each), *NOW, "-o", "json") for each in (source, target)
    ]
    # Of an environment it is known that it differs, and not where.
    texts = (
        re.sub(r'(?<=\.env)\[0\]\.value|(?<=\.args)\[0\]|(?<="fingerprint": ")\w+', "", each.stdout) for each in answers
    )
    first, second = ({**json.loads(each), "at": "", "cluster": ""} for each in texts)
    assert [each["kind"] for each in second["changes"]] == changes
    assert second == first
    assert answers[0].returncode == answers[1].returncode


def test_a_dump_that_is_redacted_later_has_neither_digests_nor_what_they_are_of(
    tmp_path: Path, kpreempt: Kpreempt
) -> None:
    source, plain, hidden = (str(tmp_path / f"{name}.json") for name in ("source", "plain", "hidden"))
    webhook = {"name": "canary.example.com", "clientConfig": {"url": "https://canary.example.com"}}
    more = [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "webhooks": [webhook],
        },
        {"apiVersion": "canary.example.com/v1", "kind": "Canary", "spec": {"secret": "canary"}},
        {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"canary.example.com/x": "1"}}},
    ]
    objects = [
        *objects_of_a_rollout(),
        *({**each, "metadata": {"name": "canary", "namespace": "shop"}} for each in more),
    ]
    Path(source).write_text(cluster_with(objects))
    assert kpreempt("snapshot", "--snapshot", source, "--to", plain).returncode == 0
    assert "sha256:" in Path(plain).read_text()
    for each in (source, plain):
        assert kpreempt("snapshot", "--snapshot", each, "--redact", "--to", hidden).returncode == 0
        text = Path(hidden).read_text().lower()
        assert not [word for word in ("sha256", "salt", "canary", "hunter2", "shop", "env", "--token") if word in text]
