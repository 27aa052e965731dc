"""``cashmere inspect-model | sign | verify | key | trust-key``: what a model is, and who vouches for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cashmere.cli.app import app
from cashmere.cli.terminal import plain, say, typed_errors

ModelFolder = Annotated[Path, typer.Argument(metavar="DIR", help="A run directory, or the model folder in it.")]


@app.command("inspect-model")
def inspect_model(folder: ModelFolder) -> None:
    """Show what a model is and who signed it. Reads its manifest only."""
    with typed_errors():
        from rich.console import Console
        from rich.table import Table

        from cashmere.model.description import describe_model

        described = describe_model(folder)
        facts = Table(box=None, show_header=False, pad_edge=False)
        facts.add_column(no_wrap=True)
        facts.add_column(overflow="fold")
        for name, value in described.facts.items():
            facts.add_row(plain(name), plain(value))
        members = Table("trial", "algorithm", "weight", "size (kB)", box=None, pad_edge=False)
        for member in described.members:
            weight = "" if member.weight is None else f"{member.weight:.4g}"
            members.add_row(*map(plain, (str(member.number), member.algorithm, weight, f"{member.n_bytes / 1000:.0f}")))
        console = Console()
        console.print(facts)
        console.print(members)


@app.command()
def sign(folder: ModelFolder) -> None:
    """Sign a model with the key of this machine.

    A model that is unsigned, or signed by somebody else, is first loaded in a child process. Models of runs on this
    machine are signed when they are saved.
    """
    with typed_errors():
        from cashmere.model.files import check_files, find_model, read_model
        from cashmere.model.first_load import check_first_load
        from cashmere.model.signature import read_signature, sign_manifest

        path = find_model(folder)

        def check_and_sign(manifest: dict[str, Any]) -> str:
            check_files(path, manifest)
            if not read_signature(path, manifest["checksum"]).signer.is_trusted:
                check_first_load(path, manifest)
            return sign_manifest(path, manifest["checksum"])

        say(False, f"{path} is signed by this machine ({read_model(path, check_and_sign)})")


@app.command()
def verify(folder: ModelFolder) -> None:
    """Check the files and the signature of a model.

    The exit status is 0 if this machine or a trusted key has signed exactly these files, else 2.
    """
    with typed_errors():
        from cashmere.exceptions import ModelFileError
        from cashmere.model.files import check_files, find_model, read_model
        from cashmere.model.signature import Signature, Signer, read_signature

        path = find_model(folder)

        def checked_signature(manifest: dict[str, Any]) -> Signature:
            check_files(path, manifest)
            signature = read_signature(path, manifest["checksum"])
            if signature.signer is Signer.NOBODY:
                raise ModelFileError(path, "is not signed. If you know its origin, sign it with `cashmere sign`.")
            if signature.signer is Signer.UNKNOWN:
                raise ModelFileError(
                    path,
                    f"is signed by a key that is not trusted here ({signature.fingerprint}). If it is the key of "
                    "somebody you trust, get their public key from them and record it with `cashmere trust-key`.",
                )
            return signature

        say(False, f"{path} is {read_model(path, checked_signature)}; all files are unchanged")


@app.command()
def key(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the public key to this new file.")
    ] = None,
) -> None:
    """Show the key of this machine and the keys it trusts."""
    with typed_errors():
        from cashmere.exceptions import SigningKeyError
        from cashmere.model.keys import fingerprint, key_folder, public_pem, signing_key, trusted_keys

        own = signing_key().public_key().public_bytes_raw()
        say(False, f"this machine: {fingerprint(own)}")
        for other in sorted(map(fingerprint, trusted_keys())):
            say(False, f"trusted:      {other}")
        say(False, f"kept in:      {key_folder()}")
        if output is not None:
            try:
                with output.open("xb") as file:
                    file.write(public_pem(own))
            except OSError as error:
                raise SigningKeyError(output, f"cannot be written ({error.strerror}).") from error


@app.command("trust-key")
def trust(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A public key, as `cashmere key` writes it.")],
) -> None:
    """Trust a public key. Models signed with it load like those of this machine."""
    with typed_errors():
        from cashmere.model.keys import key_folder, trust_key

        name = trust_key(file)
        say(False, f"trusted: {name} (to withdraw it, delete {key_folder() / 'trusted' / name}.pem)")
