"""What tests of the HTML report share: a strict parser and a real browser."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

ALLOWED_TAGS = set(
    re.findall(
        r"\w+",
        "html head meta title style link body main header nav section footer h1 h2 h3 p a b bdi small span code pre "
        "wbr dl dt dd div table thead tbody tr th td details summary svg g path line rect circle text desc",
    )
)
CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff]"
)


class Page(HTMLParser):
    """Collects tags, attributes and text; fails on tags left open."""

    void = ("meta", "link", "wbr")

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.open = "", []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def check_inert(source: str) -> Page:
    """Assert that a page is sound, holds nothing active and reaches for nothing outside."""
    page = Page(source)
    assert {tag for tag, _ in page.tags} <= ALLOWED_TAGS
    for tag, attributes in page.tags:
        assert not [
            name for name in attributes if name.startswith("on") or name in ("src", "srcset", "style", "action")
        ]
        href = attributes.get("href")
        assert href is None or href.startswith("#") or (tag == "link" and href == "data:,")
    assert source.count("Content-Security-Policy") == 1
    assert "url(" not in source.split("</style>")[0]
    assert "@import" not in source
    assert not CONTROL.search(source)
    source.encode()
    return page


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """A function that starts headless chromium on an address, and returns the process."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed (apt-get install chromium)")
    flags = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
        *("--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *("--enable-logging=stderr", "--v=0"),
    ]

    def start(address: str, *options: str) -> subprocess.Popen[bytes]:
        profile = tmp_path_factory.mktemp("profile")
        command = [program, *flags, f"--user-data-dir={profile}", *options, address]
        environment = {**os.environ, "HOME": str(profile)}
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)

    return start


@pytest.fixture(scope="module")
def browser(chromium):
    """A function that opens a page in headless chromium and returns the DOM and the console."""

    def load(path: Path, *options: str) -> tuple[str, str]:
        with chromium(path.as_uri(), *options) as process:
            try:
                dom, console = process.communicate(timeout=120)
            finally:
                process.kill()
        assert process.returncode == 0, console
        return dom.decode(), console.decode(errors="replace")

    return load


def complaints(console: str) -> list[str]:
    return [line for line in console.splitlines() if "CONSOLE" in line or "Content Security Policy" in line]
