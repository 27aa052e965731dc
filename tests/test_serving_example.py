"""The example of a server, as it is: started as its users start it, asked over HTTP on the loopback."""

from __future__ import annotations

import json
import re
import socket
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from processes import running

from cashmere import AutoClassifier, Predictor
from cashmere.data.demo import DEMO_TARGET, demo_table

pytest.importorskip("uvicorn")

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "serving"
ROWS = demo_table().head(120)
X = ROWS.drop(columns=DEMO_TARGET)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "run"
    model = AutoClassifier(
        budget="1trials",
        include=["logistic_regression"],
        resampling="holdout",
        isolation="none",
        run_directory=folder,
    )
    model.fit(X, ROWS[DEMO_TARGET])
    return folder


@pytest.fixture(scope="module")
def url(run):
    """Start the server beside the model, on a free port of the loopback; yield where it answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        command = [sys.executable, "-m", "uvicorn", "--app-dir", EXAMPLE, "--fd", listening.fileno(), "serve:app"]
        with running(command, cwd=run, pass_fds=[listening.fileno()]):
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/predict"


def ask(url: str, rows: object) -> tuple[int, object]:
    """Return the status and the content of the answer."""
    request = urllib.request.Request(url, json.dumps(rows).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.mark.slow
def test_rows_are_predicted(url, run):
    rows = X.head(20).astype(object).where(X.head(20).notna(), None).to_dict("records")
    assert ask(url, rows) == (200, Predictor.load(run).predict(X.head(20)).tolist())


@pytest.mark.slow
def test_rows_that_the_model_refuses_are_answered_with_its_message(url):
    row = X.astype(object).iloc[0].to_dict()
    status, content = ask(url, [{name: value for name, value in row.items() if name != "age"}])
    assert status == 422 and "'age'" in content["detail"]
    status, content = ask(url, [{**row, "age": "very old"}])
    assert status == 422 and "'age'" in content["detail"] and "very old" in content["detail"]
    status, content = ask(url, [row, {name: value for name, value in row.items() if name != "age"}])
    assert status == 422 and "same keys" in content["detail"]
    assert ask(url, [])[0] == 422
    assert ask(url, {"rows": 5})[0] == 422


def test_page_shows_the_files_as_they_are():
    page = (ROOT / "docs" / "serving.md").read_text()
    shown = dict(re.findall(r"^```(py|dockerfile)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    assert shown == {
        "py": (EXAMPLE / "serve.py").read_text(),
        "dockerfile": (EXAMPLE / "Dockerfile").read_text(),
    }
