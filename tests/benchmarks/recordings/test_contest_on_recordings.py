"""Statistical contests on recorded histories: every test and elimination is computed again with other libraries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scikit_posthocs
import scipy.stats
from statsmodels.stats.multitest import multipletests

import benchmarks
from benchmarks.recordings.recorded_history import load_recorded
from benchmarks.recordings.replay import ReplayObjective
from cashmere.evaluation.metrics import get_metric
from cashmere.strategies import make_strategy
from cashmere.study import Study

RECORDED = Path(benchmarks.__file__).parent / "recorded"
ALPHA, N_INITIAL = 0.05, 5


def hold_contest(name, strategy, n_trials):
    """Return the ledger and, for every sub-space, its losses in order."""
    history = load_recorded(RECORDED / f"{name}.zip")
    metric = get_metric("log_loss" if history.task_type.is_classification else "mse", history.task_type)
    contest = make_strategy(strategy, history.encoder)
    study = Study(history.space, contest, seed=1)
    trials = study.optimize(ReplayObjective.of(history, metric), f"{n_trials}trials")
    members = np.array(contest.memberships(trials))
    losses = np.array([np.nan if o.loss is None else o.loss for o in trials])
    return contest.ledger(trials), [losses[members == part] for part in range(len(contest.parts))]


def sample(losses, n_elements):
    """The rule of docs/papers/dacopt.md#samples-of-the-tests: the best of the early losses, then the latest."""
    return [min(losses[: len(losses) - n_elements]), *losses[len(losses) - n_elements :]]


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["dac_sh", "dac_sb"])
@pytest.mark.parametrize("name", ["quake-volcano", "wine_quality-volcano"])
def test_statistical_eliminations_agree_with_scipy_and_posthocs(name, strategy):
    ledger, losses = hold_contest(name, f"{strategy}:max_subspaces=6", 110)
    tested = 0
    for each in ledger.rounds:
        granted = [losses[i][:total] for i, total in zip(each.alive, each.totals, strict=True)]
        # Failures count as the worst loss that the round looks at.
        seen = np.concatenate([own[: ledger_total(ledger, each.number, i)] for i, own in enumerate(losses)])
        worst = np.nanmax(seen)
        granted = [np.where(np.isnan(own), worst, own) for own in granted]
        n_elements = min(map(len, granted)) - N_INITIAL
        if n_elements + 1 < 3:
            assert each.test is None and not each.dropped
            continue
        table = np.array([sample(list(own), n_elements) for own in granted]).T
        tested += 1
        if len(each.alive) == 2:
            assert each.test == "wilcoxon"
            continue
        expected = scipy.stats.friedmanchisquare(*table.T)
        assert each.test == "friedman" and each.statistic == pytest.approx(expected.statistic)
        assert each.p_value == pytest.approx(expected.pvalue)
        if expected.pvalue > ALPHA:
            assert not each.dropped
            continue
        ranks = scipy.stats.rankdata(table, axis=1).mean(axis=0)
        best, (n, k) = int(np.argmin(ranks)), table.shape
        z = (ranks - ranks[best]) / np.sqrt(k * (k + 1) / (6 * n))
        others = [j for j in range(k) if j != best]
        _, adjusted, _, _ = multipletests(2 * scipy.stats.norm.sf(z[others]), alpha=ALPHA, method="holm")
        np.testing.assert_allclose([each.adjusted_p[j] for j in others], adjusted, rtol=1e-9)
        assert set(each.dropped) == {each.alive[j] for j, p in zip(others, adjusted, strict=True) if p < ALPHA}
        # Nemenyi's test sees the same statistic, in another distribution: it must agree about the order.
        nemenyi = scikit_posthocs.posthoc_nemenyi_friedman(table).to_numpy()[best, others]
        assert scipy.stats.spearmanr(nemenyi, adjusted).statistic > 0.8 or len(set(adjusted)) < 3
    assert tested >= 3


def ledger_total(ledger, number, position):
    """Return how many evaluations a sub-space was granted up to the end of a round."""
    totals = 0
    for each in ledger.rounds[: number + 1]:
        totals = dict(zip(each.alive, each.totals, strict=True)).get(position, totals)
    return totals
