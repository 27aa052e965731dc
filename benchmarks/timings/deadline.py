"""Seconds by which runs overshoot a time budget while other processes hold the cores.

    python -m benchmarks.timings.deadline --budget 60 --busy 2 --times 20 --out deadline.csv

Every case runs `--times` times, in processes of its own, beside `--busy` others that compute all the time:

- `small`: `AutoClassifier.fit` on 1,000 rows, so that there are many trials;
- `forests`: the same on 20,000 rows with forests only, whose models take hundreds of MiB;
- `command`: ``cashmere fit`` on 20,000 rows, from the start of the process to its end;
- `resume`: ``cashmere resume`` of that run, likewise.

The rows go to a CSV file that only grows: the command continues where it was interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from benchmarks.runs.circumstances import describe_circumstances
from benchmarks.runs.code_version import commit, is_here
from benchmarks.runs.different_code import tell_different_code
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.large import write_table
from cashmere.data.task import TaskProfile
from cashmere.exceptions import NoSuccessfulTrialError
from cashmere.space.named.registry import make_space
from cashmere.space.space import Space

CASES = ("small", "forests", "command", "resume")
_ROWS = {"small": 1_000, "forests": 20_000, "command": 20_000}
_NO_SUCCESS = 2
_MODULE = "benchmarks.timings.deadline"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedRun:
    """A run with a time budget.

    Attributes
    ----------
    case : str
        See the module.
    number : int
        Its number in the case, and its seed.
    budget : float
        In seconds.
    busy : int
        Other processes that computed all the time.
    seconds : float
        From the call to its return, or from the start of the process to its end.
    trials, members : int
        Finished trials; members of the ensemble.
    mib : float
        Size of the model folder.
    load : float
        Processes that wanted to run, on average over the last minute: those of the run, busy ones and strangers.
    date, machine : str
        See `describe_circumstances`.
    commit : str
        Version of the code.
    """

    case: str
    number: int
    budget: float
    busy: int
    seconds: float
    trials: int
    members: int
    mib: float
    load: float
    date: str
    machine: str
    commit: str


def forests(profile: TaskProfile) -> Space:
    """Return the space of the two forests: their models are the largest."""
    return make_space("classic", profile).restricted_to(["extra_trees", "random_forest"])


def fit_and_print_seconds(table: str, folder: str, case: str, budget: float, seed: int) -> None:
    """Fit as a user of the estimator does, in this process."""
    from cashmere import AutoClassifier

    X = pd.read_parquet(table)
    y = X.pop("target")
    limits: dict[str, Any] = {}
    if case == "forests":
        limits = {"space": forests, "resampling": "holdout", "trial_timeout": budget}
    clock = time.perf_counter()
    with contextlib.suppress(NoSuccessfulTrialError):  # it takes just as long
        AutoClassifier(budget=budget, run_directory=folder, random_state=seed, **limits).fit(X, y)
    print(time.perf_counter() - clock)


@contextlib.contextmanager
def competition(busy: int) -> Iterator[None]:
    """Let `busy` other processes compute."""
    program = f"import os\nwhile os.getppid() == {os.getpid()}: pass"
    others = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(busy)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def time_case(case: str, number: int, *, budget: float, busy: int, place: Path) -> TimedRun:
    """Run one case; `resume` continues the run that `command` with the same number has left in `place`."""
    run = place / ("command" if case == "resume" else case)
    with competition(busy):
        clock = time.perf_counter()
        seconds = _run(case, number, budget, place, run)
        if seconds is None:
            seconds = time.perf_counter() - clock
        load = os.getloadavg()[0]
    manifest = json.loads((run / "model" / "manifest.json").read_text())
    circumstances = describe_circumstances()
    return TimedRun(
        case=case,
        number=number,
        budget=budget,
        busy=busy,
        seconds=round(seconds, 3),
        trials=manifest["information"]["trials"],
        members=len(manifest["members"]),
        mib=round(sum(path.stat().st_size for path in (run / "model").iterdir()) / 2**20, 1),
        load=round(load, 2),
        date=circumstances["date"],
        machine=circumstances["machine"],
        commit=commit(),
    )


def _run(case: str, number: int, budget: float, place: Path, run: Path) -> float | None:
    """Run the process of a case; return the seconds it has measured, or None if its own time counts."""
    table = place / f"{_ROWS.get(case, 0)}.parquet"
    if case == "command":
        options = ["--target", "target", "--budget", f"{budget}s", "--seed", str(number), "--quiet", "--out", str(run)]
        _call("-m", "cashmere", "fit", str(table), *options)
        return None
    if case == "resume":
        _call("-m", "cashmere", "resume", str(run), "--budget", f"{budget}s", "--quiet")
        return None
    values = (str(table), str(run), case, budget, number)
    program = f"from {_MODULE} import {fit_and_print_seconds.__name__} as fit; fit(*{values!r})"
    return float(_call("-c", program))


def _call(*arguments: str) -> str:
    result = subprocess.run([sys.executable, *arguments], stdout=subprocess.PIPE, text=True)
    if result.returncode not in (0, _NO_SUCCESS):
        raise SystemExit(f"A run has ended with status {result.returncode}.")
    return result.stdout


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return, for each case, quantiles of the overshoot in seconds; negative ones are time left over."""
    over = (rows["seconds"] - rows["budget"]).groupby([rows["case"], rows["budget"], rows["busy"]])
    table = pd.DataFrame({"runs": over.size(), "median": over.median()})
    for share in (0.9, 0.99):
        table[f"p{100 * share:.0f}"] = over.quantile(share)
    table["max"] = over.max()
    return table.round(2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--budget", type=float, default=60.0, help="of each run, in seconds")
    parser.add_argument("--busy", type=int, default=2, help="other processes that compute all the time")
    parser.add_argument("--times", type=int, default=20, help="runs of each case")
    parser.add_argument("--out", type=Path, default=Path(".timings/deadline.csv"), help="rows; only grows")
    arguments = parser.parse_args()
    file = RowFile(arguments.out, TimedRun)
    settings = {"budget": arguments.budget, "busy": arguments.busy}
    done = file.keys("case", "number", **settings)
    for number in range(arguments.times):
        with tempfile.TemporaryDirectory(prefix="cashmere-deadline-") as name:
            place = Path(name)
            for n_rows in sorted(set(_ROWS.values())):
                write_table(place / f"{n_rows}.parquet", n_rows)
            for case in arguments.cases:
                if (case, number) in done:
                    continue
                if case == "resume" and not (place / "command").exists():
                    time_case("command", number, place=place, **settings)
                row = time_case(case, number, place=place, **settings)
                file.add([row])
                print(f"{case} {number}: {row.seconds - row.budget:+.2f} s, {row.trials} trials", flush=True)
    rows = file.frame(case=arguments.cases, number=range(arguments.times), **settings)
    made_by = rows["commit"]
    tell_different_code(Console(), made_by, {*filter(is_here, made_by)}, advice="another --out repeats them")
    print(summary(rows))


if __name__ == "__main__":
    main()
