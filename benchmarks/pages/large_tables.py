"""The numbers of the match on large tables."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.pages.kept_rows import RESULTS, kept
from benchmarks.pages.statement import Body, Statement, row
from benchmarks.peers.environments import OURS
from benchmarks.peers.runs import KILLED, PeerProtocol, PeerRun
from benchmarks.runs.finished_runs import FinishedRuns
from benchmarks.runs.suite_runs import SuiteKey

PEERS = (OURS, "lightgbm", "flaml", "h2o", "autogluon")
ROWS = (20_000, 200_000, 1_000_000, 5_000_000)
BUDGETS = (60.0, 300.0)


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    finished = FinishedRuns(RESULTS / "match" / "peers.jsonl", PeerRun, SuiteKey)

    def find_run(n_rows: int, seconds: float, peer: str) -> PeerRun | None:
        return finished.find(PeerProtocol(seconds=seconds, threads=2).key(f"large_{n_rows}", peer, 0))

    lines = []
    for n_rows in ROWS:
        for seconds in BUDGETS:
            runs = [find_run(n_rows, seconds, peer) for peer in PEERS]
            losses = [run.measures["log_loss"] for run in runs if run is not None and run.failure is None]
            cells = [_cell(run, min(losses)) for run in runs]
            lines.append(row(f"{n_rows:,}", f"{seconds:g} s", *cells))
    yield Body(header=row("rows", "budget", *(f"`{peer}`" for peer in PEERS)), lines=tuple(lines))
    longest = [find_run(ROWS[-1], seconds, OURS) for seconds in BUDGETS]
    facts = [run.facts for run in longest if run is not None]
    yield Statement(
        text="On 5,000,000 rows, cashmere's fit ends after {first:.0f} s of 60 and {second:.0f} s of 300; 1,250,000 "
        "rows are then predicted at {fast:,.0f} and {slow:,.0f} rows a second.",
        values={
            **dict(zip(("first", "second"), (fact["fit_seconds"] for fact in facts), strict=True)),
            **dict(zip(("fast", "slow"), (round(1000 / fact["seconds_per_1000"], -3) for fact in facts), strict=True)),
        },
    )
    shortest = [find_run(n_rows, BUDGETS[0], OURS) for n_rows in ROWS]
    yield Statement(
        text="The first model stands after {0:.0f}, {1:.0f}, {2:.0f} and {3:.0f} s of 60.",
        values={str(i): run.facts["first_model_seconds"] for i, run in enumerate(shortest) if run is not None},
    )
    lines = []
    for seconds in (120.0, 300.0):
        run = find_run(10_000_000, seconds, OURS)
        assert run is not None
        first, fit = (f"{run.facts[name]:.0f} s" for name in ("first_model_seconds", "fit_seconds"))
        loss, memory = f"{run.measures['log_loss']:.3f}", f"{run.peak_mib:,} MiB"
        lines.append(row("10,000,000", f"{seconds:g} s", loss, first, fit, memory))
    yield Body(header="| rows | budget | log loss | first model after | fit | largest memory |", lines=tuple(lines))

    yield _families()
    yield from _predicting()
    yield _rows_of_encoders()


def _rows_of_encoders() -> Body:
    rows = kept("encoder_rows")
    means = rows.groupby(["rows", "means"])[["lightgbm", "logistic"]].mean()
    sources = ("first rung", "own rung", "all rungs")
    return Body(
        header="| rows of the model | LightGBM: first | own | all | logistic: first | own | all |",
        lines=tuple(
            row(
                f"{n_rows:,}",
                *(f"{means.loc[(n_rows, source), learner]:.3f}" for learner in means for source in sources),
            )
            for n_rows in sorted(rows["rows"].unique())
        ),
    )


def _cell(run: PeerRun | None, lowest: float) -> str:
    if run is None:
        return "-"
    if run.failure is not None:
        return f"{'killed' if run.failure == KILLED else 'an error'} after {run.seconds:.0f} s"
    loss = f"{run.measures['log_loss']:.3f}"
    shown = f"**{loss}**" if run.measures["log_loss"] == lowest else loss
    return f"{shown} in {run.seconds:.0f} s, {run.peak_mib:,} MiB"


def _families() -> Body:
    """Return the table of what more families in the ensemble of a run would gain."""
    rows = kept("families")
    losses = rows.pivot(index=["least", "families"], columns="run", values="loss")
    named = {1: "the best", 2: "the best two", 3: "the best three"}
    lines = []
    for least, families in losses.index:
        name = f"three, each at least {100 * least:.0f} %" if least else named.get(families, f"all {families}")
        lines.append(row(name, *(f"{loss:.5f}" for loss in losses.loc[(least, families)])))
    return Body(header="| families | one run | another |", lines=tuple(lines))


def _predicting() -> Iterator[Statement | Body]:
    """Yield the time that members of three runs take to predict many rows."""
    rows = kept("prediction")
    runs = {"large_200000-1": "one run", "large_200000-2": "another", "lightgbm": "`--include lightgbm`"}
    learners = {"XGB": "XGBoost", "CatBoost": "CatBoost", "Histogram": "histogram boosting", "LGBM": "LightGBM"}
    lines = []
    for model, name in runs.items():
        for i, each in enumerate(rows[rows["model"] == model].itertuples()):
            learner = next(text for part, text in learners.items() if part in each.learner)
            cells = (f"{each.encode:.2f}", f"{each.before:.1f}", f"{each.after:.1f}", f"{each.after / each.before:.2f}")
            lines.append(row("" if i else name, learner, *cells))
    yield Body(header="| run | learner | encode | before | after | ratio |", lines=tuple(lines))
    apart = rows["apart"].max()
    assert apart == 0, "the page says that predictions are equal"
    once = rows["once"].max()
    yield Statement(text="Rewriting the trees takes up to {once:.1f} s, once per call.", values={"once": once})
