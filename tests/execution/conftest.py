from __future__ import annotations

import pytest

from cashmere.execution import fork_server


@pytest.fixture
def no_fork_servers(monkeypatch):
    """Let the test start the first fork servers of this process; those that it has started, which it gets, then end."""
    started = {}
    monkeypatch.setattr(fork_server, "_servers", started)
    yield started
    for server in started.values():
        server.end()
