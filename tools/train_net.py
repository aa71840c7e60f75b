#!/usr/bin/env python3
"""Train a model, or evaluate it.

    python tools/train_net.py --config-file configs/Synthetic/quick.yml OUTPUT_DIR output/quick

Started from any folder; --help lists the flags.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from fastreid_lite.cli import train  # noqa: E402

if __name__ == "__main__":
    train()
