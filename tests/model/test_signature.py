"""Models are signed by the machine that fits them; others can be trusted, and nobody can sign in their name."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tracemalloc

import numpy as np
import pytest
from replaced_models import ADDED, replace_after
from typer.testing import CliRunner

from cashmere import AutoClassifier, Predictor
from cashmere.base.files import writing
from cashmere.cli import app
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import ModelFileError, SigningKeyError
from cashmere.model import files, first_load
from cashmere.model.description import describe_model
from cashmere.model.files import check_files, file_digest, read_manifest
from cashmere.model.keys import fingerprint, key_folder, own_public_key, signing_key, trust_key, trusted_keys
from cashmere.model.requirements import model_requirements
from cashmere.model.signature import Signer, read_signature, sign_manifest, signature_path


def small_space(profile):
    from cashmere.space import make_space

    return make_space("default", profile).restricted_to(["logistic_regression"])


def fit(folder, **settings):
    table = demo_table().sample(120, random_state=0)
    model = AutoClassifier(budget="1trials", isolation="none", run_directory=folder, space=small_space, **settings)
    return model.fit(table.drop(columns=DEMO_TARGET), table[DEMO_TARGET])


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signed") / "run"
    fit(folder)
    return folder


@pytest.fixture
def model(fitted, tmp_path):
    return shutil.copytree(fitted / "model", tmp_path / "model")


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Pretend to be another machine, with other keys."""

    def go(name: str = "elsewhere"):
        monkeypatch.setenv("CASHMERE_KEY_FOLDER", str(tmp_path / name))

    return go


def state(folder):
    return read_signature(folder, read_manifest(folder)["checksum"])


def path_of_signature(folder):
    return signature_path(folder, read_manifest(folder)["checksum"])


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def children(monkeypatch):
    """Count the child processes that first load models."""
    started = []
    real = first_load._run_child
    monkeypatch.setattr(first_load, "_run_child", lambda *task: (started.append(task), real(*task))[1])
    return started


def test_a_run_signs_its_model_and_loads_it_without_a_child(model, children):
    assert state(model).signer is Signer.THIS_MACHINE
    Predictor.load(model)
    assert not children


def test_a_model_from_elsewhere_is_first_loaded_in_a_child(model, elsewhere, children):
    here = Predictor.load(model)
    elsewhere()
    assert state(model).signer is Signer.UNKNOWN
    there = Predictor.load(model)
    assert len(children) == 1
    table = demo_table().sample(5, random_state=1)
    np.testing.assert_array_equal(here.predict_proba(table), there.predict_proba(table))


def test_verification_can_be_switched_off(model, elsewhere, children):
    elsewhere()
    Predictor.load(model, verify=False)
    assert not children


def test_a_trusted_key_counts_like_the_own_key(model, elsewhere, children, tmp_path):
    public = tmp_path / "theirs.pem"
    assert run("key", "-o", public).exit_code == 0
    elsewhere()
    assert run("verify", model).exit_code == 2
    assert run("trust-key", public).exit_code == 0
    assert state(model).signer is Signer.TRUSTED
    verified = run("verify", model)
    assert verified.exit_code == 0
    assert "signed by a trusted key" in verified.output
    Predictor.load(model)
    assert not children


def test_an_unsigned_model_can_be_signed(model, children):
    path_of_signature(model).unlink()
    assert "is not signed" in run("verify", model).stderr
    assert run("sign", model).exit_code == 0
    assert len(children) == 1
    assert run("verify", model).exit_code == 0
    assert state(model).signer is Signer.THIS_MACHINE


def test_signing_does_not_vouch_for_a_damaged_archive(model):
    member = next(model.glob("member-*.skops"))
    member.write_bytes(member.read_bytes()[:-1])
    for command in ("sign", "verify"):
        result = run(command, model)
        assert result.exit_code == 2
        assert "does not have the checksum" in result.stderr


