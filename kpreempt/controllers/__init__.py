"""The next actions of Kubernetes' controllers, as pure functions without waiting or randomness.

Each takes records of the objects its controller watches, and ``now`` if ages matter, and returns the actions of one
sync (``actions.py``). The caller applies them and calls again until there are none. If a controller keeps its own
status (StatefulSets, Jobs), a step also returns the record with the next status.

Records hold what the API server accepts: invalid sizes and amounts, such as negative ones, are not expected.
"""
