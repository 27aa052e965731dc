from __future__ import annotations

import sys

import matplotlib
import numpy as np
import pytest
from fake_runs import make_explanation, make_run, some_failures, weighted
from matplotlib import colors, rc_context
from matplotlib.figure import Figure
from matplotlib.style import library

from cashmere import plots
from cashmere.exceptions import InvalidParameterError, MissingDependencyError, UnknownNameError, UsageError
from cashmere.plots import canvas
from cashmere.report import summarise_run
from cashmere.report.summary import summarise_result

MEMBERS = weighted(10, 11, 12, 13, 15, 16, 17)


@pytest.fixture(autouse=True)
def _no_window():
    with rc_context({"backend": "agg"}):
        yield


@pytest.fixture(scope="module")
def binary(tmp_path_factory):
    run = make_run(
        tmp_path_factory.mktemp("runs") / "binary", failures=some_failures(), predictions=True, facts=MEMBERS
    )
    make_explanation(["duration", "price in $ or $US", "age", "height", "width"]).save(run)
    return summarise_run(run)


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "values"
    settings = {"metric": "rmse"}
    run = make_run(folder, task="regression", classes=(), predictions=True, facts=MEMBERS, settings=settings)
    return summarise_run(run)


@pytest.fixture(scope="module")
def many_classes(tmp_path_factory):
    names = ("a", "b", "$c$ of a name that is long", *(f"rare {k}" for k in range(9)))
    run = make_run(
        tmp_path_factory.mktemp("runs") / "many", task="multiclass", classes=names, predictions=True, facts=MEMBERS
    )
    make_explanation(["x", "y", "z"], names[:3]).save(run)
    return summarise_run(run)


def drawn(plot, summary, *arguments):
    """Draw on new axes, and make matplotlib lay out and paint every text."""
    ax = Figure(layout="constrained").subplots()
    assert plot(summary, *arguments, ax=ax) is ax
    ax.figure.canvas.draw()
    return ax


def line(ax, label):
    (found,) = [each for each in ax.lines if each.get_label() == label]
    return found.get_xydata()


def test_trajectory_shows_the_curves_of_the_report(binary):
    ax = drawn(plots.plot_trajectory, binary)
    curves = binary["curves"]
    assert line(ax, "ensemble").tolist() == [[p["trial"], p["score"]] for p in curves["ensemble"]]
    best = [[t["trial"], t["best_score"]] for t in curves["trials"] if t["best_score"] is not None]
    assert line(ax, "best single model").tolist() == best
    dots = ax.collections[0].get_offsets()
    assert dots.tolist() == [[t["trial"], t["score"]] for t in curves["trials"] if t["score"] is not None]
    low, high = ax.get_ylim()
    assert low < curves["ensemble"][-1]["score"] < high


def test_members_are_bars_with_their_weights(binary):
    ax = drawn(plots.plot_members, binary)
    members = binary["ensemble"]["members"]
    assert [bar.get_width() for bar in ax.patches] == [each["weight"] for each in members]
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names == [f"{each['algorithm']} #{each['trial']}" for each in members]
    assert ax.yaxis_inverted()  # the largest is on top


def test_calibration_shows_the_bins_of_the_report(binary, many_classes):
    for summary, event in ((binary, "good"), (many_classes, "the most probable class")):
        ax = drawn(plots.plot_calibration, summary)
        bins = summary["diagnostics"]["classes"]["reliability"]["bins"]
        (bars,) = ax.containers
        assert bars[0].get_xydata().tolist() == [[each["predicted"], each["observed"]] for each in bins]
        ends = np.array([segment[:, 1] for segment in bars[2][0].get_segments()])
        np.testing.assert_allclose(ends, [[each["lower"], each["upper"]] for each in bins], atol=1e-12)
        assert ax.get_xlabel() == f"predicted probability of {event}"


def test_confusion_matrix_shows_shares_of_true_classes(binary, many_classes):
    for summary in (binary, many_classes):
        ax = drawn(plots.plot_confusion_matrix, summary)
        counts = np.array(summary["diagnostics"]["classes"]["confusion"]["counts"])
        shares = counts / counts.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(ax.images[0].get_array(), shares)
        assert len(ax.texts) == (counts > 0).sum()
    assert ax.get_yticklabels()[-1].get_text() == "3 others"


def test_residuals_show_rows_and_bands_of_the_report(values):
    ax = drawn(plots.plot_residuals, values)
    found = values["diagnostics"]["values"]
    np.testing.assert_allclose(ax.collections[0].get_offsets(), [[p, y - p] for p, y in found["points"]])
    assert line(ax, "median").tolist() == [[each["predicted"], each["median"]] for each in found["bands"]]


