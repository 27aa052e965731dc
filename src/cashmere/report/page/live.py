"""The page of a run that is still going on, served on this machine only."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from cashmere.base.text import clean_text
from cashmere.exceptions import CashmereError
from cashmere.report.page.rendering import render_report
from cashmere.report.summary.run import summarise_run

LOOPBACK = "127.0.0.1"
_NAMES = ("127.0.0.1", "localhost")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


class LivePage:
    """Serve the report of a run on the loopback interface; browsers reload it by themselves.

    It cannot be reached from other machines, and pages of other sites cannot read it: requests that name another host
    are refused. The run directory is only read, never changed.

    Parameters
    ----------
    folder : path
        The run directory.
    port : int
        Port to listen on; 0 chooses a free one.
    seconds : float
        Interval at which browsers reload; the page is made at most once in it.

    Attributes
    ----------
    address : str
        URL to open in a browser.

    Raises
    ------
    RunDirectoryError
        If the folder is not a run directory.
    OSError
        If the port is taken.
    """

    def __init__(self, folder: str | Path, *, port: int = 0, seconds: float = 5.0) -> None:
        self._folder, self._seconds = Path(folder), seconds
        self._lock = threading.Lock()
        self._page, self._made_at = b"", -float("inf")
        self._page_now()  # so that the caller gets its errors
        self._server = _Server((LOOPBACK, port), _handler(self._page_now, seconds))
        self.address = f"http://{LOOPBACK}:{self._server.server_port}/"

    def serve(self) -> None:
        """Answer requests until `close` is called by another thread."""
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """Stop serving, and free the port."""
        self._server.shutdown()
        self._server.server_close()

    def _page_now(self) -> bytes:
        with self._lock:  # requests that arrive meanwhile share one page
            if time.monotonic() - self._made_at >= self._seconds:
                self._page = render_report(summarise_run(self._folder)).encode("utf-8", "replace")
                self._made_at = time.monotonic()
            return self._page


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Print errors, except that a browser disconnected before it got the page."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def _handler(page: Callable[[], bytes], seconds: float) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "cashmere", ""
        timeout = 30

        def do_GET(self) -> None:
            try:
                host = urlsplit(f"//{self.headers.get('Host', '')}").hostname
                path = urlsplit(self.path).path
            except ValueError:  # such as a bracket without its counterpart
                self._answer(HTTPStatus.BAD_REQUEST, b"The request names no valid address.", "text/plain")
                return
            if host not in _NAMES:
                self._answer(HTTPStatus.MISDIRECTED_REQUEST, b"This page is for this machine only.", "text/plain")
            elif path != "/":
                self._answer(HTTPStatus.NOT_FOUND, b"There is only one page, at /.", "text/plain")
            else:
                try:
                    status, content, kind = HTTPStatus.OK, page(), "text/html"
                except (CashmereError, OSError) as error:  # moved, or unreadable for a moment: the browser asks again
                    text = clean_text(error, 2_000).encode()
                    status, content, kind = HTTPStatus.SERVICE_UNAVAILABLE, text, "text/plain"
                self._answer(status, content, kind)

        def _answer(self, status: HTTPStatus, content: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Refresh", f"{seconds:g}")
            self.send_header("Cache-Control", "no-store")
            self.send_header("Content-Security-Policy", _POLICY)
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:
            """Print nothing."""

    return Handler
