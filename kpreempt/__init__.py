"""kpreempt: where a Kubernetes pod would land, which pods it would evict, and why.

    from kpreempt import Cluster

    cluster = Cluster.load("cluster.json")
    verdict = cluster.explain({"apiVersion": "v1", "kind": "Pod", ...})

Answers are frozen records, the documents that ``-o json`` prints: ``answer.to_dict()``, ``answer.render()``. Errors are
``KpreemptError``. Names that are not listed here are not part of the library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kpreempt.version import __version__

if TYPE_CHECKING:
    from kpreempt.errors import ConfigurationError, InputError, KpreemptError, NotFoundError, UsageError
    from kpreempt.library.answers import (
        Answer,
        BudgetAudit,
        Check,
        Comparison,
        Drain,
        EvictedPods,
        EvictionsOfPod,
        PendingPods,
        PodsAtRisk,
        Verdict,
        VerdictList,
    )
    from kpreempt.library.cluster import Cluster
    from kpreempt.library.gate.settings import Gate
    from kpreempt.model.cluster import ClusterSnapshot
    from kpreempt.verdict.status import Outcome

__all__ = [
    "Answer",
    "BudgetAudit",
    "Check",
    "Cluster",
    "ClusterSnapshot",
    "Comparison",
    "ConfigurationError",
    "Drain",
    "EvictedPods",
    "EvictionsOfPod",
    "Gate",
    "InputError",
    "KpreemptError",
    "NotFoundError",
    "Outcome",
    "PendingPods",
    "PodsAtRisk",
    "UsageError",
    "Verdict",
    "VerdictList",
    "__version__",
]

_MODULES = {
    **dict.fromkeys(("ConfigurationError", "InputError", "KpreemptError", "NotFoundError", "UsageError"), "errors"),
    **dict.fromkeys(
        (
            "Answer",
            "BudgetAudit",
            "Check",
            "Comparison",
            "Drain",
            "EvictedPods",
            "EvictionsOfPod",
            "PendingPods",
            "PodsAtRisk",
            "Verdict",
            "VerdictList",
        ),
        "library.answers",
    ),
    "Cluster": "library.cluster",
    "Gate": "library.gate.settings",
    "ClusterSnapshot": "model.cluster",
    "Outcome": "verdict.status",
}


def __getattr__(name: str) -> Any:
    """Import a name of the library on demand, because most programs need only a few."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"kpreempt.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
