"""AutoGluon's `TabularPredictor` with the preset ``best_quality`` and its neural networks: `autogluon` with torch.

Without ray, as its folds run one after the other there too.
"""

from __future__ import annotations

from run_autogluon import run

if __name__ == "__main__":
    run("best_quality", "torch")
