from __future__ import annotations

import html
import re

import pytest
from fake_runs import hostile_run, make_explanation, make_run, some_failures, weighted
from report_page import Page, check_inert, complaints

from cashmere.report import write_report


@pytest.mark.browser
@pytest.mark.parametrize("kind", ["good", "hostile", "empty"])
def test_browser_shows_the_report_without_complaint(tmp_path, browser, kind):
    if kind == "hostile":
        run = hostile_run(tmp_path / "run")
    else:
        run = make_run(
            tmp_path / "run", n_trials=60 if kind == "good" else 0, failures=some_failures(), predictions=True
        )
    path = write_report(run)
    picture = tmp_path / "report.png"
    dom, console = browser(path, "--dump-dom", f"--screenshot={picture}", "--window-size=1000,1400")
    assert complaints(console) == []
    page = check_inert(dom)
    assert page.text.split() == Page(path.read_text("utf-8")).text.split()  # nothing was repaired or moved
    assert picture.stat().st_size > 20_000


@pytest.mark.browser
def test_browser_would_complain_about_active_content(tmp_path, browser):
    page = write_report(make_run(tmp_path / "run", n_trials=1)).read_text("utf-8")
    path = tmp_path / "active.html"
    path.write_text(page.replace("</main>", "<script>document.title = 'run'</script></main>"))
    dom, console = browser(path, "--dump-dom")
    assert complaints(console)
    assert "<title>run</title>" not in dom


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.parametrize("kind", ["good", "hostile"])
def test_page_is_never_wider_than_the_screen(tmp_path, browser, kind):
    if kind == "hostile":
        run = hostile_run(tmp_path / "run")
    else:
        facts = weighted(10, 11, 12, 13, 15)
        run = make_run(tmp_path / "run", failures=some_failures(), predictions=True, facts=facts)
        names = [f"a_column_with_a_name_that_is_longer_than_a_phone_is_wide_{k}" for k in range(30)]
        make_explanation(names).save(run)
    page = html.escape(write_report(run).read_text("utf-8").replace("<details>", "<details open>"))
    widths = (320, 390, 1000)
    frame = tmp_path / "screens.html"
    frame.write_text(
        "".join(f'<iframe width="{w}" height="800" style="border:0" srcdoc="{page}"></iframe>' for w in widths)
        + '<p id="answer"></p>'
        "<script>addEventListener('load', () => { document.getElementById('answer').textContent = 'wide=' +"
        " [...document.querySelectorAll('iframe')].map(f => f.contentDocument.documentElement.scrollWidth) })</script>",
        "utf-8",
    )
    dom, _ = browser(frame, "--dump-dom")
    found = re.search(r'<p id="answer">wide=(\d+),(\d+),(\d+)</p>', dom)
    assert found is not None
    assert all(int(wide) <= width for wide, width in zip(found.groups(), widths, strict=True)), found
