"""No mutation that lowers protection is reported as harmless, and those that must fail the check do.

These are the first few objects of each cluster; ``python -m tests.gate.mutations`` runs all.
"""

from __future__ import annotations

import pytest

from tests.gate.mutations import CLUSTER_FILES, MUTATIONS, Mutation, example, faults, outcomes

_MOST = 2


@pytest.mark.sampled(10)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name.replace(" ", "-"))
def test_lowered_protection_is_never_reported_as_harmless(mutation: Mutation) -> None:
    found = [each for name in CLUSTER_FILES for each in outcomes(mutation, example(name), _MOST)]
    assert found, "no object has this mutation"
    assert faults(mutation, found) == []