def change_signature(folder, **changes):
    path = path_of_signature(folder)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"signature": "00" * 64}, "forged or damaged"),
        ({"signature": "0"}, "is damaged"),
        ({"signature": None}, "is damaged"),
        ({"public_key": "11" * 32}, "forged or damaged"),
        ({"public_key": "11"}, "is damaged"),
        ({"checksum": "another"}, "another manifest"),
        ({"version": 2}, "another version"),
        ({"format": "something"}, "is not a signature"),
    ],
)
def test_a_forged_or_damaged_signature_is_refused(model, changes, message):
    change_signature(model, **changes)
    for call in (lambda: state(model), lambda: Predictor.load(model)):
        with pytest.raises(ModelFileError, match=message):
            call()
    assert run("verify", model).exit_code == 2
    assert run("inspect-model", model).exit_code == 2
    Predictor.load(model, verify=False)  # reads no signature


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"[" * 9000])
def test_a_signature_that_is_no_record_is_refused(model, content):
    path_of_signature(model).write_bytes(content)
    with pytest.raises(ModelFileError, match="signature"):
        Predictor.load(model)


def test_the_signature_of_another_key_in_ones_own_name_is_forged(model, elsewhere):
    own = own_public_key()
    elsewhere()
    sign_manifest(model, read_manifest(model)["checksum"])
    change_signature(model, public_key=own.hex())
    with pytest.raises(ModelFileError, match="forged"):
        state(model)


def test_a_changed_manifest_is_not_signed(model, children):
    from cashmere.model.files import _checksum

    manifest = json.loads((model / "manifest.json").read_text())
    manifest["information"]["metric"] = "another"
    manifest["checksum"] = _checksum(manifest)
    (model / "manifest.json").write_text(json.dumps(manifest))
    assert state(model).signer is Signer.NOBODY
    Predictor.load(model)
    assert len(children) == 1


@pytest.mark.long
def test_members_of_a_resumed_run_of_another_machine_are_tried_first_and_not_signed(
    fitted, tmp_path, elsewhere, children
):
    run_folder = shutil.copytree(fitted, tmp_path / "run")
    elsewhere()
    fit(run_folder, resume=True)
    assert len(children) == 1
    assert state(run_folder / "model").signer is not Signer.THIS_MACHINE


def test_members_of_ones_own_run_are_not_tried(fitted, tmp_path, children):
    fit(shutil.copytree(fitted, tmp_path / "run"), resume=True)
    assert not children


def test_a_resumed_run_of_ones_own_stays_signed_and_leaves_one_signature(fitted, tmp_path):
    run_folder = shutil.copytree(fitted, tmp_path / "run")
    fit(run_folder, resume=True)
    assert state(run_folder / "model").signer is Signer.THIS_MACHINE
    assert len(list((run_folder / "model").glob("signature-*.json"))) == 1


@pytest.fixture
def own(fitted, tmp_path):
    """A copy of a run of this machine that comes back from elsewhere."""
    return shutil.copytree(fitted, tmp_path / "run")


def replaced_by_another(own, tmp_path):
    """Replace the members of a run by those of another run of this machine, as somebody else might."""
    fit(tmp_path / "other")
    for path in (tmp_path / "other" / "members").iterdir():
        shutil.copy(path, own / "members")
    assert file_digest(own / "members" / "000000.skops") not in (own / "model" / "manifest.json").read_text()


def test_a_changed_member_of_ones_own_run_stops_the_resume(own):
    archive = own / "members" / "000000.skops"
    archive.write_bytes(archive.read_bytes() + b" ")
    for _ in range(2):
        with pytest.raises(
            ModelFileError, match=r"000000\.skops beside it, which has been changed since.* delete both"
        ):
            fit(own, resume=True)


def test_a_member_signed_for_another_run_is_not_vouched_for(own, tmp_path, children):
    replaced_by_another(own, tmp_path)
    with pytest.raises(ModelFileError, match="forged or damaged"):
        fit(own, resume=True)
    (own / "members" / "signature-000000.json").unlink()
    fit(own, resume=True)
    assert len(children) == 1
    assert state(own / "model").signer is Signer.NOBODY


@pytest.mark.long
def test_members_without_signatures_are_own_if_the_signed_model_holds_them(own, children):
    (own / "members" / "signature-000000.json").unlink()
    fit(own, resume=True)
    assert not children
    assert state(own / "model").signer is Signer.THIS_MACHINE
    path_of_signature(own / "model").unlink()
    fit(own, resume=True)
    assert len(children) == 1
    assert state(own / "model").signer is Signer.NOBODY


