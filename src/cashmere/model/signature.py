"""Who vouches for a model: a signature of its manifest, in a file beside it.

The manifest names the checksum of every file of the model and has one itself; the signature covers that checksum, and
so the whole model. Its file is named after the checksum, so that the signature of a new manifest can be written first.
It holds the public key of the signer, so that anybody can check it. It says who signed; whether that is somebody to
trust is for the reader to decide (`cashmere.model.keys`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from cashmere.base.files import write_atomically
from cashmere.exceptions import ModelFileError
from cashmere.model.keys import fingerprint, own_public_key, signature_is_valid, signing_key, trusted_keys

_FORMAT = "cashmere signature"
_VERSION = 1
_MOST_BYTES = 10_000


class Signer(StrEnum):
    """Who signed a model, as this machine sees it."""

    THIS_MACHINE = "this machine"
    TRUSTED = "a trusted key"
    UNKNOWN = "an unknown key"
    NOBODY = "nobody"

    @property
    def is_trusted(self) -> bool:
        """Whether the signer vouches for the content, so that it need not be tried in a child process."""
        return self in (Signer.THIS_MACHINE, Signer.TRUSTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What is known about the signature of a model.

    Attributes
    ----------
    signer : Signer
        Who signed this manifest.
    fingerprint : str or None
        The key, see `cashmere.model.keys.fingerprint`; None without a signature.
    """

    signer: Signer
    fingerprint: str | None = None

    def __str__(self) -> str:
        return "not signed" if self.fingerprint is None else f"signed by {self.signer} ({self.fingerprint})"


def signature_path(folder: Path, checksum: str) -> Path:
    """Return where the signature of the manifest with this checksum is."""
    return folder / f"signature-{checksum[:12]}.json"


def sign_manifest(folder: Path, checksum: str) -> str:
    """Sign a manifest with this machine's key, and return the key's fingerprint.

    Parameters
    ----------
    folder : Path
        The model folder.
    checksum : str
        That of its manifest.

    Raises
    ------
    SigningKeyError
        If there is no key and none can be made.
    """
    key = signing_key()
    public = key.public_key().public_bytes_raw()
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "checksum": checksum,
        "public_key": public.hex(),
        "signature": key.sign(_message(checksum)).hex(),
    }
    write_atomically(signature_path(folder, checksum), json.dumps(content, indent=1).encode())
    return fingerprint(public)


def read_signature(folder: Path, checksum: str) -> Signature:
    """Return who signed a manifest.

    Parameters
    ----------
    folder : Path
        The model folder.
    checksum : str
        That of its manifest.

    Raises
    ------
    ModelFileError
        If there is a signature, but damaged, of another version or another manifest, or forged: not made by the key
        that it names.
    """
    path = signature_path(folder, checksum)
    content = _read(path)
    if content is None:
        return Signature(signer=Signer.NOBODY)
    try:
        public, signature = bytes.fromhex(content["public_key"]), bytes.fromhex(content["signature"])
        signed = content["checksum"]
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(path, f"is damaged ({type(error).__name__}: {error}). {_ADVICE}") from error
    if signed != checksum:
        raise ModelFileError(path, f"is the signature of another manifest than the one beside it. {_ADVICE}")
    if not signature_is_valid(public, signature, _message(checksum)):
        raise ModelFileError(path, f"is forged or damaged: the key that it names did not sign this model. {_ADVICE}")
    if public == own_public_key():
        signer = Signer.THIS_MACHINE
    else:
        signer = Signer.TRUSTED if public in trusted_keys() else Signer.UNKNOWN
    return Signature(signer=signer, fingerprint=fingerprint(public))


_ADVICE = "Get the model again from its source; to use it without a signature, delete this file."


def _message(checksum: str) -> bytes:
    return f"cashmere model signature 1\n{checksum}".encode()


def _read(path: Path) -> dict[str, Any] | None:
    """Return the content of a signature file; None if there is none."""
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise ModelFileError(path, f"is not a regular file. {_ADVICE}")
        with path.open("rb") as file:
            content = json.loads(file.read(_MOST_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFileError(path, f"is damaged ({error}). {_ADVICE}") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ModelFileError(path, f"is not the signature of a cashmere model. {_ADVICE}")
    if content.get("version") != _VERSION:
        raise ModelFileError(path, "was written by another version of cashmere. Upgrade cashmere.")
    return content
