"""The JSON document in YAML's block style."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from kpreempt.report.escape import has_command, quoted_without_commands

# libyaml's emitter where it is built in: ten times as fast, with the same result.
_DUMPER: type = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_DUMPER):  # type: ignore[misc]  # which of the two it is depends on the build
    """Writes every list and map in full, also one that occurs twice."""

    def represent_str(self, data: str) -> Any:
        """What a CI system would take for a command is in double quotes, in which it can be spelled out."""
        return self.represent_scalar("tag:yaml.org,2002:str", data, style='"' if has_command(data) else None)

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(str, _Dumper.represent_str)


def block_style(record: msgspec.Struct) -> str:
    """A record as a YAML document; characters outside ASCII are escaped, so that none can drive a terminal or a job."""
    data = msgspec.to_builtins(record, builtin_types=())
    text = yaml.dump(data, Dumper=_Dumper, sort_keys=False, default_flow_style=False, allow_unicode=False)
    return quoted_without_commands(text) if has_command(text) else text
