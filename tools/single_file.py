"""Packs kpreempt and what it needs into one executable file for this platform, which runs with the user's Python.

``python tools/single_file.py WHEEL FOLDER [PYTHON...]`` writes ``FOLDER/kpreempt-VERSION-SYSTEM-MACHINE.pex`` with the
compiled parts for each PYTHON (``3.12``; without any, every version that pyproject.toml lists). What is packed are the
versions and hashes of requirements.lock; pip fetches the files from where it is configured to, which need not have the
Pythons themselves. The same inputs give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from packaging import markers, tags

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements.lock"
# pex caches what it downloaded and built here, from one run to the next.
CACHE = ROOT / ".cache" / "pex"
# A pin of a lock file with its hashes.
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==.*\n(?: .*\n)+", re.M)
# Wheels for a newer C library than that of RHEL 8 and Debian 10 would not run there.
_LATEST_GLIBC = (2, 28)
_GLIBC = re.compile(r"manylinux_(\d+)_(\d+)_")


def main(arguments: Sequence[str]) -> int:
    """Build the file; return the exit code of pex."""
    wheel, folder = Path(arguments[0]).resolve(), Path(arguments[1])
    pythons = list(arguments[2:]) or supported_pythons()
    target = folder / f"kpreempt-{parse_wheel_filename(wheel.name)[1]}-{system()}.pex"
    with tempfile.TemporaryDirectory() as scratch:
        requirements = Path(scratch, "requirements.txt")
        requirements.write_text(locked_runtime() + _pin_of(wheel), encoding="utf-8")
        platforms = []
        for python in pythons:
            described = Path(scratch, f"{python}.json")
            described.write_text(json.dumps(complete_platform(python)), encoding="utf-8")
            platforms += ["--complete-platform", str(described)]
        command = [sys.executable, "-m", "pex", "--requirement", str(requirements), *platforms]
        command += ["--pex-root", str(CACHE), "--use-pip-config", "--resolver-version", "pip-2020-resolver"]
        # Unpacked once for each user, and then started by a shell: 0.2 s instead of a second at each start.
        command += ["--venv", "--sh-boot", "--script", "kpreempt", "--output-file", str(target)]
        code = subprocess.run(command, check=False).returncode
    if code == 0:
        sys.stdout.write(f"{target}\n")
    return code


def supported_pythons() -> list[str]:
    """The versions of Python that the project's classifiers name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = (each.rpartition(" :: ")[2] for each in project["classifiers"] if "Python :: 3." in each)
    return sorted(versions, key=lambda version: int(version.partition(".")[2]))


def system() -> str:
    """``linux-x86_64``: what the file runs on."""
    machine = {"amd64": "x86_64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine().lower())
    return f"{platform.system().lower()}-{machine}"


def locked_runtime() -> str:
    """The lines of requirements.lock that kpreempt needs at runtime, without build dependencies."""
    needed = _closure("kpreempt")
    pins = _PIN.finditer(LOCK.read_text(encoding="utf-8"))
    return "".join(pin[0] for pin in pins if canonicalize_name(pin["name"]) in needed)


def _closure(root: str) -> set[str]:
    """The names of a distribution and its dependencies, according to those installed here."""
    found: set[str] = set()
    waiting = [root]
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in found:
            continue
        found.add(name)
        try:
            required = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            # Only needed on other systems.
            continue
        waiting += [each.name for each in map(Requirement, required) if "extra" not in str(each.marker)]
    return found


def _pin_of(wheel: Path) -> str:
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return f"kpreempt @ {wheel.as_uri()} --hash=sha256:{digest}\n"


def complete_platform(python: str) -> dict[str, object]:
    """A platform like this machine with a version of CPython, in the format of ``pex --complete-platform``."""
    version = tuple(map(int, python.split(".")))
    interpreter = "cp" + python.replace(".", "")
    platforms = [each for each in tags.platform_tags() if _is_old_enough(each)]
    compatible: Iterable[tags.Tag] = (
        *tags.cpython_tags(version, abis=[interpreter], platforms=platforms),
        *tags.compatible_tags(version, interpreter=interpreter, platforms=platforms),
    )
    environment: dict[str, object] = {
        **markers.default_environment(),
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_version": f"{python}.0",
    }
    del environment["platform_release"], environment["platform_version"]
    return {"marker_environment": environment, "compatible_tags": [str(tag) for tag in compatible]}


def _is_old_enough(platform_tag: str) -> bool:
    glibc = _GLIBC.match(platform_tag)
    if glibc is None:
        # A wheel for "linux" would be one built on some machine.
        return not platform_tag.startswith("linux_")
    return (int(glibc[1]), int(glibc[2])) <= _LATEST_GLIBC


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
