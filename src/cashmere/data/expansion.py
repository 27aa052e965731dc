"""How large a compressed file may become when it is read."""

from __future__ import annotations

from cashmere.exceptions import DataError

_BYTES = 256 * 2**20
_TIMES = 100


def expansion_limit(size: int) -> int:
    """Return to how many bytes a file of `size` bytes may expand: 100 times its size, but at least 256 MiB."""
    return max(_BYTES, _TIMES * size)


def expansion_error(name: str, size: int, limit: int, *, column: str | None = None) -> DataError:
    """Return the error for a file that would expand to more than `limit` bytes.

    Parameters
    ----------
    name : str
        The file.
    size, limit : int
        Its size and its limit, in bytes.
    column : str, optional
        The column whose texts exceed the limit.
    """
    where = "" if column is None else f" in column {column!r}"
    return DataError(
        f"{name}: the compressed file of {size} bytes expands to more than {limit // 2**20} MiB{where}, which no table "
        "should. If its content is right, read it with pandas and pass the DataFrame.",
        column=column,
    )
