"""Count the patterns that the language guide replaces, in code, docs, goldens and tests.

``python tools/language_counts.py [PATH...]`` counts in the tracked files, or in those below the given paths. The
patterns are in ``tools/language.py``. ``--since COMMIT`` adds the counts of that commit and the share that remains;
``--check`` then exits with 1 if more than 5% of a pattern remains in code, docs or goldens, or more than 15% of a
pattern with legitimate uses.

Upstream's own texts do not count: recorded data (``NOT_OURS``), addresses, SQL, and the names of recorded lines.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

try:
    from tools import language
except ImportError:  # as a program
    import language  # type: ignore[no-redef,import-not-found]

ROOT = Path(__file__).parent.parent
AREAS, UPSTREAM, area_of = language.AREAS, language.UPSTREAM, language.area_of

# Each row of the guide's table, and what else it names.
PATTERNS: Mapping[str, re.Pattern[str]] = {
    each.name: re.compile(each.counted, re.IGNORECASE) for each in language.PATTERNS
}
# Patterns with legitimate uses.
LEGITIMATE = tuple(each.name for each in language.PATTERNS if each.is_legitimate)
MAX_SHARE, MAX_LEGITIMATE_SHARE = 0.05, 0.15


def counts(files: Iterator[tuple[str, str]]) -> Mapping[str, Counter[str]]:
    """By pattern, how often it occurs in each area of the files, given as paths and texts."""
    found: dict[str, Counter[str]] = {name: Counter() for name in PATTERNS}
    for path, text in files:
        if area := area_of(path):
            ours = UPSTREAM.sub("", text)
            for name, pattern in PATTERNS.items():
                found[name][area] += sum(1 for _ in pattern.finditer(ours))
    return found


def files_of_tree(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The tracked files as they are now."""
    for path in _git("ls-files", "-z", "--", *paths).decode().split("\0"):
        if path and (ROOT / path).is_file():
            yield from _decoded(path, (ROOT / path).read_bytes())


def files_of_commit(commit: str, paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The files of a commit."""
    listed = _git("ls-tree", "-rz", "--name-only", commit, "--", *paths).decode().split("\0")
    names = [path for path in listed if path and area_of(path)]
    blobs = _git("cat-file", "--batch", given="".join(f"{commit}:{path}\n" for path in names).encode())
    for path in names:
        head, _, rest = blobs.partition(b"\n")
        size = int(head.split()[-1])
        yield from _decoded(path, rest[:size])
        blobs = rest[size + 1 :]


def _decoded(path: str, content: bytes) -> Iterator[tuple[str, str]]:
    try:
        yield path, content.decode()
    except UnicodeDecodeError:
        return


def _git(*arguments: str, given: bytes | None = None) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, input=given, stdout=subprocess.PIPE, check=True).stdout  # noqa: S607 - git is found on the path


def excess(now: Mapping[str, Counter[str]], before: Mapping[str, Counter[str]]) -> list[str]:
    """The patterns of which too much remains in an area that users and developers read."""
    found = []
    for name in PATTERNS:
        allowed = MAX_LEGITIMATE_SHARE if name in LEGITIMATE else MAX_SHARE
        found += [f"{name} in {area}" for area in AREAS[:3] if now[name][area] > allowed * before[name][area]]
    return found


def table(now: Mapping[str, Counter[str]], before: Mapping[str, Counter[str]] | None) -> Iterator[str]:
    """The counts, a line for each pattern."""
    width = 20 if before else 9
    yield f"{'':22}" + "".join(f"{area:>{width}}" for area in AREAS)
    for name in PATTERNS:
        cells = [_cell(now[name][area], before[name][area] if before else None) for area in AREAS]
        yield f"{name:22}" + "".join(f"{cell:>{width}}" for cell in cells)


def _cell(now: int, before: int | None) -> str:
    if before is None:
        return f"{now:,}"
    share = f"{now / before:.0%}" if before else "-"
    return f"{before:,} > {now:,} {share:>4}"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="count only below these paths")
    parser.add_argument("--since", metavar="COMMIT", help="compare with this commit")
    parser.add_argument("--check", action="store_true", help="with --since: exit 1 if too much remains")
    options = parser.parse_args()
    now = counts(files_of_tree(options.paths))
    before = counts(files_of_commit(options.since, options.paths)) if options.since else None
    print("\n".join(table(now, before)))
    too_many = excess(now, before) if options.check and before else []
    if too_many:
        print(f"too much remains: {', '.join(too_many)}")
    return 1 if too_many else 0


if __name__ == "__main__":
    sys.exit(main())
