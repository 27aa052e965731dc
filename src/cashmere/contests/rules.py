"""The rules of a contest among sub-spaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from cashmere.contests.budgets import SCHEDULES, Schedule
from cashmere.exceptions import InvalidParameterError

Elimination = Literal["highest", "statistical"]
"""Rounds that keep the best values found so far, or a test after every step."""

Tie = Literal["keep", "cut"]
"""What happens to contenders whose best value equals that of the last one kept: docs/papers/dacopt.md#equal-values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of a contest; defaults and readings of the paper: docs/papers/dacopt.md#decisions.

    Attributes
    ----------
    elimination : {"highest", "statistical"}
        See `Elimination`.
    n_initial : int
        Initial evaluations of a contender, at least 1; in a test they count as one value.
    b_first : int or None
        Evaluations of each contender in round 0, at least 1; by default `n_initial`, see
        docs/papers/dacopt.md#first-round.
    eta : int
        A round keeps one in `eta` contenders, at least 2. Only for "highest", like the next three.
    schedule : {"inclusive", "strict", "authors"}
        See `cashmere.contests.budgets.Schedule`.
    tie : {"keep", "cut"}
        See `Tie`.
    max_extra : int
        Largest number of ties to keep, at least 0.
    alpha : float
        Level of significance, in (0, 1). Only for "statistical", like the next two.
    min_blocks : int
        Smallest number of blocks for a test, at least 2.
    authors_z : bool
        See `cashmere.contests.significance.compare_with_best`.

    Raises
    ------
    InvalidParameterError
        If one of them is out of range.
    """

    elimination: Elimination = "highest"
    n_initial: int = 5
    b_first: int | None = None
    eta: int = 3
    schedule: Schedule = "inclusive"
    tie: Tie = "keep"
    max_extra: int = 1
    alpha: float = 0.05
    min_blocks: int = 3
    authors_z: bool = False

    def __post_init__(self) -> None:
        known = {"elimination": get_args(Elimination), "schedule": SCHEDULES, "tie": get_args(Tie)}
        for name, values in known.items():
            if getattr(self, name) not in values:
                raise InvalidParameterError(name, getattr(self, name), " or ".join(map(repr, values)))
        for name, least in (("n_initial", 1), ("b_first", 1), ("eta", 2), ("max_extra", 0), ("min_blocks", 2)):
            value = getattr(self, name)
            is_default = name == "b_first" and value is None
            if not is_default and not (isinstance(value, int | np.integer) and value >= least):
                raise InvalidParameterError(name, value, f"a whole number of at least {least}")
        if not 0 < self.alpha < 1:
            raise InvalidParameterError("alpha", self.alpha, "in (0, 1)")

    @property
    def first(self) -> int:
        """Evaluations of each contender in round 0."""
        return self.n_initial if self.b_first is None else self.b_first

    @property
    def ties_kept(self) -> int:
        """Largest number of ties to keep."""
        return self.max_extra if self.tie == "keep" else 0
