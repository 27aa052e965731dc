"""The report of a run in progress: served on the loopback, updated, and reloaded by a browser."""

from __future__ import annotations

import contextlib
import http.client
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from urllib.parse import urlsplit

import pytest
from fake_runs import make_run
from processes import running, wait_until
from report_page import check_inert, complaints

from cashmere.data.demo import demo_table
from cashmere.exceptions import RunDirectoryError
from cashmere.report.page import live
from cashmere.report.page.live import LivePage


@pytest.fixture
def serve():
    """Return a function that serves a run until the test ends."""
    pages = []

    def start(folder, **options):
        page = LivePage(folder, **options)
        threading.Thread(target=page.serve, daemon=True).start()
        pages.append(page)
        return page

    yield start
    for page in pages:
        page.close()


def ask(page, path="/", host="127.0.0.1"):
    connection = http.client.HTTPConnection(urlsplit(page.address).netloc, timeout=10)
    connection.request("GET", path, headers={"Host": host})
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read().decode()


def test_page_is_the_report_and_asks_for_reloads(serve, tmp_path):
    page = serve(make_run(tmp_path / "run", n_trials=5), seconds=3)
    status, headers, content = ask(page)
    assert status == 200 and headers["Refresh"] == "3" and headers["Cache-Control"] == "no-store"
    assert "script" not in headers["Content-Security-Policy"]
    check_inert(content)
    assert page.address.startswith("http://127.0.0.1:")


def test_strangers_get_nothing(serve, tmp_path):
    page = serve(make_run(tmp_path / "run", n_trials=1))
    for host in ("evil.example", "127.0.0.1.evil.example", "evil.example:80", ""):
        assert ask(page, host=host)[0] == 421
    assert ask(page, host="localhost:1234")[0] == 200
    assert ask(page, path="/run.json")[0] == 404
    assert ask(page, path="/../run.json")[0] == 404


def test_malformed_addresses_are_refused_without_a_traceback(serve, tmp_path, capfd):
    page = serve(make_run(tmp_path / "run", n_trials=1))
    assert ask(page, host="[::1")[0] == 400
    assert ask(page, path="http://[")[0] == 400
    assert capfd.readouterr().err == ""


def test_missing_run_is_reported_until_it_is_back(serve, tmp_path):
    run = make_run(tmp_path / "run", n_trials=1)
    page = serve(run, seconds=0)
    run.rename(tmp_path / "elsewhere")
    status, headers, content = ask(page)
    assert status == 503 and "does not exist" in content and "Refresh" in headers
    (tmp_path / "elsewhere").rename(run)
    assert ask(page)[0] == 200


def test_page_is_made_once_for_many_requests(serve, tmp_path, monkeypatch):
    page, made = serve(make_run(tmp_path / "run", n_trials=1), seconds=60), []
    monkeypatch.setattr(live, "render_report", made.append)
    assert {ask(page)[0] for _ in range(5)} == {200}
    assert made == []


def test_browser_that_leaves_early_is_no_error(serve, tmp_path, monkeypatch, capfd):
    page = serve(make_run(tmp_path / "run", n_trials=1), seconds=0)
    asked, left = threading.Event(), threading.Event()

    def render_late(_):
        asked.set()
        assert left.wait(10)
        return "x" * 10**8

    monkeypatch.setattr(live, "render_report", render_late)
    with socket.create_connection((live.LOOPBACK, urlsplit(page.address).port)) as browser:
        browser.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert asked.wait(10)
        browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset, not just closed
    left.set()
    assert ask(page)[0] == 200
    assert capfd.readouterr().err == ""


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(RunDirectoryError):
        LivePage(tmp_path)


@pytest.mark.long
@pytest.mark.browser
def test_browser_sees_trials_arrive(serve, chromium, tmp_path, monkeypatch):
    run, later, asked = (*(make_run(tmp_path / f"run{n}", n_trials=n) for n in (3, 5)), [])
    page = serve(run, seconds=0.5)
    render = live.render_report

    def render_and_look(summary):
        asked.append(len(summary["leaderboard"]))
        return render(summary)

    monkeypatch.setattr(live, "render_report", render_and_look)
    opened = chromium(page.address, "--remote-debugging-port=0")  # it stays open until it is killed
    try:
        wait_until(lambda: len(asked) >= 2)
        run.rename(tmp_path / "before")
        later.rename(run)
        wait_until(lambda: 5 in asked)
    finally:
        opened.kill()
        console = opened.communicate()[1].decode(errors="replace")
    assert complaints(console) == []


@pytest.mark.long
def test_command_shows_a_run_at_work(tmp_path):
    demo_table().sample(150, random_state=0).to_csv(tmp_path / "table.csv", index=False)
    command = [sys.executable, "-m", "cashmere"]
    options = ["--target", "target", "--budget", "10m", "--include", "logistic_regression", "--workers", "1"]
    fit = ["fit", "table.csv", "--out", "run", "--resampling", "holdout", "--quiet", *options]
    with contextlib.ExitStack() as stack:
        searching = stack.enter_context(running([*command, *fit], cwd=tmp_path))
        wait_until(lambda: list((tmp_path / "run" / "members").glob("0*.skops")), by=searching)
        watching = stack.enter_context(
            running(
                [*command, "watch", "run"],
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                text=True,
                preexec_fn=lambda: signal.signal(
                    signal.SIGINT, signal.SIG_DFL
                ),  # ignored if these tests run in the background
            )
        )
        address = re.search(r"http://\S+", watching.stdout.readline())[0]
        with contextlib.closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)) as connection:
            connection.request("GET", "/")
            assert "logistic_" in connection.getresponse().read().decode()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(timeout=60) == 0
        assert searching.poll() is None
