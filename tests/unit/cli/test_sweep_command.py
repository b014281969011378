"""The whole command, on workers of this machine and on those of a Dask cluster that exists."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kpreempt.fleet.rows import TABLES
from tests.fake_api import FakeApi, FakeCluster, refused
from tests.unit.cli.conftest import Kpreempt

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "fixtures"
PLAN = """
algorithms = ["auto", "kube-1.29"]
now = "2026-11-21T03:12:00Z"
[[query]]
id = "api"
manifest = "api.yaml"
priority = [0, 100000]
[[query]]
kind = "budgets"
"""
# Dask warns of what others do, such as a port that is taken.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A folder with a plan, three clusters, and one that is cut off."""
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    shutil.copy(FIXTURES / "demo" / "api.yaml", tmp_path)
    (tmp_path / "dumps").mkdir()
    for name in ("demo", "on-call", "budgets"):
        shutil.copy(FIXTURES / name / "cluster.yaml", tmp_path / "dumps" / f"{name}.yaml")
    (tmp_path / "dumps" / "cut.json.gz").write_bytes(b"\x1f\x8b\x08")
    return tmp_path


def rows(dataset: Path, table: str) -> list[tuple[Any, ...]]:
    return duckdb.sql(f"SELECT * FROM '{dataset}/*/{table}.parquet' ORDER BY ALL").fetchall()


def arguments(fleet: Path, to: str, *more: str) -> list[str]:
    return [
        *("sweep", str(fleet / "plan.toml"), "--snapshots", f"{fleet}/dumps/*", "--to", str(fleet / to)),
        *more,
    ]


def test_all_rows_are_there_once_and_a_bad_snapshot_is_a_failure(kpreempt: Kpreempt, fleet: Path) -> None:
    run = kpreempt(*arguments(fleet, "out", "--workers", "2", "-o", "json"))
    assert run.returncode == 3, run.stderr
    answers = {each[:3] for each in rows(fleet / "out", "verdicts")}
    queries = ("api[priority=0]", "api[priority=100000]", "budgets")
    clusters, algorithms = ("budgets", "demo", "on-call"), ("auto", "kube-1.29")
    assert answers == {(one, two, three) for one in clusters for two in queries for three in algorithms}
    assert len(answers) == len(rows(fleet / "out", "verdicts"))
    assert [each[0] for each in rows(fleet / "out", "failures")] == ["cut"]
    answer = json.loads(run.stdout)
    assert answer["items"][0]["cluster"] == "cut"
    assert (answer["answers"], answer["numFailures"]) == (18, 1)
    lines = run.complaint.splitlines()
    assert lines[0].startswith("workers: 2 with ")
    assert lines[1].startswith("dashboard: http://127.0.0.1:")
    assert sorted(each.partition("] ")[2].partition(":")[0] for each in lines[2:]) == [
        "budgets",
        "cut",
        "demo",
        "on-call",
    ]
    assert lines[-1].startswith("[4/4] ")
    assert not (fleet / "out" / ".partial").exists()

    # Nothing is done twice: only what failed is tried again, and what was taken away.
    (fleet / "dumps" / "cut.json.gz").unlink()
    shutil.copy(FIXTURES / "demo" / "cluster.yaml", fleet / "dumps" / "cut.yaml")
    (fleet / "out" / "cluster=demo" / "nodes.parquet").unlink()
    before = (fleet / "out" / "cluster=on-call" / "verdicts.parquet").stat()
    again = kpreempt(*arguments(fleet, "out", "--workers", "1", "--resume"))
    assert again.returncode == 0, again.stderr
    assert again.complaint.splitlines()[0] == "2 clusters already done"
    assert sorted(each.partition("] ")[2].partition(":")[0] for each in again.complaint.splitlines()[3:]) == [
        "cut",
        "demo",
    ]
    assert (fleet / "out" / "cluster=on-call" / "verdicts.parquet").stat() == before
    assert len(rows(fleet / "out", "verdicts")) == 24
    assert not rows(fleet / "out", "failures")


