"""``cashmere score``: how good the ensemble of a run, and each of its members, is on new rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cashmere.base.text import counted
from cashmere.cli.app import app
from cashmere.cli.predicting import check_by_class
from cashmere.cli.terminal import (
    MissingTarget,
    Quiet,
    RunPlace,
    decisions_line,
    plain,
    print_whole,
    say,
    say_error,
    tell_of_model,
    typed_errors,
)

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from cashmere.data.task import TaskType
    from cashmere.evaluation.table_scores import TableScores

UNMET = 1
"""Exit status if a required score is not reached."""

_METRICS_OF_MEMBERS, _METRICS_OF_SUBGROUPS = 3, 2
"""Numbers of metrics that fit beside members and subgroups on a terminal."""


@app.command()
def score(
    folder: RunPlace,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Rows with a known target, not used in the run.")],
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the target (default: as in the run).")
    ] = None,
    missing_target: MissingTarget = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Metric to compute; repeatable (default: that of the run and the usual ones)."
        ),
    ] = None,
    sample_weight: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of row weights, at least 0.")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of groups: intervals say how scores vary from group to group (default: as in the run).",
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column of subgroups, such as wards, to score one by one; repeatable."),
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="COVERAGE", help="Show how many rows lie within intervals, or sets, such as those of 0.9."
        ),
    ] = None,
    by_class: Annotated[
        bool, typer.Option("--by-class", help="With --interval: sets that hold for each class, not only for all rows.")
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Another run, or model, to compare with on the same rows."),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=SCORE",
            help="End with status 1 unless the ensemble's score is at least as good, such as roc_auc=0.8; repeatable.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write all scores of all models; .json: all else, too."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Score the ensemble of a run, and its members, on new rows."""
    with typed_errors():
        from cashmere.base.json_files import write_json
        from cashmere.cli.output_files import check_output, write_table
        from cashmere.data.reading import read_table, take_column
        from cashmere.data.target import rows_with_target, with_missing
        from cashmere.evaluation.table_scores import score_table, usual_metrics
        from cashmere.model.predictor import Predictor

        if output is not None:
            check_output(output, others=(".json",))
        predictor = Predictor.load(folder)
        check_by_class(predictor, interval, by_class=by_class)
        required = _read_requirements(require or [], predictor.target.task_type)
        name = str(predictor.information.get("target", "target")) if target is None else target
        frame = read_table(table, schema=predictor.schema, labels=(name, predictor.target.classes))
        y: Any = take_column(frame, name, "target")
        if missing_target:
            y = with_missing(y, missing_target)[0]
        frame, y, n_missing = rows_with_target(frame, y)
        if n_missing:
            say(quiet, f"Note: {counted(n_missing, 'row')} without a target left out.")
        weight = None if sample_weight is None else take_column(frame, sample_weight, "weights")
        metrics = [*(metric or usual_metrics(predictor)), *(name for name, _ in required)]
        if groups is None and (own := _groups_of_run(Path(folder))) is not None and own in frame:
            groups = own if _can_group(frame, own) else None
            text = f"intervals say how scores vary from group to group in {own!r}, as the run has these groups."
            if groups is None:
                text = f"intervals are by rows, as the groups in {own!r} are missing in some rows, or all the same."
            say(quiet, f"Note: {text}")
        scores = score_table(
            predictor,
            frame,
            y,
            metrics=metrics,
            sample_weight=weight,
            groups=groups,
            by=by or None,
            coverage=interval,
            by_class=by_class,
            against=against,
        )
        tell_of_model(predictor, quiet=quiet)
        for run in (folder, against):
            if quiet or run is None:
                continue
            what = "the run" if against is None else str(run)
            if learned := _count_learned(Path(run), frame, y):
                text = f"{learned:,} of {counted(scores.n_rows, 'row')} are among those that {what} has learned from"
                say(quiet, f"Note: {text}, so its scores are too good. Score rows that it has not seen.")
            if (told := _about_learned_groups(Path(run), what, frame)) is not None:
                say(quiet, f"Note: {told}")
        what = "classes" if predictor.information.get("class_weight") is not None else "rows"
        if sample_weight is None and (what == "classes" or predictor.information.get("weighted", False)):
            text = f"rows have equal weights here, but the run weighed {what}: its own scores are on another scale."
            say(quiet, f"Note: {text}")
        if metric is None and predictor.information.get("custom_metric", False):
            own = predictor.information.get("metric")
            say(quiet, f"Note: the metric of the run, {own!r}, is a custom one: pass it to score_table in Python.")
        if not quiet:
            _print(scores, interval, against)
        if output is not None and output.suffix.lower() == ".json":
            tables = {"models": scores.models, "intervals": scores.intervals}
            if scores.subgroups is not None:
                tables["subgroups"] = scores.subgroups
            if scores.covered is not None:
                tables["covered"] = scores.covered
            if scores.compared is not None:
                tables["compared"] = scores.compared
            rows = {
                name: json.loads(table.to_json(orient="records", double_precision=15)) for name, table in tables.items()
            }
            facts = {"means": scores.means, "decisions": scores.decisions}
            given = {name: fact for name, fact in facts.items() if fact is not None}
            write_json(output, {"n_rows": scores.n_rows, **given, **rows})
        elif output is not None:
            write_table(scores.models, output)
        if output is not None:
            say(quiet, f"Scores of {counted(len(scores.models), 'model')} written to {output}")
    if unmet := _unmet(required, scores):
        for line in unmet:
            say_error(line)
        raise typer.Exit(UNMET)


