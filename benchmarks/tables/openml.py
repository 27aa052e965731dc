"""Tables from OpenML, as a folder that all benchmarks read with ``--data``.

    python -m benchmarks fetch --out tables divbo optdivbo
    python -m benchmarks fetch --out tables credit-g=31 quake_binary=209 --binary quake_binary

Names of experiments (`divbo`, `optdivbo`, `dacopt2`) stand for all their data sets; others are given as ``name=ID``
with the number of the data set on OpenML. Tables that the folder holds are not fetched again, so later runs need
no network. ``--binary`` turns a target into two classes as OpenML's own binary versions do: numbers become `P` below
the mean and `N` otherwise; the most frequent class becomes `P` and all others `N`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd
from rich.console import Console

from benchmarks.published import PUBLISHED
from benchmarks.published.data_sets import TABLES_OF
from benchmarks.tables.manifest import read_manifest
from cashmere.base.files import write_atomically
from cashmere.data.reading import read_table
from cashmere.exceptions import DataError

GROUPS = ("divbo", "optdivbo", "dacopt2")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tables", nargs="+", metavar="TABLE", help=f"{', '.join(GROUPS)}, or name=ID")
    parser.add_argument("--out", type=Path, required=True, help="folder; tables it already holds are kept")
    parser.add_argument("--binary", nargs="+", default=[], metavar="NAME", help="tables to give two classes")


def main(arguments: argparse.Namespace) -> None:
    """Fetch the tables that the folder lacks; a failed one does not stop the others."""
    console = Console(width=None if sys.stdout.isatty() else 160)
    there = read_manifest(arguments.out) if (arguments.out / "manifest.json").exists() else {}
    wanted = resolve_tables(arguments.tables, {name: table.openml_id for name, table in there.items()})
    if unknown := sorted(set(arguments.binary) - set(wanted)):
        raise SystemExit(f"--binary {' '.join(unknown)}: expected names from {', '.join(wanted)}.")
    arguments.out.mkdir(parents=True, exist_ok=True)
    n_failed = 0
    for name, openml_id in wanted.items():
        if name in there:
            console.print(f"{name}: already there", highlight=False)
            continue
        try:
            entry = fetch_table(arguments.out, name, openml_id, binary=name in arguments.binary)
            console.print(f"{name}: {entry['n_rows']} rows, {entry['task']}", highlight=False)
        except DataError as error:
            n_failed += 1
            console.print(f"{name}: {error}", markup=False, highlight=False)
    if n_failed:
        raise SystemExit(f"{n_failed} of {len(wanted)} tables are missing. Repeat the command to try them again.")


def resolve_tables(words: Iterable[str], there: Mapping[str, int | None] | None = None) -> dict[str, int]:
    """Return numbers on OpenML by our names of the tables.

    Parameters
    ----------
    words : iterable of str
        One of `GROUPS`, or ``name=ID``. Where a name of a group is taken by another number, `MiceProtein` by another
        version of it, the table is called ``name-ID``.
    there : mapping of str to int or None, optional
        Numbers of the tables that the folder holds, None if unknown: their names are taken, too.
    """
    taken = {name: openml_id for name, openml_id in (there or {}).items() if openml_id is not None}
    found: dict[str, int] = {}
    for word in words:
        name, equals, number = word.partition("=")
        if equals and name and number.isdigit():
            if taken.get(name, int(number)) != int(number):
                raise SystemExit(f"{word}: the folder holds data set {taken[name]} under this name. Choose another.")
            found[name] = int(number)
        elif word in GROUPS:
            for name, openml_id in _tables_of(word):
                is_free = (taken | found).get(name, openml_id) == openml_id
                found[name if is_free else f"{name}-{openml_id}"] = openml_id
        else:
            raise SystemExit(f"{word}: expected {', '.join(GROUPS)}, or name=ID such as credit-g=31.")
    return found


def _tables_of(group: str) -> list[tuple[str, int]]:
    if group in TABLES_OF:
        numbers = pd.read_csv(PUBLISHED / "openml_ids.csv").set_index("dataset")["openml_id"]
        return [(table, int(numbers[table])) for table in TABLES_OF[group]]
    printed = pd.read_csv(PUBLISHED / f"{group}.csv").drop_duplicates("openml_id")
    return list(zip(printed["table"], printed["openml_id"].astype(int), strict=True))


def fetch_table(folder: Path, name: str, openml_id: int, *, binary: bool = False) -> dict[str, object]:
    """Fetch one table, write it, and add it to the manifest of the folder.

    Parameters
    ----------
    folder : Path
        Where ``name.parquet`` and ``manifest.json`` go.
    name : str
        Name to give the table.
    openml_id : int
        Number of the data set.
    binary : bool
        Whether to make two classes of the target, see `make_binary`.

    Returns
    -------
    dict
        The entry of the manifest. A table made binary is no longer the data set of that number: its entry has the
        number as ``binary_of`` instead of ``openml_id``, so that it is not compared with published results.

    Raises
    ------
    DataError
        If OpenML cannot be reached, has no such table, or the table has no target that could be used.
    """
    frame = read_table(f"openml:{openml_id}")
    column = frame.attrs.get("target")
    if column is None:
        raise DataError(f"openml:{openml_id}: has no single default target. Choose another version of the data set.")
    frame = frame.dropna(subset=[column]).reset_index(drop=True)
    target = frame.pop(column)
    is_numeric = pd.api.types.is_numeric_dtype(target)
    if binary:
        target, is_numeric = make_binary(target), False
    target = target.astype(float) if is_numeric else target.astype(str)
    n_classes = target.nunique()
    task = "regression" if is_numeric else "binary" if n_classes == 2 else "multiclass"
    if n_classes < 2:
        raise DataError(f"openml:{openml_id}: the target {column!r} has a single value.")
    frame.columns = frame.columns.map(str)
    frame = frame.rename(columns={"target": "target_feature"})  # this name is reserved for the target
    frame["target"] = target.to_numpy()
    frame.attrs.clear()
    frame.to_parquet(folder / f"{name}.parquet")
    number = {"binary_of" if binary else "openml_id": openml_id}
    entry = {"name": name, "file": f"{name}.parquet", "task": task, **number, "n_rows": len(frame)}
    path = folder / "manifest.json"
    entries = json.loads(path.read_text()) if path.exists() else []
    write_atomically(path, json.dumps([*entries, entry], indent=1).encode())
    return entry


def make_binary(target: pd.Series) -> pd.Series:
    """Return two classes as OpenML's binary versions of data sets have them.

    Numbers become ``P`` below the mean and ``N`` otherwise. The most frequent class, the first in order among equals,
    becomes ``P`` and all others ``N``.

    Examples
    --------
    >>> make_binary(pd.Series([1.0, 2.0, 6.0])).tolist()
    ['P', 'P', 'N']
    >>> make_binary(pd.Series(["red", "blue", "green", "blue"])).tolist()
    ['N', 'P', 'N', 'P']
    """
    is_first = target < target.mean() if pd.api.types.is_numeric_dtype(target) else target == target.mode()[0]
    return pd.Series("N", index=target.index).mask(is_first, "P")
