"""What tests of drawings share."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET


def drawn(svg: str) -> ET.Element:
    """Parse a drawing; every coordinate must be finite."""
    root = ET.fromstring(svg)
    for element in root.iter():
        for name in ("x", "y", "cx", "cy", "x1", "x2", "y1", "y2"):
            if name in element.attrib:
                assert math.isfinite(float(element.attrib[name])), element.attrib
    return root