def _count_learned(folder: Path, frame: pd.DataFrame, y: Any) -> int:
    """Return how many rows the run has learned from, or 0 if its table is not there or cannot be read."""
    from cashmere.exceptions import CorruptStoreError
    from cashmere.run.learned_rows import count_learned_rows

    if not (folder / "table.npz").is_file():
        return 0
    with suppress(CorruptStoreError):  # scores do not need the table
        return count_learned_rows(folder, frame, y)
    return 0


def _groups_of_run(folder: Path) -> str | None:
    """Return the name of the column of groups that a run has; None if it has none, or is a model without a run."""
    from cashmere.exceptions import CorruptStoreError, RunDirectoryError
    from cashmere.storage.directory import read_run_json

    with suppress(CorruptStoreError, RunDirectoryError):  # scores need the model alone
        groups = read_run_json(folder).get("settings", {}).get("groups")
        return groups if isinstance(groups, str) else None
    return None


def _can_group(frame: pd.DataFrame, name: str) -> bool:
    """Return whether each row has a group, and there are several."""
    from cashmere.data.other_columns import read_labels

    names = set(read_labels(frame[name], name))
    return "" not in names and len(names) > 1


def _about_learned_groups(folder: Path, what: str, frame: pd.DataFrame) -> str | None:
    """Return a note if the table has groups that the run has learned from, or if that cannot be known; else None."""
    from cashmere.exceptions import CorruptStoreError
    from cashmere.run.learned_rows import count_learned_groups

    name = _groups_of_run(folder)
    if name is None or name not in frame:
        return None
    try:
        n_learned, n_groups = count_learned_groups(folder, frame[name])
    except CorruptStoreError:  # scores do not need the table
        return None
    if n_learned is None:
        return f"whether {what} has learned from groups in {name!r} is not known, as earlier versions did not keep it."
    if not n_learned:
        return None
    share = f"{n_learned:,} of {counted(n_groups, 'group')} in {name!r} {'is' if n_learned == 1 else 'are'}"
    text = f"{share} named like those that {what} has learned from. If they are the same, scores are too good"
    return f"{text} for new groups: score rows of others."


def _read_requirements(given: Sequence[str], task_type: TaskType) -> list[tuple[str, float]]:
    """Return names of metrics with the scores that are required.

    Raises
    ------
    InvalidParameterError, UnknownNameError, MetricError
        If a text is not ``METRIC=SCORE``, or there is no such metric for the task.
    """
    from cashmere.evaluation.metrics import get_metric
    from cashmere.exceptions import InvalidParameterError

    required = []
    for text in given:
        name, _, score = text.partition("=")
        try:
            bound = float(score)
        except ValueError:
            raise InvalidParameterError("require", text, "of the form METRIC=SCORE, such as accuracy=0.9") from None
        is_negated = name.startswith("neg_")  # as scikit-learn has it, larger is better
        required.append((get_metric(name, task_type).name, -bound if is_negated else bound))
    return required


def _unmet(required: Sequence[tuple[str, float]], scores: TableScores) -> list[str]:
    """Return a line for each requirement that the ensemble's scores do not meet, missing ones included."""
    lines = []
    found_scores = {metric: (found, better) for metric, found, *_, better in scores.intervals.itertuples(index=False)}
    for metric, bound in required:
        found, better = found_scores[metric]
        if not (found >= bound if better == "higher" else found <= bound):
            words = "at least" if better == "higher" else "at most"
            lines.append(f"Requirement not met: {metric} is {found:.5g}, not {words} {bound:.5g}.")
    return lines


