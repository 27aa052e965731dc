"""Contests among sub-spaces: how often each is evaluated, and which leave when."""

from cashmere.contests.budgets import (
    PlannedRound,
    Schedule,
    cut_chain,
    first_round,
    number_of_rounds,
    plan_rounds,
    round_share,
)
from cashmere.contests.elimination import Verdict, drop_defeated, drop_highest
from cashmere.contests.ledger import Contender, Ledger, OpenRound, Round, derive_ledger
from cashmere.contests.reasons import Exhausted, NeverEvaluated, OtherReason, Reason, WorseLoss, WorseRank
from cashmere.contests.rising_bandit import (
    Check,
    RisingRules,
    Slope,
    Standing,
    derive_standing,
    find_beaten,
    pessimistic_and_optimistic,
)
from cashmere.contests.rules import Elimination, Rules, Tie
from cashmere.contests.significance import (
    FriedmanTest,
    PostHocTest,
    compare_with_best,
    friedman_test,
    holm_adjusted,
    paired_samples,
    wilcoxon_test,
)

__all__ = [
    "Check",
    "Contender",
    "Elimination",
    "Exhausted",
    "FriedmanTest",
    "Ledger",
    "NeverEvaluated",
    "OpenRound",
    "OtherReason",
    "PlannedRound",
    "PostHocTest",
    "Reason",
    "RisingRules",
    "Round",
    "Rules",
    "Schedule",
    "Slope",
    "Standing",
    "Tie",
    "Verdict",
    "WorseLoss",
    "WorseRank",
    "compare_with_best",
    "cut_chain",
    "derive_ledger",
    "derive_standing",
    "drop_defeated",
    "drop_highest",
    "find_beaten",
    "first_round",
    "friedman_test",
    "holm_adjusted",
    "number_of_rounds",
    "paired_samples",
    "pessimistic_and_optimistic",
    "plan_rounds",
    "round_share",
    "wilcoxon_test",
]
