"""Effects of words on the predictions of known functions, and of a real run."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import cashmere
from cashmere import AutoClassifier
from cashmere.cli.app import app
from cashmere.explanations import Explanation, read_explanation
from cashmere.explanations.unseen_rows import UnseenRows
from cashmere.explanations.words import word_effects
from cashmere.report import summarise_run

N = 400


class Rows(UnseenRows):
    """Rows whose predictions are a function of their texts."""

    def predict(self, values=None, rows=None, texts=None):
        rows = np.arange(len(self)) if rows is None else rows
        texts = self.texts[0][rows] if texts is None else texts[0]
        return self.predictor(texts)


def drawn_texts(seed=0):
    rng = np.random.default_rng(seed)
    words = [f"word{i}" for i in range(60)]
    return np.array(
        [" ".join(np.append(rng.choice(words, 8), rng.choice(["Good", "fine.", "bad."]))) for _ in range(N)]
    )


def rows_of(function, texts, weight=None):
    return Rows(
        predictor=function, values=np.zeros((N, 0)), texts=(texts.astype(object),), y=np.zeros(N), weight=weight,
        fold=np.zeros(N, dtype=int), group=np.arange(N), n_validation_rows=N,
    )  # fmt: skip


def value(texts):
    words = [re.findall(r"\w+", text.lower()) for text in texts]
    return np.array([2.0 * ("good" in each) - 3.0 * ("bad" in each) + 5.0 for each in words])


def effects(unseen, outputs=None):
    names = tuple(map(str, outputs or ["y"]))
    return word_effects(unseen, "t", 0, unseen.predict(), outputs, names, rng=np.random.default_rng(0))


def test_words_add_what_the_function_says():
    texts = drawn_texts()
    found = effects(rows_of(value, texts))
    assert found.words[:2] == ("bad", "good") and len(found.words) == 12
    np.testing.assert_allclose(found.change[:2, 0], [-3.0, 2.0])
    np.testing.assert_allclose(found.change[2:], 0)
    lower = np.char.lower(texts)
    np.testing.assert_allclose(found.share[:2], [np.char.count(lower, word).mean() for word in ("bad", "good")])


def test_only_rows_with_weight_count_and_chosen_classes_are_described():
    texts = drawn_texts()
    is_first = np.arange(N) < N // 2

    def probabilities(texts):
        positive = 0.5 + 0.1 * value(texts) / 5 * np.array(["word1 " in f"{text} " for text in texts])
        return np.column_stack([1 - positive, positive])

    unseen = rows_of(probabilities, texts, weight=np.zeros(N))
    assert not effects(unseen, [1]).change.any()
    unseen = rows_of(probabilities, texts, weight=is_first.astype(float))
    of_both, of_one = effects(unseen, [0, 1]), effects(unseen, [1])
    assert of_both.words == of_one.words and of_one.words[0] == "word1"
    np.testing.assert_allclose(of_both.change[:, 0], -of_both.change[:, 1], atol=1e-12)
    np.testing.assert_allclose(of_both.change[:, [1]], of_one.change)


@pytest.mark.parametrize("texts", [[""] * N, ["same words everywhere"] * N, [f"own{i}" for i in range(N)], ["?!"] * N])
def test_texts_without_telling_words_have_no_effects(texts):
    assert effects(rows_of(lambda texts: np.arange(len(texts), dtype=float), np.array(texts))) is None
    assert effects(rows_of(lambda texts: np.ones(len(texts)), np.array(texts))) is None


@pytest.fixture(scope="module")
def text_run(tmp_path_factory):
    texts = np.array([re.sub("Good|fine", "", text) for text in drawn_texts()])  # only one word tells
    y = np.where(np.char.count(texts, "bad"), "angry", "calm")
    folder = tmp_path_factory.mktemp("runs") / "texts"
    quick = {"budget": "2trials", "isolation": "none", "resampling": "2fold", "include": ["lightgbm"]}
    AutoClassifier(run_directory=folder, **quick).fit(pd.DataFrame({"t": texts}), y)
    return folder


def test_words_reach_python_terminal_file_and_report(text_run):
    result = CliRunner().invoke(app, ["explain", str(text_run), "--rows", "200", "--repeats", "1"])
    assert result.exit_code == 0, result.output
    assert "what words of 't' add" in result.output
    assert re.search(r"bad +\d\d\.\d% +-1", result.output)
    found = read_explanation(text_run)
    first = found.word.iloc[0]
    assert (first["column"], first["word"], first["output"]) == ("t", "bad", "calm") and first["change"] < -0.3
    assert Explanation.from_json(found.to_json()).to_json() == found.to_json()
    assert "What do words add?" in (text_run / "report.html").read_text("utf-8")
    assert summarise_run(text_run)["explanation"]["words"][0]["words"][0] == "bad"
    assert not cashmere.explain(text_run, rows=50, repeats=1, effects=0).words


def test_explanations_of_earlier_versions_have_no_words_and_damaged_ones_are_refused(text_run):
    stored = cashmere.explain(text_run, rows=100, repeats=1).to_json()
    without = {name: part for name, part in stored.items() if name != "words"}
    assert Explanation.from_json(without).words == ()
    damaged = {**stored, "words": [{**stored["words"][0], "share": [0.1]}]}
    with pytest.raises(ValueError, match="more or fewer numbers than words"):
        Explanation.from_json(damaged)


def test_words_of_single_texts_are_shown(text_run, tmp_path):
    texts = [f"{'word1 ' * 60}Bad, really bad", "word2 word3", ""]
    found = cashmere.explain_predictions(text_run, pd.DataFrame({"t": texts}), paths=2)
    first = found.words[found.words["row"] == 0]
    assert first["word"].tolist()[0] == "bad" and set(first["word"]) == {"bad", "really", "word1"}
    assert first["change"].iloc[0] < -0.5 and abs(first["change"].iloc[1]) < 0.1
    assert set(found.words["row"]) == {0, 1}
    pd.DataFrame({"t": texts}).to_csv(tmp_path / "rows.csv", index=False)
    result = CliRunner().invoke(app, ["explain", str(text_run), "--predictions", str(tmp_path / "rows.csv")])
    assert result.exit_code == 0, result.output
    assert re.search(r"what words of 't' add: bad -[01]", result.output)
    assert " \u2026" in result.output and "target = calm with probability" in result.output
