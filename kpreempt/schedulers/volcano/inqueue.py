"""What running jobs have still reserved of their least (``plugins/util/util.go`` of Volcano v1.8.0)."""

from __future__ import annotations

from kpreempt.schedulers.volcano.job import Job
from kpreempt.schedulers.volcano.resources import CPU, DEVICES, EPHEMERAL_STORAGE, MEMORY, Resource, is_counted
from kpreempt.schedulers.volcano.task import ALLOCATED_STATUSES


def still_reserved(job: Job) -> Resource:
    """What a running job with enough tasks states as its least, beyond what they hold; nothing for other jobs.

    Scalars of the least count in units, those that are held in thousandths, as in the genuine code.
    """
    reserved = Resource()
    least = job.group.spec.min_resources
    if job.phase != "Running" or least is None or job.allocated_count < job.group.spec.min_member:
        return reserved
    held = Resource()
    for task in job.with_status(*ALLOCATED_STATUSES):
        held.add(task.request)
    for name, amount in least.items():
        if name == CPU:
            reserved.cpu = max(float(amount.milli_value) - held.cpu, 0.0)
        elif name == MEMORY:
            reserved.memory = max(float(amount.value) - held.memory, 0.0)
        elif _is_counted(name):
            if reserved.scalars is None:
                reserved.scalars = {}
            if name not in (held.scalars or {}):
                reserved.scalars[name] = float(amount.value)
            elif float(amount.value) > held.get(name):
                reserved.scalars[name] = float(amount.value) - held.get(name)
    return reserved


def _is_counted(name: str) -> bool:
    """Ephemeral storage does not count here, nor does a name that holds that of a shared device."""
    return is_counted(name) and name != EPHEMERAL_STORAGE and not any(device in name for device in DEVICES)
