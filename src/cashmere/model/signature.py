"""Record who vouches for a model, by a signature of its manifest in a file beside it.

The manifest holds the checksums of all files of the model, and its own; the signature covers the latter, and so the
whole model. Its file is named after the checksum, so that the signature of a new manifest can be written first. It
holds the public key of the signer, so that anybody can check it. It says who signed; whether to trust them is up to the
reader (`cashmere.model.keys`).

`write_signature` and `read_signature_file` do the same for any other checksum.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypedDict

from msgspec import Meta

from cashmere.base.files import failures_as, writing
from cashmere.base.json_files import read_json
from cashmere.exceptions import ModelFileError
from cashmere.model.keys import fingerprint, own_public_key, signature_is_valid, signing_key, trusted_keys

_FORMAT = "cashmere signature"
_VERSION = 1


class _Head(TypedDict):
    """What distinguishes signature files of this version from others."""

    format: str
    version: int


class _SignatureFile(TypedDict):
    checksum: Annotated[str, Meta(max_length=1000)]
    public_key: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    signature: Annotated[str, Meta(pattern="^[0-9a-f]{128}$")]


class Signer(StrEnum):
    """Who signed a model, as this machine sees it."""

    THIS_MACHINE = "this machine"
    TRUSTED = "a trusted key"
    UNKNOWN = "an unknown key"
    NOBODY = "nobody"

    @property
    def is_trusted(self) -> bool:
        """Whether the reader trusts the signer, so that the content need not be tried in a child process."""
        return self in (Signer.THIS_MACHINE, Signer.TRUSTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What is known about the signature of a model.

    Attributes
    ----------
    signer : Signer
        Who signed this manifest.
    fingerprint : str or None
        Fingerprint of the key, see `cashmere.model.keys.fingerprint`; None without a signature.
    """

    signer: Signer
    fingerprint: str | None = None

    def __str__(self) -> str:
        return "not signed" if self.fingerprint is None else f"signed by {self.signer} ({self.fingerprint})"


def signature_path(folder: Path, checksum: str) -> Path:
    """Return the path of the signature of the manifest with this checksum."""
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
    return write_signature(signature_path(folder, checksum), _statement(checksum), checksum)


def write_signature(path: Path, statement: str, checksum: str, *, durable: bool = True) -> str:
    """Sign a statement about a checksum with this machine's key, and return the key's fingerprint.

    Parameters
    ----------
    path : Path
        The file of the signature.
    statement : str
        Text to sign; it must contain the checksum, and say what it is a checksum of.
    checksum : str
        Kept in the file, to distinguish changed content from a forged signature.
    durable : bool
        See `cashmere.base.files.writing`.

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
        "signature": key.sign(statement.encode()).hex(),
    }
    with writing(path, durable=durable) as file:
        file.write(json.dumps(content, indent=1).encode())
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
        If there is a signature that is damaged, of another version or manifest, or forged: not made with the key that
        it names.
    """
    changed = f"is the signature of another manifest than the one beside it. {_ADVICE}"
    return read_signature_file(signature_path(folder, checksum), _statement(checksum), checksum, if_changed=changed)


def read_signature_file(path: Path, statement: str, checksum: str, *, if_changed: str) -> Signature:
    """Return who signed a statement, see `write_signature`.

    Parameters
    ----------
    path, statement, checksum
        As for `write_signature`; the checksum is that of the present content.
    if_changed : str
        Text of the error if the file contains another checksum.

    Raises
    ------
    ModelFileError
        As `read_signature`.
    """
    if not path.exists() and not path.is_symlink():
        return Signature(signer=Signer.NOBODY)
    with failures_as(ModelFileError, path, _ADVICE):
        head = read_json(path, _Head)
        if head["format"] != _FORMAT:
            raise ModelFileError(path, f"is not a signature of cashmere. {_ADVICE}")
        if head["version"] != _VERSION:
            raise ModelFileError(path, "was written by another version of cashmere. Upgrade cashmere.")
        content = read_json(path, _SignatureFile)
    if content["checksum"] != checksum:
        raise ModelFileError(path, if_changed)
    public = bytes.fromhex(content["public_key"])
    if not signature_is_valid(public, bytes.fromhex(content["signature"]), statement.encode()):
        raise ModelFileError(path, f"is forged or damaged: the key that it names did not sign this content. {_ADVICE}")
    if public == own_public_key():
        signer = Signer.THIS_MACHINE
    else:
        signer = Signer.TRUSTED if public in trusted_keys() else Signer.UNKNOWN
    return Signature(signer=signer, fingerprint=fingerprint(public))


_ADVICE = "Get the model again from its source; to use it without a signature, delete this file."


def _statement(checksum: str) -> str:
    return f"cashmere model signature 1\n{checksum}"
