"""DefaultPreemption: which pods may be evicted on which node, and which node is chosen.

Follows ``pkg/scheduler/framework/preemption`` and ``plugins/defaultpreemption`` of v1.36.3. The dry run evaluates every
potential node; the real scheduler's sampling on big clusters is described in the result (``odds``).
"""
