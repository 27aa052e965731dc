from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cashmere.data.column import ColumnKind
from cashmere.data.frames import to_frame
from cashmere.data.inference import infer_schema
from cashmere.data.preparation import FoldEncoder
from cashmere.data.reading import read_table
from cashmere.data.schema import TableSchema
from cashmere.data.task import Encoding, TaskType
from cashmere.exceptions import ColumnTypeError, DataError, SchemaError

NUMERIC, BOOLEAN, CATEGORICAL, DATE, TEXT = ColumnKind


def kind(values, **kwargs):
    return infer_schema(pd.DataFrame({"c": pd.Series(values, **kwargs)})).columns[0].kind


KINDS = {
    "integers": ([1, 2, 3], {}, NUMERIC),
    "floats": ([1.0, None, 3.0], {}, NUMERIC),
    "nullable integers": ([1, None, 3], {"dtype": "Int64"}, NUMERIC),
    "booleans": ([True, False], {}, BOOLEAN),
    "nullable booleans": ([True, None, False], {"dtype": "boolean"}, BOOLEAN),
    "booleans as objects": ([True, None, False], {"dtype": object}, BOOLEAN),
    "booleans as text": (["True", "false", None], {}, BOOLEAN),
    "text": (["a", "b"], {}, CATEGORICAL),
    "text as objects": (["a", None], {"dtype": object}, CATEGORICAL),
    "pandas strings": (["a", "b"], {"dtype": "string"}, CATEGORICAL),
    "categorical numbers": ([1, 2], {"dtype": "category"}, CATEGORICAL),
    "numbers as text": (["1", " 2.5", None, ""], {}, NUMERIC),
    "numbers as objects": ([1, 2.5, None], {"dtype": object}, NUMERIC),
    "decimals": ([Decimal("1.5"), Decimal("2")], {"dtype": object}, NUMERIC),
    "mixed text and numbers": ([1, "a"], {"dtype": object}, CATEGORICAL),
    "datetimes": (pd.to_datetime(["2020-01-01", "2021-01-01"]), {}, DATE),
    "zoned datetimes": (pd.to_datetime(["2020-01-01", "2021-01-01"]).tz_localize("Europe/Berlin"), {}, DATE),
    "python dates": ([dt.date(2020, 1, 1), dt.date(2021, 1, 1)], {"dtype": object}, DATE),
    "dates as text": (["2020-01-01", "2020-01-02T10:00:00Z", None], {}, DATE),
    "periods": (pd.period_range("2020-01", periods=2, freq="M"), {}, DATE),
    "few dates among words": (["2020-01-01"] * 9 + ["soon"], {}, CATEGORICAL),
    "almost only dates": (["2020-01-01", "2020-02-01"] * 15 + ["soon"], {}, DATE),
    "durations": (pd.to_timedelta([1, 2], unit="D"), {}, NUMERIC),
    "durations as text": (["0 days 00:05:00", "1 days 08:00:00", None], {}, NUMERIC),
    "times of day": ([dt.time(8, 15), dt.time(23, 5), None], {"dtype": object}, NUMERIC),
    "times of day as text": (["8:15", "23:05"], {}, NUMERIC),
    "durations with units": (["2h 50m", "19h", "45 min"], {}, NUMERIC),
    "durations of ISO 8601": (["PT4M13S", "PT59S"], {}, NUMERIC),
    "units that may be metres": (["5 m", "2 h"], {}, CATEGORICAL),
    "parts of seconds beside hours": (["1.5 s", "2 h"], {}, CATEGORICAL),
    "minutes beside hours": (["59:30", "1:02:30"], {}, CATEGORICAL),
    "times among words": (["8:15", "23:05", "late", "never"], {}, CATEGORICAL),
    "sentences": (["this is a rather long text", "and here is quite another one"], {}, TEXT),
    "repeated sentences": (["one of two long fixed answers", "the other of the two answers"] * 9, {}, CATEGORICAL),
}


