"""No mutation that lowers protection is called harmless, and those that must shut the gate do.

These are the first few objects of each cluster; ``python -m tests.gate.mutations`` takes all.
"""

from __future__ import annotations

import pytest

from tests.gate.mutations import CLUSTER_FILES, MUTATIONS, Mutation, example, faults, outcomes

_MOST = 2


@pytest.mark.sampled(10)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name.replace(" ", "-"))
def test_lowered_protection_is_never_called_harmless(mutation: Mutation) -> None:
    found = [each for name in CLUSTER_FILES for each in outcomes(mutation, example(name), _MOST)]
    assert found, "no object has this mutation"
    assert faults(mutation, found) == []
