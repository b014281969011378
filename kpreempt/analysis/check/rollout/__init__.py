"""What a change is: manifests held against the cluster, and what becomes of each object.

``plan.plan_change`` is the way in. Works on plain data, and changes none of it.
"""
