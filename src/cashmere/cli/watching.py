"""``cashmere watch``: see a run while it goes on."""

from __future__ import annotations

from typing import Annotated

import typer

from cashmere.cli.app import app
from cashmere.cli.terminal import RunFolder, say, typed_errors


@app.command()
def watch(
    folder: RunFolder,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Port on this machine; 0 chooses a free one.")
    ] = 0,
    every: Annotated[
        float, typer.Option(min=1.0, metavar="SECONDS", help="Interval at which the page is updated.")
    ] = 5.0,
) -> None:
    """Watch a run in a browser. The page is visible on this machine only; Ctrl+C ends it."""
    with typed_errors():
        from cashmere.report.page.live import LivePage

        page = LivePage(folder, port=port, seconds=every)
        say(False, f"Open {page.address} (on this machine only; Ctrl+C ends it, the run goes on)")
        try:
            page.serve()
        except KeyboardInterrupt:
            say(False, "")
