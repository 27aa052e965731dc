"""Record who trained a member of a run: with a signature beside its archive, a resumed run recognises its own members.

The database of a run lists its trials, but whoever changes an archive can also change the database. A signature needs
the key of this machine, which does not travel with the run.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from cashmere.base.files import open_regular
from cashmere.exceptions import SigningKeyError
from cashmere.model.signature import Signer, read_signature_file, write_signature

_logger = logging.getLogger(__name__)


def member_signature_path(archive: Path) -> Path:
    """Return the path of the signature of a member's archive."""
    return archive.with_name(f"signature-{archive.stem}.json")


def sign_member(archive: Path, content: bytes, *, run: str) -> None:
    """Sign an archive that this machine has just written; without a key it stays unsigned.

    Parameters
    ----------
    archive : Path
        The file.
    content : bytes
        Its content.
    run : str
        Identity of the run, as a signature for one run is not valid in another.
    """
    checksum = hashlib.sha256(content).hexdigest()
    try:
        write_signature(member_signature_path(archive), _statement(archive, run, checksum), checksum, durable=False)
    except SigningKeyError as error:
        _logger.info("The models of a trial are not signed: %s", error)


def checksum_signed_here(archive: Path, *, run: str) -> str | None:
    """Return the checksum of an archive of a run if this machine wrote it in its present form, otherwise None.

    Raises
    ------
    ModelFileError
        If the archive was changed after it was signed, or the signature is damaged or forged.
    OSError
        If the archive cannot be read.
    """
    with open_regular(archive) as file:
        checksum = hashlib.file_digest(file, "sha256").hexdigest()
    changed = (
        f"is not the signature of {archive.name} beside it, which has been changed since. Restore both from a copy, or "
        "delete both: the run then does without this trial's models."
    )
    path, statement = member_signature_path(archive), _statement(archive, run, checksum)
    signer = read_signature_file(path, statement, checksum, if_changed=changed).signer
    return checksum if signer is Signer.THIS_MACHINE else None


def _statement(archive: Path, run: str, checksum: str) -> str:
    return f"cashmere member signature 1\n{run}\n{archive.stem}\n{checksum}"
