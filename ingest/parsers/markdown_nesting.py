"""Markdown that is nested without end: the deepest part is kept as plain text, never dropped."""

from __future__ import annotations

import re
from typing import Any

MAX_NESTING = 200
"""Levels of blocks inside blocks, a list and its item being two. Each takes a few frames of the
library's recursion, which must stay far from the interpreter's limit."""
TOO_DEEP = "It is nested so deeply that its innermost part is kept as plain text."
_KEY = "quarry_too_deep"
_QUOTE_MARKS = re.compile(r"^[ \t]*(?:>[ \t]*)+", re.M)


def keep_the_deepest(parser: Any) -> Any:
    """Teaches a parser to read blocks that are `MAX_NESTING` deep as plain text.

    By itself the library drops what is nested too deeply, and nobody is told.
    """
    inline_nesting = parser.options["maxNesting"]  # beyond it marks stay text, nothing is lost

    def inline(state: Any) -> None:
        state.md.options["maxNesting"] = inline_nesting
        for token in state.tokens:
            if token.type == "inline":
                state.md.inline.parse(token.content, state.md, state.env, token.children)

    parser.options["maxNesting"] = MAX_NESTING + 2  # above the level at which the rule steps in
    first = parser.block.ruler.get_all_rules()[0]
    parser.block.ruler.before(first, "deepest", _deepest)
    parser.core.ruler.at("inline", inline)
    return parser


def is_too_deep(env: dict[str, Any]) -> bool:
    """Whether the text that was parsed with this `env` was nested too deeply."""
    return _KEY in env


def _deepest(state: Any, start: int, end: int, silent: bool) -> bool:
    """A block rule: the lines up to a blank one or the end of the nesting, as one paragraph."""
    if silent or state.level < MAX_NESTING:
        return False
    line = start + 1
    while line < end and not state.isEmpty(line) and _is_inside(state, line):
        line += 1
    state.env[_KEY] = True
    state.line = line
    text = state.getLines(start, line, state.blkIndent, False)
    for kind, nesting in (("paragraph_open", 1), ("inline", 0), ("paragraph_close", -1)):
        token = state.push(kind, "" if nesting == 0 else "p", nesting)
        token.map = [start, line]
        if nesting == 0:
            token.content = _QUOTE_MARKS.sub("", text).strip()
            token.children = []
    return True


def _is_inside(state: Any, line: int) -> bool:
    """Quotes mark lines that go on without their sign by a negative indent."""
    indent = state.sCount[line]
    return bool(indent < 0 or indent >= state.blkIndent)
