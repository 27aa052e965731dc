"""Which defaults of the algorithms of the space ``default`` make its first ensemble best.

    python -m benchmarks learners --data DIR

Each candidate follows its path on each table. Then ensembles are chosen from the defaults of all algorithms, with the
candidate instead of the default of its algorithm, and with it beside this default: on one half of the validation rows,
judged on the other, and the other way round. A table without its origin is decided by the others: for each algorithm
the candidate that is best on them.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.experiments.followed_candidates import (
    FollowedCandidates,
    Key,
    Values,
    add_followed_arguments,
    follow_once,
)
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import write_anew
from benchmarks.tables.manifest import find_tables
from cashmere.space.space import Space

TABLES = (
    "credit-g", "colic", "vehicle", "qsar-biodeg", "eucalyptus", "cmc", "phoneme", "wine_quality", "churn",
    "amazon_employee", "delta_elevators", "eye_movements", "abalone", "cylinder-bands", "bank-marketing",
    "liver_disorders", "cardiotocography", "sick", "MagicTelescope", "satimage",
)  # fmt: skip

EARLIER = "earlier"
"""The candidate that the others are compared with: the default before the study."""

_BOOSTED: Values = {
    "learning_rate": 0.05, "subsample": 0.8, "colsample_bytree": 0.8, "reg_lambda": 1.0, "reg_alpha": 1e-3,
}  # fmt: skip
_LIGHTGBM: Values = {
    **_BOOSTED, "num_leaves": 31, "min_child_samples": 20, "extra_trees": False, "path_smooth": 1e-3,
    "cat_smooth": 10.0, "cat_l2": 10.0, "max_cat_to_onehot": 4,
}  # fmt: skip
_XGBOOST: Values = {**_BOOSTED, "max_depth": 6, "min_child_weight": 1.0, "gamma": 1e-3, "max_cat_to_onehot": 4}
_CATBOOST: Values = {"learning_rate": 0.08, "depth": 6, "l2_leaf_reg": 3.0, "random_strength": 1.0}
_FOREST: Values = {"min_samples_leaf": 2}
_LINEAR: Values = {"basis": "columns", "scaling": "standard"}
_MLP: Values = {
    "n_layers": 2, "width": 128, "alpha": 1e-3, "learning_rate_init": 2e-3, "scaling": "standard", "basis": "columns",
}  # fmt: skip
_SVM: Values = {"C": 1.0, "gamma_factor": 1.0}

CANDIDATES: Mapping[str, Mapping[str, Values]] = {
    "lightgbm": {
        EARLIER: _LIGHTGBM,
        "smoother categories": {**_LIGHTGBM, "cat_smooth": 20.0},
        "smooth categories": {**_LIGHTGBM, "cat_smooth": 100.0, "cat_l2": 100.0},
        "one-hot categories": {**_LIGHTGBM, "max_cat_to_onehot": 64},
        "slow": {**_LIGHTGBM, "learning_rate": 0.03},
        "slow extra trees": {**_LIGHTGBM, "extra_trees": True, "learning_rate": 0.03},
        "one-hot": {**_LIGHTGBM, "encoding": "onehot"},
        "meta-tuned": {  # LightGBM-TD of Holzmüller et al. (2024), arXiv:2407.04491, for classes
            **_LIGHTGBM, "learning_rate": 0.04, "num_leaves": 50, "min_child_samples": 40, "subsample": 0.75,
            "colsample_bytree": 1.0, "reg_lambda": 1e-3, "cat_smooth": 100.0, "cat_l2": 100.0,
        },
        "extra trees": {  # like most LightGBMs of AutoGluon's portfolio for CPUs of December 2025
            **_LIGHTGBM, "extra_trees": True, "learning_rate": 0.03, "min_child_samples": 5, "colsample_bytree": 0.6,
            "subsample": 0.9, "reg_alpha": 0.3, "cat_smooth": 15.0, "cat_l2": 1.0, "max_cat_to_onehot": 16,
            "min_data_per_group": 10,
        },
        "slow and narrow": {
            **_LIGHTGBM, "learning_rate": 0.03, "num_leaves": 16, "min_child_samples": 10, "colsample_bytree": 0.5,
            "reg_alpha": 0.3, "cat_smooth": 100.0, "cat_l2": 100.0,
        },
    },
    "xgboost": {
        EARLIER: _XGBOOST,
        "one-hot categories": {**_XGBOOST, "max_cat_to_onehot": 64},
        "target means": {**_XGBOOST, "encoding": "target"},
        "one-hot": {**_XGBOOST, "encoding": "onehot"},
        "slow": {**_XGBOOST, "learning_rate": 0.03},
        "meta-tuned": {**_XGBOOST, "learning_rate": 0.08, "min_child_weight": 1e-3, "reg_lambda": 1e-3,
                       "subsample": 0.65, "colsample_bytree": 0.9},
        "slow and narrow": {**_XGBOOST, "learning_rate": 0.03, "max_depth": 5, "colsample_bytree": 0.5,
                            "reg_alpha": 0.3, "max_cat_to_onehot": 64},
    },
    "catboost": {
        EARLIER: _CATBOOST,
        "target means": {**_CATBOOST, "encoding": "target"},
        "one-hot": {**_CATBOOST, "encoding": "onehot"},
        "weak penalty": {**_CATBOOST, "depth": 7, "l2_leaf_reg": 0.1, "random_strength": 0.8},
        "shallow": {**_CATBOOST, "depth": 4},
        "slow": {**_CATBOOST, "learning_rate": 0.04},
        "slow and deep": {**_CATBOOST, "learning_rate": 0.04, "depth": 8},
    },
    "hist_gradient_boosting": {EARLIER: {}, "target means": {"encoding": "target"}},
    "random_forest": {EARLIER: _FOREST, "single rows": {"min_samples_leaf": 1},
                      "entropy": {**_FOREST, "criterion": "entropy"},
                      "entropy of single rows": {"min_samples_leaf": 1, "criterion": "entropy"}},
    "extra_trees": {EARLIER: _FOREST, "single rows": {"min_samples_leaf": 1},
                    "more columns": {**_FOREST, "max_features": 0.85},
                    "more columns, single rows": {"min_samples_leaf": 1, "max_features": 0.85},
                    "all columns, entropy": {**_FOREST, "max_features": 1.0, "criterion": "entropy"}},
    "linear": {
        EARLIER: _LINEAR,
        "quantiles": {**_LINEAR, "scaling": "quantile"},
        "bins": {**_LINEAR, "basis": "bins"},
        "similarities": {**_LINEAR, "basis": "similarities", "gamma_factor": 0.3},
        "similarities of quantiles": {**_LINEAR, "basis": "similarities", "gamma_factor": 0.3, "scaling": "quantile"},
    },
    "mlp": {EARLIER: _MLP, "bins": {**_MLP, "basis": "bins"},
            "slow bins": {**_MLP, "basis": "bins", "learning_rate_init": 7e-4},
            "quantiles": {**_MLP, "scaling": "quantile"},
            "wide and slow": {**_MLP, "width": 256, "learning_rate_init": 7e-4}},
    "knn": {EARLIER: {}},
    "svm": {EARLIER: _SVM, "quantiles": {**_SVM, "scaling": "quantile"},
            "hard": {"C": 10.0, "gamma_factor": 0.3}},
}  # fmt: skip
"""Per algorithm and candidate the values that differ from the defaults; those that a table's space lacks are left out.

