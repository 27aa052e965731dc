"""Digests tell every change of the code that they are of."""

from __future__ import annotations

from benchmarks.runs.code_digest import digest_of, package_files


def test_digest_depends_on_names_and_contents(tmp_path):
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    first.write_text("x = 1")
    second.write_text("x = 2")
    digests = {digest_of(files) for files in ({"a": first}, {"b": first}, {"a": second}, {"a": first, "b": first})}
    assert len(digests) == 4
    second.write_text("x = 1")
    assert digest_of({"a": second}) == digest_of({"a": first})


def test_files_of_the_package_are_those_of_all_its_folders():
    whole, part = package_files(), package_files("strategies")
    assert {"estimators.py", "run/session.py", "data/resampling.py", "strategies/shared/loss_model.py"} <= set(whole)
    assert set(part) == {name for name in whole if name.startswith("strategies/")}
