"""The numbers of TPE beside Optuna, and of surrogates of diversity."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.pages.kept_rows import kept
from benchmarks.pages.statement import Body, Statement, row
from benchmarks.statistics.ranks_and_tests import signed_rank_test

PROBLEMS = {"mixed": 3, "pipelines": 3, "interacting": 3, "phoneme": 4}
"""Problems with the number of digits of their losses."""

STRATEGIES = {
    "tpe": "`tpe`",
    "optuna:n_startup_trials=20": "Optuna, 20 random trials like `tpe`",
    "optuna": "Optuna, its defaults",
    "tpe:density=independent": "`tpe:density=independent` (hyperopt's rules)",
    "random": "`random`",
}

PAIRS = {
    "among_unseen": "of two unseen",
    "to_seen": "of an unseen and a known one",
    "to_pool": "of an unseen one and a pool member",
}


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    yield _tpe()
    yield _seconds_of_tpe()
    yield _tau()
    yield _seconds()


def _tpe() -> Body:
    losses = kept("tpe").set_index(["trials", "problem", "strategy", "seed"])["best_loss"].sort_index()
    lines = []
    for n in (250, 50):
        if n == 50:
            lines.append(row("**after 50 trials**", *("" for _ in PROBLEMS)))
        for strategy, text in STRATEGIES.items():
            cells = []
            for problem, digits in PROBLEMS.items():
                own, reference = losses[n, problem, strategy], losses[n, problem, "tpe"]
                cell = f"{own.median():.{digits}f}"
                if strategy != "tpe":
                    differences = (own - reference).to_numpy()
                    better, worse = (differences > 0).sum(), (differences < 0).sum()
                    p = f", p {signed_rank_test(differences)[0]:.2g}" if better + worse else ""
                    cell += f" ({better}:{worse}{p})"
                cells.append(cell)
            lines.append(row(text, *cells))
    return Body(header=row("after 250 trials", *(f"`{problem}`" for problem in PROBLEMS)), lines=tuple(lines))


def _seconds_of_tpe() -> Statement:
    rows = kept("tpe").query("trials == 250 and problem != 'phoneme'")
    median = 1000 * rows.groupby(["strategy", "problem"])["seconds_per_suggestion"].median()
    values: dict[str, float] = {}
    for name, strategy in (("tpe", "tpe"), ("optuna", "optuna"), ("hyperopt", "tpe:density=independent")):
        values |= {f"{name}_least": median[strategy].min(), f"{name}_most": median[strategy].max()}
    return Statement(
        text="takes `tpe` {tpe_least:.0f} to {tpe_most:.0f} ms of CPU time (median), Optuna {optuna_least:.0f} to "
        "{optuna_most:.0f} ms, hyperopt's rules {hyperopt_least:.0f} to {hyperopt_most:.0f} ms",
        values=values,
    )


def _tau() -> Body:
    rows = kept("surrogate_tau")
    means = rows.groupby(["observations", "surrogate", "recording", "seed"])[list(PAIRS)].mean()
    lines = []
    for pairs, text in PAIRS.items():
        for n in (50, 250):
            forest, boosters = means.loc[(n, "prediction")][pairs], means.loc[(n, "pairwise")][pairs]
            difference = forest - boosters
            p, _ = signed_rank_test(difference.to_numpy())
            shown = (f"{of.mean():.3f}" for of in (forest, boosters))
            lines.append(row(text if n == 50 else "", str(n), *shown, f"{difference.mean():+.3f}, {p:.2g}"))
    return Body(
        header="| pairs | observations | prediction | pairwise | difference over 30 pairs, p |", lines=tuple(lines)
    )


def _seconds() -> Statement:
    rows = kept("surrogate_seconds")
    seconds = rows.groupby(["observations", "surrogate"])["cpu_seconds"].median()
    ratios = {n: seconds[n, "pairwise"] / seconds[n, "prediction"] for n in (50, 250)}
    return Statement(
        text="take the forest {few:.3f} s at 50 observations and {many:.3f} s at 250, the boosters {few_pairs:.1f} s "
        "and {many_pairs:.1f} s: {few_times:.0f} and {many_times:.0f} times as long",
        values={
            "few": seconds[50, "prediction"],
            "many": seconds[250, "prediction"],
            "few_pairs": seconds[50, "pairwise"],
            "many_pairs": seconds[250, "pairwise"],
            "few_times": ratios[50],
            "many_times": ratios[250],
        },
    )
