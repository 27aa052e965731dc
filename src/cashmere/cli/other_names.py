"""What other systems call the options of this one, so that a mistyped command says which one is meant."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

_NAMES = {
    "--budget": ("time-limit", "time-budget", "timeout", "max-runtime-secs", "max-time", "n-trials", "trials"),
    "--exclude": ("exclude-algos", "excluded-model-types", "excluded-models"),
    "--include": ("algorithms", "algorithm", "estimators", "estimator-list", "include-algos", "models", "learners"),
    "--metric": ("eval-metric", "scoring", "score", "sort-metric", "loss"),
    "--out": ("output", "output-dir", "output-directory", "out-dir", "dir", "path", "save-dir"),
    "--preset": ("presets", "quality"),
    "--resampling": ("cv", "folds", "nfolds", "n-folds", "n-splits", "num-bag-folds", "holdout", "split"),
    "--seed": ("random-state", "random-seed"),
    "--strategy": ("sampler", "search", "optimizer"),
    "--target": ("label", "y", "target-column", "response", "response-column", "outcome"),
    "--task": ("problem-type", "task-type", "objective"),
    "--workers": (
        "n-jobs",
        "jobs",
        "num-workers",
        "n-workers",
        "threads",
        "n-threads",
        "nthreads",
        "num-cpus",
        "cores",
    ),
}
_OPTIONS = {f"--{name}": option for option, names in _NAMES.items() for name in names}


def option_called(name: str) -> str | None:
    """Return the option that other systems call by a name; None if none is known.

    Examples
    --------
    >>> option_called("--time_limit"), option_called("--label"), option_called("--colour")
    ('--budget', '--target', None)
    """
    return _OPTIONS.get(name.replace("_", "-"))


class Commands(TyperGroup):
    """The group of all commands."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; where an option does not exist, name the one that is meant instead of those spelt alike."""
        try:
            return super().invoke(ctx)
        except Exception as error:  # that of click, or of the copy of it that Typer brings
            meant = option_called(str(getattr(error, "option_name", "")))
            command = getattr(getattr(error, "ctx", None), "command", None)
            if meant is not None and command is not None and any(meant in each.opts for each in command.params):
                error.possibilities = [meant]  # type: ignore[attr-defined]  # an error with the name of an option
            raise
