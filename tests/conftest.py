"""What holds for all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# A continuous integration run draws the same examples each time, so that a red one can be repeated; whoever works on
# the code draws new ones.
settings.register_profile("ci", derandomize=True, database=None, deadline=None)
settings.register_profile("new examples", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "new examples")
