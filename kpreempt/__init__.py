"""kpreempt: where a Kubernetes pod would land, whom it would evict, and why."""

__version__ = "0.1.0"
