"""The tables on which papers publish results, by our names."""

from __future__ import annotations

CLASSIFICATION = (
    "amazon_employee", "bank32nh", "cpu_act", "cpu_small", "eeg", "elevators", "house_8L", "pol", "pollen", "puma32H",
    "quake", "satimage", "spambase", "wind", "2dplanes",
)  # fmt: skip
REGRESSION = ("space_ga", "delta_elevators", "wine_quality", "liver_disorders", "bodyfat")

TABLES_OF = {"divbo": CLASSIFICATION, "optdivbo": CLASSIFICATION + REGRESSION}
"""Tables by the name of the experiment on the command line."""
