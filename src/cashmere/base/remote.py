"""Files at a URL: on a web server, or in a store that fsspec knows, such as S3."""

from __future__ import annotations

import contextlib
import errno
import re
from pathlib import Path
from typing import BinaryIO, cast

from cashmere.base.files import writing
from cashmere.exceptions import MissingDependencyError

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/")
"""One slash, because a `Path` made from a URL has lost the other; a scheme of one letter is a drive of Windows."""

_SECONDS = 60.0
"""How long to wait for a silent web server."""

_MISSING = (404, 410)

_CHUNK_BYTES = 2**20


def is_url(place: str | Path) -> bool:
    """Return whether something is a URL, or a `Path` made from one."""
    return _URL.match(str(place)) is not None


def below(url: str, name: str) -> str:
    """Return the URL of a file below another."""
    return f"{url.rstrip('/')}/{name}"


def fetch(url: str, destination: Path, *, limit: int) -> None:
    """Copy a file from a URL.

    Parameters
    ----------
    url : str
        Web servers (http, https) are asked directly; every other scheme is one of fsspec.
    destination : Path
        Replaced, complete or not at all.
    limit : int
        Largest size in bytes.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    OSError
        If it cannot be read to its end, or is larger.
    MissingDependencyError
        If fsspec is needed and not installed.
    """
    with writing(destination, durable=False) as file:
        try:
            size = 0
            with _open(url) as source:
                while chunk := source.read(_CHUNK_BYTES):
                    size += len(chunk)
                    if size > limit:
                        raise OSError(errno.EFBIG, f"it holds more than {limit} bytes", url)
                    file.write(chunk)
                if missing := getattr(source, "length", None):  # http.client ends silently with the connection
                    raise OSError(errno.EIO, f"the connection ended {missing} bytes before the end of the file", url)
        except (OSError, MissingDependencyError):
            raise
        except Exception as error:  # each store raises its own errors
            raise OSError(errno.EIO, f"{type(error).__name__}: {str(error)[:300]}", url) from error


def _open(url: str) -> contextlib.AbstractContextManager[BinaryIO]:
    match = _URL.match(url)
    scheme = "" if match is None else match["scheme"].lower()
    if scheme in ("http", "https"):
        import urllib.error
        import urllib.request

        try:
            return cast("contextlib.AbstractContextManager[BinaryIO]", urllib.request.urlopen(url, timeout=_SECONDS))
        except urllib.error.HTTPError as error:
            error.close()
            number = errno.ENOENT if error.code in _MISSING else errno.EIO
            raise OSError(number, f"the server answers {error.code} {error.reason}", url) from None
        except urllib.error.URLError as error:
            raise OSError(errno.EIO, str(error.reason), url) from error
    try:
        import fsspec
    except ImportError as error:
        raise MissingDependencyError("fsspec", f"Reading from {scheme}://", "fsspec") from error
    try:
        return cast("contextlib.AbstractContextManager[BinaryIO]", fsspec.open(url, "rb"))
    except ImportError as error:  # it names the package that the scheme needs
        raise OSError(errno.EIO, str(error), url) from error
