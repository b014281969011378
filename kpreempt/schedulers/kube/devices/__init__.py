"""Allocates devices to resource claims, as ``k8s.io/dynamic-resource-allocation`` ``structured`` does.

``in_use`` is what claims have, ``pools`` what a node can reach, ``search`` how devices are found for claims, and
``extended`` the claim that stands for a pod's extended resources.
"""
