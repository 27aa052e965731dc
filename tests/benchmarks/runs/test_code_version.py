"""The version of the code that rows name."""

from __future__ import annotations

import subprocess

import pytest

from benchmarks.runs.code_version import commit, is_here

CODE = ("src/a.py", "benchmarks/runs/b.py")


def git(folder, *words):
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True)


@pytest.fixture
def clone(tmp_path):
    git(tmp_path, "init", "-q")
    for name in (*CODE, "benchmarks/rows.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "all")
    return tmp_path


@pytest.mark.parametrize(("changed", "says_so"), [*((name, True) for name in CODE), ("benchmarks/rows.csv", False)])
def test_version_says_whether_the_code_was_changed(clone, changed, says_so):
    version = commit.__wrapped__(clone)
    assert len(version) >= 4 and version.isalnum()
    (clone / changed).write_text("2")
    assert commit.__wrapped__(clone) == version + ("+" if says_so else "")


@pytest.mark.parametrize(("changed", "is_same"), [("benchmarks/rows.csv", True), *((name, False) for name in CODE)])
def test_a_version_is_here_until_a_commit_changes_code(clone, changed, is_same):
    version = commit.__wrapped__(clone)
    (clone / changed).write_text("2")
    git(clone, "commit", "-qam", "changed")
    assert version != commit.__wrapped__(clone)
    assert is_here.__wrapped__(version, clone) is is_same
    assert not is_here.__wrapped__(f"{version}+", clone) and not is_here.__wrapped__("", clone)


def test_there_is_no_version_outside_a_clone(tmp_path):
    assert commit.__wrapped__(tmp_path) == ""
