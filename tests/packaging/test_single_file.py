"""The single file, built and tested with nothing but Python."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from kpreempt import __version__
from tools import krew_manifest, single_file

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "fixtures" / "demo"
NOW = "2026-11-21T03:12:00Z"
BUILD_SECONDS = 900
# The smallest packed file.
PROBE = "durationpy"


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheel and single file for the Python of the tests. Built in CI, and on request."""
    if not any(os.environ.get(variable) for variable in ("CI", "KPREEMPT_BUILD")):
        pytest.skip("building the single file takes a minute; KPREEMPT_BUILD=1 builds it")
    folder = tmp_path_factory.mktemp("dist")
    _need_packages(folder)
    program = Path(sys.executable).parent
    subprocess.run(
        [program / "hatchling", "build", "--target", "wheel", "--directory", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    subprocess.run(
        [sys.executable, ROOT / "tools" / "single_file.py", wheel, folder, python],
        check=True,
        timeout=BUILD_SECONDS,
        capture_output=True,
    )
    return folder


def _need_packages(folder: Path) -> None:
    """Skip if pip can get no packages: no index is reachable, and no folder of wheels is configured."""
    pins = single_file.locked_runtime()
    start = pins.index(f"{PROBE}==")
    requirement = folder / "probe.txt"
    requirement.write_text(pins[start : pins.index("\n", pins.index("--hash", start)) + 1].rstrip("\\\n") + "\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "0", "--timeout", "5"]
    got = subprocess.run([*command, "--dest", folder / "probe", "-r", requirement], capture_output=True, check=False)
    if got.returncode:
        pytest.skip("no package index is reachable, and pip is configured with no folder of wheels")


def single_file_in(folder: Path) -> Path:
    (path,) = folder.glob("*.pex")
    return path


class Elsewhere:
    """A separate folder, an environment with nothing but a path to Python, and the file under a given name."""

    def __init__(self, file: Path, folder: Path, name: str) -> None:
        self.folder = folder
        self.program = folder / "bin" / name
        self.program.parent.mkdir()
        shutil.copy(file, self.program)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        # The interpreter behind the virtual environment, so that its packages are not found.
        python = Path(sys.base_prefix, "bin")
        return subprocess.run(
            [self.program, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env={"PATH": f"{python}:/usr/bin:/bin", "HOME": str(self.folder)},
        )


@pytest.mark.dist
def test_the_single_file_answers_in_an_empty_environment_as_the_program_does_here(built: Path, tmp_path: Path) -> None:
    elsewhere = Elsewhere(single_file_in(built), tmp_path, "kpreempt")
    version = elsewhere.run("--version")
    assert (version.returncode, version.stdout, version.stderr) == (0, f"kpreempt {__version__}\n", "")
    arguments = ["explain", "-f", str(DEMO / "api.yaml"), "--snapshot", str(DEMO / "cluster.yaml"), "--now", NOW]
    here = subprocess.run([sys.executable, "-m", "kpreempt", *arguments], capture_output=True, text=True, check=True)
    there = elsewhere.run(*arguments)
    assert (there.returncode, there.stdout, there.stderr) == (0, here.stdout, "")
    assert "preempts" in there.stdout


@pytest.mark.dist
def test_under_the_name_of_a_plugin_it_speaks_of_kubectl_and_completes(built: Path, tmp_path: Path) -> None:
    elsewhere = Elsewhere(single_file_in(built), tmp_path, "kubectl-kpreempt")
    assert elsewhere.run("--help").stdout.startswith("Usage: kubectl kpreempt ")
    wrong = elsewhere.run("explian")
    assert (wrong.returncode, wrong.stderr.splitlines()[0]) == (2, "error: kubectl kpreempt: no such command 'explian'")
    assert elsewhere.run("__complete", "expl").stdout.endswith(":4\n")


@pytest.mark.dist
def test_the_archive_for_krew_holds_the_file_of_the_manifest(built: Path) -> None:
    assert krew_manifest.main([str(built), "https://kpreempt.example", "https://kpreempt.example/files/"]) == 0
    manifest = yaml.safe_load((built / "kpreempt.yaml").read_text(encoding="utf-8"))
    (platform,) = manifest["spec"]["platforms"]
    archive = built / platform["uri"].rpartition("/")[2]
    assert platform["uri"] == f"https://kpreempt.example/files/{archive.name}"
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    with tarfile.open(archive) as tar:
        modes = {entry.name: entry.mode for entry in tar}
    assert modes == {platform["bin"]: 0o755, "LICENSE": 0o644, "kubectl_complete-kpreempt": 0o755}