def test_members_are_own_though_the_model_is_lost(own, children):
    shutil.rmtree(own / "model")
    fit(own, resume=True)
    assert not children
    assert state(own / "model").signer is Signer.THIS_MACHINE


def test_the_key_is_private_and_made_once(elsewhere):
    elsewhere()
    assert own_public_key() is None
    first, second = (signing_key().public_key().public_bytes_raw() for _ in range(2))
    assert first == second == own_public_key()
    if os.name == "posix":
        assert stat.S_IMODE((key_folder() / "signing-key.pem").stat().st_mode) == 0o600
    assert {path.name for path in key_folder().iterdir()} == {"signing-key.pem", "public-key.pem"}


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_a_key_that_others_can_read_is_refused(elsewhere):
    elsewhere()
    signing_key()
    (key_folder() / "signing-key.pem").chmod(0o644)
    with pytest.raises(SigningKeyError, match="others"):
        signing_key()


@pytest.mark.parametrize("content", [b"", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_a_damaged_key_is_named_and_does_not_stop_a_run(elsewhere, content, tmp_path):
    elsewhere()
    signing_key()
    (key_folder() / "signing-key.pem").write_bytes(content)
    with pytest.raises(SigningKeyError, match="damaged"):
        signing_key()
    fit(tmp_path / "run")
    assert state(tmp_path / "run" / "model").signer is Signer.NOBODY


@pytest.mark.long
def test_a_run_without_a_key_folder_is_not_signed(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("CASHMERE_KEY_FOLDER", str(tmp_path / "file" / "keys"))
    fit(tmp_path / "run")
    assert state(tmp_path / "run" / "model").signer is Signer.NOBODY
    assert run("sign", tmp_path / "run").exit_code == 2


def test_only_public_keys_can_be_trusted(tmp_path, elsewhere):
    elsewhere()
    signing_key()
    for content in (b"no key", (key_folder() / "signing-key.pem").read_bytes()):
        (tmp_path / "file.pem").write_bytes(content)
        with pytest.raises(SigningKeyError, match="not a public key"):
            trust_key(tmp_path / "file.pem")
    with pytest.raises(SigningKeyError, match="cannot be read"):
        trust_key(tmp_path / "nothing.pem")
    name = trust_key(key_folder() / "public-key.pem")
    assert {fingerprint(key) for key in trusted_keys()} == {name}
    assert trust_key(key_folder() / "public-key.pem") == name


def test_inspect_model_says_who_signed(model, elsewhere):
    assert f"signed by this machine ({fingerprint(own_public_key())})" in run("inspect-model", model).output
    elsewhere()
    shown = run("inspect-model", model).output
    assert "signed by an unknown key" in shown
    assert "logistic_regression" in shown
    path_of_signature(model).unlink()
    assert "not signed" in run("inspect-model", model).output


@pytest.mark.long
def test_files_of_any_size_are_verified_in_little_memory(model):
    member = next(model.glob("member-*.skops"))
    os.truncate(member, 2**30)  # a hole: no byte is written
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match="does not have the checksum"):
            check_files(model, read_manifest(model))
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


def test_signature_that_is_being_written_is_no_file_of_the_model(model):
    before = set(files.model_files(model))
    with writing(path_of_signature(model)):
        assert set(files.model_files(model)) == before


@pytest.mark.parametrize(
    "read",
    [
        lambda model: Predictor.load(model).ensemble.members,
        lambda model: [member.number for member in describe_model(model).members],
        lambda model: model_requirements(model) and [ADDED],
        lambda model: run("verify", model).exit_code == 0 and [ADDED],
        lambda model: run("sign", model).exit_code == 0 and [ADDED],
    ],
    ids=["load", "describe", "requirements", "verify", "sign"],
)
def test_model_that_a_run_replaces_while_it_is_read_is_read_again(model, monkeypatch, read):
    replace_after(monkeypatch, files, "read_manifest", model)
    assert list(read(model)) == [ADDED]
    assert state(model).signer is Signer.THIS_MACHINE
