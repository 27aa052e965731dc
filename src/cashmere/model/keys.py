"""The signing key of this machine, and the public keys of others that its user trusts.

The key folder is ``$CASHMERE_KEY_FOLDER``, or ``cashmere`` in the user's configuration folder:

    signing-key.pem    the private key (Ed25519), readable by its owner only; made when first needed
    public-key.pem     its public half, to give to others
    trusted/           public keys of others, each named after its fingerprint
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cashmere.exceptions import SigningKeyError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_FINGERPRINT_BYTES = 16
_MOST_BYTES = 10_000
"""A key file is a few hundred bytes long."""


def key_folder() -> Path:
    """Return where keys are kept; the folder need not exist.

    Raises
    ------
    SigningKeyError
        If no folder is named, and the user has no home folder.
    """
    if chosen := os.environ.get("CASHMERE_KEY_FOLDER"):
        return Path(chosen)
    variable, below_home = ("APPDATA", "AppData/Roaming") if sys.platform == "win32" else ("XDG_CONFIG_HOME", ".config")
    if base := os.environ.get(variable):
        return Path(base) / "cashmere"
    try:
        return Path.home() / below_home / "cashmere"
    except RuntimeError as error:
        text = "cannot be found: this user has no home folder. Set CASHMERE_KEY_FOLDER to a folder that you can write."
        raise SigningKeyError(Path("~") / below_home, text) from error


def fingerprint(public_key: bytes) -> str:
    """Return the short name of a public key: 32 hexadecimal digits of its SHA-256.

    Parameters
    ----------
    public_key : bytes
        The 32 bytes of an Ed25519 public key.
    """
    return hashlib.sha256(public_key).digest()[:_FINGERPRINT_BYTES].hex()


def signing_key() -> Ed25519PrivateKey:
    """Return this machine's key; create it if there is none.

    Raises
    ------
    SigningKeyError
        If the key folder cannot be written, or the key is damaged or can be read by others.
    """
    path = key_folder() / "signing-key.pem"
    try:
        if not path.exists():
            _make_key(path)
        return _read_private(path)
    except OSError as error:
        raise SigningKeyError(
            path, f"cannot be made or read ({error}). Set CASHMERE_KEY_FOLDER to a folder that you can write."
        ) from error


def own_public_key() -> bytes | None:
    """Return the 32 bytes of this machine's public key; None if no key has been made or it cannot be read."""
    with contextlib.suppress(OSError, SigningKeyError):
        return _read_private(key_folder() / "signing-key.pem").public_key().public_bytes_raw()
    return None


def trusted_keys() -> frozenset[bytes]:
    """Return the public keys of others that `trust_key` has recorded; skip files that hold no key."""
    found = set()
    with contextlib.suppress(OSError, SigningKeyError):
        for path in sorted((key_folder() / "trusted").glob("*.pem")):
            with contextlib.suppress(OSError, SigningKeyError):
                found.add(read_public_key(path))
    return frozenset(found)


def trust_key(path: Path) -> str:
    """Record the public key in a file as trusted, and return its fingerprint.

    Raises
    ------
    SigningKeyError
        If the file holds no Ed25519 public key, or the key folder cannot be written.
    """
    try:
        key = read_public_key(path)
    except OSError as error:
        raise SigningKeyError(path, f"cannot be read ({error.strerror}).") from error
    folder = key_folder() / "trusted"
    name = fingerprint(key)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write_new(folder / f"{name}.pem", public_pem(key), mode=0o600)
    except OSError as error:
        raise SigningKeyError(folder, f"cannot be written ({error.strerror}). Set CASHMERE_KEY_FOLDER.") from error
    return name


def read_public_key(path: Path) -> bytes:
    """Return the 32 bytes of the Ed25519 public key in a PEM file.

    Raises
    ------
    OSError
        If the file cannot be read.
    SigningKeyError
        If it holds something else.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    text = _read_small(path)
    try:
        key = load_pem_public_key(text)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SigningKeyError(path, "is not a public key in PEM format, as `cashmere key` writes it.") from error
    if not isinstance(key, Ed25519PublicKey):
        raise SigningKeyError(path, f"holds a key of another kind ({type(key).__name__}). Expected an Ed25519 key.")
    return key.public_bytes_raw()


def public_pem(public_key: bytes) -> bytes:
    """Return a public key as the text of a PEM file."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return _public(public_key).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _public(public_key: bytes) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes(public_key)


def signature_is_valid(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether the owner of a key signed a message."""
    from cryptography.exceptions import InvalidSignature

    try:
        _public(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _make_key(path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = Ed25519PrivateKey.generate()
    _write_new(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), mode=0o600)
    kept = _read_private(path)  # if several processes made one, that of the first to finish
    _write_new(path.with_name("public-key.pem"), public_pem(kept.public_key().public_bytes_raw()), mode=0o644)


def _read_private(path: Path) -> Ed25519PrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    text = _read_small(path)
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise SigningKeyError(path, "can be read or written by others. Run `chmod 600` on it, or delete it.")
    try:
        key = load_pem_private_key(text, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise SigningKeyError(path, "is damaged. Delete it: a new key is made, and signs from then on.") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise SigningKeyError(path, f"holds a key of another kind ({type(key).__name__}). Delete it.")
    return key


def _read_small(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES)


def _write_new(path: Path, data: bytes, *, mode: int) -> None:
    """Write a file atomically, unless it already exists."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink()
