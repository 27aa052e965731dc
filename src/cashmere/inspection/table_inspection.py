"""Inspect a table as a search would read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from cashmere.base.arrays import AnyArray
from cashmere.base.cores import default_workers
from cashmere.base.text import counted
from cashmere.data.amounts import Amounts
from cashmere.data.column import Column, ColumnKind
from cashmere.data.far_values import far_values_hint
from cashmere.data.frames import has_labels, to_frame
from cashmere.data.inference import infer_schema
from cashmere.data.kind_hints import kind_hint
from cashmere.data.other_columns import read_labels
from cashmere.data.placeholders import placeholders
from cashmere.data.schema import CodedTable
from cashmere.data.structure_hints import structure_hint
from cashmere.data.target import TargetCoding, Task, rows_with_target
from cashmere.data.target_hints import missing_outcome_hint, target_hint
from cashmere.data.task import TaskType
from cashmere.inspection.copies import Copies, count_copies
from cashmere.inspection.estimates import Estimates, estimate
from cashmere.inspection.findings import Finding, FindingKind, named
from cashmere.inspection.leak_hint import ALONE_FOR_TEXT, has_rare_class, suspicion
from cashmere.inspection.solo_skill import LEAST_ROWS, PARTS, draw_rows, solo_skill, target_matrix, text_skill

_DRIFTED = 0.05
"""Skill in telling new rows from those of the table from which a column is named."""

_CELLS_JUDGED = 2_000_000
_ROWS_JUDGED = 10_000
"""Most cells and most rows on which skills are measured; rows of larger tables are sampled."""

_ROWS_PER_LEVEL = 5
"""On average; with fewer, little is learned about most levels."""

_LEAST_LEVELS = 50
_RARE_ROWS = 10
"""With fewer rows of a class, each fold holds one or two."""

_COPIES_SHARE = 0.01
_COLUMNS_PRINTED = 50
_READ_AS = {ColumnKind.NUMERIC: "numbers", ColumnKind.DATE: "dates", ColumnKind.BOOLEAN: "truth values"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """A column: how it is stored, how it will be read, and how well it predicts.

    Attributes
    ----------
    name : str
        Its name.
    stored : str
        Its type in the table; ``"text"`` for strings and objects.
    kind : ColumnKind
        How a run reads it.
    missing : float
        Share of missing values.
    distinct : int
        Number of distinct values, missing values not counted.
    skill : float or None
        Share of the variance of the target that it explains on its own, see `solo_skill`. None if it was not measured:
        without a target, and for dropped columns.
    drift : float or None
        How well it tells the new rows from those of the table, on its own: the same measure, with the origin of a row
        as target. None without new rows, and for dropped columns.
    dropped : str or None
        Why it is not used; None if it is.
    """

    name: str
    stored: str
    kind: ColumnKind
    missing: float
    distinct: int
    skill: float | None
    drift: float | None
    dropped: str | None


@dataclass(frozen=True, kw_only=True)
class TableInspection:
    """The result of `inspect_table`.

    Attributes
    ----------
    n_rows : int
        Rows with a target.
    task_type : TaskType or None
        Type of the task; None without a target.
    classes : dict
        Number of rows by class, most frequent first; empty for regression.
    values : tuple of float or None
        Smallest and largest target value; None for classification.
    amounts : Amounts or None
        How the numbers of the target are written, if it is text.
    columns : tuple of ColumnFacts
        Every column.
    findings : tuple of Finding
        Findings, suspicions first.
    estimates : Estimates
        Estimates for a search with the defaults on this machine.
    """

    n_rows: int
    task_type: TaskType | None
    classes: dict[Any, int]
    values: tuple[float, float] | None
    amounts: Amounts | None
    columns: tuple[ColumnFacts, ...]
    findings: tuple[Finding, ...]
    estimates: Estimates

    def frame(self) -> pd.DataFrame:
        """Return the columns as a data frame."""
        names = list(ColumnFacts.__dataclass_fields__)
        rows = [{**asdict(column), "kind": column.kind.value} for column in self.columns]
        return pd.DataFrame(rows, columns=names)

    def summary(self) -> str:
        """Return everything except the columns as lines of text."""
        used = sum(column.dropped is None for column in self.columns)
        size = f"{counted(self.n_rows, 'row')}, {counted(len(self.columns), 'column')}"
        lines = [f"{size}, of which {used:,} {'is' if used == 1 else 'are'} used."]
        if self.classes:
            shown = ", ".join(f"{label!r} {n:,}" for label, n in list(self.classes.items())[:10])
            rest = f", and {len(self.classes) - 10} more" if len(self.classes) > 10 else ""
            lines.append(f"Target: {self.task_type}, {len(self.classes)} classes: {shown}{rest}.")
        elif self.values is not None:
            low, high = self.values
            what = "values" if self.amounts is None else self.amounts.description
            lines.append(f"Target: {self.task_type}, {what} from {low:.5g} to {high:.5g}.")
        lines += [f"{finding.kind}: {finding.sentence}" for finding in self.findings]
        low, high = (value / 1024 for value in self.estimates.mib)
        fewest, most = self.estimates.trials(600)
        lines.append(
            f"A search with {counted(self.estimates.workers, 'worker')} takes about {low:.1f} to {high:.1f} GiB, and "
            f"finishes about {_rounded(fewest):,} to {_rounded(most):,} trials in ten minutes."
        )
        return "\n".join(lines)

    def __str__(self) -> str:
        shown = self.frame().head(_COLUMNS_PRINTED).dropna(axis="columns", how="all")
        rest = len(self.columns) - len(shown)
        more = f"\n... and {counted(rest, 'more column')}: see frame()" if rest else ""
        return f"{shown.to_string(index=False, na_rep='', max_colwidth=60)}{more}\n\n{self.summary()}"

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escape(line)}</li>" for line in self.summary().splitlines())
        return f"<ul>{lines}</ul>{self.frame().to_html(index=False, na_rep='')}"


def inspect_table(X: Any, y: Any = None, *, task: Task | None = None, new_rows: Any = None) -> TableInspection:
    """Show how a search would read a table: what it drops, converts and guesses, and what is suspicious.

    Parameters
    ----------
    X : (n_rows, n_columns) table
        As for `fit`.
    y : (n_rows,) array-like, optional
        The target. Rows without one are counted and left out; `fit` raises an error for them. Without `y`, columns are
        only read.
    task : TaskType or "classification" or "regression", optional
        The type of task, if it is known.
    new_rows : (n_new_rows, n_columns) table, optional
        Rows to predict later, such as a test set: columns that tell them from those of `X` are named.

    Returns
    -------
    TableInspection
        The same for the same table: the rows on which columns are assessed are drawn with a fixed seed.

    Raises
    ------
    DataError, ColumnTypeError
        If the table or the target cannot be used at all.
    SchemaError
        If the new rows lack a column, or have another type in it.

    Examples
    --------
    >>> table = pd.DataFrame({"size": range(100), "site": "north", "paid": [0.0, 1.0] * 50})
    >>> found = inspect_table(table, [0, 1] * 50)
    >>> [(finding.kind.value, finding.columns) for finding in found.findings]
    [('predicts alone', ('paid',)), ('dropped', ('site',))]
    >>> found = inspect_table(table, new_rows=table.assign(size=range(60, 160)))
    >>> [finding.columns for finding in found.findings if finding.kind.value == "other new rows"]
    [('size',)]
    """
    frame, target_name = to_frame(X), getattr(y, "name", None)
    findings: list[Finding] = []
    coding, codes = None, None
    if y is not None:
        frame, y, n_missing = rows_with_target(frame, y)
        if n_missing:
            have, them = ("has no target, and is", "it") if n_missing == 1 else ("have no target, and are", "them")
            sentence = (
                f"{counted(n_missing, 'row')} {have} left out here. fit refuses {them}: remove {them}, or call "
                "cashmere fit with --drop-missing-target."
            )
            findings.append(Finding(kind=FindingKind.TARGET, sentence=sentence))
        coding, codes = TargetCoding.with_codes(y, task, n_rows=len(frame))
        for doubtful in (target_hint(coding), missing_outcome_hint(coding, codes)):
            if doubtful is not None:
                findings.append(Finding(kind=FindingKind.TARGET, sentence=doubtful))
    schema = infer_schema(frame, named=has_labels(X))
    coded = schema.code(frame, compact=len(frame) > _ROWS_JUDGED)
    skills = {} if coding is None or codes is None else _skills(coded, codes, coding.task_type)
    drifts: dict[str, float] = {}
    if new_rows is not None:
        new_frame = to_frame(new_rows, all_finite=False)
        findings += _about_new_columns(frame, new_frame, target=target_name)
        later = schema.code(new_frame)
        drifts = _drifts(coded, later)
        if (unlike := far_values_hint(later)) is not None:
            findings.append(Finding(kind=FindingKind.DRIFT, sentence=unlike))
    columns = tuple(
        _facts(column, frame.iloc[:, position], skills.get(column.name), drifts.get(column.name))
        for position, column in enumerate(schema.columns)
    )
    classes = _class_sizes(coding, codes)
    is_class = coding is not None and coding.task_type.is_classification
    findings += _about_classes(classes)
    findings += _about_columns(columns, coded, for_rare=has_rare_class(list(classes.values())))
    findings += _about_drift(drifts)
    if (other_notation := kind_hint(frame, schema)) is not None:
        findings.append(Finding(kind=FindingKind.UNREAD, sentence=other_notation))
    findings += _about_rows(count_copies(coded, codes if is_class else None), len(frame))
    hint = structure_hint(coded)
    if hint is not None:
        findings.append(Finding(kind=FindingKind.STRUCTURE, sentence=hint))
    order = list(FindingKind)
    return TableInspection(
        n_rows=len(frame),
        task_type=None if coding is None else coding.task_type,
        classes=classes,
        values=None if is_class or codes is None else (float(codes.min()), float(codes.max())),
        amounts=None if coding is None else coding.amounts,
        columns=columns,
        findings=tuple(sorted(findings, key=lambda finding: order.index(finding.kind))),
        estimates=estimate(
            len(frame),
            coded.values.shape[1],
            max(len(classes), 1),
            workers=default_workers(),
        ),
    )


def _skills(coded: CodedTable, y: AnyArray, task_type: TaskType) -> dict[str, float]:
    """Return the skill of each used column; for a date, that of its best part."""
    n_columns = coded.values.shape[1] + len(coded.texts)
    if len(coded) < LEAST_ROWS or n_columns == 0:
        return {}
    rng = np.random.default_rng(0)
    n_rows = min(len(coded), max(LEAST_ROWS * PARTS, min(_ROWS_JUDGED, _CELLS_JUDGED // n_columns)))
    rows = draw_rows(y, n_rows, task_type, rng)
    targets = target_matrix(y[rows], task_type)
    part = rng.permutation(len(rows)) % PARTS
    skills: dict[str, float] = {}
    for position, column in enumerate(coded.schema.value_columns):
        n_levels = int(coded.n_levels[position])
        skill = solo_skill(coded.values[rows, position], targets, part, n_levels=n_levels)
        skills[column.name] = max(skill, skills.get(column.name, -np.inf))
    for name, text in zip(coded.schema.text_names, coded.take_texts(rows), strict=True):
        skills[name] = text_skill(text, targets, part)
    return skills


def _drifts(coded: CodedTable, new: CodedTable) -> dict[str, float]:
    """Return how well each used column tells new rows from those of the table."""
    rng = np.random.default_rng(0)
    few, many = (
        each.take(np.sort(rng.permutation(len(each))[:_ROWS_JUDGED])) for each in (coded, new)
    )  # rows of a long table would only slow down
    texts = tuple(
        np.concatenate([a, b]) for a, b in zip(few.take_texts(slice(None)), many.take_texts(slice(None)), strict=True)
    )
    both = CodedTable(values=np.concatenate([few.values, many.values]), texts=texts, schema=coded.schema)
    return _skills(both, np.repeat([0, 1], [len(few), len(many)]), TaskType.BINARY)


def _about_new_columns(frame: pd.DataFrame, new_frame: pd.DataFrame, *, target: object) -> list[Finding]:
    added = tuple(str(name) for name in new_frame.columns if name not in frame.columns and name != target)
    if not added or not has_labels(frame):
        return []
    sentence = (
        f"{named(added)} {'is' if len(added) == 1 else 'are'} only in the new rows: a model of this table cannot use "
        f"{'it' if len(added) == 1 else 'them'}."
    )
    return [Finding(kind=FindingKind.DRIFT, columns=added, sentence=sentence)]


def _about_drift(drifts: dict[str, float]) -> list[Finding]:
    drifted = sorted((name for name, skill in drifts.items() if skill >= _DRIFTED), key=lambda name: -drifts[name])
    if not drifted:
        return []
    sentence = (
        f"{named(tuple(drifted))} {'tells' if len(drifted) == 1 else 'tell'} new rows from those of the table (skill "
        f"{drifts[drifted[0]]:.3f}{'' if len(drifted) == 1 else ' or less'}): scores on rows of the table promise too "
        "much where predictions depend on it. Leave out (--ignore) what only tells the time or the source of a row."
    )
    return [Finding(kind=FindingKind.DRIFT, columns=tuple(drifted), sentence=sentence)]


def _facts(column: Column, series: pd.Series[Any], skill: float | None, drift: float | None) -> ColumnFacts:
    dtype = series.dtype
    is_text = pd.api.types.is_object_dtype(dtype) or isinstance(dtype, pd.StringDtype)
    if pd.api.types.is_numeric_dtype(dtype):
        missing, distinct = float(series.isna().mean()), int(series.nunique())
    else:
        labels = read_labels(series, column.name)
        blank = np.isin(labels, ["", *column.missing_texts])
        missing, distinct = float(np.mean(blank)), len(set(labels[~blank]))
    return ColumnFacts(
        name=column.name,
        stored="text" if is_text else str(dtype),
        kind=column.kind,
        missing=missing,
        distinct=distinct,
        skill=skill,
        drift=drift,
        dropped=column.dropped,
    )


def _class_sizes(coding: TargetCoding | None, codes: AnyArray | None) -> dict[Any, int]:
    if coding is None or codes is None or not coding.classes:
        return {}
    counts = np.bincount(codes, minlength=len(coding.classes))
    return {coding.classes[i]: int(counts[i]) for i in np.argsort(-counts, kind="stable")}


def _about_classes(classes: dict[Any, int]) -> list[Finding]:
    findings = []
    few = [(label, n) for label, n in classes.items() if n < _RARE_ROWS]
    if few:
        shown = ", ".join(f"{label!r} ({n})" for label, n in few[-5:])
        sentence = (
            f"{'1 class has' if len(few) == 1 else f'{len(few):,} classes have'} fewer than {_RARE_ROWS} rows, such as "
            f"{shown}. Such classes are kept, but hard to learn, and their scores are mostly chance: merge them with "
            "others, or get more rows."
        )
        findings.append(Finding(kind=FindingKind.TARGET, sentence=sentence))
    if has_rare_class(list(classes.values())):
        label, n = list(classes.items())[-1]
        share = n / sum(classes.values())
        sentence = (
            f"Class {label!r} has {_percent(share)} of the rows: a model that never predicts it is right in "
            f"{_percent(1 - share)}. To find it, choose a metric such as balanced_accuracy (--metric), which "
            "brings a decision threshold."
        )
        findings.append(Finding(kind=FindingKind.TARGET, sentence=sentence))
    return findings


def _about_columns(columns: Sequence[ColumnFacts], coded: CodedTable, *, for_rare: bool) -> list[Finding]:
    findings = []
    alone, predicted = suspicion(for_rare=for_rare)
    strong = [c for c in columns if (c.skill or 0.0) >= (ALONE_FOR_TEXT if c.kind is ColumnKind.TEXT else alone)]
    strong.sort(key=lambda c: -(c.skill or 0.0))
    dated = [c for c in strong if c.kind is ColumnKind.DATE]
    for suspects, why in (
        ([c for c in strong if c not in dated], "What is known only after the target leaks: remove it."),
        (dated, "Rows of nearby days are alike: random folds find there what later rows will not have."),
    ):
        if suspects:
            names = tuple(c.name for c in suspects)
            sentence = (
                f"{named(names)} predict{'s' if len(names) == 1 else ''} {predicted} alone (skill "
                f"{suspects[-1].skill:.3f}{'' if len(names) == 1 else ' or more'}). {why}"
            )
            findings.append(Finding(kind=FindingKind.ALONE, columns=names, sentence=sentence))
    reasons: dict[str, list[str]] = {}
    for column in columns:
        if column.dropped is not None:
            reasons.setdefault(column.dropped, []).append(column.name)
    for why, dropped in reasons.items():
        is_one = len(dropped) == 1
        sentence = f"{named(tuple(dropped))} {'is' if is_one else 'are'} not used: {why}."
        findings.append(Finding(kind=FindingKind.DROPPED, columns=tuple(dropped), sentence=sentence))
    numbers = {column.name: _numbers_of(column) for column in coded.schema.used if column.kind is ColumnKind.NUMERIC}
    converted: dict[str, list[str]] = {}
    for column in columns:
        what = numbers.get(column.name, _READ_AS.get(column.kind))
        if what is not None and column.stored == "text" and column.dropped is None:
            converted.setdefault(what, []).append(column.name)
    for what, texts in converted.items():
        sentence = f"{named(tuple(texts))} {'is' if len(texts) == 1 else 'are'} text, read as {what}."
        findings.append(Finding(kind=FindingKind.CONVERTED, columns=tuple(texts), sentence=sentence))
    for name, n_unread in coded.unseen.items():
        sentence = f"Column {name!r} has {counted(n_unread, 'value')} that cannot be read, taken for missing."
        findings.append(Finding(kind=FindingKind.UNREAD, columns=(name,), sentence=sentence))
    for number, (names, n_cells) in placeholders(coded).items():
        sentence = (
            f"{named(names)} {'has' if len(names) == 1 else 'have'} {number} in {counted(n_cells, 'cell')}, unlike "
            "all other values. If it stands for missing values, leave these cells empty: as a number, it distorts "
            "distances and linear models."
        )
        findings.append(Finding(kind=FindingKind.PLACEHOLDER, columns=names, sentence=sentence))
    crowded = tuple(
        c.name
        for c in columns
        if c.dropped is None
        and c.kind is ColumnKind.CATEGORICAL
        and c.distinct >= _LEAST_LEVELS
        and (1 - c.missing) * len(coded) < _ROWS_PER_LEVEL * c.distinct
    )
    if crowded:
        sentence = (
            f"{named(crowded)} {'has' if len(crowded) == 1 else 'have'} fewer than {_ROWS_PER_LEVEL} rows per level. "
            "If these are names or keys, remove them or merge levels."
        )
        findings.append(Finding(kind=FindingKind.LEVELS, columns=crowded, sentence=sentence))
    return findings


def _numbers_of(column: Column) -> str:
    """Return what numbers written as text are read as."""
    if column.in_seconds:
        return "seconds"
    return "numbers" if column.amounts is None else column.amounts.description


def _about_rows(copies: Copies, n_rows: int) -> list[Finding]:
    findings = []
    if copies.n_contradicted:
        sentence = (
            f"{counted(copies.n_contradicted, 'row')} contradict{'s' if copies.n_contradicted == 1 else ''} others "
            "that are equal in all columns: from "
            f"these columns, no model can predict more than {_percent(1 - copies.n_contradicted / n_rows)} of the rows "
            "correctly."
        )
        findings.append(Finding(kind=FindingKind.CONTRADICTIONS, sentence=sentence))
    if copies.n_surplus > _COPIES_SHARE * n_rows:
        sentence = (
            f"{counted(copies.n_surplus, 'row')} repeat{'s' if copies.n_surplus == 1 else ''} others in all columns. "
            "If they are the same cases, some validation rows are also training rows, and scores are too good: remove "
            "them, or give groups= (--groups)."
        )
        findings.append(Finding(kind=FindingKind.COPIES, sentence=sentence))
    return findings


def _percent(share: float) -> str:
    """Return a share with enough digits to tell it from none and from all."""
    text = next(text for digits in range(1, 10) if float(text := f"{100 * share:.{digits}f}") not in (0.0, 100.0))
    return f"{text} %"


def _rounded(number: int) -> int:
    """Round to one significant digit; from 1000 on, to two."""
    digits = len(str(number)) - (1 if number < 1000 else 2)
    return int(round(number / 10**digits) * 10**digits)
