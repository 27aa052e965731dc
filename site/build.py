"""Build the documentation as a site: the pages of docs/, a gallery of executed examples, and the API reference.

    python site/build.py --out site/_build

Pages stay as they are read on GitHub; links to files outside docs/ become links to their page on the site. Any warning
of Sphinx is an error. An example is executed again only if it has changed since the last build.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sklearn.base import BaseEstimator

ROOT = Path(__file__).resolve().parents[1]

GUIDE = (
    "what_happens",
    "coming_from",
    "running",
    "spaces",
    "paths",
    "strategies",
    "metalearning",
    "explanations",
    "onnx",
    "serving",
    "notebooks",
    "analysis",
    "more_machines",
    "clusters/README",
)
EVIDENCE = ("how_good", "benchmarks", "faults", "broken_tables", "threat_model", "design")
OF_THE_ROOT = {"CHANGELOG.md": "changelog", "CONTRIBUTING.md": "contributing", "SECURITY.md": "security"}
RESULTS = "benchmarks/results/README.md"

REFERENCE = {
    "cashmere": "What most users need",
    "cashmere.data": "Tables",
    "cashmere.records": "Trials, budgets and what is said about them",
    "cashmere.evaluation.metrics": "Metrics",
    "cashmere.space": "Search spaces",
    "cashmere.strategies": "Strategies",
    "cashmere.ensembles": "Ensembles",
    "cashmere.inspection": "Looking at a table",
    "cashmere.explanations": "Explaining an ensemble",
    "cashmere.export": "Models elsewhere",
    "cashmere.analysis": "Looking at a run",
    "cashmere.report": "The report of a run",
    "cashmere.plots": "Plots",
    "cashmere.run": "Runs",
    "cashmere.exceptions": "Errors and warnings",
}
"""Packages that user code imports from; each page shows what `__all__` names, or everything public."""

INHERITED = [
    "   :inherited-members: BaseEstimator",
    "   :exclude-members: score, get_metadata_routing, set_fit_request, set_predict_request, set_score_request",
]
"""Estimators show what they inherit from our classes, such as plots, but not what scikit-learn documents."""


def main() -> None:
    """Write all sources of the site, and let Sphinx build it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "site" / "_build")
    parser.add_argument("--no-execution", action="store_true", help="show examples without what they print")
    arguments = parser.parse_args()
    source = arguments.out / "source"
    shutil.rmtree(source, ignore_errors=True)
    write_pages(source)
    write_gallery(source / "gallery", cache=None if arguments.no_execution else arguments.out / "executed")
    write_reference(source / "reference")
    shutil.copy(ROOT / "site" / "conf.py", source)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", "auto"]
    sys.exit(subprocess.run([*command, "-d", arguments.out / "doctrees", source, arguments.out / "html"]).returncode)


def write_pages(source: Path) -> None:
    """Copy the pages of docs/ and of the root, with links to pages of the site."""
    shutil.copytree(ROOT / "docs", source)
    for path in source.rglob("*.md"):
        depth = len(path.relative_to(source).parts) - 1
        path.write_text(linked(path.read_text("utf-8"), up="../" * depth), "utf-8")
    for name, page in OF_THE_ROOT.items():
        text = (ROOT / name).read_text("utf-8").replace("](docs/", "](").replace("](examples", "](gallery")
        (source / f"{page}.md").write_text(linked(text, up=""), "utf-8")
    results = (ROOT / RESULTS).read_text("utf-8").replace("](../../docs/", "](")
    (source / "results.md").write_text(results, "utf-8")
    readme = (ROOT / "README.md").read_text("utf-8").partition("## Learn more")[0]
    readme = linked(readme.replace("](docs/", "](").replace("](examples/)", "](gallery/index.md)"), up="")
    (source / "index.md").write_text(
        readme
        + contents("Guide", GUIDE)
        + contents("Examples and reference", ("gallery/index", "reference/index"))
        + contents("Evidence", ("papers/README", *EVIDENCE, "results"))
        + contents("Project", ("release_notes", *OF_THE_ROOT.values())),
        "utf-8",
    )
    for page in source.glob("*/README.md"):
        names = sorted(path.stem for path in page.parent.glob("*.md") if path != page)
        page.write_text(page.read_text("utf-8") + contents("", tuple(names)), "utf-8")


