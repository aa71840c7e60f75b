from __future__ import annotations

from fastreid_lite.evaluation.table import results_table


def test_one_row_for_each_dataset_and_nan_is_not_available() -> None:
    results = {"Market1501": {"Rank-1": 94.256, "mAP": 100.0}, "CsvReID:/data/a_b.csv": {"Rank-1": float("nan")}}
    lines = results_table(results, ["The best model was chosen on the test set."]).splitlines()
    assert lines[0].split() == ["Dataset", "Rank-1", "mAP"]
    assert lines[2].split() == ["Market1501", "94.26", "100.00"]
    assert lines[3].split() == ["CsvReID:/data/a_b.csv", "n/a", "n/a"]
    assert lines[4:] == ["Note: The best model was chosen on the test set."]


def test_a_dataset_named_like_a_number_stays_as_it_is() -> None:
    assert "1e3 " in results_table({"1e3": {"mAP": 1.0}})


def test_no_results_give_a_table_without_rows() -> None:
    assert results_table({}).startswith("Dataset")
