from __future__ import annotations

from fake_runs import make_run

from cashmere.report import summarise_run


def test_damaged_class_table_costs_only_the_counts(tmp_path):
    run = make_run(tmp_path / "run", n_trials=1)
    (run / "table.npz").write_bytes(b"PK\x03\x04 broken")
    assert [c["rows"] for c in summarise_run(run)["data"]["classes"]] == [None, None]
