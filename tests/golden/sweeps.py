"""The golden pages of a sweep: the example plan in ``fixtures/sweep``, on the snapshots that it names."""

from __future__ import annotations

from pathlib import Path

from kpreempt.fleet.dataset import Dataset
from kpreempt.fleet.plan import PlanOverrides, make_plan
from kpreempt.fleet.sources import targets_of
from kpreempt.fleet.work import sweep_cluster
from tests.golden.answers import written_by

_FIXTURES = Path(__file__).parents[2] / "fixtures"
ROOT = _FIXTURES / "golden-answers"
# The format of each page, by its file.
ANSWERS = {"sweep.txt": "text", "sweep.html": "html"}


def answer(name: str, folder: Path) -> str:
    """The content of the file; the dataset is written to the folder, without Dask."""
    plan = make_plan(str(_FIXTURES / "sweep" / "sweep.toml"), PlanOverrides())
    dataset = Dataset(str(folder / "dataset"))
    for target in targets_of([str(_FIXTURES.parent / each) for each in plan.snapshots], (), ""):
        done = sweep_cluster(target, plan, plan.digest, 0)
        dataset.write(done.cluster, done.files)
    dataset.end()
    text = written_by(["sweep", "report", str(folder / "dataset"), "-o", ANSWERS[name]], folder / name)
    return text.replace(str(_FIXTURES.parent), ".")
