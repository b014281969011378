"""Permissions on a control plane: users and their roles."""

from __future__ import annotations

from typing import Any

import yaml

from tests.live.plane import ControlPlane
from tests.parity.reference import CHECKOUT

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES = f"{_RBAC}/clusterroles"
BINDINGS = f"{_RBAC}/clusterrolebindings"


def bind(plane: ControlPlane, role: str, user: str, *, namespace: str = "") -> None:
    """Bind the ClusterRole to the user, in one namespace if given."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    path = f"{_RBAC}/namespaces/{namespace}/rolebindings" if namespace else BINDINGS
    plane.request("POST", path, {"metadata": {"name": user}, "roleRef": reference, "subjects": [subject]})


def shipped_role() -> dict[str, Any]:
    """The role with the permissions that kpreempt needs."""
    role: dict[str, Any] = yaml.safe_load((CHECKOUT / "deploy" / "cluster-role.yaml").read_text(encoding="utf-8"))
    return role


def role_without(plural: str) -> dict[str, Any]:
    """The shipped role without one of its permissions."""
    role = shipped_role()
    for rule in role["rules"]:
        if plural in rule.get("resources", []):
            rule["resources"].remove(plural)
    role["rules"] = [rule for rule in role["rules"] if rule.get("resources", rule.get("nonResourceURLs"))]
    return {**role, "metadata": {"name": f"no-{plural}"}}
