"""Charts as SVG text, made by pure functions: numbers in, markup out; no script, no outside reference.

Colours and fonts come from the page: every element carries a class (``axis``, ``grid``, ``tick``, ``dot``, ``step``,
``constant``, ``rug``, ``s1`` ... for the series) that the style sheet of the report knows.
"""
