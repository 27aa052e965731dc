from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cashmere.data.inference import infer_schema
from cashmere.data.reading import read_table, words_for_missing
from cashmere.exceptions import DataError


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiter_is_found(tmp_path, delimiter):
    path = tmp_path / "t.csv"
    lines = [["n", "text", "c"], ["1", '"a, b; c"', "x"], ["2.5", '"say ""hi"""', ""], ["?", "plain", "y"]]
    path.write_text("\n".join(delimiter.join(line) for line in lines))
    frame = read_table(path)
    assert list(frame.columns) == ["n", "text", "c"]
    assert frame["n"].iloc[:2].tolist() == [1.0, 2.5] and np.isnan(frame["n"].iloc[2])
    assert frame["text"].iloc[0] == "a, b; c" and frame["text"].iloc[1] == 'say "hi"'
    assert frame["c"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "latin-1"])
def test_encoding_is_found(tmp_path, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes("größe,ort\n1,Köln\n2,Orléans\n".encode(encoding))
    frame = read_table(path)
    assert list(frame.columns) == ["größe", "ort"] and frame["ort"].tolist() == ["Köln", "Orléans"]


def test_compressed_files_are_read(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert read_table(str(path)).to_dict("list") == {"a": [1], "b": [2]}


def test_a_blank_before_a_quote_does_not_break_fields(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('size, "name"\n5, "Smith, John"\n6, "Doe"\n')
    assert read_table(path).to_dict("list") == {"size": [5, 6], "name": ["Smith, John", "Doe"]}


@pytest.mark.parametrize("suffix", [".csv", ".CSV.gz"])
def test_words_for_missing_are_counted_in_columns_of_text(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    content = b'n ; text;no\n1;NA;\n\nNA; "None";?\n;?;x\n3;;y\n4;N/A ;\n5;None;NULL\n'
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    frame = read_table(path)
    assert frame["text"].isna().sum() == 5
    assert words_for_missing(path, frame) == {"text": {"None": 2, "NA": 1}, "no": {"NULL": 1}}


def test_other_files_have_no_words_for_missing(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": ["NA", None]}).to_parquet(path)
    frame = read_table(path)
    assert frame["a"].tolist()[0] == "NA" and words_for_missing(path, frame) == {}
    assert words_for_missing("openml:31", frame) == {}


def test_single_column_and_quoted_line_breaks(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n2\n")
    assert read_table(path)["a"].tolist() == [1, 2]
    path.write_text('a,b\n"x\ny",1\nz,2\n')
    assert read_table(path)["a"].tolist() == ["x\ny", "z"]


def test_parquet_keeps_types(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"a": [1, 2], "c": pd.Categorical(["x", "y"]), "d": pd.to_datetime(["2020-01-01", None])})
    frame.to_parquet(path)
    pd.testing.assert_frame_equal(read_table(path), frame)


ARFF = """% comment
@RELATION 'the table'
@attribute 'a name' NUMERIC
@attribute colour {red, 'dark blue', "x,y"}
@attribute size{small,large}
@attribute note string
@attribute day date "yyyy-MM-dd"
@attribute count integer
@data
% more
1.5, red, small, 'it\\'s, fine', 2020-01-02, 3
?, 'dark blue', ?, plain, ?, 4
-2e3, "x,y", large, "", 2021-12-31, 5
"""


def test_arff_types_quotes_and_missing_values(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text(ARFF)
    frame = read_table(path)
    assert list(frame.columns) == ["a name", "colour", "size", "note", "day", "count"]
    assert frame["a name"].iloc[[0, 2]].tolist() == [1.5, -2000.0] and np.isnan(frame["a name"].iloc[1])
    assert frame["colour"].tolist() == ["red", "dark blue", "x,y"]
    assert list(frame["colour"].cat.categories) == ["red", "dark blue", "x,y"]
    assert frame["size"].isna().tolist() == [False, True, False]
    assert frame["note"].iloc[0] == "it's, fine"
    assert frame["day"].iloc[0] == pd.Timestamp("2020-01-02")
    assert frame["count"].tolist() == [3, 4, 5] and frame["count"].dtype == np.int64


def test_sparse_arff_rows_are_filled(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text("@relation r\n@attribute a numeric\n@attribute b {u,v}\n@data\n{0 2, 1 v}\n{}\n")
    frame = read_table(path)
    assert frame["a"].tolist() == [2.0, 0.0] and frame["b"].tolist() == ["v", "u"]


@pytest.mark.parametrize("number", ["1.5", "1e300", "nan"])
def test_integers_of_arff_are_not_truncated(tmp_path, number):
    path = tmp_path / "t.arff"
    path.write_text(f"@relation r\n@attribute a integer\n@data\n3\n{number}\n")
    np.testing.assert_array_equal(read_table(path)["a"], [3.0, float(number)])


class _Bunch:
    frame = pd.DataFrame({"a": [1, 2], "class": ["x", "y"]})
    target_names = ("class",)


def test_openml_is_fetched_with_its_target(monkeypatch):
    asked = {}
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **kwargs: asked.update(kwargs) or _Bunch())
    frame = read_table("openml:31")
    assert asked["data_id"] == 31 and frame.attrs["target"] == "class"


def test_openml_offline_says_what_to_do(monkeypatch):
    def offline(**kwargs):
        raise OSError("no route")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(DataError, match="Connect once"):
        read_table("openml:31")


BAD_TEXT = {
    "empty.csv": ("", "empty"),
    "blank.csv": ("\n\n", "no column names"),
    "header_only.csv": ("a,b\n", "no rows"),
    "twice.csv": ("a,b,a\n1,2,3\n", "'a' occurs more than once"),
    "long_row.csv": ("a,b\n1,2\n3,4,5\n", "record 2 has 3 fields"),
    "all_long.csv": ("a,b\n1,2,3\n3,4,5\n", "fields"),
    "short_row.csv": ("a,b,c\n1,2,3\n3,4\n", "record 2 has 2 fields"),
    "late_short_row.csv": ("a,b\n" + "1,2\n" * 200 + "3\n", "record 201 has 1 field"),
    "late_long_row.csv": ("a,b\n" + "1,2\n" * 200 + "3,4,5\n", "record 201 has 3 fields"),
    "table.xlsx": ("PK", "cannot be read as a workbook"),
    "table.xml": ("<table>", "unknown suffix"),
    "nosuffix": ("a,b\n1,2\n", "unknown suffix"),
    "corrupt.parquet": ("PAR1 nothing", "cannot be read as Parquet"),
    "corrupt.csv.gz": ("not gzip", "damaged"),
    "no_data.arff": ("@relation r\n@attribute a numeric\n", "no @data"),
    "no_rows.arff": ("@relation r\n@attribute a numeric\n@data\n", "no rows"),
    "no_columns.arff": ("@relation r\n@data\n", "no columns"),
    "ragged.arff": ("@relation r\n@attribute a numeric\n@data\n1,2\n", "line 4: expected 1 values, found 2"),
    "number.arff": ("@relation r\n@attribute a numeric\n@data\nx\n", "column 'a' must hold numbers, found 'x'"),
    "level.arff": ("@relation r\n@attribute a {u,v}\n@data\nw\n", "declared levels"),
    "date.arff": ("@relation r\n@attribute a date\n@data\nsoon\n", "ISO dates"),
    "type.arff": ("@relation r\n@attribute a relational\n@data\n1\n", "unknown ARFF type"),
    "twice.arff": ("@relation r\n@attribute a real\n@attribute a real\n@data\n1,2\n", "more than once"),
    "junk.arff": ("hello\n", "ARFF declaration"),
    "sparse.arff": ("@relation r\n@attribute a real\n@data\n{5 1}\n", "index below 1"),
    "superscript.arff": ("@relation r\n@attribute a real\n@data\n{² 1}\n", "index below 1"),
}


@pytest.mark.parametrize("name", BAD_TEXT)
def test_bad_file_is_refused_with_its_name(tmp_path, name):
    content, message = BAD_TEXT[name]
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        read_table(path)
    assert name in str(caught.value)


@pytest.mark.parametrize(("source", "message"), [("gone.csv", "no such file"), (".", "directory"), ("openml:x", "ID")])
def test_bad_source_is_refused(source, message):
    with pytest.raises(DataError, match=message):
        read_table(source)


def test_parquet_with_repeated_names_is_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="more than once") as caught:
        read_table(tmp_path / "t.parquet")
    assert caught.value.column == "a"


@settings(max_examples=30, deadline=None)
@given(
    numbers=st.lists(st.integers(-1000, 1000), min_size=1, max_size=8),
    words=st.lists(
        st.text(alphabet='abc ;,|"é', min_size=1, max_size=6).map(lambda s: "w" + s), min_size=8, max_size=8
    ),
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
)
def test_written_table_is_read_back(tmp_path_factory, numbers, words, delimiter):
    frame = pd.DataFrame({"n": numbers, "w": [word.strip() for word in words[: len(numbers)]]})
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    frame.to_csv(path, index=False, sep=delimiter, quoting=2)
    back = read_table(path)
    assert back["n"].tolist() == numbers and back["w"].tolist() == frame["w"].tolist()


def test_cells_stay_as_written_where_a_model_has_such_levels(tmp_path):
    trained = pd.DataFrame(
        {
            "country": pd.Categorical(["NA", "DE", "FR", None]),
            "code": pd.Categorical(["007", "12", "7", "x"]),
            "answer": pd.Categorical(["TRUE", "FALSE", "?", "no"]),
            "size": [1.0, 2.0, 3.0, 4.0],
        }
    )
    schema = infer_schema(trained)
    path = tmp_path / "t.csv"
    path.write_text("size,code,answer,country\nNA, 007,TRUE,NA\n2,12,FALSE,\n3,7,TRUE,None\n4,13,TRUE,DE\n")
    frame = read_table(path, schema=schema)
    assert frame["country"].isna().tolist() == [False, True, True, False] and frame["country"][0] == "NA"
    assert frame["code"].tolist() == ["007", "12", "7", 13] and frame["answer"].tolist()[:2] == ["TRUE", "FALSE"]
    assert frame["size"].isna().tolist() == [True, False, False, False]
    coded = schema.code(frame)
    assert coded.unseen == {"code": 1}
    assert [schema.columns[0].categories[int(coded.values[i, 0])] for i in (0, 3)] == ["NA", "DE"]


def test_levels_are_matched_by_position_if_a_model_has_no_names(tmp_path):
    schema = infer_schema(pd.DataFrame({"x0": [1.0, 2.0], "x1": ["NA", "DE"]}), named=False)
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1;NA\n2;DE\n")
    assert read_table(path, schema=schema)["b"].tolist() == ["NA", "DE"]


def test_quoted_commas_in_sparse_arff_rows_do_not_separate(tmp_path):
    path = tmp_path / "t.arff"
    head = "@relation r\n@attribute a numeric\n@attribute b {u,'v, w'}\n@attribute c string\n@data\n"
    path.write_text(head + "{0 2, 1 'v, w', 2 \"x, 'y'\"}\n{1\t'v, w',2\tz}\n{0 ?}\n")
    frame = read_table(path)
    assert frame["b"].tolist() == ["v, w", "v, w", "u"] and frame["c"].tolist()[:2] == ["x, 'y'", "z"]
    assert frame["a"].isna().tolist() == [False, False, True]


@pytest.mark.parametrize("row", ["{0}", "{0 1, 1}", "{x 1}", f"{{{'9' * 5000} 1}}"])
def test_sparse_arff_entries_need_a_number_and_a_value(tmp_path, row):
    path = tmp_path / "t.arff"
    path.write_text(f"@relation r\n@attribute a numeric\n@attribute b numeric\n@data\n{row}\n")
    with pytest.raises(DataError, match="line 5: expected 'INDEX VALUE'"):
        read_table(path)
