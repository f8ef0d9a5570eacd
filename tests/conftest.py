"""Settings of every test: stricter than production, and the same on every machine."""

import os

# Before torch is imported: workers share two cores; a second thread each is in the way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from hypothesis import settings

settings.register_profile(
    "house", deadline=None, max_examples=int(os.environ.get("HOTGRID_EXAMPLES", "100"))
)
settings.load_profile("house")
