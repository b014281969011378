"""Device allocation for resource claims, as in ``k8s.io/dynamic-resource-allocation`` ``structured``.

``capacity`` has the devices allocated to claims, ``pools`` the ones a node can access, ``search`` finds devices for
claims, and ``extended`` builds the claim for a pod's extended resources.
"""
