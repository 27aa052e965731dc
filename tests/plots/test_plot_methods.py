from __future__ import annotations

import pickle

import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError

from cashmere import AutoClassifier, AutoRegressor
from cashmere.exceptions import UsageError
from cashmere.records.budget import Budget
from cashmere.run import continue_run
from cashmere.storage.directory import EXPLANATION

FAST = {"budget": "2trials", "isolation": "none"}


def axes():
    return Figure(layout="constrained").subplots()


@pytest.mark.long
def test_classifier_draws_from_its_run_directory(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = AutoClassifier(**FAST, run_directory=tmp_path / "run").fit(X, y)
    for plot in (model.plot_trajectory, model.plot_members, model.plot_calibration, model.plot_confusion_matrix):
        ax = axes()
        assert plot(ax=ax) is ax
        assert ax.has_data()
    assert not hasattr(model, "plot_residuals")
    bars = model.plot_importance(ax=axes())
    assert bars.get_xlabel() == "rise of log_loss"
    kept = (tmp_path / "run" / EXPLANATION).stat().st_mtime_ns
    column = bars.get_yticklabels()[0].get_text().partition(" + ")[0]
    assert model.plot_partial_dependence(column, ax=axes()).get_xlabel() == column
    assert (tmp_path / "run" / EXPLANATION).stat().st_mtime_ns == kept  # measured only once

    continue_run(tmp_path / "run", Budget.parse("1trials"))
    assert model.plot_importance(ax=axes()).has_data()  # the explanation is still of this model
    (tmp_path / "run" / EXPLANATION).unlink()
    with pytest.raises(UsageError, match="was continued after"):
        model.plot_importance(ax=axes())


def test_regressor_draws_without_a_run_directory_also_after_pickling(capsys):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    with pytest.raises(NotFittedError):
        AutoRegressor().plot_members(ax=axes())
    model = AutoRegressor(**FAST, verbose=1).fit(X, y)
    shown = capsys.readouterr().out  # lines, where there is no notebook
    assert shown.startswith("preparing: no finished trials") and "\nrmse: ensemble " in shown
    assert shown.splitlines()[-1].startswith("Digest: ")
    again = pickle.loads(pickle.dumps(model))
    for plot in (again.plot_trajectory, again.plot_members, again.plot_residuals):
        assert plot(ax=axes()).has_data()
    assert not hasattr(model, "plot_calibration")
    with pytest.raises(UsageError, match="Give the estimator a run_directory"):
        model.plot_importance(ax=axes())
