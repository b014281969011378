"""kubectl's connection flags."""

from __future__ import annotations

import msgspec

from kpreempt.errors import UsageError


class NoClusterError(UsageError):
    """No cluster is selected: no flag, no kubeconfig, and the process is not in a pod."""


class ConnectionFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The values of kubectl's flags of these names; empty if not given. ``token`` is a secret."""

    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    user: str = ""
    server: str = ""
    token: str = ""
    certificate_authority: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    as_user: str = ""
    as_groups: tuple[str, ...] = ()
    as_uid: str = ""
    request_timeout: str = ""

    def __repr__(self) -> str:
        return f"ConnectionFlags({', '.join(self.as_arguments())})"

    def as_arguments(self) -> list[str]:
        """Return the given flags as typed on a command line, in kubectl's order."""
        names = {"as_user": "--as", "as_groups": "--as-group"}
        return [
            names.get(field, "--" + field.replace("_", "-")) for field in self.__struct_fields__ if getattr(self, field)
        ]
