"""Messages between the coordinator and a worker process: a length, then a pickle."""

from __future__ import annotations

import struct
from typing import IO, Any

import cloudpickle

_LENGTH = struct.Struct("<Q")


FINAL, CHECKPOINT = b"=", b"+"
"""First byte of an answer: the outcome of the trial, or a checkpoint before its end."""


def pack(content: Any) -> bytes:
    """Pickle, by value what the other process cannot import, such as functions of ``__main__``."""
    data: bytes = cloudpickle.dumps(content)
    return data


def unpack(data: bytes) -> Any:
    """Restore what `pack` was given."""
    return cloudpickle.loads(data)


def write_message(stream: IO[bytes], data: bytes) -> None:
    """Write a whole message.

    Raises
    ------
    OSError
        If the other process has ended.
    """
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def read_message(stream: IO[bytes], *, longest: float = float("inf")) -> bytes | None:
    """Wait for a whole message; return None once the other process has ended, even in the middle of a message.

    Parameters
    ----------
    stream : binary stream
        From the other process.
    longest : float
        Length of the longest message that is read, in bytes.

    Raises
    ------
    OverflowError
        If the message is longer, or so long that there is no memory for it.
    """
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(header)
    if length > longest:
        raise OverflowError(f"a message of {length / 2**20:.0f} MiB, which may have {longest / 2**20:.0f} MiB at most")
    try:
        data = stream.read(length)
    except MemoryError as error:
        raise OverflowError(f"a message of {length / 2**20:.0f} MiB, for which there is no memory") from error
    return data if len(data) == length else None
