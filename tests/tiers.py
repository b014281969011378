"""Which tests `make test` runs, and which only `make test-all`.

The quick tier validates a checkout in a few minutes: unit tests, golden files, a sample of each recorded suite, and a
few examples of each property. A test belongs to it by default, unless it has one of the marks in ``LEFT_OUT``, which
exclude it, or ``sampled(count)``, which keeps that many of its parameter sets. The fixture ``sample`` does the same for
a test that iterates over recorded scenarios itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

T = TypeVar("T")
# The fixture ``sample``: the tier's scenarios of a suite.
Sample = Callable[[Iterable[Any]], list[Any]]

MIN_SCENARIOS = 30
MAX_EXAMPLES = 5


class Tier(StrEnum):
    """What is run: everything, the quick tier, or the rest."""

    ALL = "all"
    QUICK = "quick"
    REST = "rest"


# The marks of tests that the quick tier excludes, and their names in the summary.
LEFT_OUT: Mapping[str, str] = {
    "slow": "slow",
    "browser": "in a browser",
    "dist": "of packages",
    "go": "against the schedulers' own code",
    "live": "on a live control plane",
}

# Reasons for skips that CI accepts, as regular expressions, and why. Any other skip fails the run: missing parts can be
# installed, unless ``.ci/run`` tried and names them in ``CANNOT_INSTALL``.
CANNOT_INSTALL = "KPREEMPT_CANNOT_INSTALL"
ACCEPTED_SKIPS: Mapping[str, str] = {
    "^root may read everything$": "CI may run as root, who can read every file",
    "^(Go|kubectl) is not installed$": "Debian's versions are years older than those that are tested",
    "^the Go modules of .* are not there": "the Go module proxy may be unreachable",
    "^no package index is reachable": "it may be unreachable",
    "^there was not enough time to build ": "the first build of Kubernetes takes longer than CI should",
}


def is_accepted(reason: str) -> bool:
    """Whether CI accepts that a test is skipped for this reason."""
    missing = os.environ.get(CANNOT_INSTALL, "").split()
    return any(re.search(pattern, reason) for pattern in ACCEPTED_SKIPS) or any(
        re.search(rf"\b{re.escape(program)}\b", reason, re.IGNORECASE) for program in missing
    )


def share(items: Iterable[T], tier: Tier, count: int = MIN_SCENARIOS) -> list[T]:
    """The items of a tier: the quick one takes ``count``, spread evenly over all, the rest those in between."""
    listed: Sequence[T] = list(items)
    if tier is Tier.ALL:
        return list(listed)
    picked = quick_indexes(len(listed), count)
    return [item for index, item in enumerate(listed) if (index in picked) is (tier is Tier.QUICK)]


def quick_indexes(total: int, count: int) -> set[int]:
    """The indexes of ``count`` items spread evenly over ``total``, including the first and the last."""
    if total <= max(count, 1):
        return set(range(total))
    return {round(index * (total - 1) / max(count - 1, 1)) for index in range(count)}