@pytest.mark.parametrize("case", KINDS)
def test_kind_of_column(case):
    values, options, expected = KINDS[case]
    assert kind(values, **options) == expected


def test_durations_are_seconds_however_they_are_stored(tmp_path):
    """A file of a hundred running times, all different, was a column of identifiers, and dropped."""
    spans = pd.Series(pd.to_timedelta(np.arange(100) * 61.5 + 3000, unit="s"), name="time")
    as_text = spans.astype(str)
    clock = as_text.str.removeprefix("0 days ")
    times = (pd.Timestamp("2024-01-01") + spans).dt.time
    seconds = spans.dt.total_seconds()
    for training in (spans, as_text, clock, times):
        schema = TableSchema.from_json(json.loads(json.dumps(infer_schema(training.to_frame("time")).to_json())))
        assert schema.columns[0].in_seconds
        for other in (spans, as_text, clock, times, seconds, seconds.astype(str)):
            np.testing.assert_allclose(schema.code(other.to_frame("time")).values[:, 0], seconds)
    text = pd.DataFrame({"time": ["0:05:00", "soon"]})
    with pytest.raises(SchemaError, match=r"must hold durations or times of day such as 1:30:00 as in.*'soon'"):
        schema.code(text)


def test_words_among_durations_are_missing():
    table = pd.DataFrame({"time": [f"{h}:{m:02}" for h in range(10) for m in (0, 30)] + ["closed"] * 5})
    schema = infer_schema(table)
    (column,) = schema.columns
    assert column.in_seconds and column.missing_texts == ("closed",)
    coded = schema.code(table).values[:, 0]
    assert np.isnan(coded[-5:]).all() and coded[1] == 1800.0


def test_numbers_are_not_taken_for_durations():
    schema = infer_schema(pd.DataFrame({"price": ["1", "2.5"], "ratio": ["16:9", "4:3"]}))
    assert [column.in_seconds for column in schema.columns] == [False, False]
    with pytest.raises(SchemaError, match="'price' must hold numbers"):
        schema.code(pd.DataFrame({"price": ["8:15"], "ratio": ["4:3"]}))


def test_columns_without_information_are_dropped_with_reason():
    n = 60
    frame = pd.DataFrame(
        {
            "a": np.arange(n),
            "same": np.arange(n) * 1.0,
            "constant": 7,
            "empty": [None] * n,
            "blank": ["  "] * n,
            "id": [f"row{i}" for i in range(n)],
            "c": list("xyz") * 20,
            "c2": pd.Categorical(list("xyz") * 20),
            "seldom": [None] * (n - 1) + [1.0],
        }
    )
    dropped = {column.name: column.dropped for column in infer_schema(frame).columns}
    assert dropped == {
        "a": None,
        "same": "duplicate of 'a'",
        "constant": "constant",
        "empty": "all missing",
        "blank": "all missing",
        "id": "identifier: every value differs",
        "c": None,
        "c2": "duplicate of 'c'",
        "seldom": None,
    }


def test_table_without_useful_columns_has_no_values():
    schema = infer_schema(pd.DataFrame({"a": [1, 1]}))
    assert schema.used == () and schema.code(pd.DataFrame({"b": [1, 2, 3]})).values.shape == (3, 0)


def test_fifty_different_strings_are_still_categories():
    assert infer_schema(pd.DataFrame({"c": [f"r{i}" for i in range(50)]})).columns[0].dropped is None


def test_coding_of_all_kinds():
    frame = pd.DataFrame(
        {
            "n": [1.5, np.nan],
            "b": pd.array([None, True], dtype="boolean"),
            "c": ["red", "blue"],
            "d": pd.to_datetime(["1970-01-02 12:00", None]),
            "t": ["a text of more than four words", None],
        }
    )
    coded = infer_schema(frame).code(frame)
    assert coded.value_names[:3] == ("n", "b", "c")
    assert coded.value_names[3:] == ("d.year", "d.month", "d.day", "d.weekday", "d.days_since_1970", "d.hour")
    np.testing.assert_array_equal(coded.values[0], [1.5, np.nan, 1, 1970, 1, 2, 4, 1.5, 12])
    np.testing.assert_array_equal(coded.values[1], [np.nan, 1, 0] + [np.nan] * 6)
    assert [text.tolist() for text in coded.texts] == [["a text of more than four words", ""]]
    assert coded.categorical.tolist() == [False, False, True] + [False] * 6
    assert coded.n_levels.tolist() == [0, 0, 2] + [0] * 6 and not coded.unseen


