"""Volcano 1.8's scheduler: complete sessions on jobs (pod groups) in queues.

Follows Volcano v1.8.0 (``pkg/scheduler``). The Kubernetes plugins inside it are those of ``schedulers/kube``, with the
behavior of 1.25.
"""

from __future__ import annotations

from kpreempt.schedulers.volcano.cache import job_id_of
from kpreempt.schedulers.volcano.configuration import VolcanoConfiguration, configuration_of
from kpreempt.schedulers.volcano.run import run_session

__all__ = ["VolcanoConfiguration", "configuration_of", "job_id_of", "run_session"]
