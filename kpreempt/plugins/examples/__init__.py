"""Worked examples of plugins: read them, run them, begin with one of them.

Each module stands alone and imports nothing of kpreempt but ``kpreempt.plugins``, as a plugin of your own does.

- ``capacity_scheduling``: elastic quotas. PreFilter with add-pod and remove-pod, objects of a custom kind, and a
  preemption that does not go by priority.
- ``preemption_toleration``: pods that are spared for a while. A preemption by priority with one rule more, typed
  arguments, annotations.
- ``rack_colocation``: pods that belong together share a rack. Filter and Score, and what a dry run needs of a plugin
  whose answer about one node depends on pods on others.
"""