def linked(text: str, *, up: str) -> str:
    """Return the text of a page in which links to files outside docs/ lead to pages of the site.

    Parameters
    ----------
    text : str
        Markdown.
    up : str
        Path from the page to the root of the site, such as ``"../"``.
    """
    text = re.sub(r"\]\((?:\.\./)+examples/(\w+)\.py\)", rf"]({up}gallery/\1.md)", text)
    text = re.sub(r"\]\((?:\.\./)+benchmarks/results/README\.md\)", f"]({up}results.md)", text)
    for name, page in OF_THE_ROOT.items():
        text = re.sub(rf"\]\((?:\.\./)*{re.escape(name)}\)", f"]({up}{page}.md)", text)
    return text


def contents(title: str, pages: tuple[str, ...]) -> str:
    """Return a table of contents, which only the sidebar shows."""
    lines = ["", "```{toctree}", ":hidden:", *([f":caption: {title}"] if title else []), "", *pages, "```", ""]
    return "\n".join(lines)


def write_gallery(folder: Path, *, cache: Path | None) -> None:
    """Write a page for each example: what it shows, its code, and what it prints."""
    folder.mkdir(parents=True)
    examples = sorted((ROOT / "examples").glob("*.py"))
    lines = ["# Examples", "", "Short scripts. What they print is what they printed when this site was built.", ""]
    for path in examples:
        text = path.read_text("utf-8")
        about = ast.get_docstring(ast.parse(text)) or ""
        title = path.stem.replace("_", " ").capitalize()
        lines.append(f"- [{title}]({path.stem}.md): {about.splitlines()[0]}")
        code = text.partition('"""\n')[2].lstrip()  # the code after the docstring
        page = f"# {title}\n\n{about}\n\n```python\n{code}```\n"
        if cache is not None:
            page += f"\nIt prints:\n\n```text\n{printed(path, cache)}```\n"
        (folder / f"{path.stem}.md").write_text(page, "utf-8")
    names = tuple(path.stem for path in examples)
    (folder / "index.md").write_text("\n".join(lines) + "\n" + contents("", names), "utf-8")


def printed(path: Path, cache: Path) -> str:
    """Return what a script prints; run it only if it has changed since its last run."""
    cache.mkdir(parents=True, exist_ok=True)
    known = cache / f"{path.stem}-{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}.txt"
    if not known.exists():
        with tempfile.TemporaryDirectory() as place:
            environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
            done = subprocess.run(
                [sys.executable, path], cwd=place, env=environment, capture_output=True, text=True, check=False
            )
        if done.returncode != 0:
            raise SystemExit(f"{path} failed:\n{done.stderr}")
        known.write_text(done.stdout, "utf-8")
    return known.read_text("utf-8")


def write_reference(folder: Path) -> None:
    """Write a page for each package of `REFERENCE`, for autodoc to fill."""
    folder.mkdir(parents=True)
    for name, title in REFERENCE.items():
        module = importlib.import_module(name)
        named = getattr(module, "__all__", None) or [
            each
            for each, value in vars(module).items()
            if not each.startswith("_") and getattr(value, "__module__", None) == name
        ]
        lines = [title, "=" * len(title), "", f".. currentmodule:: {name}", ""]
        for each in named:
            value = getattr(module, each)
            if isinstance(value, type):
                inherited = INHERITED if issubclass(value, BaseEstimator) else []
                lines += [f".. autoclass:: {name}.{each}", "   :members:", *inherited, ""]
            elif callable(value):  # constants are described where they are used
                lines += [f".. autofunction:: {name}.{each}", ""]
        (folder / f"{name}.rst").write_text("\n".join(lines), "utf-8")
    pages = [f"   {name}" for name in REFERENCE]
    (folder / "index.rst").write_text(
        "\n".join(["Reference", "=========", "", ".. toctree::", "", *pages, ""]), "utf-8"
    )


if __name__ == "__main__":
    main()