def test_hour_only_with_time_of_day_in_training():
    schema = infer_schema(pd.DataFrame({"d": ["2020-01-01", "2020-01-05"]}))
    assert "d.hour" not in schema.value_names
    later = schema.code(pd.DataFrame({"d": ["2020-01-05T13:00:00+02:00"]}))
    assert later.values.shape == (1, 5) and later.values[0, 2] == 5


def test_dates_mean_the_same_in_every_form():
    stamps = pd.to_datetime(["2020-02-29 23:30:00", "2021-03-01 00:15:00"])
    schema = infer_schema(pd.DataFrame({"d": stamps}))
    expected = schema.code(pd.DataFrame({"d": stamps})).values
    forms = [
        stamps.tz_localize("America/New_York"),
        stamps.astype(str),
        ["2020-02-29T23:30Z", "2021/03/01 00:15:00+05:30"],
        stamps.to_pydatetime(),
        stamps.tz_localize("UTC").astype(object),
        stamps.as_unit("s"),
    ]
    for form in forms:
        np.testing.assert_array_equal(schema.code(pd.DataFrame({"d": form})).values, expected)


def test_unseen_categories_are_missing_and_counted():
    schema = infer_schema(pd.DataFrame({"c": ["a", "b", None]}))
    coded = schema.code(pd.DataFrame({"c": ["b", "new", None, "newer"]}))
    np.testing.assert_array_equal(coded.values[:, 0], [1, np.nan, np.nan, np.nan])
    assert coded.unseen == {"c": 2}


@pytest.mark.parametrize("form", [[1, 2], [1.0, 2.0], ["1", "2"], pd.Categorical([1, 2]), pd.array([1, 2], "Int64")])
def test_integer_categories_match_in_every_form(form):
    schema = infer_schema(pd.DataFrame({"c": pd.Categorical([2, 1, 1])}))
    assert schema.columns[0].categories == ("1", "2")
    assert schema.code(pd.DataFrame({"c": form})).values[:, 0].tolist() == [0, 1]


def test_ordered_categories_keep_their_order():
    values = pd.Categorical(["low", "high", "mid"], categories=["low", "mid", "high", "top"], ordered=True)
    assert infer_schema(pd.DataFrame({"c": values})).columns[0].categories == ("low", "mid", "high")


def test_columns_are_matched_by_name_when_named():
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    schema = infer_schema(frame)
    other = frame[["b", "a"]].assign(extra=1)
    np.testing.assert_array_equal(schema.code(other).values, schema.code(frame).values)


def test_all_missing_columns_are_named():
    schema = infer_schema(pd.DataFrame({"a": [1, 2], "b": [1, 3], "c": [1, 4], "k": [1, 1]}))
    with pytest.raises(SchemaError, match=r"lacks 2 column.*'a', 'c'"):
        schema.code(pd.DataFrame({"b": [1]}))


def test_the_error_about_thousands_of_missing_columns_is_short():
    names = [f"measurement {i}" for i in range(5000)]
    schema = infer_schema(pd.DataFrame(np.arange(10_000).reshape(2, 5000), columns=names))
    with pytest.raises(
        SchemaError, match=r"lacks 4,?999 columns .*'measurement 1', .* and 4,979 more. It has: 'measurement 0'\."
    ) as caught:
        schema.code(pd.DataFrame({names[0]: [1]}))
    assert len(str(caught.value)) < 1000


