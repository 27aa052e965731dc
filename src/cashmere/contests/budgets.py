"""How a contest by the highest value divides its evaluations over rounds.

======================  ==========================================================================================
symbol                  meaning
======================  ==========================================================================================
``c``                   contenders (sub-spaces) at the start
``eta``                 cut factor: a round keeps one in ``eta``, rounded up
``m_r``                 contenders alive in round r: ``m_0 = c``, ``m_r = ceil(m_{r-1} / eta)``
``R``                   number of cuts until one contender is left
``B_r``                 evaluations, or seconds, of round r
======================  ==========================================================================================
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from cashmere.exceptions import InvalidParameterError

Schedule = Literal["inclusive", "strict", "authors"]
"""How the paper's contradicting lines on the budget of a round are read: docs/papers/dacopt.md#budgets-of-the-rounds.

- ``"inclusive"``: rounds 0 .. R; the last one has one contender and all the remaining budget.
- ``"strict"``: rounds 0 .. R - 1, as the listing divides; the remainder from rounding goes to the leader.
- ``"authors"``: as in the authors' code, which keeps more for the last contender.
"""

SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)

_ROUNDS_BEYOND: dict[Schedule, int] = {"strict": 0, "inclusive": 1, "authors": 2}
"""Round r gets the remaining budget divided by R - r + this number."""


class PlannedRound(NamedTuple):
    """A planned round: how many contenders, and how many evaluations each of them gets."""

    contenders: int
    evaluations: int


def cut_chain(n_contenders: int, eta: int) -> tuple[int, ...]:
    """Return the numbers of contenders ``m_0 .. m_R``, by repeated division rather than logarithms.

    Parameters
    ----------
    n_contenders : int
        At least 1.
    eta : int
        At least 2.

    Raises
    ------
    InvalidParameterError
        If one of them is smaller.

    Examples
    --------
    >>> cut_chain(10, 3)
    (10, 4, 2, 1)
    """
    if n_contenders < 1:
        raise InvalidParameterError("n_contenders", n_contenders, "at least 1")
    if eta < 2:
        raise InvalidParameterError("eta", eta, "at least 2")
    chain = [n_contenders]
    while chain[-1] > 1:
        chain.append(-(-chain[-1] // eta))
    return tuple(chain)


def number_of_rounds(n_contenders: int, *, eta: int, schedule: Schedule) -> int:
    """Return the number of planned rounds, round 0 included."""
    n_cuts = len(cut_chain(n_contenders, eta)) - 1
    last = {"strict": max(n_cuts - 1, 0), "inclusive": n_cuts, "authors": max(n_cuts, 1)}
    return last[schedule] + 1


def first_round(n_contenders: int, budget: int | None, evaluations: int) -> tuple[int, ...]:
    """Return how many evaluations each contender gets in round 0.

    Parameters
    ----------
    n_contenders : int
        Number of contenders.
    budget : int or None
        Evaluations of the whole contest; None if unknown.
    evaluations : int
        Evaluations that each contender should get.

    Returns
    -------
    tuple of int
        One number per contender. If the budget does not suffice, the round takes half of it, so that something is left
        for the better contenders, but at least one evaluation per contender; if there are fewer evaluations than
        contenders, the first contenders get one each.

    Notes
    -----
    The paper does not cover such budgets.

    Examples
    --------
    >>> first_round(4, 100, 5), first_round(4, 16, 5), first_round(4, 3, 5)
    ((5, 5, 5, 5), (2, 2, 2, 2), (1, 1, 1, 0))
    """
    if budget is not None and n_contenders * evaluations > budget:
        evaluations = max(1, budget // (2 * n_contenders))
    affordable = n_contenders if budget is None else min(n_contenders, budget)
    return (evaluations,) * affordable + (0,) * (n_contenders - affordable)


def round_share(remaining: float, number: int, *, n_contenders: int, eta: int, schedule: Schedule) -> float:
    """Return the share ``B_r`` of round `number` >= 1 in the remaining budget.

    Parameters
    ----------
    remaining : float
        Evaluations or seconds left when the round begins.
    number : int
        Number r of the round, from 1.
    n_contenders : int
        Contenders at the start of the contest.
    eta, schedule
        See `cut_chain` and `Schedule`.

    Examples
    --------
    >>> [round_share(450, 1, n_contenders=10, eta=3, schedule=schedule) for schedule in SCHEDULES]
    [150.0, 225.0, 112.5]
    """
    n_cuts = len(cut_chain(n_contenders, eta)) - 1
    return remaining / max(n_cuts - number + _ROUNDS_BEYOND[schedule], 1)


def plan_rounds(
    n_contenders: int, budget: int, *, first: int, eta: int = 3, schedule: Schedule = "inclusive"
) -> tuple[PlannedRound, ...]:
    """Return all rounds of a contest without ties.

    Parameters
    ----------
    n_contenders : int
        Contenders at the start.
    budget : int
        Evaluations of the whole contest, at least 1.
    first : int
        Evaluations of each contender in round 0.
    eta : int
        Cut factor.
    schedule : {"inclusive", "strict", "authors"}
        See `Schedule`.

    Returns
    -------
    tuple of PlannedRound
        The planned rounds; what they leave over goes to the leader.

    Raises
    ------
    InvalidParameterError
        If a number is too small.

    References
    ----------
    Nguyen, Kononova, Menzel, Sendhoff, Bäck (2022), An efficient contesting procedure for AutoML optimization, IEEE
    Access 10, algorithm 1.

    Examples
    --------
    >>> [tuple(planned) for planned in plan_rounds(10, 500, first=5)]
    [(10, 5), (4, 37), (2, 75), (1, 152)]
    """
    for name, value in (("budget", budget), ("first", first)):
        if value < 1:
            raise InvalidParameterError(name, value, "at least 1")
    chain = cut_chain(n_contenders, eta)
    rounds: list[PlannedRound] = []
    left = budget
    for number in range(number_of_rounds(n_contenders, eta=eta, schedule=schedule)):
        contenders = chain[min(number, len(chain) - 1)]
        if contenders == 1 and (number > 0 or schedule == "inclusive"):
            planned = PlannedRound(1, left)
        elif number == 0:
            granted = first_round(contenders, budget, first)
            planned = PlannedRound(sum(each > 0 for each in granted), granted[0])
        else:
            share = round_share(left, number, n_contenders=n_contenders, eta=eta, schedule=schedule)
            planned = PlannedRound(contenders, int(share) // contenders)
        rounds.append(planned)
        left -= planned.contenders * planned.evaluations
    return tuple(rounds)
