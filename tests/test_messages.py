"""The texts of all errors are sentences: every place in the package and the benchmarks that makes one is read.

What an expression puts in is not known here; each stands as ``…`` in the text.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cashmere import exceptions

ROOT = Path(__file__).parents[1]
FILES = sorted([*(ROOT / "src" / "cashmere").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")])

WITH_PLACE = {"RunDirectoryError", "RunLockedError", "CorruptStoreError", "InconsistentResumeError"}
WITH_PLACE |= {
    "LeaseLostError",
    "ClusterError",
    "ClusterVersionError",
    "ModelFileError",
    "ArtefactError",
    "OutputError",
    "SigningKeyError",
}
"""Errors that put a path in front: the text goes on with a verb, as in "run: holds no run.json."."""

MESSAGE_AT = {
    **dict.fromkeys(WITH_PLACE, 1),
    **dict.fromkeys(["DataError", "SchemaError", "ColumnTypeError", "MetricError", "UsageError", "LookaheadError"], 0),
    **dict.fromkeys(["StrategyError", "SpaceError", "ObservationsError", "IncompatibleParametersError"], 0),
    **dict.fromkeys(["ArrayError", "MissingParameterError"], 1),
    **dict.fromkeys(["PredictionError", "SystemRefusalError", "VersionWarning", "RowStructureWarning"], 0),
    **dict.fromkeys(["CallError", "CertificateError", "ClusterWarning", "DeployableWarning"], 0),
    **dict.fromkeys(["ColumnKindWarning", "LatencyWarning", "LeftOutWarning", "TrackingError"], 0),
    **dict.fromkeys(["RowOrderWarning", "TargetWarning", "UnknownValuesWarning"], 0),
    "SystemExit": 0,  # ends a command of the benchmarks
}
"""Where each error takes its text."""

NO_TEXT = {
    "CashmereError",  # never raised itself
    "UnknownNameError",  # the others make their text
    "NotFittedError",
    "InvalidParameterError",
    "ShapeError",
    "MissingDependencyError",
    "MissingLibraryError",
    "MissingPredictionsError",
    "NoSuccessfulTrialError",
    "ConversionError",
    "BudgetTooShortError",
}

TRANSLATED = r"\b(an own|anew|goes on|go on|for want of|is owed to|told apart|so dear|must be preceded)\b"
"""English that was translated word by word."""


@dataclass(frozen=True)
class Raised:
    """A place that makes an error."""

    place: str
    kind: str
    arguments: tuple[str | None, ...]
    """Texts of the positional arguments; None where that is not a text."""

    @property
    def text(self) -> str | None:
        return self.arguments[MESSAGE_AT[self.kind]]


def text_of(node: ast.expr, known: dict[str, ast.expr]) -> str | None:
    """Return a text with ``…`` for what is put in, or None if it is none."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return f"{text_of(left, known) or '…'}{text_of(right, known) or '…'}"
        case ast.Name(id=name) if name in known:
            return text_of(known[name], {})
        case _:
            return None


def collect(path: Path) -> Iterator[Raised]:
    """Yield every error that a file makes; texts may be in a variable of the function or of the module."""
    tree = ast.parse(path.read_text())
    of_module = {n.targets[0].id: n.value for n in tree.body if isinstance(n, ast.Assign) and is_name(n.targets[0])}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        nodes = sorted((n for n in ast.walk(function) if hasattr(n, "lineno")), key=lambda n: n.lineno)
        known = dict(of_module)
        for node in nodes:
            if isinstance(node, ast.Assign) and is_name(node.targets[0]):
                known[node.targets[0].id] = node.value
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS:
                arguments = tuple(text_of(argument, known) for argument in node.args)
                yield Raised(f"{path.relative_to(ROOT)}:{node.lineno}", node.func.id, arguments)


def is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name)


KINDS = {name for name, kind in vars(exceptions).items() if isinstance(kind, type) and issubclass(kind, Exception)}
KINDS.add("SystemExit")