def test_importances_have_intervals(binary):
    ax = drawn(plots.plot_importance, binary)
    found = binary["explanation"]["importances"]
    assert [bar.get_width() for bar in ax.patches] == [each["mean"] for each in found]
    assert [tick.get_text() for tick in ax.get_yticklabels()][1:] == [r"price in \$ or \$US", "age", "height + 1 more"]
    assert ax.get_xlabel() == "fall of roc_auc"


def test_partial_dependence_of_numbers_levels_and_classes(binary, many_classes):
    for summary in (binary, many_classes):
        outputs = len(summary["explanation"]["outputs"])
        for effect in summary["explanation"]["effects"]:
            ax = drawn(plots.plot_partial_dependence, summary, effect["column"])
            dependence = np.array(effect["partial_dependence"])
            if effect["ale"] is None:
                shown = np.column_stack([dots.get_offsets()[:, 0] for dots in ax.collections])
            else:
                shown = np.column_stack([each.get_ydata() for each in ax.lines[: 2 * outputs : 2]])
                assert "accumulated local effects" in [label.get_text() for label in ax.get_legend().get_texts()]
            assert shown.shape[1] == outputs
            np.testing.assert_allclose(shown, dependence)
    first = drawn(plots.plot_partial_dependence, binary)
    assert first.get_ylabel() == "duration"
    with pytest.raises(UnknownNameError, match="duration"):
        plots.plot_partial_dependence(binary, "durations")


def test_names_are_not_read_as_mathematics(many_classes):
    ax = drawn(plots.plot_confusion_matrix, many_classes)
    assert ax.get_yticklabels()[2].get_text() == r"\$c\$ of a name that is long"
    drawn(plots.plot_members, {**many_classes, "metric": {**many_classes["metric"], "name": "$\\x$ {"}})


def test_new_axes_are_made_by_default(binary):
    import matplotlib.pyplot as plt

    first, second = plots.plot_calibration(binary), plots.plot_calibration(binary)
    assert first.figure is not second.figure
    plt.close("all")


def test_missing_data_is_explained(tmp_path, binary, values):
    with pytest.raises(UsageError, match="for classifiers, but this model is a regressor"):
        plots.plot_calibration(values)
    with pytest.raises(UsageError, match="for regressors, but this model is a classifier"):
        plots.plot_residuals(binary)
    with pytest.raises(UsageError, match=r"has not been measured\. Call cashmere.explain"):
        plots.plot_importance(values)
    with pytest.raises(UsageError, match="no effects were computed"):
        plots.plot_partial_dependence({**binary, "explanation": {**binary["explanation"], "effects": []}})
    new = summarise_run(make_run(tmp_path / "new", n_trials=0, finished=False))
    for plot in (plots.plot_members, plots.plot_confusion_matrix):
        with pytest.raises(UsageError, match="has not been built yet"):
            plot(new)
    drawn(plots.plot_trajectory, new)


def test_plots_need_matplotlib(binary, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match=r"cashmere-automl\[plot\]"):
        plots.plot_members(binary)


def test_result_is_part_of_the_summary(tmp_path):
    run = make_run(tmp_path / "run", predictions=True, facts=MEMBERS)
    result, summary = summarise_result(run), summarise_run(run)
    assert result.items() <= summary.items()
    assert {"task", "metric", "curves", "ensemble", "diagnostics", "digest"} == set(result)


def luminance(colour):
    """Relative luminance, WCAG 2."""
    rgb = np.array(colors.to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722)


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("paper", ["white", "#f7f5f1", "#111111", "#1e1e1e", "black"])
def test_colours_are_legible_on_light_and_dark(paper):
    for colour in (canvas.FIRST, canvas.SECOND, canvas.THIRD, canvas.GREY):
        assert contrast(colour, paper) >= 3


def test_shares_are_legible_on_all_cells():
    shades = matplotlib.colormaps["GnBu"](np.linspace(0, 1 / 1.5, 20))
    assert min(contrast("black", shade[:3]) for shade in shades) >= 4.5


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_texts_and_whiskers_follow_the_style(binary, style):
    rules = {} if style == "default" else dict(library[style])
    with rc_context(rules):
        ax = drawn(plots.plot_importance, binary)
        ink, paper = ax.xaxis.label.get_color(), ax.get_facecolor()[:3]
    (whiskers,) = [each.get_color()[0][:3] for each in ax.collections]
    assert contrast(ink, paper) >= 4.5
    assert contrast(whiskers, paper) >= 4.5 and contrast(whiskers, canvas.FIRST) >= 3


@pytest.mark.parametrize("wrong", [[], {}, "run"])
def test_what_is_no_summary_is_refused(wrong):
    with pytest.raises(InvalidParameterError, match=r"summary must be what cashmere\.report\.summarise_run"):
        plots.plot_trajectory(wrong)