def test_unnamed_tables_are_not_matched_by_some_names():
    """A column that is lacking and another one made all others move by one."""
    schema = infer_schema(pd.DataFrame(np.eye(3)).rename(columns=str), named=False)
    with pytest.raises(SchemaError, match=r"'1', '2', '3', but .* has learned from 0 to 2, so that '3' may be any"):
        schema.code(pd.DataFrame(np.eye(3), columns=["1", "2", "3"]))
    schema.code(pd.DataFrame(np.eye(3), columns=["2", "1", "0"]))
    schema.code(pd.DataFrame(np.eye(3), columns=["a", "b", "c"]))


def test_unnamed_tables_are_matched_by_position():
    schema = infer_schema(to_frame(np.array([[1.0, 2.0], [3.0, 4.0]])), named=False)
    np.testing.assert_array_equal(schema.code(pd.DataFrame({"p": [5], "q": [6]})).values, [[5, 6]])
    with pytest.raises(ValueError, match="X has 3 features, but Thing is expecting 2 features as input"):
        schema.code(to_frame(np.zeros((1, 3))), estimator="Thing")


BAD_CONTENT = {
    "text in numbers": ([1, 2], ["3", "many"], "must hold numbers.*'many'"),
    "decimal comma in numbers": ([1, 2], ["3,14"], r"'3,14'\. Correct them, with decimals after a point, or replace"),
    "date in numbers": ([1, 2], [dt.date(2020, 1, 1)], "must hold numbers"),
    "datetime in numbers": ([1, 2], pd.to_datetime(["2020-01-01"]), "must hold numbers"),
    "category in numbers": ([1, 2], pd.Categorical(["x"]), "must hold numbers.*'x'"),
    "infinity as text": ([1, 2], ["inf"], "infinity"),
    "text in booleans": ([True, False], ["maybe"], "must hold True or False.*'maybe'"),
    "number in booleans": ([True, False], [3], "must hold True or False.*'3'"),
    "number in dates": (["2020-01-01", "2020-01-02"], [5.5], "must hold dates"),
    "list in numbers": ([1, 2], [[1]], "must hold numbers"),
}


@pytest.mark.parametrize("case", BAD_CONTENT)
def test_content_that_does_not_fit_is_refused(case):
    training, later, message = BAD_CONTENT[case]
    schema = infer_schema(pd.DataFrame({"col": training}))
    with pytest.raises(DataError, match=message) as caught:
        schema.code(pd.DataFrame({"col": pd.Series(later)}))
    assert caught.value.column == "col" and "col" in str(caught.value)


@pytest.mark.parametrize("form", [["true", "False", None], [1, 0, None], pd.array([True, False, None], "boolean")])
def test_booleans_are_understood_in_other_forms(form):
    schema = infer_schema(pd.DataFrame({"b": [True, False]}))
    np.testing.assert_array_equal(schema.code(pd.DataFrame({"b": form})).values[:, 0], [1, 0, np.nan])


@pytest.mark.parametrize("value", [{"foo": "bar"}, [1], (1, 2), object(), b"bytes", 1j, np.zeros(2)])
def test_objects_are_a_type_error(value):
    frame = pd.DataFrame({"good": [1, 2], "odd": pd.Series([value, 1.0], dtype=object)})
    with pytest.raises(TypeError, match=r"argument must be .* string.* number") as caught:
        infer_schema(frame)
    assert isinstance(caught.value, ColumnTypeError) and caught.value.column == "odd"


def table(n=12, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "n": rng.normal(size=n),
            "i": rng.integers(0, 5, n),
            "c": rng.choice(["a", "b", "c"], n),
            "k": pd.Categorical(rng.integers(10, 14, n)),
            "b": rng.random(n) < 0.5,
            "d": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**6, n), unit="min"),
            "t": [f"the number {rng.integers(99)} stands in row {i}" for i in range(n)],
        }
    ).mask(rng.random((n, 7)) < 0.15)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 30))
