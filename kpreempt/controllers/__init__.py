"""What Kubernetes' controllers do next, as pure functions: nothing waits, and nothing is random.

Each takes records of what its controller looks at, and ``now`` where ages count, and returns the actions of one sync
(``actions.py``). A caller carries them out and asks again, until there are none. Where a controller keeps books of its
own (StatefulSets, Jobs), a step also gives the record with its next status.

Records hold what the API server lets in: sizes and amounts that it refuses, such as negative ones, are not expected.
"""
