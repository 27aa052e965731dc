"""A table of text, to be shown in the terminal, as Markdown or as HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass, field

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Text in rows and columns.

    Attributes
    ----------
    title, note : str
        Texts above and below the table.
    columns : tuple of str
        Heads of the columns.
    rows : tuple of tuple of str
        Cells.
    best : frozenset of (int, int)
        Row and column of the cells to emphasise.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    best: frozenset[tuple[int, int]] = field(default=frozenset())

    def to_rich(self) -> RichTable:
        """Return the table for the terminal, without title and note."""
        table = RichTable(box=box.SIMPLE_HEAD)
        for i, column in enumerate(self.columns):
            table.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
        for i, row in enumerate(self.rows):
            table.add_row(*(Text(cell, style="bold" if (i, j) in self.best else "") for j, cell in enumerate(row)))
        return table

    def to_markdown(self) -> str:
        """Return the table as Markdown, with its title as a heading."""
        lines = [f"### {self.title}", "", "| " + " | ".join(self.columns) + " |"]
        lines.append("| --- |" + " ---: |" * (len(self.columns) - 1))
        for i, row in enumerate(self.rows):
            cells = (f"**{cell}**" if (i, j) in self.best else cell for j, cell in enumerate(row))
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join([*lines, "", self.note, ""] if self.note else [*lines, ""])

    def to_html(self) -> str:
        """Return the table as HTML, with its title as a heading."""
        head = "".join(f"<th>{html.escape(column)}</th>" for column in self.columns)
        body = ""
        for i, row in enumerate(self.rows):
            cells = (f"<b>{html.escape(c)}</b>" if (i, j) in self.best else html.escape(c) for j, c in enumerate(row))
            body += "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
        note = f"<p>{html.escape(self.note.replace('`', ''))}</p>" if self.note else ""
        return f"<h2>{html.escape(self.title)}</h2><table><tr>{head}</tr>{body}</table>{note}"


def print_tables(console: Console, tables: Iterable[Table]) -> None:
    """Print tables, each below its title and above its note."""
    for table in tables:
        console.print(Text(table.title, style="bold"))
        console.print(table.to_rich(), end="")
        console.print(Text(f"{table.note}\n", style="dim"))
