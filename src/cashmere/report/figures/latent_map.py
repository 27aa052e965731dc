"""The trials in the latent space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cashmere.charts.latent_map import Place, latent_chart
from cashmere.report.figures.scale import SIZES, score_name
from cashmere.report.format import format_number


def latent_charts(summary: Mapping[str, Any]) -> list[str]:
    """Draw the trials in the latent space, for wide and for narrow pages."""
    found, metric = summary["latent_map"], summary["metric"]
    if found is None:
        return []
    name = score_name(metric)
    places = [
        Place(
            trial=point["trial"], algorithm=point["algorithm"], x=point["x"], y=point["y"], loss=point["loss"],
            text=format_number(point["score"]),
        )
        for point in found["points"]
    ]  # fmt: skip
    best = min(places, key=lambda place: (place.loss, place.trial), default=None)
    description = "" if best is None else f"The best is trial {best.trial}, {best.algorithm}, with {best.text}."
    return [
        latent_chart(
            places,
            title=f"trials in the latent space of all algorithms, with {name}",
            description=description,
            legend=name,
            centre=None if found["centre"] is None else tuple(found["centre"]),
            centre_label="the best of the source",
            width=width,
            css=css,
        )
        for width, _, css in SIZES
    ]