@functools.cache
def every_error() -> tuple[Raised, ...]:
    """Return all places in order."""
    return tuple(sorted({raised for path in FILES for raised in collect(path)}, key=lambda raised: raised.place))


def messages() -> list[Raised]:
    return [raised for raised in every_error() if raised.kind in MESSAGE_AT and raised.text is not None]


def values() -> list[Raised]:
    return [raised for raised in every_error() if raised.kind == "InvalidParameterError"]


def test_every_kind_of_error_is_looked_at():
    assert MESSAGE_AT.keys() | NO_TEXT == KINDS


def test_most_places_are_found():
    assert len(messages()) > 100 and len(values()) > 60


def complaints(text: str) -> list[str]:
    """Say what keeps a text from being one or more sentences."""
    found = []
    if not re.search(r"([.?!]\)?|…)$", text):
        found.append("no full stop at the end")
    if re.search(r"(?<!\.)\.\.(?!\.)|\?\.|!\.", text):
        found.append("two full stops")
    if re.search(r"  |\n| $|^ | [,;.](?!\w)", text):
        found.append("stray blanks")
    if re.search(r"(?<!e\.g)(?<!i\.e)(?<!\.)[.?!] [a-z](?!\w*[_(])", text):
        found.append("a sentence begins in lower case")
    if translated := re.search(TRANSLATED, text):
        found.append(f"translated English: {translated[0]}")
    return found


def begins_well(raised: Raised, text: str) -> bool:
    """Whether a text begins with a capital or the name of an object; after a path, with a verb."""
    first = text.split()[0].rstrip(",:")
    if raised.kind in WITH_PLACE:
        return re.match(r"[a-z…]", first) is not None
    name = re.split(r"[.(]", first)[0].removeprefix("--")
    return first[0].isupper() or "…" in first or (name.isidentifier() and name not in COMMON)


COMMON = {"a", "an", "the", "no", "not", "all", "there", "expected", "must", "is", "has", "cannot"}


def test_messages_are_sentences():
    found = [f"{raised.place}: {complaint}" for raised in messages() for complaint in complaints(raised.text)]
    found += [f"{raised.place}: beginning" for raised in messages() if not begins_well(raised, raised.text)]
    assert not found, "\n".join(found)


def test_what_was_expected_continues_must_be():
    """The sentence is "PARAMETER must be EXPECTED; got VALUE. ADVICE"."""
    found = []
    for raised in values():
        _, _, expected, *advice = raised.arguments
        if expected is not None:
            found += [f"{raised.place}: {text}" for text in expectation_complaints(expected)]
        for text in filter(None, advice):
            found += [f"{raised.place}: {complaint}" for complaint in complaints(text)]
            found += [] if begins_well(raised, text) else [f"{raised.place}: beginning of the advice"]
    assert not found, "\n".join(found)


def expectation_complaints(expected: str) -> list[str]:
    """Say why a text cannot stand after "must be"."""
    found = []
    if not re.match(r"[a-z'(\[…\d]|(None|True|Budget)\b", expected):
        found.append("begins with a capital")
    if re.search(r"[.;:]$", expected):
        found.append("ends a sentence that has an end already")
    if re.match(r"(preceded|called|left out|known|fitted|usable|given)\b", expected):
        found.append("is no value: another error says it better")
    if translated := re.search(TRANSLATED, expected):
        found.append(f"translated English: {translated[0]}")
    return found


def test_ends_of_benchmarks_are_read():
    assert sum(raised.kind == "SystemExit" for raised in messages()) > 30


def test_complaints_are_made():
    assert complaints("No stop") and complaints("Two..") and complaints("One. two.") and complaints("It goes on.")
    assert expectation_complaints("preceded by tell()") and expectation_complaints("at least 1.")
    assert not complaints("Read e.g. this… (that). Use f(...), or …")
