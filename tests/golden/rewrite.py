"""Rewrite the expected outputs of the golden cases: ``python -m tests.golden.rewrite [CASE...]``, then read the diff.

Without names, the other modules of ``tests/golden`` are rewritten, too.

A new case needs ``snapshot.yaml``, ``pod.yaml`` and an empty file for each output that it should have.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.golden import answers, checks, examples, explain_screens, permissions, plugins, screens, sweeps, volcano
from tests.golden.cases import ROOT, case_names, expected_files, explain


def main(names: list[str]) -> int:
    """Rewrite the named cases, or all; print which files changed."""
    for name in names or case_names():
        with tempfile.TemporaryDirectory() as folder:
            outputs = explain(name, Path(folder))
        for format_name, path in expected_files(name).items():
            if path.read_text(encoding="utf-8") != outputs[format_name]:
                path.write_text(outputs[format_name], encoding="utf-8")
                sys.stdout.write(f"rewritten: {path.relative_to(ROOT)}\n")
    if not names:
        _rewrite_answers()
    return 0


def _rewrite_answers() -> None:
    for module in (answers, explain_screens, volcano, checks, plugins, examples, screens, permissions, sweeps):
        for name in module.ANSWERS:
            path = module.ROOT / name
            with tempfile.TemporaryDirectory() as folder:
                text = module.answer(name, Path(folder))
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
                sys.stdout.write(f"rewritten: {name}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
