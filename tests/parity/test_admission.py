"""The recorded reasons of rejections are those of the API server's own code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.api_server import VERSIONS, Case, cases, files
from tests.parity.admission import with_reasons
from tests.parity.reference import program_for_tests
from tests.tiers import quick_indexes

ASKED = 60
# Of several quotas or LimitRanges that reject a pod, the server names any one: the recorded one must be among them.
ATTEMPTS = 60


@pytest.mark.go
@pytest.mark.parametrize("path", files(), ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_the_api_server_still_says_what_is_recorded(path: Path) -> None:
    for version in VERSIONS:
        program_for_tests("apiserver", version)
    recorded = cases(path)
    chosen = [recorded[index] for index in sorted(quick_indexes(len(recorded), ASKED))]
    different = chosen
    for _ in range(ATTEMPTS):
        answered = with_reasons(case._replace(reasons={}) for case in different)
        different = [case for case, now in zip(different, answered, strict=True) if now.reasons != _listed(case)]
        if not different:
            break
    assert not [str(case) for case in different]


def _listed(case: Case) -> dict[str, list[str]]:
    return {version: list(found) for version, found in case.reasons.items()}
