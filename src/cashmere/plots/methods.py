"""The plots as methods of fitted estimators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from cashmere.exceptions import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PlotMethods:
    """Plots for all models."""

    _result: dict[str, Any]
    """From `cashmere.report.summary.summarise_result`, after `fit`."""

    run_directory_: str | None

    def _fitted_result(self) -> dict[str, Any]:
        check_is_fitted(self)
        return self._result

    def plot_trajectory(self, *, ax: Axes | None = None) -> Axes:
        """Plot the validation scores of the trials: see `cashmere.plots.plot_trajectory`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        """
        from cashmere.plots.trajectory import plot_trajectory

        return plot_trajectory(self._fitted_result(), ax=ax)

    def plot_members(self, *, ax: Axes | None = None) -> Axes:
        """Plot the weights of the ensemble members: see `cashmere.plots.plot_members`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        """
        from cashmere.plots.members import plot_members

        return plot_members(self._fitted_result(), ax=ax)

    def plot_importance(self, *, ax: Axes | None = None) -> Axes:
        """Plot which columns the ensemble relies on: see `cashmere.plots.plot_importance`.

        Requires a `run_directory`. If the run has not been explained yet, it is explained first, which takes about half
        a minute; the explanation is saved in the run directory, as ``cashmere explain`` does.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.

        Raises
        ------
        UsageError
            If the estimator has no `run_directory`, or the run was continued after the estimator was fitted.
        """
        from cashmere.plots.importance import plot_importance

        return plot_importance(self._explained_result(), ax=ax)

    def plot_partial_dependence(self, column: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Plot how predictions depend on a column: see `cashmere.plots.plot_partial_dependence`.

        Requires a `run_directory`, and explains the run if necessary, as `plot_importance` does.

        Parameters
        ----------
        column : str, optional
            One of the most important columns; by default the first of them that is not a text column.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.

        Raises
        ------
        UsageError
            If the estimator has no `run_directory`, or the run was continued after the estimator was fitted.
        UnknownNameError
            If the column is not among those whose effects were computed.
        """
        from cashmere.plots.effects import plot_partial_dependence

        return plot_partial_dependence(self._explained_result(), column, ax=ax)

    def _explained_result(self) -> dict[str, Any]:
        """Return the result with its explanation; explain the run first if no explanation of this model is stored."""
        result = self._fitted_result()
        if self.run_directory_ is None:
            raise UsageError(
                "Importances and effects are measured in the run directory, which was removed after fit. "
                "Give the estimator a run_directory and fit it again.",
                instance=self,
            )
        from cashmere.explanations import explain
        from cashmere.report.summary.explanation import explanation_section

        folder = Path(self.run_directory_)
        section = explanation_section(folder, result["digest"])
        if section["why_not"] is not None:
            explanation = explain(folder)
            if explanation.digest != result["digest"]:
                raise UsageError(
                    f"The run in {folder} was continued after this estimator was fitted, and has another ensemble. "
                    "Fit again with resume=True, or use cashmere.plots with the summary of the run.",
                    instance=self,
                )
            explanation.save(folder)
            section = explanation_section(folder, result["digest"])
        return {**result, "explanation": section}


class ClassifierPlots(PlotMethods):
    """Plots for classifiers."""

    def plot_calibration(self, *, ax: Axes | None = None) -> Axes:
        """Plot the calibration of probabilities on unseen rows: see `cashmere.plots.plot_calibration`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        """
        from cashmere.plots.calibration import plot_calibration

        return plot_calibration(self._fitted_result(), ax=ax)

    def plot_confusion_matrix(self, *, ax: Axes | None = None) -> Axes:
        """Plot which classes are confused with which, on unseen rows: see `cashmere.plots.plot_confusion_matrix`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        """
        from cashmere.plots.confusion import plot_confusion_matrix

        return plot_confusion_matrix(self._fitted_result(), ax=ax)


class RegressorPlots(PlotMethods):
    """Plots for regressors."""

    def plot_residuals(self, *, ax: Axes | None = None) -> Axes:
        """Plot residuals (truth minus prediction) on unseen rows: see `cashmere.plots.plot_residuals`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        """
        from cashmere.plots.residuals import plot_residuals

        return plot_residuals(self._fitted_result(), ax=ax)
