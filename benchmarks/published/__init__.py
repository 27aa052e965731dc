"""What the papers print, as files of numbers."""

from pathlib import Path

PUBLISHED = Path(__file__).parent
"""The folder of the files."""