def test_rows_are_coded_independently(seed, n):
    frame = table(n, seed)
    schema = infer_schema(frame)
    whole = schema.code(frame)
    for i in range(0, n, 3):
        row = schema.code(frame.iloc[[i]])
        np.testing.assert_array_equal(row.values[0], whole.values[i])
        assert [text[0] for text in row.texts] == [text[i] for text in whole.texts]


@pytest.mark.long
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 30))
def test_schema_survives_json_and_row_order(seed, n):
    frame = table(n, seed)
    schema = infer_schema(frame)
    assert TableSchema.from_json(json.loads(json.dumps(schema.to_json()))) == schema
    shuffled = frame.sample(frac=1, random_state=seed % 1000)
    assert infer_schema(shuffled) == schema


def test_table_read_back_from_csv_is_coded_alike(tmp_path):
    frame = table(40)
    schema = infer_schema(frame)
    frame.to_csv(tmp_path / "t.csv", index=False)
    back = schema.code(read_table(tmp_path / "t.csv"))
    np.testing.assert_allclose(back.values, schema.code(frame).values, rtol=1e-15)
    assert not back.unseen


def test_many_duplicates_take_linear_time():
    frame = pd.DataFrame(np.repeat(np.arange(20.0)[:, None], 500, axis=1), columns=[f"x{i}" for i in range(500)])
    assert len(infer_schema(frame).used) == 1


def test_rows_can_be_chosen_while_coding():
    frame = pd.DataFrame({"n": [1.0, np.nan, 3.0], "c": ["a", "b", "a"], "t": ["x y z u v", "p q r s t", "l m n o p"]})
    schema = infer_schema(frame)
    rows = np.array([2, 0, 0])
    chosen, expected = schema.code(frame, rows=rows), schema.code(frame.iloc[rows])
    np.testing.assert_array_equal(chosen.values, expected.values)
    assert [list(text) for text in chosen.texts] == [list(text) for text in expected.texts]


@pytest.mark.parametrize("dtype", ["float32", "float64", "Float32", "int8", "bool"])
@pytest.mark.parametrize("compact", [False, True])
def test_rows_of_a_single_column_can_be_chosen(dtype, compact):
    frame = pd.DataFrame({"n": pd.Series([0, 1, 0]).astype(dtype)})
    chosen = infer_schema(frame).code(frame, rows=np.array([1, 0, 1]), compact=compact)
    assert chosen.values.tolist() == [[1], [0], [1]]


def test_equal_moments_of_several_zones_keep_their_hours():
    moment = pd.Timestamp("2024-01-01 12:00", tz="UTC")
    frame = pd.DataFrame({"d": pd.Series([moment, moment.tz_convert("Asia/Tokyo")] * 2, dtype=object)})
    schema = infer_schema(frame)
    assert schema.code(frame).values[:, schema.value_names.index("d.hour")].tolist() == [12, 21] * 2


@pytest.mark.parametrize("values", [[True, 1, "a"], [1, True, "a"], ["a", 1.0, "True"]])
def test_true_and_one_are_different_levels(values):
    frame = pd.DataFrame({"c": pd.Series([*values, None], dtype=object)})
    schema = infer_schema(frame)
    assert schema.columns[0].categories == ("1", "True", "a")
    later = pd.DataFrame({"c": pd.Series([1, True, "a", None, "1.0"], dtype=object)})
    np.testing.assert_array_equal(schema.code(later).values[:, 0], [0, 1, 2, np.nan, 0])


def test_compact_values_are_what_learners_see():
    frame = pd.DataFrame(
        {"n": [1e300, np.nan, 0.1, -1e300], "c": list("abca"), "d": pd.to_datetime(["2020-01-02"] * 4)}
    )
    frame.loc[1, "d"] = pd.Timestamp("1999-12-31")
    schema = infer_schema(frame)
    plain, compact = schema.code(frame), schema.code(frame, compact=True)
    assert compact.values.dtype == np.float32 and compact.values.flags.f_contiguous
    y = np.array([0, 1, 0, 1])
    for encoding in Encoding:
        a, b = (FoldEncoder.for_schema(encoding, schema) for _ in range(2))
        np.testing.assert_array_equal(
            a.fit_transform(plain, y, TaskType.BINARY, 0), b.fit_transform(compact, y, TaskType.BINARY, 0)
        )
        np.testing.assert_array_equal(b.transform(plain), a.transform(plain))