``linear`` is logistic regression or ridge.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCandidate:
    """One candidate on one table.

    Attributes
    ----------
    table, origin, algorithm, candidate
        Which one; tables of the same origin come from the same data.
    loss : float
        Of its out-of-fold predictions.
    cpu_seconds : float
        Of its path on all folds.
    instead, beside : float
        Loss of the ensembles with the candidate instead of the earlier default, and beside it.
    """

    table: str
    origin: str
    algorithm: str
    candidate: str
    loss: float
    cpu_seconds: float
    instead: float
    beside: float


def log_ratio(followed: FollowedCandidates, pool: Iterable[Key]) -> float:
    """Return the logarithm of the loss of a pool's ensemble relative to that of the earlier defaults.

    The earlier default stands for what the table does not offer.
    """
    offered = [key if key in followed.predictions else (key[0], EARLIER) for key in pool]
    earlier = [key for key in followed.predictions if key[1] == EARLIER]
    return float(np.log(followed.ensemble_loss(dict.fromkeys(offered)) / followed.ensemble_loss(earlier)))


def judged(followed: FollowedCandidates, table: str, origin: str) -> list[JudgedCandidate]:
    """Return the rows of a table."""
    earlier = [key for key in followed.predictions if key[1] == EARLIER]
    rows = []
    for (algorithm, candidate), predicted in followed.predictions.items():
        key = (algorithm, candidate)
        others = [each for each in earlier if each[0] != algorithm]
        beside = [*earlier, *([key] if candidate != EARLIER else [])]
        rows.append(
            JudgedCandidate(
                table=table,
                origin=origin,
                algorithm=algorithm,
                candidate=candidate,
                loss=float(followed.metric.loss(followed.y, predicted, None)),
                cpu_seconds=round(followed.cpu_seconds[key], 3),
                instead=followed.ensemble_loss([*others, key]),
                beside=followed.ensemble_loss(beside),
            )
        )
    return rows


