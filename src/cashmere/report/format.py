"""Format numbers, durations, sizes and shares for readers."""

from __future__ import annotations


def format_number(value: float | None) -> str:
    """Return a score with about four significant digits.

    Examples
    --------
    >>> [format_number(v) for v in (0.93214, 1234.5678, 1.5e9, 0.0000123, None)]
    ['0.9321', '1,234.6', '1.5e+09', '1.23e-05', '–']
    """
    if value is None:
        return "–"
    size = abs(value)
    if size >= 1e6 or 0 < size < 1e-4:
        return f"{value:.3g}"
    return f"{value:.4f}" if size < 10 else f"{value:.2f}" if size < 1000 else f"{value:,.1f}"


def format_seconds(value: float | None) -> str:
    """Return a duration in the units people use.

    Examples
    --------
    >>> [format_seconds(v) for v in (0.0042, 3.21, 75, 180, 7384, None)]
    ['4.2 ms', '3.2 s', '1 min 15 s', '3 min', '2 h 3 min', '–']
    """
    if value is None:
        return "–"
    if value == 0:
        return "0 s"
    if value < 1:
        return f"{1000 * value:.2g} ms" if value < 0.1 else f"{1000 * value:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes, seconds = divmod(round(value), 60)
    large, small = (
        (f"{minutes} min", f"{seconds} s") if minutes < 60 else (f"{minutes // 60:,} h", f"{minutes % 60} min")
    )
    return large if small.startswith("0 ") else f"{large} {small}"


def format_bytes(value: float | None) -> str:
    """Return a size in binary units.

    Examples
    --------
    >>> [format_bytes(v) for v in (512, 3_400_000, None)]
    ['512 B', '3.2 MiB', '–']
    """
    if value is None:
        return "–"
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def format_count(value: float | None) -> str:
    """Return a whole number with separators; a dash if it is not known."""
    return "–" if value is None else f"{value:,.0f}"


def format_percent(value: float | None) -> str:
    """Return a share in percent; a dash if it is not known."""
    return "–" if value is None else f"{100 * value:.3g} %"
