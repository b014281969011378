"""What the API server of one version does otherwise with evictions than that of another.

Facts by the names that ``kpreempt/schedulers/kube/versions.py`` gives them; those that are given are of 1.36.
"""

from __future__ import annotations

from typing import NamedTuple


class EvictionRules(NamedTuple):
    """The facts that evictions go by."""

    eviction_refusals_tell_why: bool = True
    eviction_forbidden_tells_why: bool = False
    eviction_refuses_unreadable_store_option: bool = True
    grace_never_ends_in_the_past: bool = True


USUAL = EvictionRules()
