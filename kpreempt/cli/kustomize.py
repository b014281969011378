"""Manifests that ``kubectl kustomize DIR`` builds: ``-k DIR``."""

from __future__ import annotations

import re
import shutil
import subprocess

from kpreempt.cli.manifests import Kustomization
from kpreempt.errors import InputError

_SECONDS = 60.0


def built(folder: Kustomization) -> bytes:
    """The manifests, as YAML. Raises ``InputError`` where there is no kubectl, or where it fails."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise InputError(
            "-k needs kubectl, which is not on the PATH", hint=f"kustomize build {folder!s} | kpreempt explain -f -"
        )
    try:
        run = subprocess.run(  # noqa: S603 - kubectl is the user's own, and gets one path
            [kubectl, "kustomize", "--", str(folder)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"takes more than {_SECONDS:.0f}s", source=folder.source) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be run: {error}", source=folder.source) from error
    if run.returncode != 0:
        raise InputError(_said(run.stderr) or f"ends with code {run.returncode}", source=folder.source)
    return run.stdout


def _said(stderr: bytes) -> str:
    """Kubectl's message in one line, without what its log puts around it."""
    text = " ".join(stderr.decode(errors="replace").split())
    logged = re.search(r'err="((?:[^"\\]|\\.)*)"', text)
    return (logged[1].replace('\\"', '"') if logged else text.removeprefix("error: "))[:500]
