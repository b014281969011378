"""Packs the single files in a folder for Krew, and fills in the manifest: names, SHA-256, version, URLs.

``python tools/krew_manifest.py FOLDER HOMEPAGE URL``: for each ``kpreempt-VERSION-SYSTEM-MACHINE.pex`` an archive next
to it, and ``FOLDER/kpreempt.yaml`` from ``packaging/krew/kpreempt.yaml``. URL is the location of the archives. The same
files give the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEMPLATE = ROOT / "packaging" / "krew" / "kpreempt.yaml"
# Krew requires the license in the archive; the completion script is for manual installation.
_BESIDE = (ROOT / "LICENSE", ROOT / "completions" / "kubectl_complete-kpreempt")
_SINGLE_FILE = re.compile(r"kpreempt-(?P<version>[^-]+)-(?P<system>[a-z]+-[a-z0-9_]+)\.pex")
_PLATFORM = re.compile(r"    - selector:\n(?:      .*\n)+")
_PLACEHOLDER = re.compile(r"\{(archive|sha256):([a-z0-9_-]+)\}")


def main(arguments: Sequence[str]) -> int:
    """Write the archives and the manifest; return 1 if the folder has no single file, or those of several versions."""
    folder, homepage, url = Path(arguments[0]), arguments[1], arguments[2]
    files = [match for path in sorted(folder.iterdir()) if (match := _SINGLE_FILE.fullmatch(path.name))]
    versions = {match["version"] for match in files}
    if len(versions) != 1:
        found = ", ".join(sorted(versions)) or "none"
        sys.stderr.write(f"{folder}: single files of one version are expected, found: {found}\n")
        return 1
    archives = {match["system"]: pack(folder / match[0]) for match in files}
    text = fill(TEMPLATE.read_text(encoding="utf-8"), archives, version=versions.pop(), homepage=homepage, url=url)
    (folder / "kpreempt.yaml").write_text(text, encoding="utf-8")
    return 0


def pack(single_file: Path) -> Path:
    """The archive of a single file as ``kubectl-kpreempt``, with the additional files."""
    archive = single_file.with_suffix(".tar.gz")
    # Its parts are already compressed, so a higher level only costs time.
    with archive.open("wb") as raw, gzip.GzipFile("", "wb", 1, raw, mtime=0) as stream:  # noqa: SIM117 - one opens the other
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for name, path in [("kubectl-kpreempt", single_file), *((path.name, path) for path in _BESIDE)]:
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = path.stat().st_size, 0o644 if name == "LICENSE" else 0o755
                with path.open("rb") as content:
                    tar.addfile(entry, content)
    return archive


def fill(template: str, archives: dict[str, Path], *, version: str, homepage: str, url: str) -> str:
    """The manifest for the archives, by system; the template's first comment and other systems are removed."""
    text = template[template.index("apiVersion:") :]
    text = _PLATFORM.sub(lambda match: match[0] if _system_of(match[0]) in archives else "", text)
    text = _PLACEHOLDER.sub(lambda match: _filled(match[1], archives[match[2]]), text)
    values = {"version": version, "homepage": homepage, "url": url.rstrip("/")}
    return re.sub(r"\{(version|homepage|url)\}", lambda match: values[match[1]], text)


def _system_of(block: str) -> str:
    placeholder = _PLACEHOLDER.search(block)
    return placeholder[2] if placeholder else ""


def _filled(what: str, archive: Path) -> str:
    return archive.name if what == "archive" else hashlib.sha256(archive.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
