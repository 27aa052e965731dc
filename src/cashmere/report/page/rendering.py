"""The page of a run: one self-contained HTML document without scripts or external files."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cashmere.analysis.summary import MEDIAN_WINDOW
from cashmere.base.files import reason, remove_leftovers, write_atomically
from cashmere.base.remote import is_url
from cashmere.charts.bars import bar
from cashmere.charts.bracket import MAX_ROWS
from cashmere.charts.latent_map import MAX_MARKS
from cashmere.exceptions import RunDirectoryError
from cashmere.report.figures.algorithms import algorithm_charts
from cashmere.report.figures.contest import contest_charts
from cashmere.report.figures.diagnostics import diagnostic_charts
from cashmere.report.figures.diversity import course_charts, heat_maps
from cashmere.report.figures.explanation import effect_charts, importance_charts, word_charts
from cashmere.report.figures.latent_map import latent_charts
from cashmere.report.figures.progress import progress_charts
from cashmere.report.format import format_bytes, format_count, format_number, format_percent, format_seconds
from cashmere.report.summary.data import CLASSES_SHOWN
from cashmere.report.summary.diagnostics import CLASSES_WITH_CURVES
from cashmere.report.summary.run import summarise_run
from cashmere.storage.remote_run import local_run

if TYPE_CHECKING:
    from jinja2 import Template

LEADERBOARD_LENGTH = 20
"""Rows of the leaderboard that the page shows."""

_LEFTOVER_SECONDS = 3600.0
"""Age from which on a temporary file counts as abandoned, where locks cannot tell."""

_CAUSES_SHOWN = 30
"""Largest number of causes of failure that the page lists."""

_TRIALS_NAMED = 12
"""Largest number of trials named for each cause."""


def write_report(folder: str | Path, output: str | Path | None = None) -> Path:
    """Write the report of a run, and return its path.

    The run may be finished, interrupted or still in progress.

    Parameters
    ----------
    folder : path or URL
        The run directory.
    output : path, optional
        The file to write; by default ``report.html`` in the run directory, or in the working directory if that is at a
        URL.

    Raises
    ------
    RunDirectoryError
        If the folder is not a run directory.
    CorruptStoreError
        If a file is damaged.
    """
    path = Path("report.html") if is_url(folder) else Path(folder) / "report.html"
    path = path if output is None else Path(output)
    with local_run(folder, with_predictions=True) as run:
        page = render_report(summarise_run(run))
    try:
        remove_leftovers(path.parent, of=[path.name], older_than=_LEFTOVER_SECONDS)
        write_atomically(path, page.encode("utf-8", "replace"))
    except OSError as error:
        text = f"cannot be written ({reason(error)}). Free disk space, or give this user the right to write."
        raise RunDirectoryError(path, text) from error
    return path


def render_report(summary: Mapping[str, Any]) -> str:
    """Render a summary from `summarise_run` as an HTML page.

    Returns
    -------
    str
        One HTML document without scripts or external references; all content is escaped.
    """
    from markupsafe import Markup

    largest = max((m["weight"] or 0.0 for m in summary["ensemble"]["members"]), default=0.0) or 1.0
    return _template().render(
        **summary,
        charts=[Markup(svg) for svg in progress_charts(summary)],
        diagnostic_charts=[Markup(svg) for svg in diagnostic_charts(summary)],
        importance_charts=[Markup(svg) for svg in importance_charts(summary)],
        effect_charts=[Markup(svg) for svg in effect_charts(summary)],
        word_charts=[Markup(svg) for svg in word_charts(summary)],
        strips=[Markup(svg) for svg in algorithm_charts(summary)],
        course_charts=[[Markup(svg) for svg in charts] for charts in course_charts(summary)],
        heat_maps=[Markup(svg) for svg in heat_maps(summary)],
        median_window=MEDIAN_WINDOW,
        contest_charts=[[Markup(svg) for svg in charts] for charts in contest_charts(summary)],
        leavers_shown=MAX_ROWS,
        latent_charts=[Markup(svg) for svg in latent_charts(summary)],
        places_shown=MAX_MARKS,
        weight_bars=[
            Markup(bar((m["weight"] or 0.0) / largest, title=f"weight {format_percent(m['weight'])}"))
            for m in summary["ensemble"]["members"]
        ],
        class_bars=[
            Markup(bar(c["share"] or 0.0, title=f"share {format_percent(c['share'])}", css="s0", track=True))
            for c in summary["data"]["classes"]
        ],
        leaderboard_length=LEADERBOARD_LENGTH,
        causes_shown=_CAUSES_SHOWN,
        classes_shown=CLASSES_SHOWN,
        classes_with_curves=CLASSES_WITH_CURVES,
        trials_named=_TRIALS_NAMED,
    )


@functools.cache
def _template() -> Template:
    """Return the template of the page; a process compiles it once, which takes as long as filling it."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    environment = Environment(
        loader=PackageLoader("cashmere.report.page", "template"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        breakable=lambda name: Markup(str(escape(name)).replace("_", "_<wbr>")),
        score=format_number,
        seconds=format_seconds,
        bytes=format_bytes,
        count=format_count,
        percent=format_percent,
        points="{:.2g}".format,
    )
    return environment.get_template("report.html")
