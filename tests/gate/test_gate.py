"""The gate with default settings on everyday changes: harmless ones pass, and harmful ones don't.

``python -m tests.gate`` prints the shares. The clusters of ``fixtures/gate`` are dumps of real control planes
(``tests.gate.record``).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gate.changes import HARMFUL, HARMLESS, Harmful
from tests.gate.checks import VERSIONS, broken, check_harmful, cluster_of, red_ones, with_pending_pods
from tests.gate.sets import SETS

# Of all harmless changes, in percent.
GOAL = 98


@pytest.fixture(scope="module", params=VERSIONS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dump of one version, decompressed."""
    return cluster_of(request.param, tmp_path_factory.mktemp("cluster"))


@pytest.mark.slow
def test_harmless_changes_pass(cluster: Path, tmp_path: Path) -> None:
    red = list(red_ones(cluster, tmp_path))
    share = 100 - 100 * len(red) / (len(SETS) * len(HARMLESS))
    assert share >= GOAL, (share, red)


@pytest.mark.sampled(15)
@pytest.mark.parametrize("harmful", HARMFUL, ids=lambda each: each.name.replace(" ", "-"))
def test_harmful_changes_fail_by_their_rule(cluster: Path, harmful: Harmful, tmp_path: Path) -> None:
    code, answer = check_harmful(cluster, harmful, tmp_path)
    assert code == 1
    assert harmful.rule in broken(answer)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("harmful", HARMFUL, ids=lambda each: each.name.replace(" ", "-"))
def test_harmful_changes_fail_although_pending_pods_do_harm_anyway(harmful: Harmful, tmp_path: Path) -> None:
    # A pod that is evicted anyway is not lost by the change, so other rules may fail.
    code, _ = check_harmful(with_pending_pods(cluster_of(VERSIONS[-1], tmp_path)), harmful, tmp_path)
    assert code == 1
