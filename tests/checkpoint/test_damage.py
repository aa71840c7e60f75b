from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import torch

from fastreid_lite.checkpoint import CheckpointError, load_checkpoint


def test_one_flipped_bit_in_a_tensor_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "model.pth"
    torch.save({"weight": torch.arange(1000.0)}, path)
    with zipfile.ZipFile(path) as parts:
        largest = max(parts.infolist(), key=lambda part: part.file_size)
    data = bytearray(path.read_bytes())
    data[largest.header_offset + 2000] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(CheckpointError, match="is damaged or no checkpoint"):
        load_checkpoint(path)
