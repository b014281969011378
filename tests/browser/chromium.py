"""Headless Chromium without a network."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# A start takes a second or two, and much longer on a busy machine.
_TIMEOUT = 120
_ALONE = (
    "--headless",
    # Root cannot use the sandbox; the pages are the test's own.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    # Requests of the page lead nowhere.
    "--proxy-server=127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
# The page is shown in a frame, since windows have a minimum width; its script reports to the outer page.
_PROBE = """<script>
parent.document.documentElement.setAttribute("data-probe", JSON.stringify({expression}));
</script>"""
_FRAME = """<!DOCTYPE html><html><head><meta charset="utf-8"></head><body style="margin:0">
<iframe style="border:0;width:{width}px;height:900px" srcdoc="{page}"></iframe></body></html>"""


class Chromium:
    """An installed browser with a separate profile; every call starts it."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._folder = folder

    def dom(self, page: str, *, options: tuple[str, ...] = ()) -> str:
        """Return the document after the page has loaded."""
        return self._run(page, *options, "--dump-dom")

    def probe(self, page: str, expression: str, *, width: int = 1280, options: tuple[str, ...] = ()) -> str:
        """Return a script's findings in the page as JSON, in a copy that allows scripts, with a width in pixels."""
        open_page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
        assert open_page != page
        probed = open_page.replace("</body>", _PROBE.replace("{expression}", expression) + "</body>")
        frame = _FRAME.replace("{width}", str(width)).replace("{page}", html.escape(probed))
        found = re.search(r'data-probe="([^"]*)"', self.dom(frame, options=options))
        assert found is not None, "the probe did not run"
        return html.unescape(found[1])

    def screenshot(self, page: str, *, width: int) -> bytes:
        """Return a PNG of the top of the page."""
        target = self._folder / "page.png"
        self._run(page, f"--window-size={width},900", f"--screenshot={target}")
        return target.read_bytes()

    def pdf(self, page: str) -> bytes:
        """Return the page as printed."""
        target = self._folder / "page.pdf"
        self._run(page, "--no-pdf-header-footer", f"--print-to-pdf={target}")
        return target.read_bytes()

    def _run(self, page: str, *options: str) -> str:
        source = self._folder / "page.html"
        source.write_text(page, encoding="utf-8")
        profile = f"--user-data-dir={self._folder / 'profile'}"
        command = [self._program, *_ALONE, profile, *options, source.as_uri()]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self._folder), "LANG": "C.UTF-8"}
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT, check=False, env=environment)
        assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
        return done.stdout.decode()


def installed() -> str:
    """Return the browser's program, or skip the test. ``KPREEMPT_CHROMIUM`` names another one."""
    named = os.environ.get("KPREEMPT_CHROMIUM", "")
    found = next(filter(None, map(shutil.which, (named,) if named else _NAMES)), None)
    if found is None:
        pytest.skip(f"there is no {named or 'Chromium'} here (Debian's package is chromium)")
    return found
