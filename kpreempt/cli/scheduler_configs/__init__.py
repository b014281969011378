"""Scheduler configurations: files, and those of managed services that come with kpreempt, by name.

Shipped is what a service documents publicly, and nothing else; each file says where.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

from kpreempt.errors import UsageError
from kpreempt.snapshot.documents import parse_document, read_document

# What --scheduler-config takes besides files, with a few words on each.
SHIPPED = {"eks": "Amazon EKS 1.31 and above, where the cluster sets nothing"}

_NOT_DOCUMENTED = "gke-optimize-utilization"


def read_scheduler_config(name: str) -> dict[str, Any]:
    """The configuration of a shipped name, else of a file (``./eks`` for one of such a name).

    Raises ``InputError``, and ``UsageError`` for a name of which the contents are not public.
    """
    if name == _NOT_DOCUMENTED:
        message = f"--scheduler-config {name}: what GKE's scheduler is set to there is not publicly documented"
        raise UsageError(
            message, hint="a FILE with the scoring strategy MostAllocated goes the same way: docs/schedulers.md"
        )
    if name not in SHIPPED:
        return read_document(name)
    text = resources.files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return parse_document(text, name)
