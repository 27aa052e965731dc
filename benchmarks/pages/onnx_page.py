"""The certificates on docs/onnx.md."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row

PAGE = "docs/onnx.md"


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page that hold kept rows."""
    rows: Frame = kept("onnx")
    lines = [
        row(
            f"`{each.table}`",
            f"`{each.algorithm}`",
            _small(each.largest),
            _small(each.median),
            "-" if each.equal != each.equal else f"{each.equal:.0f} of {each.rows}",
            f"{each.cashmere_row_ms:.2f}, {each.onnx_row_ms:.2f} ms",
            f"{each.cashmere_rows_per_second:,.0f}, {each.onnx_rows_per_second:,.0f}",
            f"{each.folder_bytes / 1e6:.2f}, {each.onnx_bytes / 1e6:.2f} MB",
        )
        for each in rows.itertuples()
    ]
    header = row(
        "table", "algorithm", "largest difference", "median", "labels equal", "one row: cashmere, ONNX",
        "rows per second", "size: folder, file",
    )  # fmt: skip
    yield Body(header=header, lines=tuple(lines))
    yield Statement(
        text="The largest difference of all is {largest:.1e}: {share:,.0f} times below what is accepted.",
        values={"largest": rows["largest"].max(), "share": 1e-4 / rows["largest"].max()},
    )


def _small(value: float) -> str:
    return f"{value:.1e}" if value else "0"