def _print(scores: TableScores, coverage: float | None, against: Path | None) -> None:
    from rich.table import Table

    grid = Table(
        title=plain(f"Ensemble on {counted(scores.n_rows, 'row')}"), title_justify="left", box=None, pad_edge=False
    )
    grid.add_column("metric", no_wrap=True)
    grid.add_column("score", justify="right", no_wrap=True)
    grid.add_column("95 % interval", no_wrap=True)
    grid.add_column("better", no_wrap=True)
    for metric, found, lower, upper, better in scores.intervals.itertuples(index=False):
        grid.add_row(*map(plain, (metric, found, f"{lower:.5g} to {upper:.5g}", better)))
    print_whole(grid)
    if scores.means is not None:
        say(False, _means_line(scores.means, scores.decisions))
    if scores.decisions is not None:
        say(False, decisions_line(scores.decisions))
    print()
    if scores.compared is not None:
        print(f"Compared with {against}")  # not as a title, which would wrap its path
        print_whole(_of_comparison(scores.compared))
        print()
    if scores.subgroups is not None:
        print_whole(_of_subgroups(scores.subgroups))
        print()
    if scores.covered is not None and coverage is not None:
        print_whole(_of_coverage(scores.covered, coverage))
        print()
    members = Table(title=plain("Its members, best first"), title_justify="left", box=None, pad_edge=False)
    shown = scores.models.iloc[1:, : 3 + _METRICS_OF_MEMBERS]
    for name in shown.columns:
        members.add_column(plain(name), justify="left" if name in ("model", "algorithm") else "right", no_wrap=True)
    for row in shown.itertuples(index=False):
        members.add_row(*map(plain, row))
    print_whole(members)


def _means_line(means: Mapping[str, float], decisions: Mapping[str, Any] | None) -> str:
    """Return a line about `TableScores.means`."""
    observed, predicted = (f"{means[name]:.4g}" for name in ("observed", "predicted"))
    if decisions is None:
        return f"mean of the target: {observed}, of the predictions: {predicted}"
    return f"share of {str(decisions['positive'])!r}: {observed}, mean probability: {predicted}"


def _of_comparison(compared: pd.DataFrame) -> Table:
    """Return a line for each metric: both scores, their difference with its interval, and what this says."""
    from rich.table import Table

    grid = Table(box=None, pad_edge=False)
    for name in ("metric", "score", "other", "difference", "95 % interval", "so it is"):
        grid.add_column(name, justify="left" if name in ("metric", "so it is") else "right", no_wrap=True)
    for metric, ours, others, difference, lower, upper, better in compared.itertuples(index=False):
        verdict = "unclear"
        if lower > 0 or upper < 0:
            verdict = "better" if (difference > 0) == (better == "higher") else "worse"
        scores, interval = (f"{ours:.5g}", f"{others:.5g}"), f"{lower:+.3g} to {upper:+.3g}"
        grid.add_row(*map(plain, (metric, *scores, f"{difference:+.3g}", interval, verdict)))
    return grid


def _of_subgroups(subgroups: pd.DataFrame) -> Table:
    """Return a line for each subgroup: means of target and prediction, the first metric with its interval, another."""
    import pandas as pd
    from rich.table import Table

    first, *others = list(dict.fromkeys(subgroups["metric"]))[:_METRICS_OF_SUBGROUPS]
    grid = Table(title=plain("Ensemble by subgroup"), title_justify="left", box=None, pad_edge=False)
    grid.add_column("subgroup", overflow="fold", min_width=8)
    for name in ("rows", "observed", "predicted", first, "95 % interval", *others):
        grid.add_column(plain(name), justify="right", no_wrap=True)
    for name, found in subgroups.groupby("subgroup", sort=False):
        rows, observed, predicted = found[["n_rows", "observed", "predicted"]].iloc[0]
        means = ["-" if pd.isna(mean) else f"{mean:.3g}" for mean in (observed, predicted)]
        of = found.set_index("metric")
        interval = f"{of.loc[first, 'lower']:.3g} to {of.loc[first, 'upper']:.3g}"
        scores = [f"{of.loc[each, 'score']:.4g}" for each in (first, *others)]
        grid.add_row(*map(plain, (name, f"{rows:,.0f}", *means, scores[0], interval, *scores[1:])))
    return grid


def _of_coverage(covered: pd.DataFrame, promised: float) -> Table:
    """Return a line for all rows, each class and each subgroup."""
    from rich.table import Table

    what = "sets" if (covered["part"] == "class").any() else "intervals"
    grid = Table(
        title=plain(f"Rows within {what} of {100 * promised:g} %"), title_justify="left", box=None, pad_edge=False
    )
    grid.add_column("part", overflow="fold", min_width=8)
    for name in ("rows", "within", "classes" if what == "sets" else "width"):
        grid.add_column(name, justify="right", no_wrap=True)
    for part, name, rows, share, size in covered.itertuples(index=False):
        grid.add_row(*map(plain, (f"{part} {name}".strip(), f"{rows:,.0f}", f"{100 * share:.1f} %", f"{size:.4g}")))
    return grid
