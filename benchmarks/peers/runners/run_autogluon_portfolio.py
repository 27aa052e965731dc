"""AutoGluon's `TabularPredictor` with the preset ``best_v150``: `autogluon` with its portfolio for CPUs of 2025.

What needs torch or ray is not installed; the configurations of the portfolio that do are left out by AutoGluon.
"""

from __future__ import annotations

from run_autogluon import run

if __name__ == "__main__":
    run("best_v150")
