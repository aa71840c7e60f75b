"""Makes ``tests`` importable, in this process and in those that tests start; one thread to a process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Two test processes on two cores: more threads would only wait for each other. Before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

_ROOT = str(Path(__file__).resolve().parent.parent)
if _ROOT not in sys.path:
    sys.path.insert(0, _ROOT)
