"""Kept results that were made by other code than what is here: they can mislead a comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from rich.console import Console


def tell_different_code(
    console: Console, made_by: Iterable[str], here: Collection[str], *, what: str = "runs", advice: str = ""
) -> None:
    """Say how many results were made by different code, and by which; say nothing if there are none.

    Parameters
    ----------
    console : Console
        Where it is said.
    made_by : iterable of str
        The code of each result that is shown: a digest, or a version.
    here : collection of str
        What the code that is here is called.
    what : str
        What the results are.
    advice : str
        How to repeat them.
    """
    counts = Counter(made_by)
    different = {code: n for code, n in counts.items() if code not in here}
    if different:
        codes = ", ".join(f"{n} by {code or 'unknown code'}" for code, n in different.items())
        told = f"{sum(different.values())} of {counts.total()} {what} were made by different code"
        console.print(f"[yellow]{told}[/] ({codes}){advice and f'; {advice}'}", highlight=False)
