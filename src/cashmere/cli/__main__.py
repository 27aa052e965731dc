"""``python -m cashmere.cli``."""

from __future__ import annotations

from cashmere.cli import main

main()
