"""Inspecting a table before a search."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cashmere import AutoClassifier, inspect_table
from cashmere.cli import app
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.data.placeholders import placeholder_numbers
from cashmere.data.task import TaskType
from cashmere.exceptions import DataError, SchemaError
from cashmere.inspection import FindingKind
from cashmere.inspection.estimates import estimate

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "match"
N = 240


def suspicious() -> tuple[pd.DataFrame, pd.Series]:
    """A table with one of everything."""
    rng = np.random.default_rng(0)
    y = pd.Series(rng.choice(["no", "yes"], N, p=[0.7, 0.3]), name="late")
    y[:1] = "lost"
    fine = np.where(y == "yes", rng.uniform(10, 90, N), 0.0)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, N),
            "fine": fine,
            "price": [f"{value:.2f}" for value in rng.uniform(1, 9, N)],
            "city": rng.choice([f"town {i}" for i in range(60)], N),
            "country": "FI",
            "copy of age": 0,
            "ticket": [f"T-{i:05d}" for i in range(N)],
            "nothing": np.nan,
            "day": pd.date_range("2024-01-01", periods=N).astype(str),
        }
    )
    X["copy of age"] = X["age"]
    X.loc[10, "day"] = "soon"
    return X, y


@pytest.fixture(scope="module")
def found():
    return inspect_table(*suspicious())


def columns_of(found, kind):
    return {finding.columns for finding in found.findings if finding.kind is kind}


def test_leaks_are_named_first(found):
    assert found.findings[0].kind is FindingKind.ALONE
    assert columns_of(found, FindingKind.ALONE) == {("fine",)}
    assert "known only after the target" in found.findings[0].sentence


def test_notebooks_show_findings_and_columns(found):
    page = found._repr_html_()
    assert all(f"<li>{finding.kind}: " in page for finding in found.findings)
    assert "<td>fine</td>" in page


def test_dropped_converted_and_unread_columns_are_reported(found):
    assert columns_of(found, FindingKind.DROPPED) == {("country",), ("copy of age",), ("ticket",), ("nothing",)}
    assert columns_of(found, FindingKind.CONVERTED) == {("price",), ("day",)}
    assert columns_of(found, FindingKind.UNREAD) == {("day",)}
    assert columns_of(found, FindingKind.LEVELS) == {("city",)}
    assert "'lost' (1)" in next(f.sentence for f in found.findings if f.kind is FindingKind.TARGET)
    assert any("time='day'" in f.sentence for f in found.findings if f.kind is FindingKind.STRUCTURE)


def test_columns_are_described_as_they_are_stored_and_read(found):
    frame = found.frame().set_index("name")
    assert frame.loc["price", ["stored", "kind"]].tolist() == ["text", "numeric"]
    assert frame.loc["nothing", ["missing", "distinct"]].tolist() == [1.0, 0]
    assert frame.loc["day", "distinct"] == N
    assert frame.loc["city", "distinct"] == suspicious()[0]["city"].nunique()
    assert frame["skill"].notna().tolist() == frame["dropped"].isna().tolist()


def test_the_same_table_gives_the_same_inspection(found):
    assert inspect_table(*suspicious()) == found


def test_fit_reads_columns_as_reported(found, tmp_path):
    X, y = suspicious()
    with pytest.warns(match="dates"):
        AutoClassifier(
            budget="1trials",
            isolation="none",
            resampling="holdout",
            include="logistic_regression",
            run_directory=tmp_path / "run",
        ).fit(X, y)
    schema = json.loads((tmp_path / "run" / "schema.json").read_text())["columns"]["columns"]
    assert [(c["name"], c["kind"], c.get("dropped")) for c in schema] == [
        (c.name, c.kind.value, c.dropped) for c in found.columns
    ]


def test_a_date_that_predicts_alone_is_not_called_a_leak():
    day = pd.date_range("2024-01-01", periods=N)
    found = inspect_table(
        pd.DataFrame({"day": day, "a": np.arange(N) % 7, "b": np.arange(N) + 0.5}), np.arange(N) * 2.0
    )
    leaks, dates = (f for f in found.findings if f.kind is FindingKind.ALONE)
    assert leaks.columns == ("b",) and "leaks" in leaks.sentence
    assert dates.columns == ("day",) and "leaks" not in dates.sentence and "random folds" in dates.sentence


@pytest.mark.parametrize(("share", "is_named"), [(0.02, True), (0.3, False)])
def test_half_of_a_rare_class_is_much(share, is_named):
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < share).astype(int)
    known = np.where(
        y == 1, rng.random(4000) < 0.8, rng.random(4000) < 0.3 * share
    )  # known afterwards, and with errors
    X = pd.DataFrame({"disputed": np.where(known, "yes", "no"), "amount": rng.gamma(2 + y, size=4000)})
    found = inspect_table(X, y)
    assert columns_of(found, FindingKind.ALONE) == ({("disputed",)} if is_named else set())
    if is_named:
        assert "'disputed' predicts much of a rare class alone" in found.findings[0].sentence


@pytest.mark.parametrize(("n_rare", "is_reported"), [(11, True), (30, False)])
def test_a_rare_class_is_reported(n_rare, is_reported):
    X = pd.DataFrame({"a": np.random.default_rng(3).normal(size=N)})
    found = inspect_table(X, np.where(np.arange(N) < n_rare, "yes", "no"))
    assert any("never predicts it is right in 95.4 %" in finding.sentence for finding in found.findings) is is_reported


def test_rows_without_a_target_are_counted_and_left_out():
    X, y = suspicious()
    y = y.astype(object)
    y[100:120] = None
    found = inspect_table(X, y)
    assert found.n_rows == N - 20
    told = "20 rows have no target, and are left out here. fit refuses them: remove them, or call cashmere fit with"
    assert told in " ".join(found.summary().split())
    y[101:120] = "no"
    assert "1 row has no target, and is left out here. fit refuses it: remove it," in inspect_table(X, y).summary()
    with pytest.raises(DataError, match="No row has a target"):
        inspect_table(X, [None] * N)


def test_a_class_that_looks_like_a_missing_outcome_is_a_finding():
    found = inspect_table(pd.DataFrame({"size": range(40)}), ["yes", "no", "no", "unknown"] * 10)
    sentences = [finding.sentence for finding in found.findings if finding.kind is FindingKind.TARGET]
    assert sentences[0].startswith("Class 'unknown' of the target (10 rows) looks like a missing outcome.")


def test_classes_in_several_spellings_are_a_finding():
    found = inspect_table(pd.DataFrame({"size": range(40)}), ["yes", "Yes", "no", "no"] * 10)
    sentences = [finding.sentence for finding in found.findings if finding.kind is FindingKind.TARGET]
    assert sentences[0].startswith("The target has classes that differ only in case or blanks ('Yes' and 'yes')")


def test_equal_rows_and_contradictions_are_counted():
    X = pd.DataFrame({"a": [1, 1, 1, 1, 2, 3] * 10, "b": list("xxxxyy") * 10})
    y = ["p", "p", "p", "q", "q", "p"] * 10
    found = inspect_table(X, y)
    contradictions, copies = (
        next(f.sentence for f in found.findings if f.kind is kind)
        for kind in (FindingKind.CONTRADICTIONS, FindingKind.COPIES)
    )
    assert contradictions.startswith("10 rows contradict others") and "83.3 %" in contradictions
    assert copies.startswith("57 rows repeat")


def test_numbers_that_probably_stand_for_missing_values_are_named():
    rng = np.random.default_rng(0)
    age, income = rng.integers(18, 99, 60), rng.normal(3e4, 1e4, 60)
    age[:3], income[10:14], income[20] = 999, -9999, np.nan
    table = pd.DataFrame({"age": age, "income": income, "weight": np.where(np.arange(60) % 20, age, 999)})
    (finding, other) = inspect_table(table).findings
    assert (finding.kind, finding.columns) == (FindingKind.PLACEHOLDER, ("age", "weight"))
    assert finding.sentence.startswith("Columns 'age', 'weight' have 999 in 8 cells, unlike all other values.")
    assert other.sentence.startswith("Column 'income' has -9999 in 4 cells, unlike")


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 2.0, 999.0, 999.0],  # two rows may be a coincidence
        [90.0, 95.0, 99.0, 99.0, 99.0],  # near the others
        [1.0, 2.0, 900.0, 900.0, 900.0],
        [1.0, 2.0, 99.5, 99.5, 99.5],
        [0.0, 1.0, 9.0, 9.0, 9.0],
        [1.0, 2.0, 88.0, 88.0, 98.0, 98.0, 98.0],  # without the one of nines
        [*range(60, 99), 99.0, 99.0, 99.0],
        [999.0] * 9,
        [np.nan] * 9,
        [],
        [1.0, 2.0, np.inf, np.inf, np.inf],
    ],
)
def test_ordinary_numbers_are_no_placeholders(values):
    assert not placeholder_numbers(np.array(values))


def test_few_rows_among_many_do_not_seem_to_be_none():
    n_rows = 10_000
    X = pd.DataFrame({"a": np.append(0, np.arange(n_rows - 1))})
    y = np.arange(n_rows) < 1
    text = inspect_table(X, y).summary()
    assert "10,000 rows, 1 column, of which 1 is used." in text
    assert "1 row contradicts others" in text and "no model can predict more than 99.99 % of the rows" in text
    assert "1 class has fewer than 10 rows, such as True (1)." in text
    assert "has 0.01 % of the rows: a model that never predicts it is right in 99.99 %." in text


def test_target_that_is_no_column_is_refused():
    with pytest.raises(DataError, match="y should be a 1d array"):
        inspect_table(pd.DataFrame({"a": range(9)}), 5)


def test_without_a_target_columns_are_only_read():
    X, _ = suspicious()
    found = inspect_table(X)
    assert found.task_type is None and found.frame()["skill"].isna().all()
    assert columns_of(found, FindingKind.DROPPED) and not columns_of(found, FindingKind.ALONE)


def test_numbers_and_arrays_are_inspected():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, 3))
    found = inspect_table(X, X[:, 0] ** 3)
    assert found.task_type is TaskType.REGRESSION and not found.classes
    low, high = found.values
    assert (low, high) == ((X[:, 0] ** 3).min(), (X[:, 0] ** 3).max())
    assert f"values from {low:.5g} to {high:.5g}" in found.summary()
    assert columns_of(found, FindingKind.ALONE) == {("x0",)}


def test_an_ordinary_table_raises_no_suspicion():
    table = demo_table()
    found = inspect_table(table.drop(columns=DEMO_TARGET), table[DEMO_TARGET])
    assert found.findings == ()
    assert found.classes == {"good": 700, "bad": 300}


@pytest.mark.parametrize("n_rows", [10, 12_000])
def test_short_and_long_tables(n_rows):
    rng = np.random.default_rng(2)
    y = np.arange(n_rows) % 2
    y[:2] = 1
    found = inspect_table(pd.DataFrame({"a": rng.normal(size=n_rows), "b": y + 0.0}), y)
    judged = found.frame()["skill"].notna()
    assert judged.all() if n_rows > 30 else not judged.any()


def test_command_shows_and_writes_what_was_found(tmp_path):
    X, y = suspicious()
    X.assign(late=y).to_csv(tmp_path / "table.csv", index=False)

    def command(*arguments):
        return CliRunner().invoke(app, ["inspect", str(tmp_path / "table.csv"), *map(str, arguments)])

    shown = command("--target", "late", "--top", 4)
    assert shown.exit_code == 0, shown.output
    assert "skill alone" in shown.output and "and 5 more columns" in shown.output
    assert "predicts alone: Column 'fine'" in shown.output
    written = command("--target", "late", "-o", tmp_path / "columns.csv")
    assert written.exit_code == 0
    assert pd.read_csv(tmp_path / "columns.csv")["name"].tolist() == list(X.columns)
    assert "Did you mean 'late'" in command("--target", "lat").output
    assert command().exit_code == 0
    X[["fine"]].to_csv(tmp_path / "table.csv", index=False)
    assert "no column beside the target 'fine'" in command("--target", "fine").output


def test_command_names_words_that_were_read_as_missing(tmp_path):
    table = pd.DataFrame({"country": ["NA", "DE"] * 20, "late": ["None", "mild", "mild", "bad"] * 10})
    table.assign(size=["NA", *range(39)]).to_csv(tmp_path / "table.csv", index=False)
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "table.csv"), "--target", "late"])
    text = " ".join(shown.output.split())
    assert "Note: Column 'country' holds 'NA' (20 rows), read as missing" in text
    assert "Note: Column 'late' holds 'None' (10 rows), read as missing" in text
    assert "Column 'size'" not in text


def test_kept_runs_are_within_the_estimates():
    rows = [json.loads(line) for line in (RESULTS / "peers.jsonl").read_text().splitlines()]
    sizes = {"large_20000": 20_000, "large_200000": 200_000, "large_1000000": 1_000_000, "large_5000000": 5_000_000}
    found = [
        (estimate(sizes[row["key"]["table"]] * 3 // 4, 30, 2, workers=2), row)
        for row in rows
        if row["key"]["strategy"] == "cashmere" and row["key"]["table"] in sizes and row["key"]["budget"] == "60s"
    ]
    assert len(found) == 4
    for estimates, row in found:
        assert estimates.mib[0] < row["peak_mib"] < estimates.mib[1]
        assert estimates.trials(60)[0] <= row["facts"]["models"] <= estimates.trials(60)[1]


def test_columns_that_tell_new_rows_are_named():
    rng = np.random.default_rng(0)
    n = 300

    def rows(shift, levels):
        return pd.DataFrame(
            {
                "drifting": rng.normal(size=n) + shift,
                "steady": rng.normal(size=n),
                "site": rng.choice(levels, n),
                "same": rng.choice(["a", "b"], n),
                "note": [f"some words about row {i} and others" for i in range(n)],
            }
        )

    table, new = rows(0.0, ["north", "south"]), rows(1.5, ["north", "west"])
    found = inspect_table(table, (table["steady"] > 0).map({True: "yes", False: "no"}), new_rows=new)
    drifts = found.frame().set_index("name")["drift"]
    assert drifts["drifting"] > 0.2 and drifts["site"] > 0.2 and 0 <= drifts["note"] < 0.1
    assert max(drifts["steady"], drifts["same"]) < 0.05
    (finding,) = (each for each in found.findings if each.kind is FindingKind.DRIFT)
    assert set(finding.columns) == {"drifting", "site"} and "tell new rows from those of the table" in finding.sentence
    assert inspect_table(table).frame()["drift"].isna().all()
    assert not [
        each
        for each in inspect_table(table, new_rows=rows(0.0, ["north", "south"])).findings
        if each.kind is FindingKind.DRIFT
    ]


def test_numbers_beyond_float32_are_inspected():
    paid, size = np.arange(60) % 2, np.random.default_rng(0).normal(size=60)
    table = pd.DataFrame({"huge": np.where(paid, 1e300, -1e300), "size": size})
    found = inspect_table(table, paid, new_rows=table.assign(size=np.abs(size) * 1e39))
    assert [(each.kind, each.columns) for each in found.findings] == [
        (FindingKind.ALONE, ("huge",)),
        (FindingKind.DRIFT, ()),  # its numbers are far
        (FindingKind.DRIFT, ("size",)),
    ]


def test_columns_that_only_new_rows_have_are_named():
    table = pd.DataFrame({"a": np.arange(50.0) ** 2, "b": np.arange(50) % 7})
    y = pd.Series(np.arange(50) % 2, name="late")
    new = table.assign(channel="phone", late=y)
    found = inspect_table(table, y, new_rows=new)
    assert columns_of(found, FindingKind.DRIFT) == {("channel",)}
    assert "Column 'channel' is only in the new rows" in found.summary()
    assert not columns_of(inspect_table(table, y, new_rows=table), FindingKind.DRIFT)


def test_new_rows_of_another_table_are_refused():
    with pytest.raises(SchemaError, match="lacks 1 column it had in training: 'b'"):
        inspect_table(pd.DataFrame({"a": range(50), "b": np.arange(50) ** 2}), new_rows=pd.DataFrame({"a": range(50)}))


def test_command_shows_drift(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"zip": [f"0{i % 7}" for i in range(200)], "a": rng.normal(size=200), "y": [0, 1] * 100})
    table.to_csv(tmp_path / "train.csv", index=False)
    table.drop(columns="y").assign(a=rng.normal(size=200) + 2).to_csv(tmp_path / "test.csv", index=False)
    command = ["inspect", "train.csv", "--target", "y", "--categorical", "zip", "--new", "test.csv"]
    paths = [str(tmp_path / each) if each.endswith(".csv") else each for each in command]
    told = CliRunner().invoke(app, paths)
    assert told.exit_code == 0, told.output
    assert "drift" in told.output and "other new rows: Column 'a' tells new rows" in told.output


def test_ignored_columns_and_the_target_may_be_in_the_new_file(tmp_path):
    table = pd.DataFrame({"a": np.arange(50.0) ** 2, "b": np.arange(50) % 7, "note": "x", "y": np.arange(50) % 2})
    table.to_csv(tmp_path / "table.csv", index=False)
    path = str(tmp_path / "table.csv")
    result = CliRunner().invoke(app, ["inspect", path, "--target", "y", "--ignore", "note", "--new", path])
    assert result.exit_code == 0
    assert "only in the new rows" not in result.output


def test_new_rows_are_read_like_the_table(tmp_path):
    codes = [f"{i % 30:03}" for i in range(300)]
    pd.DataFrame({"code": [*codes[:290], *(f"A{i}" for i in range(10))], "y": [0, 1] * 150}).to_csv(
        tmp_path / "train.csv", index=False
    )
    pd.DataFrame({"code": codes}).to_csv(tmp_path / "test.csv", index=False)
    command = ["inspect", str(tmp_path / "train.csv"), "--target", "y", "--new", str(tmp_path / "test.csv")]
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 0 and "other new rows" not in told.output, told.output


def leaking_texts(n=300):
    rng = np.random.default_rng(0)
    y = np.tile(["refund", "none"], n // 2)
    words = np.array([f"word{i}" for i in range(50)])
    notes = [f"{' '.join(rng.choice(words, 6))} closed as {label}." for label in y]
    reviews = [" ".join(rng.choice(words, 8)) for _ in range(n)]
    return pd.DataFrame({"note": notes, "review": reviews}), y


def test_texts_that_hold_the_target_are_found():
    X, y = leaking_texts()
    found = inspect_table(X, y)
    skills = found.frame().set_index("name")["skill"]
    assert skills["note"] > 0.9 and 0 <= skills["review"] < 0.1
    assert [each.columns for each in found.findings if each.kind is FindingKind.ALONE] == [("note",)]
    later = X.assign(review=[f"{text} sent from a phone" for text in X["review"]])
    assert inspect_table(X, new_rows=later).frame().set_index("name")["drift"]["review"] > 0.9


def test_printed_inspection_shows_the_columns():
    frame = pd.DataFrame({f"column_{i}": np.arange(i, 60 + i) % 7 + i / 100 for i in range(52)})
    shown = str(inspect_table(frame))
    assert "column_49" in shown and "column_50" not in shown and "... and 2 more columns: see frame()" in shown
    assert "skill" not in shown and "60 rows, 52 columns" in shown
