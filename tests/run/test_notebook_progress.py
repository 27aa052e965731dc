from __future__ import annotations

import queue
import subprocess
import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from jupyter_client.manager import start_new_kernel
from traitlets.config import Config

from cashmere.run.notebook_progress import NotebookProgress, runs_in_kernel
from cashmere.run.progress import Status

SEARCH = """
from sklearn.datasets import load_iris
from cashmere import AutoClassifier
X, y = load_iris(return_X_y=True, as_frame=True)
model = AutoClassifier(budget="2trials", isolation="none", verbose={verbose}).fit(X, y)
"""


@pytest.fixture(scope="module")
def execute():
    """A function that runs code in a real kernel and returns the output of its cell."""
    manager, client = start_new_kernel(startup_timeout=120)

    def run(code):
        identifier = client.execute(code, store_history=True)
        shown = []
        while True:
            try:
                message = client.get_iopub_msg(timeout=120)
            except queue.Empty:
                raise AssertionError("the kernel does not answer") from None
            if message["parent_header"].get("msg_id") != identifier:
                continue
            kind, content = message["header"]["msg_type"], message["content"]
            assert kind != "error", content
            if kind == "status" and content["execution_state"] == "idle":
                return shown
            if kind not in ("status", "execute_input"):
                shown.append((kind, content))

    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.slow
def test_search_has_one_display_that_changes_in_place(execute):
    shown = execute(SEARCH.format(verbose=1))
    assert [kind for kind, _ in shown[:1]] == ["display_data"]
    assert {kind for kind, _ in shown[1:]} == {"update_display_data"}
    assert len({content["transient"]["display_id"] for _, content in shown}) == 1
    pages = [content["data"]["text/html"] for _, content in shown]
    assert "cashmere, preparing" in pages[0] and "<progress" in pages[0]
    assert "ended: 2 trials" in pages[-1] and "<progress" not in pages[-1] and "left" not in pages[-1]
    assert "<svg" in pages[-1] and "log_loss" in pages[-1]
    assert shown[-1][1]["data"]["text/plain"].startswith("ended: 2 trials, 0 failed, best single 0.")
    # Results are separate tables, and the estimator has scikit-learn's diagram.
    for expression, expected in (("ensemble_", "algorithm"), ("leaderboard_", "configuration")):
        ((kind, content),) = execute(f"model.{expression}")
        assert kind == "execute_result" and "<table" in content["data"]["text/html"]
        assert expected in content["data"]["text/html"]
    ((_, content),) = execute("model")
    assert "Fitted" in content["data"]["text/html"]
    assert execute(SEARCH.format(verbose=0)) == []


def test_a_process_without_ipython_is_no_kernel():
    code = "import sys; from cashmere.run.notebook_progress import runs_in_kernel; "
    code += "print(runs_in_kernel(), 'IPython' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.fixture
def shell(monkeypatch, tmp_path):
    """An IPython without a kernel, for the tests that need no messages."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    # Without a history, whose database it would close when Python ends.
    yield InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    InteractiveShell.clear_instance()


@pytest.mark.usefixtures("shell")
def test_display_changes_rarely_is_escaped_and_says_the_end():
    assert not runs_in_kernel()
    progress = NotebookProgress(interval=3600)
    with capture_output() as captured:
        progress.close()
    assert captured.outputs == []  # nothing was shown, so nothing ends
    with capture_output() as captured:
        progress.update(Status(metric="<script>", trials=1, best_score=0.5, seconds_left=75.0))
        progress.update(Status(metric="<script>", trials=2, best_score=0.4))
        progress.update(Status(metric="<script>", trials=3, failures=1, best_score=0.4).finishing())
        progress.close()
    first, finishing, ended = [each.data["text/html"] for each in captured.outputs]
    assert [each.update for each in captured.outputs] == [False, True, True]
    assert "searching: 1 trial ·" in first and "1:15 left" in first and "<progress" in first
    assert "<script>" not in first and "&lt;script&gt;" in first
    assert "finishing" in finishing and "ended: 3 trials, 1 failed" in ended and "<progress" not in ended
    assert ended.count("<path") == 1 and "V41" in ended  # including the second score, which was not shown