def test_several_threads_read_columns_alike(monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"n{i}": rng.normal(size=80) for i in range(8)})
    frame["c"], frame["again"] = rng.choice(list("abc"), 80), frame["n3"]
    frame["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 90, 80), unit="D")
    frame["text"] = [f"a text of more than {i} words" for i in range(80)]
    later = frame.assign(c="new", n5="odd", n6="odd")
    schema, rows = infer_schema(frame), rng.permutation(80)
    alone = schema.code(frame.assign(c="new"), rows=rows, compact=True)
    monkeypatch.setattr("cashmere.data.schema._ROWS_FOR_THREADS", 1)
    monkeypatch.setattr("cashmere.data.schema.available_cores", lambda: 4)
    assert infer_schema(frame) == schema
    together = schema.code(frame.assign(c="new"), rows=rows, compact=True)
    np.testing.assert_array_equal(together.values, alone.values)
    assert together.texts[0].tolist() == alone.texts[0].tolist() and together.unseen == alone.unseen == {"c": 80}
    with pytest.raises(SchemaError, match="'n5'"):
        schema.code(later)


def test_check_can_end_the_work_before_any_column(monkeypatch):
    monkeypatch.setattr("cashmere.data.schema._ROWS_FOR_THREADS", 1)
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(10, 50)))
    schema, asked = infer_schema(frame, named=False), []

    def check():
        asked.append(True)
        if len(asked) == 3:
            raise TimeoutError

    for work in (infer_schema, schema.code):
        asked.clear()
        with pytest.raises(TimeoutError):
            work(frame, check=check)
        assert len(asked) < 50


def seconds(n=400, start=1_700_000_000):
    return start + np.random.default_rng(0).permutation(n) * 3.0


def test_numbers_that_float32_merges_are_shifted():
    frame = pd.DataFrame({"at": seconds(), "year": 2000 + np.arange(400) % 25, "gap": np.where(seconds() % 2, 1e9, 1)})
    schema = infer_schema(frame)
    assert [column.offset for column in schema.columns] == [1_700_000_000, 0, 0]
    assert TableSchema.from_json(schema.to_json()) == schema
    for compact in (False, True):
        values = schema.code(frame, compact=compact).values
        np.testing.assert_array_equal(values[:, 0], frame["at"] - 1_700_000_000)
    new = pd.DataFrame({"at": [None, 1_700_000_010, "1700000003"], "year": 2000, "gap": 1})
    np.testing.assert_array_equal(schema.code(new).values[:, 0], [np.nan, 10, 3])


@settings(max_examples=60, deadline=None)
@given(
    numbers=st.lists(st.floats(-1e30, 1e30), min_size=2, max_size=30, unique=True),
    shift=st.sampled_from([0.0, 1e9, -1e12, 1e25]),
)
def test_shifted_numbers_keep_their_order(numbers, shift):
    values = np.array(numbers) + shift
    schema = infer_schema(pd.DataFrame({"x": values, "y": np.arange(len(values))}))
    (column, _) = schema.columns
    if column.dropped is None:
        coded = schema.code(pd.DataFrame({"x": values, "y": 0})).values[:, 0].astype(np.float32)
        assert np.all(np.diff(coded[np.argsort(values)]) >= 0)
        if column.offset:
            assert len(np.unique(coded)) > len(np.unique(values.astype(np.float32)))


@pytest.mark.parametrize("offset", [float("inf"), float("nan")])
def test_stored_offset_must_be_a_number(offset):
    data = infer_schema(pd.DataFrame({"at": seconds()})).to_json()
    data["columns"][0]["offset"] = offset
    with pytest.raises(ValueError, match="offset"):
        TableSchema.from_json(data)