@pytest.mark.slow
def test_workers_of_a_cluster_that_exists_give_the_same_rows(kpreempt: Kpreempt, fleet: Path) -> None:
    here = kpreempt(*arguments(fleet, "here", "--workers", "2", "-q"))
    with dask_cluster(fleet) as address:
        there = kpreempt(*arguments(fleet, "there", "--scheduler", address, "-q"))
    assert (here.returncode, there.returncode) == (3, 3), there.stderr
    assert here.stdout == there.stdout, there.stderr
    for table in TABLES:
        assert rows(fleet / "here", table) == rows(fleet / "there", table)
    files = sorted(each.relative_to(fleet / "here") for each in (fleet / "here").rglob("*.parquet"))
    assert len(files) == 4 * len(TABLES)
    for each in files:
        assert (fleet / "here" / each).read_bytes() == (fleet / "there" / each).read_bytes()


@pytest.mark.slow
def test_a_cluster_that_ends_each_of_its_workers_is_a_failure_and_a_worker_that_dies_once_is_none(
    kpreempt: Kpreempt, fleet: Path
) -> None:
    import dask

    # What a cluster does that takes all memory, as far as the others can see.
    (fleet / "preload.py").write_text(
        "import os, pathlib\n"
        "from kpreempt.fleet import engine\n"
        # It may be loaded twice in a worker.
        "real = vars(engine).setdefault('real', engine.sweep_cluster)\n"
        f"mark = pathlib.Path({str(fleet / 'died')!r})\n"
        "def sweep_cluster(target, *more):\n"
        "    if target.name == 'budgets' or (target.name == 'demo' and not mark.exists()):\n"
        "        mark.touch()\n"
        "        os._exit(9)\n"
        "    return real(target, *more)\n"
        "engine.sweep_cluster = sweep_cluster\n",
        encoding="utf-8",
    )
    (fleet / "dumps" / "cut.json.gz").unlink()
    with dask.config.set({"distributed.worker.preload": [str(fleet / "preload.py")]}):
        run = kpreempt(*arguments(fleet, "out", "--workers", "1"))
    assert run.returncode == 3, run.stderr
    (failure,) = rows(fleet / "out", "failures")
    assert (failure[0], failure[1], failure[3]) == ("budgets", "", "Killed")
    assert {each[0] for each in rows(fleet / "out", "verdicts")} == {"demo", "on-call"}
    assert len(rows(fleet / "out", "verdicts")) == 12
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["--query", "pending"], "the plan has no clusters", id="no cluster"),
        pytest.param(["--snapshots", "x", "--query", "pending"], "--to is required", id="no folder"),
        pytest.param(["a", "b"], "expected one plan", id="two plans"),
        pytest.param(["report"], "the directory of one dataset", id="no dataset"),
        pytest.param(["--snapshots", "x", "--query", "y"], "unknown kind 'y'", id="query"),
        pytest.param(["--snapshots", "x", "--priorities", "high"], "expected numbers", id="priority"),
        pytest.param(
            ["--snapshots", "x", "--query", "pending", "--to", "y", "--scheduler", "tcp://a:1", "--workers", "2"],
            "--scheduler cannot be used with",
            id="two kinds of workers",
        ),
        pytest.param(
            ["--snapshots", str(ROOT), "--query", "pending", "--to", "y", "--scheduler", "nonsense://"],
            "--scheduler nonsense://",
            id="address",
        ),
    ],
)
def test_wrong_usage_is_reported_in_one_line(
    kpreempt: Kpreempt, words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if str(ROOT) in words:
        words[1] = str(FIXTURES / "demo" / "cluster.yaml")
    run = kpreempt("sweep", *words)
    assert run.returncode in (2, 3)
    assert message in run.stderr
    assert run.stdout == ""


def test_nothing_that_is_there_is_written_over(kpreempt: Kpreempt, fleet: Path) -> None:
    (fleet / "out" / "cluster=gone").mkdir(parents=True)
    assert "already contains a sweep" in kpreempt(*arguments(fleet, "out")).stderr
    assert "belongs to another plan" in kpreempt(*arguments(fleet, "out", "--resume")).stderr
    assert "contains other files" in kpreempt(*arguments(fleet, "dumps", "--resume")).stderr


def test_without_the_extra_one_line_says_how_to_install_it(
    kpreempt: Kpreempt, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    run = kpreempt(*arguments(fleet, "out"))
    assert run.returncode == 2
    assert run.complaint.splitlines() == [
        "kpreempt sweep needs distributed, which is not installed",
        "hint: pip install 'kpreempt[fleet]'",
    ]
    assert not (fleet / "out").exists()


@contextmanager
def dask_cluster(folder: Path) -> Iterator[str]:
    """The address of a scheduler with two workers, each a process that was started on its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    reported = folder / "scheduler.json"

    def start(*words: str) -> subprocess.Popen[bytes]:
        program = [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]]
        return subprocess.Popen(program, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    processes = [
        start(
            "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(reported)
        )
    ]
    try:
        address = _written(reported)
        alone = ("--nthreads", "1", "--no-dashboard", "--no-nanny")
        processes += [start("dask_worker", address, *alone) for _ in range(2)]
        yield address
    finally:
        for each in reversed(processes):
            each.kill()
            each.wait(20)


def _written(path: Path) -> str:
    for _ in range(400):
        try:
            return str(json.loads(path.read_text(encoding="utf-8"))["address"])
        except (OSError, ValueError):
            time.sleep(0.05)
    raise TimeoutError("the scheduler does not start")


def test_a_context_that_cannot_be_reached_is_a_failure_and_the_others_are_answered(
    kpreempt: Kpreempt, fleet: Path, server: FakeApi
) -> None:
    with FakeApi(FakeCluster({}, special=lambda _: refused(403, "no"))) as closed:
        clusters = {"live": server.url, "closed": closed.url, "dead": "http://127.0.0.1:1"}
        config = {
            "clusters": [{"name": name, "cluster": {"server": url}} for name, url in clusters.items()],
            "contexts": [{"name": name, "context": {"cluster": name}} for name in clusters],
        }
        (fleet / "config").write_text(json.dumps(config), encoding="utf-8")
        contexts = ("--contexts", "live,closed,dead", "--kubeconfig", str(fleet / "config"))
        to = ("--to", str(fleet / "out"), "--workers", "1")
        run = kpreempt("sweep", str(fleet / "plan.toml"), *contexts, *to)
    assert run.returncode == 3, run.stderr
    assert {each[0] for each in rows(fleet / "out", "verdicts")} == {"live"}
    assert len({each[:3] for each in rows(fleet / "out", "verdicts")}) == 6
    failures = [(each[0], each[3]) for each in rows(fleet / "out", "failures")]
    assert failures == [("closed", "Input"), ("dead", "Input")]
    sources = duckdb.sql(f"SELECT source FROM '{fleet}/out/*/clusters.parquet' ORDER BY 1").fetchall()
    assert sources == [("context closed",), ("context dead",), ("context live",)]


@pytest.mark.skipif(find_spec("s3fs") is not None, reason="s3fs is installed")
def test_a_store_whose_driver_is_not_installed_says_which_to_install(kpreempt: Kpreempt, tmp_path: Path) -> None:
    to = ("--query", "pending", "--to", str(tmp_path / "out"))
    run = kpreempt("sweep", "--snapshots", "s3://dumps/*.json.zst", *to)
    assert run.returncode == 2
    assert run.complaint == "s3://dumps/*.json.zst: Install s3fs to access S3\nhint: pip install s3fs, gcsfs or adlfs\n"
    assert not (tmp_path / "out").exists()
