"""Permissions on a control plane: users and their roles."""

from __future__ import annotations

from tests.live.plane import ControlPlane

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


def bind(plane: ControlPlane, role: str, user: str) -> None:
    """Bind the role to the user."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    plane.request("POST", BINDINGS, {"metadata": {"name": user}, "roleRef": reference, "subjects": [subject]})
