from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fastreid_lite.data.datasets import CsvReID

Write = Callable[..., CsvReID]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write ``text`` as a CSV file, and the images a.jpg, b.jpg and c.jpg beside it."""

    def make(text: str | bytes, *, folder: str = "set") -> CsvReID:
        (tmp_path / folder).mkdir(parents=True)
        for name in ("a.jpg", "b.jpg", "c.jpg"):
            (tmp_path / folder / name).touch()
        content = text if isinstance(text, bytes) else text.encode("utf-8")
        (tmp_path / folder / "list.csv").write_bytes(content)
        return CsvReID(tmp_path, path=f"{folder}/list.csv")

    return make


def test_rows_go_to_their_splits_with_all_integer_columns(write: Write, tmp_path: Path) -> None:
    data = write(
        "path,pid,camid,split,clothes,x,y,w,h\n"
        "a.jpg,5,0,train,3,1,2,30,40\nb.jpg,900,1,query,-4,0,0,10,20\nc.jpg,900,2,gallery,5,0,0,10,21\n"
    ).load()
    assert data.train.paths == (str(tmp_path / "set" / "a.jpg"),)
    assert data.train.boxes is not None and data.train.boxes.tolist() == [[1, 2, 30, 40]]
    assert data.query.columns["clothes"].tolist() == [-4]
    assert data.gallery.camids is not None and data.gallery.camids.tolist() == [2]
    assert (data.train.pids.tolist(), data.query.pids.tolist(), data.gallery.pids.tolist()) == ([5], [900], [900])
    assert data.name == "CsvReID:set/list.csv" and data.folder == str(tmp_path / "set" / "list.csv")


def test_cameras_and_boxes_may_be_left_out(write: Write) -> None:
    data = write("path,pid,split\na.jpg,0,train\n").load()
    assert data.train.camids is None and data.train.boxes is None
    assert data.train.pids.tolist() == [0]


@pytest.mark.parametrize("pids", [("zoe", "ann", "ben"), ("3", "10", "ann")])
def test_if_any_pid_is_a_word_all_are_numbered_in_sorted_order(write: Write, pids: tuple[str, ...]) -> None:
    rows = zip("abc", pids, ("train", "query", "gallery"))
    data = write("path,pid,split\n" + "".join(f"{n}.jpg,{pid},{split}\n" for n, pid, split in rows)).load()
    given = [data.train.pids[0], data.query.pids[0], data.gallery.pids[0]]
    assert given == [sorted(pids).index(pid) for pid in pids]


def test_byte_order_mark_blank_lines_blanks_quotes_and_crlf_are_read_through(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "q"
    folder.mkdir()
    (folder / "a,b.jpg").touch()
    data = write(f'\ufeffpath, pid ,split\r\n\r\n"{folder}/a,b.jpg", 7 ,train\r\n'.encode()).load()
    assert data.train.paths == (str(folder / "a,b.jpg"),) and data.train.pids.tolist() == [7]


@pytest.mark.parametrize("folder", ["数据 集", "a # b", "x[1]"])
def test_any_path_is_fine(write: Write, folder: str) -> None:
    assert len(write("path,pid,split\na.jpg,行人,train\n", folder=folder).load().train) == 1


def test_boxes_may_reach_beyond_the_image_and_two_splits_may_write_a_pid_in_two_ways(write: Write) -> None:
    data = write("path,pid,split,x,y,w,h\na.jpg,7,query,-3,-4,10,20\nb.jpg,007,gallery,0,0,1,1\n").load()
    assert data.query.boxes is not None and data.query.boxes.tolist() == [[-3, -4, 10, 20]]
    assert data.query.pids.tolist() == data.gallery.pids.tolist() == [7]


def test_a_column_of_words_is_left_out_with_a_note(write: Write) -> None:
    data = write("path,pid,split,remark\na.jpg,1,train,seen twice\n").load()
    assert list(data.train.columns) == ["pid"]
    assert data.notes == ("the column 'remark' is not of integers (first value 'seen twice'): left out",)


def test_train_alone_and_test_alone_are_fine(write: Write) -> None:
    assert len(write("path,pid,split\na.jpg,1,train\n", folder="one").load().query) == 0
    assert len(write("path,pid,split\na.jpg,1,query\nb.jpg,1,gallery\n", folder="two").load().train) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "path,pid,split\na.jpg,1,train\nb.jpg,-1,train\n",
            "line 3, column 'pid': '-1', expected an integer of at least 0",
        ),
        ("path,pid,split\na.jpg,ann,train\nb.jpg,,train\n", "line 3, column 'pid': '', expected an integer or a word"),
        ("path,pid,split,camid\na.jpg,1,train,c2\n", "line 2, column 'camid': 'c2', expected an integer of at least 0"),
        ("path,pid,split\n\na.jpg,1,test\n", "line 3, column 'split': 'test', expected one of train, query, gallery"),
        ("path,pid,split,age\na.jpg,1,train,4\nb.jpg,1,train,x\n", "line 3, column 'age': 'x', expected an integer"),
        (
            "path,pid,split,x,y,w,h\na.jpg,1,train,0,0,0,5\n",
            "line 2, column 'w': '0', expected an integer of at least 1",
        ),
        (
            "path,pid,split\na.jpg,7,train\nb.jpg,8,train\nc.jpg,007,train\n",
            "line 4, column 'pid': '007', which is the same number as '7' on line 2 of the same split",
        ),
        (
            "path,pid,split\nd.jpg,1,train\ne.jpg,1,train\n",
            "line 2, column 'path': 'd.jpg', .*is none, the first of 2 of 2",
        ),
        ("path,pid,split\n,1,train\n", "line 2, column 'path': ''"),
        ("path,pid,split\na.jpg,1\n", "line 2: 2 values, expected 3 as in the header path,pid,split"),
        ("path,pid\na.jpg,1\n", "has no column split, it has path, pid"),
        ("path,pid,split,x,w\na.jpg,1,train,1,1\n", "has no column y, h, it has"),
        ("path,pid,split,targets\na.jpg,1,train,1\n", "has the column 'targets', a name that batches use"),
        ("path,pid,split,pid\na.jpg,1,train,1\n", "has the column 'pid' 2 times, expected different names"),
        ("path,pid,split,\na.jpg,1,train,1\n", "has a column without a name"),
        ("", "is empty, expected a header"),
        ("path,pid,split\n", "'CsvReID:set/list.csv': the part 'train' in .* has 0 images"),
        ("path,pid,split\na.jpg,1,query\n", "the part 'gallery' in .* has 0 images"),
        ("path,pid,split\na.jpg,1,train\na.jpg,1,gallery\n", "the part 'query' in .* has 0 images"),
        ('path,pid,split\n"a.jpg,1,train\n', "line 2: unexpected end of data"),
        ("path,pid,split\na.jpg,é,train\n".encode("latin-1"), "is not UTF-8"),
    ],
)
def test_what_is_wrong_is_named(write: Write, text: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        write(text).load()
    assert "list.csv" in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    dataset = CsvReID(tmp_path, path="none.csv")
    with pytest.raises(ValueError, match="the CSV file '.*none.csv' does not exist"):
        dataset.load()
    assert "does not exist" in str(dataset.missing())
