"""Example plugins to read, run and use as a starting point.

Each module is self-contained and imports only ``kpreempt.plugins``, as your own plugins do.

- ``capacity_scheduling``: elastic quotas. PreFilter with add-pod and remove-pod, custom resources, and a preemption
  that is not by priority.
- ``preemption_toleration``: pods that are protected for a while. Preemption by priority with an additional rule, typed
  arguments, annotations.
- ``rack_colocation``: pods of a group share a rack. Filter and Score, and what a dry run needs from a plugin whose
  result for a node depends on pods on other nodes.
"""