def offered_candidates(space: Space) -> dict[Key, Values]:
    """Return the values of the candidates that a space offers, without those that it lacks."""
    names = {algorithm.name for algorithm in space.algorithms}
    linear = "logistic_regression" if "logistic_regression" in names else "ridge"
    offered: dict[Key, Values] = {}
    for algorithm, candidates in CANDIDATES.items():
        name = linear if algorithm == "linear" else algorithm
        seen: list[Values] = []
        for candidate, values in candidates.items() if name in names else ():
            known = {f"{name}:{key}": value for key, value in values.items()}
            known = {key: value for key, value in known.items() if key in space.configuration_space}
            if known not in seen:  # otherwise it differs only in values that this space lacks
                seen.append(known)
                offered[algorithm, candidate] = {"algorithm": name, **known}
    return offered


# What the rows say ---------------------------------------------------------------------------------------------------


def log_ratios(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the logarithm of a loss relative to that of the earlier default.

    Parameters
    ----------
    rows : DataFrame
        Columns of `JudgedCandidate`.
    column : {"loss", "instead", "beside", "cpu_seconds"}
        Which loss.

    Returns
    -------
    DataFrame
        One row per algorithm and candidate, one column per table; 0 where a table does not offer the candidate, which
        then is the earlier default.
    """
    losses = rows.pivot_table(index=["algorithm", "candidate"], columns="table", values=column, sort=False)
    earlier = losses.xs(EARLIER, level="candidate").reindex(losses.index.get_level_values("algorithm")).to_numpy()
    return pd.DataFrame(np.log(np.nan_to_num(losses.to_numpy() / earlier, nan=1.0)), losses.index, losses.columns)


def best_without(ratios: pd.DataFrame, tables: Collection[str]) -> dict[str, str]:
    """Return for each algorithm the candidate with the lowest mean over all tables but some."""
    means = ratios.drop(columns=list(tables)).mean(axis=1)
    best: dict[str, str] = {}
    for key in means.sort_values(kind="stable").index:
        algorithm, candidate = cast("tuple[str, str]", key)
        best.setdefault(algorithm, candidate)
    return best


def by_origin(rows: pd.DataFrame) -> dict[str, list[str]]:
    """Return the tables of each origin."""
    pairs = rows[["origin", "table"]].drop_duplicates()
    return {str(origin): list(part["table"]) for origin, part in pairs.groupby("origin", sort=False)}


def held_out(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return what the choices of other origins are worth, one row per algorithm and one column per table.

    Candidates are chosen by the loss of the ensemble with them instead of the default; the values are logarithms of
    ratios.
    """
    instead, wanted = log_ratios(rows, "instead"), log_ratios(rows, column)
    parts = {}
    for tables in by_origin(rows).values():
        chosen = best_without(instead, tables).items()
        for table in tables:
            parts[table] = {name: wanted[table][name, candidate] for name, candidate in chosen}
    return pd.DataFrame(parts).reindex(list(CANDIDATES)).dropna()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_followed_arguments(parser, "learners", TABLES, rows=4000)


def main(arguments: argparse.Namespace) -> None:
    console = Console()
    found: list[JudgedCandidate] = []
    with until_interrupted(console):
        for table in find_tables(arguments.data, arguments.tables):
            followed = follow_once(table, arguments.work, offered_candidates, n_rows=arguments.rows)
            found += judged(followed, table.name, table.origin)
    if not found:
        return
    write_anew(arguments.out, found)
    rows = pd.DataFrame([asdict(each) for each in found])
    _show_candidates(console, rows)
    if rows["origin"].nunique() > 1:
        _show_held_out(console, rows)
        _show_together(console, rows, arguments.work)


def _show_candidates(console: Console, rows: pd.DataFrame) -> None:
    shown = Table("algorithm", "candidate", "alone", "median", "instead", "median", "beside", "median", "seconds",
                  title="change relative to the earlier default, per cent; seconds as a factor")  # fmt: skip
    parts = [log_ratios(rows, column) for column in ("loss", "instead", "beside")]
    seconds = log_ratios(rows, "cpu_seconds")
    for key in seconds.index:
        changes = [_per_cent(f(part.loc[key])) for part in parts for f in (np.mean, np.median)]
        shown.add_row(*key, *changes, f"{np.exp(seconds.loc[key].mean()):.2f}")
    console.print(shown)


def _show_held_out(console: Console, rows: pd.DataFrame) -> None:
    shown = Table("algorithm", "chosen (origins)", "alone", "median", "instead", "median",
                  title="chosen on other origins: change on the table left out, per cent")  # fmt: skip
    chosen = [best_without(log_ratios(rows, "instead"), tables) for tables in by_origin(rows).values()]
    alone, instead = held_out(rows, "loss"), held_out(rows, "instead")
    for name in instead.index:
        counts = Counter(each[name] for each in chosen)
        names = ", ".join(f"{candidate} ({n})" for candidate, n in counts.most_common())
        changes = [_per_cent(f(part.loc[name])) for part in (alone, instead) for f in (np.mean, np.median)]
        shown.add_row(name, names, *changes)
    console.print(shown)


def additions_without(rows: pd.DataFrame, tables: Collection[str], *, most: int) -> list[tuple[str, str]]:
    """Return up to `most` candidates beside the defaults, at most one of an algorithm, by the tables but some.

    The best first: with the lowest mean logarithm of the ensemble's loss with the candidate in the pool as well.
    """
    best = best_without(log_ratios(rows, "beside"), tables)
    means = log_ratios(rows, "beside").drop(columns=list(tables)).mean(axis=1)
    keys = sorted(best.items(), key=lambda key: float(means[key]))
    return [key for key in keys if means[key] < 0][:most]


def _show_together(console: Console, rows: pd.DataFrame, work: Path, *, most: int = 6) -> None:
    """Compare ensembles of what other origins choose with those of the earlier defaults."""
    logs: dict[str, dict[str, float]] = {}
    for tables in by_origin(rows).values():
        chosen = best_without(log_ratios(rows, "instead"), tables)
        added = additions_without(rows, tables, most=most)
        for table in tables:
            followed = FollowedCandidates.read(work / f"{table}.npz")
            earlier = [key for key in followed.predictions if key[1] == EARLIER]
            pools = {"all replaced": [(name, chosen[name]) for name, _ in earlier]}
            pools |= {f"{k} beside": [*earlier, *added[:k]] for k in range(1, most + 1)}
            pools["everything"] = list(followed.predictions)
            for name, pool in pools.items():
                logs.setdefault(name, {})[table] = log_ratio(followed, pool)
    shown = Table("pool", "mean", "median", "better", "worse", *rows["table"].unique(),
                  title="pools that other origins choose: change of the ensemble's loss, per cent")  # fmt: skip
    for name, by_table in logs.items():
        values = np.array(list(by_table.values()))
        counts = (np.count_nonzero(values < -1e-6), np.count_nonzero(values > 1e-6))
        summary = [_per_cent(values.mean()), _per_cent(np.median(values)), *map(str, counts)]
        shown.add_row(name, *summary, *(_per_cent(by_table[table]) for table in rows["table"].unique()))
    console.print(shown)
    counted = Counter(key for t in by_origin(rows).values() for key in additions_without(rows, t, most=most))
    console.print("beside: " + ", ".join(f"{a} {c} ({n})" for (a, c), n in counted.most_common()))


def _per_cent(log_ratio: float) -> str:
    return f"{100 * np.expm1(log_ratio):+.2f}"
