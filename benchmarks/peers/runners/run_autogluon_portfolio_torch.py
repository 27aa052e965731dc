"""AutoGluon's `TabularPredictor` with the preset ``best_v150`` and its neural networks: the portfolio as it is."""

from __future__ import annotations

from run_autogluon import run

if __name__ == "__main__":
    run("best_v150", "torch")
