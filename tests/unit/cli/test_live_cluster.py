"""Commands that read a live cluster: flags, messages and answers as a user meets them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kpreempt.cli import terminal
from tests.fake_api import FakeApi, FakeCluster, good, objects_by_kind, refused

ROOT = Path(__file__).parents[3]
DEMO = ROOT / "fixtures" / "demo"
NOW = ("--now", "2026-11-21T03:12:00Z")
API = ("-f", str(DEMO / "api.yaml"))

Kpreempt = Callable[..., Any]


def kubeconfig(path: Path, server: FakeApi, **fields: str) -> str:
    config = {
        "clusters": [{"name": "demo", "cluster": {"server": server.url}}],
        "contexts": [{"name": "demo", "context": {"cluster": "demo", **fields}}],
        "current-context": "demo",
    }
    path.write_text(json.dumps(config), encoding="utf-8")
    return str(path)


def test_the_answer_is_that_of_a_dump_of_the_same_cluster(kpreempt: Kpreempt, server: FakeApi) -> None:
    live = kpreempt("explain", *API, *NOW, "--server", server.url, "-o", "json")
    dumped = kpreempt("explain", *API, *NOW, "--snapshot", str(DEMO / "cluster.yaml"), "-o", "json")
    assert (live.returncode, live.stderr) == (0, "")
    mine, other = json.loads(live.stdout), json.loads(dumped.stdout)
    assert mine["nominatedNodes"] == other["nominatedNodes"] == ["node-b"]
    assert mine["victims"] == other["victims"]
    assert mine["cluster"]["version"] == "v1.36.3"


@pytest.mark.parametrize(
    ("options", "is_read"),
    [
        pytest.param([], False, id="a pod without volumes"),
        pytest.param(["--replicas", "3", "--capacity"], False, id="several of it"),
        pytest.param(["--aftermath"], True, id="pods that come in victims' places may have volumes"),
        pytest.param(["--set", "spec.volumes=[]"], True, id="a pod that is changed"),
    ],
)
def test_volumes_are_read_only_where_they_may_matter(
    kpreempt: Kpreempt, cluster: FakeCluster, server: FakeApi, options: list[str], is_read: bool
) -> None:
    requested: list[str] = []
    cluster.special = lambda each: requested.append(each.path)
    assert kpreempt("explain", *API, *NOW, "--server", server.url, *options).returncode == 0
    assert ("/api/v1/persistentvolumeclaims" in requested) is is_read
    assert ("/apis/storage.k8s.io/v1/csinodes" in requested) is is_read
    assert "/apis/policy/v1/poddisruptionbudgets" in requested


def test_a_workload_without_pods_is_made_of_the_template_that_the_server_has(
    kpreempt: Kpreempt, tmp_path: Path
) -> None:
    items = yaml.safe_load((ROOT / "fixtures" / "workloads" / "cluster.yaml").read_text(encoding="utf-8"))["items"]
    with FakeApi(FakeCluster(objects_by_kind(items))) as api:
        job = kpreempt("explain", "job/report", "-n", "shop", "--server", api.url)
        nightly = kpreempt("explain", "cj", "nightly", "-n", "shop", "--server", api.url)
    assert job.stdout.startswith("shop/report: neither missing replica lands immediately: 2 preempt 2 pods.")
    assert nightly.stdout.startswith("shop/nightly: both replicas land.")


def test_an_upgrade_starts_at_the_version_of_the_server(kpreempt: Kpreempt, server: FakeApi) -> None:
    upgrade = ("compare", "--upgrade-to", "1.37", "--workloads", *NOW, "-o", "json")
    live = kpreempt(*upgrade, "--server", server.url)
    dumped = kpreempt(*upgrade, "--snapshot", str(DEMO / "cluster.yaml"), "--algorithm", "kube-1.36")
    assert (live.returncode, live.stderr) == (0, "")
    mine, other = json.loads(live.stdout), json.loads(dumped.stdout)
    assert (mine["base"], mine["compared"], mine["items"]) == ("kube-1.36", other["compared"], other["items"])
    assert mine["compared"] > 0


@pytest.mark.parametrize("by", ["--kubeconfig", "KUBECONFIG"])
def test_the_namespace_of_the_context_counts_unless_another_is_given(
    kpreempt: Kpreempt, server: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    path = kubeconfig(tmp_path / "config", server, namespace="batch")
    options = ["--kubeconfig", path] if by == "--kubeconfig" else []
    if not options:
        monkeypatch.setenv(by, path)
    assert "batch/report-29381-jp9lx" in kpreempt("explain", "report-29381-jp9lx", *options).stdout
    assert "batch/pod" in kpreempt("explain", "--cpu", "1", *options).stdout
    assert "shop/pod" in kpreempt("explain", "--cpu", "1", "-n", "shop", *options).stdout
    assert kpreempt("explain", "report-29381-jp9lx", "-n", "shop", *options).returncode == 3


def test_a_manifest_without_a_namespace_is_for_that_of_the_context(
    kpreempt: Kpreempt, server: FakeApi, tmp_path: Path
) -> None:
    path = kubeconfig(tmp_path / "config", server, namespace="batch")
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "image": "x"}]},
    }
    run = kpreempt("explain", "-f", "-", "--kubeconfig", path, stdin=json.dumps(document))
    assert run.stdout.startswith("batch/a ")
    document["metadata"] = {"name": "a", "namespace": "shop"}
    run = kpreempt("explain", "-f", "-", "--kubeconfig", path, stdin=json.dumps(document))
    assert run.stdout.startswith("shop/a ")


@pytest.mark.parametrize("command", [("explain", *API), ("batch", "/dev/null")], ids=["explain", "batch"])
@pytest.mark.parametrize(
    ("flag", "shown"), [(["--context", "x"], "--context"), (["--as", "x"], "--as"), (["-s", "x"], "--server")]
)
def test_a_snapshot_and_a_live_cluster_exclude_each_other(
    kpreempt: Kpreempt, command: tuple[str, ...], flag: list[str], shown: str
) -> None:
    run = kpreempt(*command, *flag, "--snapshot", str(DEMO / "cluster.yaml"))
    assert run.returncode == 2
    assert run.complaint == f"--snapshot and {shown} cannot be used together: use a snapshot or a live cluster\n"


def test_batch_has_no_base_cluster_unless_one_is_named(kpreempt: Kpreempt, server: FakeApi) -> None:
    line = json.dumps({"name": "a", "pod": {"metadata": {"name": "a"}, "spec": {"containers": []}}}) + "\n"
    assert '"landsOn":["' not in kpreempt("batch", stdin=line).stdout
    assert '"landsOn":["' in kpreempt("batch", "--server", server.url, stdin=line).stdout


def test_a_cluster_that_is_not_reached_ends_with_3_and_a_hint(kpreempt: Kpreempt, server: FakeApi) -> None:
    run = kpreempt("explain", *API, "--server", server.url, "--context", "demo")
    assert (run.returncode, run.complaint) == (
        2,
        '--context: the kubeconfig has no context "demo"\nhint: it has no contexts\n',
    )
    run = kpreempt("explain", *API, "--server", f"{server.url}/other")
    assert run.returncode == 3
    assert run.complaint.startswith(f"{server.url}/other")
    assert "\nhint: check --server" in run.stderr


def test_strict_fails_where_a_kind_may_not_be_listed(kpreempt: Kpreempt, server: FakeApi, cluster: FakeCluster) -> None:
    arguments = ("explain", *API, *NOW, "--server", server.url)
    assert kpreempt(*arguments, "--strict").returncode == 0
    cluster.special = lambda requested: refused(403, "no") if "poddisruptionbudgets" in requested.path else None
    run = kpreempt(*arguments, "--strict")
    assert run.returncode == 1
    assert "PodDisruptionBudget: list: cannot be listed (403)" in run.stderr
    assert "cannot be listed (403)" in " ".join(kpreempt(*arguments).stdout.split())


def test_the_server_s_words_are_shown_harmless_and_no_token_is_shown(
    kpreempt: Kpreempt, server: FakeApi, cluster: FakeCluster
) -> None:
    cluster.special = lambda _: refused(403, "no \x1b[2J\x07")
    run = kpreempt("explain", *API, "--server", server.url, "--token", "hunter2")
    assert run.returncode == 3
    assert "\x1b" not in run.stderr
    assert "hunter2" not in run.stderr + run.stdout


def test_on_a_terminal_the_progress_of_reading_is_shown(
    kpreempt: Kpreempt, server: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "_SECONDS_OF_PATIENCE", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    run = kpreempt("explain", *API, "--server", server.url)
    assert re.search(rf"reading {re.escape(server.url)}: \d+ objects \d+% \.\.\.", run.stderr)


class TestVolcanosConfiguration:
    PATH = "/api/v1/namespaces/volcano-system/configmaps/volcano-scheduler-configmap"
    NAMED = ("volcano", "--scheduler-config", "configmap/volcano-scheduler-configmap", *NOW)

    def test_is_read_from_the_cluster_where_a_config_map_is_named(
        self, kpreempt: Kpreempt, server: FakeApi, cluster: FakeCluster
    ) -> None:
        conf = 'actions: "enqueue, reclaim"\ntiers: [{plugins: [{name: gang}]}]\n'
        answer = good({"metadata": {}, "data": {"volcano-scheduler.conf": conf, "token": "secret"}})
        cluster.special = lambda requested: answer if requested.path == self.PATH else None
        run = kpreempt(*self.NAMED, "--server", server.url, "-o", "json")
        assert (run.returncode, run.stderr) == (0, "")
        assert json.loads(run.stdout)["session"]["configuredActions"] == ["enqueue", "reclaim"]
        assert "secret" not in run.stdout

    def test_that_is_not_there_ends_in_a_message(self, kpreempt: Kpreempt, server: FakeApi) -> None:
        run = kpreempt(*self.NAMED, "--server", server.url)
        assert (run.returncode, run.stdout) == (3, "")
        assert "configmaps/volcano-scheduler-configmap" in run.stderr

    def test_is_not_in_a_dump(self, kpreempt: Kpreempt) -> None:
        run = kpreempt(*self.NAMED, "--snapshot", str(DEMO / "cluster.yaml"))
        assert run.returncode == 2
        assert "a ConfigMap can only be read from a live cluster" in run.stderr
