"""Find text that our language guide rejects, in code, documentation and expected output.

``python tools/language.py --check [PATH...]`` (in ``make lint``) prints each rejected match with its file, line and a
better wording, and exits with 1 if there are any. Without options, it prints the number of rejected matches of each
pattern. ``tools/language_counts.py`` counts all matches, legitimate ones as well.

``PATTERNS`` is the only list of patterns, and ``ALLOWED`` the only list of exceptions.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
AREAS = ("code", "docs", "goldens", "tests")
# Texts of others: what schedulers wrote, and other projects' schemas.
NOT_OURS = re.compile(r"^(?:fixtures/(?:conformance|recording|parity)|tests/(?:schemas|reference|volcano_reference)/)")
# Parts of a text that do not count: addresses, a command, SQL, and keys of the lines of ``batch``, which are recorded.
UPSTREAM = re.compile(r"https?://\S+|\bwho-evicted\b|\bWHERE\b|[\"`](?:asked|untold)[\"`]")


class Pattern(NamedTuple):
    """A pattern to avoid.

    ``counted`` matches every occurrence, including legitimate ones and identifiers. ``rejected`` matches only text that
    is always wrong; without it, everything that is counted is rejected. ``write`` is the replacement, and ``example`` a
    sentence that must be rejected. A pattern with legitimate uses ``is_legitimate`` in some of them.
    """

    name: str
    counted: str
    write: str
    example: str
    rejected: str = ""
    is_legitimate: bool = False

    @property
    def check(self) -> re.Pattern[str]:
        """The compiled expression of rejected text."""
        return re.compile(self.rejected or self.counted, re.IGNORECASE)


class Allowed(NamedTuple):
    """An exception: text that matches ``text`` in files that match ``files``. ``reason`` says why it is correct."""

    files: str
    text: str
    reason: str


class Match(NamedTuple):
    """A match of a pattern: the file, relative to the repository, the line from 1 on, and the text."""

    path: str
    line: int
    pattern: Pattern
    text: str


_BRITISH = (
    r"(?<![^\W_])(?:un|re|dis|mis|over|under|pre|non)?(?:"
    r"(?:colour|behaviour|favour|honour|neighbour|flavour|labour|rumour|humour|centre|catalogue|licence|artefact"
    r"|judgement|modell|cancell(?:ed|ing)|labell|travell|signall|levell)[^\W_]*"
    r"|(?:recogn|normal|serial|initial|organ|optim|minim|maxim|summar|synchron|author|priorit|util|custom|final|general"
    r"|special|categor|material|random|parallel|penal|standard|capital)is(?:e[drs]?|ers|ing|ations?|able)"
    r"|analys(?:ed?|es|ing)|emphasis(?:ed?|ing)|grey|towards|whilst|amongst|defence|misspelt|learnt|spelt|fulfil|ageing"
    r"|skilful)(?![^\W_])"
)
PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "told, tell",
        r"\b(?:un)?(?:told|tells?|telling)\b|_told\b|\btold_|\btells?_",
        "report, show, print, warn, list, record; distinguish",
        "A kind that cannot be read is told in one message.",
        rejected=r"\b(?:un)?told\b|_told\b|\btold_|\btells?_|\btells? (?:of|that|what|which|how|why)\b",
    ),
    Pattern(
        "ask",
        r"\bask(?:s|ed|ing)?\b|_asked\b|\basked_|\bask_|_ask\b",
        "request, query, option, input, selected",
        "The scheduler that was asked for decides.",
        rejected=r"\basked\b|_asked\b|\basked_|\bask_|_ask\b",
        is_legitimate=True,
    ),
    Pattern(
        "where",
        r"\bwhere\b",
        "if, when, unless",
        "Raises an error where the file is missing.",
        rejected=r"(?-i:\b(?:else|none|except|even|also|true|false|empty|off|nothing) where\b"
        r"|\b[Rr]aises?\b[^.]* where\b|\bwhere (?:there (?:is|are)|nothing|none|nobody|no)\b)",
        is_legitimate=True,
    ),
    Pattern(
        "who, whom",
        r"\bwhom(?:ever)?\b|\bwhoever\b|\bwho\b",
        "which pods, what; people may be who",
        "Which pod preempts whom?",
        rejected=r"\bwhom(?:ever)?\b|\bwhoever\b|\bwho (?:evicts|preempts|lands|waits|is evicted|goes|stays)\b",
    ),
    Pattern("nobody", r"\b(?:no|some|any)body\b", "no pod, no one; the user, a client", "It evicts nobody."),
    Pattern("so many", r"\bso (?:many|much)\b", "N, up to N, the number of", "So many pods may be evicted."),
    Pattern(
        "beside",
        r"\bbesides?\b",
        "with, next to, in addition to",
        "The node beside it is full.",
        is_legitimate=True,
    ),
    Pattern("hangs on", r"\b(?:hang(?:s|ing)?|hung) on\b", "depends on", "The order hangs on the cache."),
    Pattern("anew", r"\banew\b", "again, from scratch, re-", "The list is read anew."),
    Pattern("as a whole", r"\bas a whole\b", "in total, entirely, per request", "A minute as a whole."),
    Pattern("mend", r"\bmend(?:s|ed|ing)?\b", "fix, resolve", "What mends the rule is shown."),
    Pattern(
        "of one's own",
        r"\bof (?:one's|its|their|his|your) own\b",
        "custom, your own, separate",
        "A plugin of one's own runs, too.",
    ),
    Pattern(
        "put ... to",
        r"\bput(?:s|ting)? (?:\w+ ){0,4}to (?:a|the|each|every|all|them|it)\b",
        "check against, run through, schedule",
        "All pods are put to the scheduler.",
    ),
    Pattern(
        "held against",
        r"\bh[eo]ld(?:s|ing)? (?:\w+ ){0,3}against\b",
        "compared with, checked against",
        "The answer is held against the record.",
    ),
    Pattern(
        "comes to, about, of",
        r"\bc[oa]mes? (?:to|about|of)\b",
        "results in, amounts to, happens, is caused by",
        "What the change comes to is shown.",
    ),
    Pattern("for ever, for good", r"\bfor (?:good|ever)\b", "permanently, forever", "The drain is blocked for ever."),
    Pattern(
        "British spelling",
        _BRITISH,
        "American spelling: behavior, color, modeled, canceled",
        "Behaviour that is not modelled.",
    ),
)
# An empty text exempts the whole file.
ALLOWED: tuple[Allowed, ...] = (
    Allowed("tools/language.py", "", "the patterns themselves"),
    Allowed("*", "aria-?_?labelledby", "the attribute of HTML"),
    Allowed("kpreempt/cel/*", "operation cancelled", "cel-go's message"),
    Allowed("kpreempt/*", r"\.cancelled(\(|_caught)", "names of asyncio and anyio"),
    Allowed("kpreempt/report/batch_lines.py", "", "the names in batch's lines"),
    Allowed("docs/naming.md", r"\| `Told` \|", "the names in batch's lines"),
)


def area_of(path: str) -> str:
    """The area of a file; empty if its language does not matter."""
    if NOT_OURS.search(path):
        return ""
    if path.startswith("kpreempt/") and path.endswith(".py"):
        return "code"
    if path.startswith("fixtures/"):
        return "goldens" if "golden" in path or path.endswith(".md") else ""
    if path.startswith("tests/"):
        return "tests" if path.endswith(".py") else ""
    return "docs" if path.endswith(".md") else ""


def is_checked(path: str) -> bool:
    """Whether ``--check`` reads a file: everything that has an area except tests, and the tools."""
    return area_of(path) not in ("", "tests") or (path.startswith("tools/") and path.endswith(".py"))


def find(text: str, path: str, patterns: Iterable[Pattern]) -> Iterator[Match]:
    """The rejected text of a file, in the order of its lines."""
    exceptions = [re.compile(each.text) for each in ALLOWED if fnmatch(path, each.files)]
    checks = [(pattern, pattern.check) for pattern in patterns]
    for number, line in enumerate(text.splitlines(), 1):
        ours = UPSTREAM.sub("", line)
        if not any(each.search(line) for each in exceptions):
            for pattern, check in checks:
                yield from (Match(path, number, pattern, found.group().strip()) for found in check.finditer(ours))


def texts(paths: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Each checked file with its path, sorted. Without a Git repository, these are files anywhere below the root."""
    command = ("git", "-C", str(ROOT), "ls-files", "-z")
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.split("\0") if name]
    else:
        names = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file()]
    prefixes = [each.rstrip("/") for each in paths]
    for name in sorted(names):
        is_selected = not prefixes or any(name == each or name.startswith(f"{each}/") for each in prefixes)
        if is_selected and is_checked(name) and (ROOT / name).is_file():
            try:
                yield name, (ROOT / name).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def main(arguments: Sequence[str]) -> int:
    """Print the counts, or with ``--check`` the rejected text; 1 if there is any."""
    parser = argparse.ArgumentParser(description="Find text that our language guide rejects.")
    parser.add_argument("paths", nargs="*", help="files and directories, relative to the repository (default: all)")
    parser.add_argument("--check", action="store_true", help="print rejected text, and exit with 1 if there is any")
    options = parser.parse_args(arguments)
    matches = [found for path, text in texts(options.paths) for found in find(text, path, PATTERNS)]
    if not options.check:
        rejected = Counter(match.pattern.name for match in matches)
        for each in PATTERNS:
            print(f"{each.name:22}{rejected[each.name]:7,}")
        return 0
    for match in matches:
        print(f"{match.path}:{match.line}: {match.text!r}: write {match.pattern.write}", file=sys.stderr)
    return 1 if matches else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
