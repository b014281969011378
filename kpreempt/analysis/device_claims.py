"""The claims for devices that new pods have, as a controller makes them from templates."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod


def with_device_claims(cluster: ClusterSnapshot, pods: Sequence[Pod]) -> tuple[ClusterSnapshot, list[Pod]]:
    """The pods with the claims that are made for them from the templates of the cluster, and the cluster with these."""
    if not any(pod.spec.resource_claims for pod in pods):
        return cluster, list(pods)
    from kpreempt.controllers.resource_claims import with_generated_claims  # noqa: PLC0415 - few pods have devices

    claims, there = list(cluster.resource_claims), {claim.key for claim in cluster.resource_claims}
    claiming = []
    for pod in pods:
        own, made = with_generated_claims(pod, cluster.resource_claim_templates, there)
        claims += made
        there.update(claim.key for claim in made)
        claiming.append(own)
    if len(claims) == len(cluster.resource_claims):
        return cluster, claiming
    return msgspec.structs.replace(cluster, resource_claims=claims), claiming
