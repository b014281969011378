"""Admission policies and webhooks: which apply to a request, and what ValidatingAdmissionPolicies reject.

Follows ``k8s.io/apiserver`` v0.36.3 ``pkg/admission/plugin/policy``. What webhooks and MutatingAdmissionPolicies do is
not evaluated.
"""
