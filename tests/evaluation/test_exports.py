from __future__ import annotations

import subprocess
import sys

import pytest

import fastreid_lite.evaluation


def test_every_export_is_there() -> None:
    for name in fastreid_lite.evaluation.__all__:
        assert getattr(fastreid_lite.evaluation, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Reid'"):
        _ = fastreid_lite.evaluation.Reid


def test_the_package_is_imported_without_torch() -> None:
    code = "import sys, fastreid_lite.evaluation; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
