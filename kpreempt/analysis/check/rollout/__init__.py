"""Determines what a change does: compares manifests with the cluster, object by object.

``plan.plan_change`` is the entry point. It works on plain data, and does not modify it.
"""