def test_levels_spelt_otherwise_are_found():
    schema = infer_schema(
        pd.DataFrame({"paid": ["TRUE", "FALSE", "maybe"] * 2, "ward": pd.Categorical(["1", "2", "3"] * 2)})
    )
    coded = schema.code(pd.DataFrame({"paid": [True, False, True], "ward": ["1.0", "2.00", "1.5"]}))
    assert coded.values[:, 0].tolist() == [1, 0, 1]
    assert coded.values[:2, 1].tolist() == [0, 1] and np.isnan(coded.values[2, 1])
    assert coded.unseen == {"ward": 1}


def test_spelling_that_two_levels_share_stays_unseen():
    schema = infer_schema(pd.DataFrame({"paid": ["TRUE", "true", "no"] * 2}))
    assert schema.code(pd.DataFrame({"paid": ["True"]})).unseen == {"paid": 1}


def test_instants_are_those_of_the_zone_in_training():
    """Rows that a database returns in UTC were predicted as if they were hours earlier."""
    times = pd.Series(pd.date_range("2024-03-30", periods=60, freq="h", tz="Europe/Berlin"), name="at")
    schema = TableSchema.from_json(json.loads(json.dumps(infer_schema(times.to_frame()).to_json())))
    assert schema.columns[0].zone == "Europe/Berlin"
    coded = schema.code(times.to_frame()).values
    for zone in ("UTC", "Asia/Tokyo", "+02:00"):
        np.testing.assert_array_equal(schema.code(times.dt.tz_convert(zone).to_frame()).values, coded)
    wall = times.dt.tz_localize(None)
    np.testing.assert_array_equal(schema.code(wall.to_frame()).values, coded)
    texts = times.dt.tz_convert("UTC").dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    objects = pd.Series([time.to_pydatetime() for time in times.dt.tz_convert("Asia/Tokyo")], dtype=object)
    for later in (texts, texts.str.replace("Z", "+00:00"), objects.rename(texts.name)):
        np.testing.assert_array_equal(schema.code(later.to_frame()).values, coded)
    in_utc = infer_schema(texts.to_frame())
    assert in_utc.columns[0].zone == "UTC"
    expected = in_utc.code(texts.to_frame()).values
    np.testing.assert_array_equal(in_utc.code(times.to_frame()).values, expected)
    assert infer_schema(texts.str.replace("Z", "+01:00").to_frame()).columns[0].zone == ""
    assert infer_schema(wall.to_frame()).columns[0].zone == ""
    assert infer_schema(times.dt.tz_convert("+02:00").to_frame()).columns[0].zone == ""


@pytest.mark.parametrize("zone", ["dateutil//etc/passwd", "../zone", "/etc/localtime", "a" * 40, "UTC\n"])
def test_names_of_zones_are_no_paths(zone):
    stored = infer_schema(pd.DataFrame({"at": pd.date_range("2024-01-01", periods=3, freq="h", tz="UTC")})).to_json()
    stored["columns"][0]["zone"] = zone
    with pytest.raises(ValueError, match="has a time zone, but no dates, or it is no name"):
        TableSchema.from_json(stored)


def test_missing_columns_are_told_from_those_in_another_spelling():
    schema = infer_schema(pd.DataFrame({"my col": [1, 2, 3], "b": [1, 4, 3]}))
    with pytest.raises(SchemaError, match=r"Add or rename columns: 'my col' is perhaps 'My Col '\."):
        schema.code(pd.DataFrame({"My Col ": [1], "c": [1]}))


@pytest.mark.parametrize("found", ["fixed_acidity", "Fixed Acidity", "fixed\nacidity", "fixed\xa0acidity"])
def test_blanks_and_punctuation_do_not_hide_a_missing_column(found):
    schema = infer_schema(pd.DataFrame({"fixed acidity": [1, 2, 3], "%": [1, 4, 3]}))
    with pytest.raises(SchemaError, match=r"rename columns: 'fixed acidity' is perhaps '[^']*'\."):
        schema.code(pd.DataFrame({found: [1], "!": [1]}))
