"""What stands in README and ``docs/fleet.md`` about the dataset, and the page that is made of one."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest
import yaml
from dask.utils import parse_bytes

from kpreempt.fleet.dataset import Dataset, summary_of
from kpreempt.fleet.plan import KINDS, Plan, PlanOverrides, make_plan
from kpreempt.fleet.rows import TABLES
from kpreempt.fleet.sources import Target, targets_of
from kpreempt.fleet.work import failed, sweep_cluster
from kpreempt.report.answers import render_answer
from kpreempt.report.options import RenderOptions
from kpreempt.snapshot.archives import parse_size
from kpreempt.verdict.sweep import Sweep, SweepFailure, SweptCluster

ROOT = Path(__file__).parents[3]
TYPES = {"text": "string", "number": "int64", "flag": "bool", "texts": "list<string>"}
HOSTILE = "<script>alert(1)</script>\x1b[31m"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's dataset, and a cluster of a hostile name that failed."""
    plan: Plan = make_plan(str(ROOT / "fixtures" / "sweep" / "sweep.toml"), PlanOverrides())
    folder = tmp_path_factory.mktemp("sweep")
    written = Dataset(str(folder))
    for target in targets_of([str(ROOT / each) for each in plan.snapshots], (), ""):
        done = sweep_cluster(target, plan, plan.digest, 0)
        written.write(done.cluster, done.files)
    hostile = failed(Target(HOSTILE, HOSTILE), plan.digest, "Input", HOSTILE)
    written.write(hostile.cluster, hostile.files)
    written.end()
    return folder


def test_every_column_is_documented_with_its_type() -> None:
    page = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")
    for name, columns in TABLES.items():
        rows = "".join(f"| `{each.name}` | {TYPES[each.type]} | {each.meaning} |\n" for each in columns)
        assert f"### {name}\n\n| column | type | |\n|---|---|---|\n{rows}" in page


def test_the_queries_of_readme_run_and_find_something(dataset: Path) -> None:
    queries = re.findall(r"```sql\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(queries) == 2
    never, budgets = (duckdb.sql(each.replace("'sweep/", f"'{dataset}/")).fetchall() for each in queries)
    assert {each[0] for each in never} == {"demo/cluster", "on-call/cluster", "budgets/cluster"} & {
        each[0] for each in never
    }
    assert never
    assert budgets[0][2] < 0


def test_the_summary_has_the_worst_cluster_first_and_the_sums_of_all(dataset: Path) -> None:
    answer = summary_of(Dataset(str(dataset)))
    assert answer.items[0].cluster == HOSTILE
    assert len(answer.items) == 4
    assert answer.answers == 30
    for outcome, number in answer.outcomes.items():
        assert number == sum(each.outcomes.get(outcome, 0) for each in answer.items)
    counted = duckdb.sql(f"SELECT count(*) FROM '{dataset}/*/verdicts.parquet' WHERE NOT certain").fetchall()
    assert counted == [(answer.uncertain,)]


def test_the_page_stands_alone_and_shows_names_as_text(dataset: Path) -> None:
    page = render_answer(summary_of(Dataset(str(dataset))), "html", RenderOptions())
    assert page.startswith("<!DOCTYPE html>")
    assert "<script" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page
    assert "<svg role=" in page
    assert not re.search(r"(src|href)=\"(?!#)", page)
    assert not re.search(r"https?://", page)


def test_the_text_keeps_to_the_width_and_shows_no_control_character() -> None:
    items = [SweptCluster(cluster=f"{HOSTILE}{number}", failures=1) for number in range(30)]
    failure = SweepFailure(cluster=HOSTILE, reason="Input", message=HOSTILE, hint="none")
    answer = Sweep(schema_version=1, items=items, failures=[failure], num_failures=30)
    shown = render_answer(answer, "text", RenderOptions(width=80))
    assert "\x1b" not in shown
    assert "and 15 more clusters" in shown
    assert "and 29 more failures" in shown


def test_a_page_of_many_clusters_is_bounded() -> None:
    items = [SweptCluster(cluster=f"cluster-{number}", outcomes={"Lands": number}) for number in range(20_000)]
    page = render_answer(Sweep(schema_version=1, items=items, outcomes={"Lands": 1}), "html", RenderOptions())
    assert len(page.encode()) < 2_000_000
    assert "more clusters" in page


def test_the_plan_on_the_page_is_one_and_the_keys_are_those_that_there_are(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "commands" / "sweep.md").read_text(encoding="utf-8")
    fixtures = ROOT / "fixtures"
    for source in (fixtures / "demo" / "api.yaml", fixtures / "check" / "outage" / "rollout.yaml"):
        (tmp_path / source.name).write_bytes(source.read_bytes())
    (tmp_path / "sweep.toml").write_text(page.partition("```toml\n")[2].partition("```")[0], encoding="utf-8")
    plan = make_plan(str(tmp_path / "sweep.toml"), PlanOverrides())
    assert [each.kind for each in plan.queries] == [
        *["explain"] * 6,
        *("pending", "budgets", "check"),
        *["drain"] * 2,
    ]
    rows = {
        name.strip("` "): {*re.findall(r"`([^`]+)`", keys)}
        for kinds, keys in re.findall(r"^\| (`(?:explain|pending|check|drain)`[^|]*) \| (.*) \|$", page, re.MULTILINE)
        for name in kinds.split(",")
    }
    assert rows == {name: {*kind.keys, *(["manifest"] if kind.has_manifest else [])} for name, kind in KINDS.items()}


def test_the_commands_of_the_example_for_the_operator_are_those_of_dask() -> None:
    from distributed.cli import dask_scheduler, dask_worker

    page = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(apiVersion: kubernetes\.dask\.org.*?)```", page, re.DOTALL)
    spec = yaml.safe_load(text)["spec"]
    (worker,), (scheduler,) = (spec[each]["spec"]["containers"] for each in ("worker", "scheduler"))
    assert (worker["args"][:2], scheduler["args"][:2]) == (["dask", "worker"], ["dask", "scheduler"])
    given = dask_worker.main.make_context("dask worker", worker["args"][2:], resilient_parsing=False).params
    dask_scheduler.main.make_context("dask scheduler", scheduler["args"][2:], resilient_parsing=False)
    assert (given["nthreads"], given["name"]) == (1, "$(DASK_WORKER_NAME)")
    # What Dask believes to have is what the container has.
    assert parse_bytes(given["memory_limit"]) == parse_size(worker["resources"]["limits"]["memory"])
    named = {each["name"] for each in scheduler["ports"]}
    assert {each["targetPort"] for each in spec["scheduler"]["service"]["ports"]} <= named
