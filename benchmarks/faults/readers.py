"""Show report and leaderboard of a run again and again, as a person with a browser beside it would.

    python -m benchmarks.faults.readers FOLDER STOP

Ends with status 0 when the file STOP exists, and with 1 at once if a command ended in any other way than well or with
one of our errors about the directory.
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
import traceback
from pathlib import Path

from cashmere.cli import app

_EXPECTED = ("RunDirectoryError", "RunLockedError")
"""Errors expected before the run has begun; afterwards only success is."""


def main() -> None:
    folder, stop = Path(sys.argv[1]), Path(sys.argv[2])
    begun = False
    while not stop.exists():
        begun = begun or (folder / "run.json").exists()
        time.sleep(0.1)
        for command in ("report", "leaderboard"):
            output = io.StringIO()
            try:
                with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                    app([command, str(folder)], standalone_mode=True)
            except SystemExit as end:
                text = output.getvalue().strip()
                if end.code and (begun or not text.startswith(_EXPECTED)):
                    raise SystemExit(f"{command}: exit status {end.code}: {text}") from None
            except BaseException:
                traceback.print_exc()
                raise SystemExit(1) from None


if __name__ == "__main__":
    main()
