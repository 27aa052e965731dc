"""Dates and times in texts, in the notations that tables use."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cashmere.base.arrays import BoolArray, Float64, IntArray

LEAST_SHARE = 0.95
"""Share of the cells of a column that are dates, if it is read as dates."""

_CENTURY_STARTS = 69
"""Years of two digits from here on are those of the last century, as for `datetime.strptime`."""

_CLOCK = (
    r"^(?P<hour>[0-9]{1,2}):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9](?:\.[0-9]+)?))?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?\s*(?:Z|[+-][0-9]{2}:?[0-9]{2})?\Z"
)
_END = r"(?:(?P<before_clock>[T ] *)|\s*(?:Z|[+-][0-9]{2}:?[0-9]{2}))?\Z"
_MONTH_WORD = (
    r"Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?"
)
_MONTH_NAME = rf"(?P<name>{_MONTH_WORD})"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLEAR = (
    rf"^(?P<year>[0-9]{{4}})(?P<mark>[-/.])(?P<month>[0-9]{{1,2}})(?P=mark)(?P<day>[0-9]{{1,2}}){_END}",
    r"^(?P<year>(?:19|20)[0-9][0-9])-(?P<month>[0-9][0-9])\Z",
    rf"^(?:(?P<day>[0-9]{{1,2}})[ -])?(?i:{_MONTH_NAME})\.?[ -](?P<year>[0-9]{{4}}){_END}",
    rf"^(?P<day>[0-9]{{1,2}})-(?i:{_MONTH_NAME})-(?P<year>[0-9][0-9]){_END}",
    rf"^(?i:{_MONTH_NAME})\.? (?P<day>[0-9]{{1,2}}),? (?P<year>[0-9]{{4}}){_END}",
)
"""Notations of days that tell day from month."""

_USUAL = (
    r"[0-9]{4}-[0-9][0-9]-[0-9][0-9]"
    r"(?:[T ][0-9][0-9]:[0-9][0-9](?::[0-9][0-9](?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_OFFSET = r"(?:Z|[+-][0-9]{2}:?[0-9]{2})$"
"""What pandas reads much faster, and what has to be left out before."""

_HOURS_AND_MINUTES = r"(?P<sign>[+-])(?P<hours>[0-9]{2}):?(?P<minutes>[0-9]{2})\Z"
"""An offset other than Z."""

_NO_HOURS = r"[0-9] ?(?:Z|[+-]00:?00)\Z"

_MOST_AGAINST = 0.1
"""How many dates may be dates in the other order only, as a share of those that are so in the chosen order only."""

_MOST_DAYS = 31
"""Days of a month."""

_BEGINNING = r"^(?:[0-9]{1,4}[-/. ]|[A-Za-z]{3,9}\.?[ -][0-9])"
"""How every date begins."""

_YEAR_LAST = (
    r"^(?P<first>[0-9]{1,2})(?P<mark>[-/.])(?P<second_number>[0-9]{1,2})(?P=mark)"
    rf"(?P<year>[0-9]{{4}}|[0-9][0-9]){_END}"
)

_TWO_DIGITS = rf"^[0-9]{{1,2}}(?:-(?i:{_MONTH_WORD})-|[-/.][0-9]{{1,2}}[-/.])[0-9][0-9](?![0-9])"
"""How dates with a year of two digits begin."""

_LEAST_IN_OTHER_ORDER = 2
"""Fewer dates that are none in the order of training may be errors of writing."""


class DateNotation(StrEnum):
    """What comes first in the dates of a column, of which some may be written as a day, a month and a year last."""

    YEAR_FIRST = "year first"
    DAY_FIRST = "day first"
    MONTH_FIRST = "month first"

    @property
    def example(self) -> str:
        """A date in this notation."""
        return {"year first": "2024-01-31", "day first": "31.01.2024", "month first": "01/31/2024"}[self]


def read_dates(texts: pd.Series[str], notation: DateNotation = DateNotation.YEAR_FIRST) -> NDArray[np.datetime64]:
    """Return the wall times of texts in microseconds, shape ``(n_texts,)``; NaT for all that is no date.

    Parameters
    ----------
    texts : Series of str
        Without blanks around them. In any column: ``"2024-12-31"``, also with ``/`` or ``.`` and with one digit;
        ``"2024-12"`` (the first of the month); ``"31 Dec 2024"``, ``"31-Dec-24"``, ``"Dec 31, 2024"``, ``"Dec 2024"``,
        with names in English. A time may follow, in 24 or 12 hours, and an offset from UTC, which is ignored.
    notation : DateNotation
        Whether ``"1/2/2024"`` is the second of January or the first of February; by default, it is no date.

    Examples
    --------
    >>> texts = pd.Series(["2024-12-31T23:59", "31 Dec 2024 2:30 PM", "1/2/2024", "2/30/2024"])
    >>> read_dates(texts, DateNotation.DAY_FIRST).astype("datetime64[m]").astype(str).tolist()
    ['2024-12-31T23:59', '2024-12-31T14:30', '2024-02-01T00:00', 'NaT']
    """
    return _read(texts, notation)[0]


def read_moments(texts: pd.Series[str], notation: DateNotation = DateNotation.YEAR_FIRST) -> NDArray[np.datetime64]:
    """Return the moments of texts in UTC, in microseconds, shape ``(n_texts,)``; NaT for all that is no date.

    Parameters
    ----------
    texts, notation
        As for `read_dates`. Texts without an offset are in UTC.

    Examples
    --------
    >>> texts = pd.Series(["2024-01-01T00:30+01:00", "2024-01-01T00:00Z", "2024-01-01"])
    >>> read_moments(texts).astype("datetime64[m]").astype(str).tolist()
    ['2023-12-31T23:30', '2024-01-01T00:00', '2024-01-01T00:00']
    """
    moments = read_dates(texts, notation)
    parts = texts.astype(object).str.extract(_HOURS_AND_MINUTES)
    ends = np.flatnonzero(parts["sign"].notna())
    before = texts.iloc[ends].str.replace(_HOURS_AND_MINUTES, "", regex=True).str.strip()
    ends = ends[read_dates(before, notation) == moments[ends]]  # "31-Dec-2024" ends in a year
    parts = parts.iloc[ends]
    minutes = 60 * _number(parts, "hours", 0.0) + _number(parts, "minutes", 0.0)
    minutes[parts["sign"] == "-"] *= -1
    moments[ends] -= minutes.astype("timedelta64[m]")
    return moments


def read_local(
    texts: pd.Series[str], zone: str, notation: DateNotation = DateNotation.YEAR_FIRST
) -> NDArray[np.datetime64]:
    """Return the wall times of texts in a time zone, in microseconds, shape ``(n_texts,)``; NaT for what is no date.

    Parameters
    ----------
    texts, notation
        As for `read_dates`. Texts without an offset are wall times already.
    zone : str
        Name of the time zone.

    Examples
    --------
    >>> texts = pd.Series(["2024-07-01T00:00Z", "2024-07-01T00:00+01:00", "2024-07-01T00:00"])
    >>> read_local(texts, "Europe/Berlin").astype("datetime64[m]").astype(str).tolist()
    ['2024-07-01T02:00', '2024-07-01T01:00', '2024-07-01T00:00']
    """
    dates, moments = read_dates(texts, notation), read_moments(texts, notation)
    has_offset = (dates != moments) | are_in_utc(texts)
    local = pd.DatetimeIndex(moments[has_offset], tz="UTC").tz_convert(ZoneInfo(zone)).tz_localize(None)
    dates[has_offset] = local.to_numpy()
    return dates


def are_in_utc(texts: pd.Series[str]) -> BoolArray:
    """Return which texts end in an offset of zero, shape ``(n_texts,)``.

    Examples
    --------
    >>> are_in_utc(pd.Series(["2024-07-01T00:00Z", "2024-07-01T00:00+01:00", "2024-07-01T00:00"])).tolist()
    [True, False, False]
    """
    return texts.astype(object).str.contains(_NO_HOURS).to_numpy(dtype=bool)


def have_two_digits(texts: pd.Series[str]) -> BoolArray:
    """Return in which texts, if they are dates, the year has two digits, shape ``(n_texts,)``.

    Examples
    --------
    >>> have_two_digits(pd.Series(["31.12.24", "31-Dec-24 23:59", "31.12.2024", "2024-12-31"])).tolist()
    [True, True, False, False]
    """
    return texts.astype(object).str.contains(_TWO_DIGITS).to_numpy(dtype=bool)


def near_years(dates: NDArray[np.datetime64], texts: pd.Series[str], years: tuple[int, int]) -> NDArray[np.datetime64]:
    """Return dates in the centuries nearest to some years, where the texts leave the century open.

    Parameters
    ----------
    dates : (n_texts,) array of datetime64[us]
        What the texts are read as.
    texts : Series of str
        Without blanks around them.
    years : (int, int)
        The first and the last year of dates that are known.

    Examples
    --------
    >>> texts = pd.Series(["24.12.45", "24.12.02", "24.12.2045"])
    >>> dates = near_years(read_dates(texts, DateNotation.DAY_FIRST), texts, (1930, 1985))
    >>> dates.astype("datetime64[D]").astype(str).tolist()
    ['1945-12-24', '2002-12-24', '2045-12-24']
    """
    are_open = np.flatnonzero(have_two_digits(texts) & ~np.isnat(dates))
    if not are_open.size:
        return dates
    months = dates[are_open].astype("datetime64[M]")
    shifts = np.array([0, -100, 100])  # as they are read, if two centuries are equally near
    year = months.astype("datetime64[Y]").astype(np.int64) + 1970 + shifts[:, None]
    away = np.maximum(0, np.maximum(years[0] - year, year - years[1]))
    shifted = months + 12 * shifts[np.argmin(away, axis=0)]
    dates = dates.copy()
    dates[are_open] += shifted.astype("datetime64[us]") - months.astype("datetime64[us]")
    return dates


def in_other_order(texts: pd.Series[str], notation: DateNotation) -> str | None:
    """Return a text that shows that day and month have changed places; None if they have not.

    Parameters
    ----------
    texts : Series of str
        Distinct texts, without blanks around them.
    notation : DateNotation
        What those with the year last are expected to begin with.

    Notes
    -----
    They have if several texts are dates in the other order only, none is in the given order only, and others are other
    dates in either: these would be misread, and nothing would show it.

    Examples
    --------
    >>> in_other_order(pd.Series(["02/03/1945", "02/19/1939", "12/24/1950"]), DateNotation.DAY_FIRST)
    '02/19/1939'
    >>> in_other_order(pd.Series(["19/03/1945", "02/19/1939", "12/24/1950"]), DateNotation.DAY_FIRST) is None
    True
    """
    if notation is DateNotation.YEAR_FIRST:
        return None
    other = DateNotation.MONTH_FIRST if notation is DateNotation.DAY_FIRST else DateNotation.DAY_FIRST
    expected, swapped = read_dates(texts, notation), read_dates(texts, other)
    are_expected, are_swapped = ~np.isnat(expected), ~np.isnat(swapped)
    only_swapped = np.flatnonzero(are_swapped & ~are_expected)
    if len(only_swapped) < _LEAST_IN_OTHER_ORDER or (are_expected & ~are_swapped).any():
        return None
    return texts.iloc[only_swapped[0]] if (are_expected & (expected != swapped)).any() else None


def find_notation(texts: pd.Series[str], shares: Float64) -> DateNotation | None:
    """Return the notation in which enough texts are dates; None if there is none, or if day and month cannot be told.

    Parameters
    ----------
    texts : Series of str
        The distinct texts of a column, without blanks around them.
    shares : (n_texts,) array
        Share of the cells with each text.

    Notes
    -----
    What comes first is what makes more of the texts dates: ``"1/31/2024"`` is one only with the month first. If all are
    dates either way, a number that is always 1 is the day, and dates with points begin with the day. Years of two
    digits are doubted if they might all be days, and there are more of them than of days, which may be years
    themselves. If more than a few of the dates speak for the other order, none is chosen.

    Examples
    --------
    >>> find_notation(pd.Series(["5/1/2024", "12/1/2024", "1/31/2024"]), np.full(3, 1 / 3)).value
    'month first'
    >>> find_notation(pd.Series(["5/1/2024", "12/2/2024"]), np.full(2, 1 / 2)) is None
    True
    """
    least = LEAST_SHARE - 1e-12
    if shares[texts.str.contains(_BEGINNING).to_numpy(dtype=bool)].sum() < least:  # most columns are something else
        return None
    dates, unusual, written = _read(texts, DateNotation.YEAR_FIRST)
    dated = ~np.isnat(dates)
    if shares[dated].sum() >= least:
        return DateNotation.YEAR_FIRST
    parts = written.days.str.extract(_YEAR_LAST)
    is_numbers = parts["year"].notna().to_numpy() & (_is_before_clock(parts) == written.has_clock)
    of_dates = np.where(np.isnat(written.clocks), 0.0, shares[unusual])
    shares_of_days = np.bincount(written.codes, weights=of_dates, minlength=len(parts))
    is_numbers &= shares_of_days > 0
    parts, shares_left = parts[is_numbers], shares_of_days[is_numbers]
    orders = (DateNotation.DAY_FIRST, DateNotation.MONTH_FIRST)
    read = {order: ~np.isnat(_days_of(_with_order(parts, order))) for order in orders}
    found = {order: float(shares_left[read[order]].sum()) for order in orders}
    more = max(orders, key=lambda each: found[each])
    if shares[dated].sum() + found[more] < least:
        return None
    less = orders[1 - orders.index(more)]
    alone, against = (float(shares_left[read[one] & ~read[other]].sum()) for one, other in ((more, less), (less, more)))
    if against > _MOST_AGAINST * alone:
        return None
    parts = parts[read[more]]
    order = more if alone > 0 else _without_evidence(parts)
    return None if order is None or _year_may_be_day(parts, order) else order


def _without_evidence(parts: pd.DataFrame) -> DateNotation | None:
    """Return what comes first in dates that are dates either way; None if it cannot be told."""
    first, second = (pd.to_numeric(parts[name]) for name in ("first", "second_number"))
    if (first == 1).all() or (first == second).all():
        return DateNotation.DAY_FIRST
    if (second == 1).all():
        return DateNotation.MONTH_FIRST
    is_usual = (parts["mark"] == ".").all() and (parts["year"].str.len() == 4).all()
    return DateNotation.DAY_FIRST if is_usual else None


def _year_may_be_day(parts: pd.DataFrame, order: DateNotation) -> bool:
    day = parts["first" if order is DateNotation.DAY_FIRST else "second_number"]
    years = parts["year"][parts["year"].str.len() == 2]
    are_days = pd.to_numeric(years).between(1, _MOST_DAYS)
    if years.empty or (~are_days).mean() > _MOST_AGAINST:
        return False
    return bool(parts["year"].nunique() > day.nunique())


def _read(texts: pd.Series[str], notation: DateNotation) -> tuple[NDArray[np.datetime64], BoolArray, _Written]:
    """Return the wall times of texts, which of them begin like dates other than those of ISO 8601, and these cut."""
    texts = texts.astype(object)
    dates = _read_usual(texts)
    unusual = np.isnat(dates) & texts.str.contains(_BEGINNING).to_numpy(dtype=bool)
    written = _Written.of(texts[unusual])
    dates[unusual] = _read_written(written, notation)
    return dates, unusual, written


def _read_usual(texts: pd.Series[str]) -> NDArray[np.datetime64]:
    """Return the wall times of texts in the notation of ISO 8601, NaT of others."""
    dates = np.full(len(texts), "NaT", dtype="datetime64[us]")
    usual = texts.str.fullmatch(_USUAL).to_numpy(dtype=bool)
    wall = texts[usual].str.replace(_OFFSET, "", regex=True)
    dates[usual] = pd.to_datetime(wall, errors="coerce", format="ISO8601").to_numpy()
    return dates


def _read_written(written: _Written, notation: DateNotation) -> NDArray[np.datetime64]:
    """Return the wall times of days and clocks."""
    days = np.full(len(written.days), "NaT", dtype="datetime64[us]")
    for pattern in _CLEAR if notation is DateNotation.YEAR_FIRST else (_YEAR_LAST, *_CLEAR):
        left = np.flatnonzero(np.isnat(days))
        parts = written.days.iloc[left].str.extract(pattern)
        fitting = parts["year"].notna().to_numpy() & (_is_before_clock(parts) == written.has_clock[left])
        days[left[fitting]] = _days_of(_with_order(parts[fitting], notation))
    dates = days[written.codes]
    dates += written.clocks
    return dates


@dataclass(frozen=True, slots=True)
class _Written:
    """Texts cut where a clock begins, because few days and times of day make many moments.

    Attributes
    ----------
    days : Series of str
        What stands before a clock, each once.
    has_clock : (n_days,) array
        Whether a clock follows.
    codes : (n_texts,) array
        Which of them each text begins with.
    clocks : (n_texts,) array
        Time of day of each text, 0 without a clock; NaT if what follows is none.
    """

    days: pd.Series[str]
    has_clock: BoolArray
    codes: IntArray
    clocks: NDArray[np.timedelta64]

    @classmethod
    def of(cls, texts: pd.Series[str]) -> Self:
        """Cut texts."""
        halves = np.array([_cut(text) for text in texts], dtype=object).reshape(-1, 2)
        codes, days = pd.factorize(halves[:, 0])
        clock_codes, clocks = pd.factorize(halves[:, 1])
        marked = pd.Series(days, dtype=object)
        return cls(
            days=marked.str.removesuffix(_MARK),
            has_clock=marked.str.endswith(_MARK).to_numpy(dtype=bool),
            codes=codes.astype(np.int64),
            clocks=_clocks_of(pd.Series(clocks, dtype=object))[clock_codes],
        )


_MARK = "\n"
"""Behind a day that a clock follows."""


def _cut(text: str) -> tuple[str, str]:
    """Cut a text before the hour, and mark the day; the colon of an offset alone follows no hour."""
    colon = text.find(":")
    if colon < 0 or (colon >= 3 and text[colon - 3] in "+-"):
        return text, ""
    start = colon - 2 if colon >= 2 and text[colon - 2].isdigit() else max(colon - 1, 0)
    return text[:start] + _MARK, text[start:]


def _with_order(parts: pd.DataFrame, notation: DateNotation) -> pd.DataFrame:
    """Name the two numbers before a year."""
    if "first" not in parts:
        return parts
    names = ["day", "month"] if notation is DateNotation.DAY_FIRST else ["month", "day"]
    return parts.rename(columns=dict(zip(("first", "second_number"), names, strict=True)))


def _is_before_clock(parts: pd.DataFrame) -> BoolArray:
    """Return whether a day ends as it does before a clock."""
    if "before_clock" not in parts:
        return np.zeros(len(parts), dtype=bool)
    return parts["before_clock"].notna().to_numpy()


def _days_of(parts: pd.DataFrame) -> NDArray[np.datetime64]:
    """Return the days of their parts in microseconds; NaT where there is no such day."""
    year = _number(parts, "year", 0.0)
    year += np.where(parts["year"].str.len() == 2, np.where(year >= _CENTURY_STARTS, 1900, 2000), 0)
    if "name" in parts:
        number_of = {name: float(i) for i, name in enumerate(_MONTHS, start=1)}
        month = parts["name"].str[:3].str.lower().map(number_of).to_numpy(dtype=np.float64)
    else:
        month = _number(parts, "month", 1.0)
    day = _number(parts, "day", 1.0)
    months = (12 * (year - 1970) + month - 1).astype(np.int64).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day.astype(np.int64) - 1)
    valid = (month >= 1) & (month <= 12) & (day >= 1) & (days.astype("datetime64[M]") == months)
    return np.where(valid, days.astype("datetime64[us]"), np.datetime64("NaT", "us"))


def _clocks_of(texts: pd.Series[str]) -> NDArray[np.timedelta64]:
    """Return the times of day of texts in microseconds, 0 for an empty one; NaT for all that is no clock."""
    parts = texts.str.extract(_CLOCK)
    hour = _number(parts, "hour", -1.0)
    in_halves = parts["half"].notna().to_numpy()
    valid = (hour >= 0) & (hour <= 23) & (~in_halves | ((hour >= 1) & (hour <= 12)))
    hour = np.where(in_halves, hour % 12 + 12 * (parts["half"].str.lower() == "p"), hour)
    seconds = 3600 * hour + 60 * _number(parts, "minute", 0.0) + _number(parts, "second", 0.0)
    clocks = np.where(valid, np.round(1e6 * seconds).astype("timedelta64[us]"), np.timedelta64("NaT", "us"))
    clocks[(texts == "").to_numpy()] = np.timedelta64(0, "us")
    return clocks


def _number(parts: pd.DataFrame, name: str, default: float) -> Float64:
    if name not in parts:
        return np.full(len(parts), default)
    return pd.to_numeric(parts[name]).fillna(default).to_numpy(dtype=np.float64)
