"""A contest of algorithms by what the ensemble would lose without them, searched like OptDivBO."""

from __future__ import annotations

import functools
import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal, get_args

import numpy as np

from cashmere.base.arrays import Float64, FloatArray
from cashmere.ensembles.worth import worth_of_groups
from cashmere.exceptions import InvalidParameterError
from cashmere.records.trial import History, Suggestion
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks
from cashmere.strategies.optdivbo import OptDivBO
from cashmere.strategies.shared.candidates import Candidates
from cashmere.strategies.shared.continuation import continues
from cashmere.strategies.shared.option_checks import check_at_least
from cashmere.strategies.shared.temporary_pool import MOST_OBSERVATIONS, collect_predictions

JudgedBy = Literal["ensemble", "best_loss"]
"""What an algorithm is judged by: the ensemble's loss without it, or the loss of its best trial."""

_LEAST_KEPT = 3
"""Number of algorithms that always stay, because an ensemble needs different ones."""


@dataclass(frozen=True)
class EnsembleContest(OptDivBO):
    """Choose the algorithm by what the ensemble would lose without it, and a configuration of it like `optdivbo`.

    Trials come in rounds. When a round begins, the ensemble selected from all trials so far is frozen; the worth of
    an algorithm is how much the ensemble's loss would rise without its trials. The most valuable algorithms stay in the
    contest, fewer from round to round, and take turns; all decisions of a round rest on the same judgement.
    Within the algorithm whose turn it is, candidates are ranked as in `OptDivBO`, by a surrogate of the losses of all
    algorithms and by their diversity from the pool of all. A tenth of the trials is left for algorithms that have been
    dropped.

    Parameters
    ----------
    space, n_initial, n_global, n_local, variance, cap_losses, local, failures, learn_from
        See `BayesianOptimisation`.
    measure, tau, max_weight, kappa, surrogate, ensemble_size
        See `OptDivBO`; with a `max_weight` of 0, diversity does not count.
    random_fraction : float
        Share of the trials that are random draws of the least used algorithm, in [0, 1]: from the first cut on, of one
        that has been dropped.
    trials_per_round : int
        Length of a round, times the number of algorithms; at least 1.
    share_kept : float
        Share of the algorithms that stay after each round, in (0, 1]; three stay in any case. With 1, all take turns.
    judged_by : {"ensemble", "best_loss"}
        What algorithms are judged by; ``"best_loss"`` as in contests for single models.

    Notes
    -----
    - The cuts are softer than those of `Contest`: after round r, a share of `share_kept` to the power of r stays, and
      all are judged again at every cut. A dropped algorithm returns if one of its trials has become valuable.
    - Algorithms without a member in the ensemble are worth nothing; among these the best single loss decides.
    - In the first round all algorithms take turns. Warm starts count: what an opening learnt from other tables has
      tried more often waits longer for its turn, so the opening weighs the first round.
    - The first round is over when as many outcomes are known, and so on. So a decision never waits for others, and the
      budget need not be known.
    - Without a hyper-parameter ``algorithm`` this is `OptDivBO`.

    References
    ----------
    Ours (2026); diversity as in Poduval, Patnala, Oberoi, Srivasatava, Asthana (2024), CASH via Optimal Diversity for
    Ensemble Learning, KDD; rounds as in Nguyen, Kononova, Menzel, Sendhoff, Bäck (2022), An efficient contesting
    procedure for AutoML optimization, IEEE Access 10.
    """

    _: KW_ONLY
    trials_per_round: int = 2
    share_kept: float = 2 / 3
    judged_by: JudgedBy = "ensemble"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, trials_per_round=1)
        if not 0 < self.share_kept <= 1:
            raise InvalidParameterError("share_kept", self.share_kept, "in (0, 1]")
        if self.judged_by not in get_args(JudgedBy):
            raise InvalidParameterError("judged_by", self.judged_by, " or ".join(map(repr, get_args(JudgedBy))))

    @functools.cached_property
    def blocks(self) -> AlgorithmBlocks:
        """The space as a set of algorithms; a cache."""
        return AlgorithmBlocks(self.encoder)

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion:
        """Return the suggestion for the algorithm whose turn it is, see `cashmere.protocols.Strategy.suggest`."""
        suggestion = super().suggest(history, rng)
        [task] = self.blocks.tasks(self.encoder.encode([suggestion.configuration]))
        origin = suggestion.origin.within(self.blocks.names[int(task)], round=self.round_of(history))
        return replace(suggestion, origin=origin)

    @property
    def decides_in_batches(self) -> bool:
        """Never: every trial is for another algorithm."""
        return False

    def draw_candidates(self, history: History, decided: Float64, rng: np.random.Generator) -> Candidates:
        """Draw candidates of the algorithm whose turn it is, see `BayesianOptimisation.draw_candidates`."""
        drawn = super().draw_candidates(history, decided, rng)
        tasks = self.blocks.tasks(drawn.rows)
        there = [task for task in self.kept(history) if (tasks == task).any()]
        if not there:  # the algorithms in the contest have nothing new left
            return drawn
        this_round = self.blocks.tasks(decided[self.round_of(history) * self.round_length :])
        counts = np.bincount(this_round, minlength=len(self.blocks.names))
        turn = tasks == min(there, key=lambda task: counts[task])
        return Candidates(rows=drawn.rows[turn], log_improvement=drawn.log_improvement[turn])

    @property
    def round_length(self) -> int:
        """Trials of a round."""
        return self.trials_per_round * len(self.blocks.drawable)

    def round_of(self, history: History) -> int:
        """Return the number of the round, from 0."""
        return len(history) // self.round_length

    def kept(self, history: History) -> tuple[int, ...]:
        """Return the algorithms in contest as positions in ``blocks.names``, after the first round by worth."""
        everyone, number = tuple(self.blocks.drawable.tolist()), self.round_of(history)
        n_kept = max(_LEAST_KEPT, math.ceil(round(self.share_kept**number * len(everyone), 9)))
        if n_kept >= len(everyone):
            return everyone
        frozen = replace(history, observations=history[: number * self.round_length], pending=())
        tasks = self.blocks.tasks(self.encoder.encode(trial.configuration for trial in frozen.trials))
        best = np.full(len(self.blocks.names), np.inf)
        np.minimum.at(best, tasks, [np.inf if o.loss is None else o.loss for o in frozen])
        worth = self._worth(frozen) if self.judged_by == "ensemble" else np.zeros(len(best))
        return tuple(sorted(everyone, key=lambda task: (-worth[task], best[task]))[:n_kept])

    def _worth(self, frozen: History) -> FloatArray:
        """Return what each algorithm is worth, shape ``(n_algorithms,)``; cached for the round."""
        latest = self._latest.get("worth")
        if latest is not None and len(latest[0]) == len(frozen) and continues(frozen, latest[0]):
            return latest[1]
        known = collect_predictions(frozen, most=MOST_OBSERVATIONS)
        worth: FloatArray = np.zeros(len(self.blocks.names))
        if known is not None:
            worth = worth_of_groups(
                known.predictions,
                self.blocks.tasks(self.encoder.encode(o.trial.configuration for o in known.observations)),
                known.y,
                known.metric,
                n_groups=len(self.blocks.names),
                size=self.ensemble_size,
                row_weights=known.row_weights,
                tie="secondary",
            )
        self._latest["worth"] = (frozen, worth)
        return worth

    @functools.cached_property
    def _latest(self) -> dict[str, tuple[History, FloatArray]]:
        """The worth of the algorithms, and the history that it follows from; a cache."""
        return {}
