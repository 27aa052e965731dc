"""Settings with which Sphinx builds the site, from the pages that `site/build.py` writes."""

from cashmere import __version__

project = "cashmere"
author = "the cashmere authors"
version = release = __version__
copyright = "the cashmere authors, Apache-2.0"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx.ext.mathjax",
]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # changelog and papers start sections at the levels that look right on GitHub
autodoc_member_order = "bysource"
autodoc_default_options = {"exclude-members": "set_fit_request, set_predict_request, set_score_request"}
autodoc_typehints = "none"  # docstrings say more: shapes, units, ranges
napoleon_use_ivar = True
default_role = "code"  # docstrings write names in single backticks
html_theme = "furo"
html_title = f"cashmere {__version__}"
html_static_path: list[str] = []
exclude_patterns = ["_build"]
