"""How the Makefile installs kpreempt; all other installations must match it."""

from __future__ import annotations

import re

from tests.ci.places import ROOT

# Copies need no editable install; an image keeps no cache.
_BESIDE = {"--no-cache-dir", "--editable"}


def makefile_installs() -> list[list[str]]:
    """Return the arguments of ``-m pip`` in the two commands of ``.runtime``, except those that may differ."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    (common,) = re.findall(r"^PIP_INSTALL := \$\(PYTHON\) -m pip (.+)$", text, re.MULTILINE)
    recipe = text.partition("$(VENV)/.runtime:")[2].partition("\n\n")[0]
    found = re.findall(r"^\t@\$\(PIP_INSTALL\) (.+)$", recipe, re.MULTILINE)
    return [essence([*common.split(), *each.split()]) for each in found]


def essence(words: list[str]) -> list[str]:
    """Return the arguments of a pip command, except those that may differ."""
    return [word for word in words if word not in _BESIDE]
