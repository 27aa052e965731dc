"""Which recordings a command takes when several folders have one of the same table."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pytest
from synthetic_recording import make_recording

from benchmarks.experiments import patience
from benchmarks.recordings import recorded_history
from benchmarks.recordings.finding import find_recordings
from benchmarks.recordings.recorded_history import RECORDED, RECORDED_LARGE, load_recorded, save_recorded
from benchmarks.runs.row_file import RowFile


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two folders: `made` is in both, `made-more` and `large` in one of them."""
    folders = tmp_path / "recorded", tmp_path / "recorded_large"
    for folder, n, tables in ((folders[0], 15, ("made", "made-more")), (folders[1], 20, ("large", "made"))):
        for table in tables:
            save_recorded(replace(make_recording(n=n, n_rows=60), dataset=table), folder)
    monkeypatch.setattr(recorded_history, "RECORDED", folders[0])
    return folders


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ([], ["recorded/made", "recorded/made-more"]),
        (["made"], ["recorded/made"]),
        (["made-more-small"], ["recorded/made-more"]),
        (["large"], ["recorded_large/large"]),
        (["{1}"], ["recorded_large/large", "recorded_large/made"]),
        (["{0}", "{1}"], ["recorded/made-more", "recorded/made", "recorded_large/large"]),
        (["{1}", "{0}"], ["recorded_large/large", "recorded_large/made", "recorded/made-more"]),
        (["{1}/made-small.zip", "{0}"], ["recorded_large/made", "recorded/made-more"]),
        (["made", "made"], ["recorded/made"]),
    ],
)
def test_each_table_counts_once(folders, wanted, found):
    recordings = find_recordings([text.format(*folders) for text in wanted], folders)
    assert sorted(f"{each.path.parent.name}/{each.table}" for each in recordings) == sorted(found)


def test_a_file_that_would_be_left_out_is_refused(folders):
    words = [str(folder / "made-small.zip") for folder in folders]
    with pytest.raises(SystemExit, match="comes before and holds the same table"):
        find_recordings(words, folders)


def test_unknown_names_and_empty_folders_are_refused(folders, tmp_path):
    with pytest.raises(SystemExit, match=r"No recording 'mad': .*large-small"):
        find_recordings(["mad"], folders)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit, match="holds no recordings"):
        find_recordings([str(tmp_path / "empty")], folders)


def test_names_tell_recordings_of_a_table_apart(folders):
    both = [find_recordings([str(folder)], folders) for folder in folders]
    assert [[each.name for each in found] for found in both] == [
        ["made-more-small", "made-small"],
        ["large-small", "recorded_large/made-small"],
    ]
    assert [[load_recorded(each.path).name for each in found] for found in both] == [
        [each.name for each in found] for found in both
    ]
    history = load_recorded(folders[1] / "made-small.zip")
    assert save_recorded(history, folders[1]) == folders[1] / "made-small.zip"


def test_rows_of_two_recordings_of_a_table_do_not_mix(folders, tmp_path, capsys):
    parser = argparse.ArgumentParser()
    patience.add_arguments(parser)
    path, shown = tmp_path / "rows.csv", []
    for folder in (*folders, folders[0]):
        words = ["--rows", "50", "--most", "10", "--seeds", "1", "--recordings", str(folder / "made-small.zip")]
        patience.main(parser.parse_args([*words, "--out", str(path)]))
        shown.append(capsys.readouterr().out.partition("is judged")[2])
    rows = RowFile(path, patience.JudgedPool).frame()
    assert list(rows["recording"]) == ["made-small", "recorded_large/made-small"]
    assert shown[0] == shown[2]  # as if there were no rows of the other


def test_recordings_of_the_repository_are_found_once_each():
    recordings = find_recordings([str(RECORDED), str(RECORDED_LARGE)])
    names = [(each.table, each.space) for each in recordings]
    assert len(set(names)) == len(names) and len(names) >= 11
    assert find_recordings([]) == [each for each in recordings if each.path.parent == RECORDED.resolve()]
    assert [each.name for each in find_recordings(["liver_disorders"])] == ["liver_disorders-volcano"]
