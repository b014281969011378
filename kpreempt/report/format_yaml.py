"""The JSON document in YAML's block style."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from kpreempt.report.escape import has_command, quoted_without_commands

# libyaml's emitter if it is available: ten times as fast, with the same result.
_DUMPER: type = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_DUMPER):  # type: ignore[misc]  # which of the two it is depends on the build
    """Writes every list and map in full, even if it occurs twice."""

    def represent_str(self, data: str) -> Any:
        """Double-quote text that a CI system would read as a command, so that it can be escaped."""
        return self.represent_scalar("tag:yaml.org,2002:str", data, style='"' if has_command(data) else None)

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(str, _Dumper.represent_str)


def block_style(record: msgspec.Struct) -> str:
    """A record as a YAML document; non-ASCII characters are escaped, so that none can control a terminal or a job."""
    data = msgspec.to_builtins(record, builtin_types=())
    text = yaml.dump(data, Dumper=_Dumper, sort_keys=False, default_flow_style=False, allow_unicode=False)
    return quoted_without_commands(text) if has_command(text) else text
