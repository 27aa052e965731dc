"""``cashmere demo``: the whole job on a table that comes with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cashmere.cli.app import app
from cashmere.cli.searching import expect_trials, make_progress, seconds_since_start, tell
from cashmere.cli.terminal import Workers, say, typed_errors


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="New directory for the run.")] = Path("demo-run"),
    budget: Annotated[
        str, typer.Option(metavar="BUDGET", help="Time (10m), number of trials (250trials), or both (10m,250trials).")
    ] = "40s",
    workers: Workers = None,
) -> None:
    """Run a demonstration. Fits an ensemble to the table credit-g and scores it on unseen rows."""
    with typed_errors():
        expect_trials(workers)
        from sklearn.model_selection import train_test_split

        from cashmere.data.demo import DEMO_TARGET, demo_table
        from cashmere.data.frames import to_frame
        from cashmere.model.predictor import Predictor
        from cashmere.run import RunSettings, fit_run

        settings = RunSettings.from_options(budget=budget, workers=workers, target=DEMO_TARGET)
        frame = demo_table()
        train, test = train_test_split(frame, test_size=0.25, random_state=0, stratify=frame[DEMO_TARGET])
        say(False, f"credit-g: {len(train)} rows for training, {len(test)} for testing, {frame.shape[1] - 1} columns")
        X = to_frame(train.drop(columns=DEMO_TARGET))
        y, progress = train[DEMO_TARGET], make_progress(quiet=False)
        finished = fit_run(out, X, y, settings, load=False, already_spent=seconds_since_start(), progress=progress)
        tell(finished, quiet=False)
        model = Predictor.load(out)
        truth, features = test[DEMO_TARGET].to_numpy(), test.drop(columns=DEMO_TARGET)
        from sklearn.metrics import roc_auc_score

        auc = roc_auc_score(truth == model.classes_[1], model.predict_proba(features)[:, 1])
        accuracy = float((model.predict(features) == truth).mean())
        say(False, f"On the {len(test)} unseen rows: ROC AUC {auc:.4f}, accuracy {accuracy:.4f}")
        say(False, f"Next: open {out / 'report.html'}, or run `cashmere leaderboard {out}`")
