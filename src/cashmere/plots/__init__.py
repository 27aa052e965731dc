"""The figures of a report as matplotlib axes, drawn from its summary; the extra ``plot`` installs matplotlib.

Fitted estimators provide them as methods, such as ``model.plot_calibration()``. For a run directory::

    from cashmere.plots import plot_calibration
    from cashmere.report import summarise_run

    plot_calibration(summarise_run("income-run"))

Each function draws on the given axes, or on new ones, and returns them. Text and axes use the colours of matplotlib's
style; all other colours are legible on white and on black.
"""

from cashmere.plots.calibration import plot_calibration
from cashmere.plots.confusion import plot_confusion_matrix
from cashmere.plots.effects import plot_partial_dependence
from cashmere.plots.importance import plot_importance
from cashmere.plots.members import plot_members
from cashmere.plots.residuals import plot_residuals
from cashmere.plots.trajectory import plot_trajectory

__all__ = [
    "plot_calibration",
    "plot_confusion_matrix",
    "plot_importance",
    "plot_members",
    "plot_partial_dependence",
    "plot_residuals",
    "plot_trajectory",
]
