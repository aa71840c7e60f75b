"""A CSV file as columns of text, with errors that name file, line, column and value."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)


def is_integer(text: str) -> bool:
    """Whether ``text`` is an integer that fits int64."""
    return _INTEGER.fullmatch(text) is not None


@dataclass(frozen=True)
class CsvTable:
    """A table as read; blanks around values are gone.

    Args:
        file: where it came from.
        columns: name to (N,) texts.
        lines: (N,) the line of the file on which each row ends, from 1.
    """

    file: Path
    columns: dict[str, list[str]]
    lines: list[int]

    @staticmethod
    def read(file: Path) -> CsvTable:
        """Read ``file``: UTF-8 with or without a byte-order mark, comma-separated, the first row a header.

        Raises:
            ValueError: the file is missing, not UTF-8, empty, has a column twice or without a name, or a row is longer
                or shorter than the header.
        """
        if not file.is_file():
            raise ValueError(
                f"the CSV file {str(file)!r} does not exist; give its path absolute or under DATASETS.ROOT"
            )
        rows, lines = [], []
        try:
            with open(file, encoding="utf-8-sig", newline="") as stream:
                reader = csv.reader(stream, strict=True)
                for row in reader:
                    if any(value.strip() for value in row):
                        rows.append([value.strip() for value in row])
                        lines.append(reader.line_num)
        except UnicodeDecodeError as error:
            raise ValueError(f"the CSV file {str(file)!r} is not UTF-8 ({error.reason}); save it as UTF-8") from error
        except csv.Error as error:
            raise ValueError(f"the CSV file {str(file)!r}, line {reader.line_num}: {error}") from error
        if not rows:
            raise ValueError(f"the CSV file {str(file)!r} is empty, expected a header and a row for each image")
        return CsvTable._from_rows(file, rows[0], rows[1:], lines[1:])

    @staticmethod
    def _from_rows(file: Path, header: list[str], rows: list[list[str]], lines: list[int]) -> CsvTable:
        for name in header:
            if not name or header.count(name) > 1:
                what = f"the column {name!r} {header.count(name)} times" if name else "a column without a name"
                raise ValueError(f"the header of the CSV file {str(file)!r} has {what}, expected different names")
        for row, line in zip(rows, lines):
            if len(row) != len(header):
                raise ValueError(
                    f"the CSV file {str(file)!r}, line {line}: {len(row)} values, expected {len(header)} as in "
                    f"the header {','.join(header)}; put values that contain a comma in double quotes"
                )
        columns = {name: [row[position] for row in rows] for position, name in enumerate(header)}
        return CsvTable(file, columns, lines)

    def __len__(self) -> int:
        return len(self.lines)

    def integers(self, name: str, *, least: int | None = None) -> np.ndarray:
        """(N,) int64 of a column.

        Args:
            least: smallest value allowed; None for any.

        Raises:
            ValueError: a value is not an integer, or below ``least``.
        """
        wanted = "an integer" if least is None else f"an integer of at least {least}"
        for position, text in enumerate(self.columns[name]):
            if not is_integer(text) or (least is not None and int(text) < least):
                raise self.error(position, name, f"expected {wanted}")
        return np.array([int(text) for text in self.columns[name]], dtype=np.int64)

    def error(self, position: int, name: str, expectation: str) -> ValueError:
        """The error that says what is wrong with the value of row ``position`` in column ``name``."""
        return ValueError(
            f"the CSV file {str(self.file)!r}, line {self.lines[position]}, column {name!r}: "
            f"{self.columns[name][position]!r}, {expectation}"
        )
