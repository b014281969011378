"""DefaultPreemption: who may be evicted, on which node, and which node is chosen.

Follows ``pkg/scheduler/framework/preemption`` and ``plugins/defaultpreemption`` of v1.36.3. The dry run looks at every
potential node; the sampling of the real scheduler on big clusters is a statement about its result (``odds``).
"""
