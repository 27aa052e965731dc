"""The version of the code that rows name."""

from __future__ import annotations

import subprocess

import pytest

from benchmarks.runs.place import commit


def git(folder, *words):
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True)


@pytest.mark.parametrize(
    ("changed", "says_so"), [("src/a.py", True), ("benchmarks/runs/b.py", True), ("benchmarks/rows.csv", False)]
)
def test_version_says_whether_the_code_was_changed(tmp_path, changed, says_so):
    git(tmp_path, "init", "-q")
    for name in ("src/a.py", "benchmarks/runs/b.py", "benchmarks/rows.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "all")
    version = commit.__wrapped__(tmp_path)
    assert len(version) >= 4 and version.isalnum()
    (tmp_path / changed).write_text("2")
    assert commit.__wrapped__(tmp_path) == version + ("+" if says_so else "")


def test_there_is_no_version_outside_a_clone(tmp_path):
    assert commit.__wrapped__(tmp_path) == ""
