from __future__ import annotations

import pytest
from processes import descendants

from cashmere.execution import sites
from cashmere.execution.limits import Limits
from cashmere.execution.sites import Site
from contracts.cluster_executor_contract import wait_until
from contracts.executor_contract import square, trial


@pytest.mark.long
def test_site_ends_its_processes_before_it_gives_up_its_files(monkeypatch, tmp_path):
    monkeypatch.setattr(sites, "_IDLE_SECONDS", 0.3)
    monkeypatch.setattr(sites, "_UNUSED_SECONDS", 1.5)
    left = []
    before = len(descendants())
    site = Site(square, Limits(), folder=tmp_path, leave=lambda: left.append(True))
    assert site.run(trial(0), lambda: True).loss == 0.25
    assert len(descendants()) > before
    wait_until(lambda: len(descendants()) == before)
    assert not left
    assert site.run(trial(1), lambda: True).loss == 0.25
    wait_until(lambda: site.is_closed)
    assert len(descendants()) == before
    wait_until(lambda: left)
    assert site.run(trial(2), lambda: True) is None


def test_site_whose_processes_cannot_begin_gives_up_its_files(monkeypatch, tmp_path):
    def without_threads(*arguments, **options):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(sites, "_UNUSED_SECONDS", 0.3)
    monkeypatch.setattr(sites, "WorkerProcessExecutor", without_threads)
    left = []
    site = Site(square, Limits(), folder=tmp_path, leave=lambda: left.append(True))
    with pytest.raises(RuntimeError):
        site.run(trial(0), lambda: True)
    wait_until(lambda: left)
