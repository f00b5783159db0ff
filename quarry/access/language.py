"""The filter language: text that a caller writes, parsed into the tree of `filters.py`.

    region = EU and (year = 2024..2026 or not status = draft)

docs/filters.md says what it means. Everything that is not a filter raises FilterError with one
sentence that names the place and what was expected there, and never repeats the text itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from math import isfinite
from typing import TypeAlias

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from quarry.access.filters import EVERYTHING, And, Compare, Filter, In, Not, Op, Or, Value
from quarry.access.labels import COLUMNS, ORDERED, TEXT_FIELDS, clean_text
from quarry.errors import FilterError
from quarry.records import Status

MAX_BYTES = 20_000
MAX_DEPTH = 32
"""Parentheses within each other."""
MAX_VALUES = 256
"""Names and values in one filter, so that no store's limit on a query is met."""
MAX_NAME = 128
"""Characters of a field name."""

Node: TypeAlias = Tree[Token]
Operand: TypeAlias = "Token | tuple[Token, Token]"

_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,400})(\.\d+)?([eE][+-]?\d{1,4})?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\"}
_EXPECTED = {
    "WORD": "a word or a text in quotes",
    "STRING": "a word or a text in quotes",
    "OP": "a comparison such as = or >=",
    "_IN": "in",
    "NOT": "not",
    "_AND": "and",
    "_OR": "or",
    "_TO": "..",
    "LPAR": "an opening parenthesis",
    "RPAR": "a closing parenthesis",
    "COMMA": "a comma",
    "$END": "the end",
}


def parse_filter(text: str) -> Filter:
    """The filter that a text means; blank text is every document. Raises FilterError."""
    if not text.strip():
        return EVERYTHING
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise FilterError(f"The filter is longer than {MAX_BYTES} bytes; make it shorter.")
    if clean_text(text) != text:
        raise FilterError("The filter holds characters that are not text; take them out.")
    parser = _parser()
    try:
        _check_size(parser.lex(text))
        return _disjunction(parser.parse(text).children[0])
    except UnexpectedInput as error:
        raise FilterError(_unexpected(error)) from None


@lru_cache(maxsize=1)
def _parser() -> Lark:
    return Lark.open_from_package(
        "quarry.access", "grammar.lark", parser="lalr", lexer="basic", maybe_placeholders=True
    )


def _check_size(tokens: Iterator[Token]) -> None:
    depth = values = 0
    for token in tokens:
        values += token.type in ("WORD", "STRING")
        depth += (token.type == "LPAR") - (token.type == "RPAR")
        if depth > MAX_DEPTH:
            raise FilterError(f"The filter has more than {MAX_DEPTH} parentheses in each other.")
        if values > MAX_VALUES:
            raise FilterError(f"The filter has more than {MAX_VALUES} names and values in it.")


def _unexpected(error: UnexpectedInput) -> str:
    place = f"character {(error.pos_in_stream or 0) + 1}"
    if isinstance(error, UnexpectedCharacters):
        text = "a closing quote" if error.char in "\"'" else "a word; put other values in quotes"
        return f"The filter cannot be read at {place}: expected {text}."
    assert isinstance(error, UnexpectedToken)
    if error.token.type == "$END":
        place = "its end"
    names = sorted({_EXPECTED[name] for name in error.accepts or error.expected})
    wanted = f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else "".join(names)
    return f"The filter cannot be read at {place}: expected {wanted}."


def _disjunction(node: Node | Token) -> Filter:
    assert isinstance(node, Tree)
    if node.data == "disjunction":
        return Or(tuple(_disjunction(part) for part in node.children))
    if node.data == "conjunction":
        return And(tuple(_disjunction(part) for part in node.children))
    if node.data == "negation":
        return Not(_disjunction(node.children[1]))
    if node.data == "membership":
        return _membership(node)
    return _comparison(node)


def _comparison(node: Node) -> Filter:
    name, sign, operand = node.children
    field, op = _field(name), Op("=" if sign == "==" else str(sign))
    value = _operand(operand)
    if isinstance(value, tuple):
        if op is not Op.EQ:
            raise FilterError(f"A range goes with = only, not with {op.value} ({_at(value[0])}).")
        return _within(field, value)
    return _compared(field, op, value)


def _membership(node: Node) -> Filter:
    name, negated, *operands = node.children
    field = _field(name)
    read = [_operand(operand) for operand in operands]
    ranges = [each for each in read if isinstance(each, tuple)]
    equals = [_compared(field, Op.EQ, each) for each in read if isinstance(each, Token)]
    values = [value for equal in equals for value in _values(equal)]
    if not negated:
        listed = [In(field, tuple(dict.fromkeys(values)))] if values else []
        return _one_or(Or((*listed, *(_within(field, ends) for ends in ranges))))
    outside = [_outside(field, ends) for ends in ranges]
    if values:  # != asks for a document that has the field, as `not in` does
        outside += [Compare(field, Op.NE, values[0]), Not(In(field, tuple(values)))]
    return And(tuple(outside))


def _values(equal: Filter) -> tuple[Value, ...]:
    assert isinstance(equal, Compare | In)
    return (equal.value,) if isinstance(equal, Compare) else equal.values


def _one_or(filter: Or) -> Filter:
    return filter.parts[0] if len(filter.parts) == 1 else filter


def _compared(field: str, op: Op, token: Token) -> Filter:
    value = _value(field, token)
    if op in ORDERED and (field == "status" or isinstance(value, bool)):
        raise FilterError(f"This has no order; use =, != or in ({_at(token)}).")
    if field in COLUMNS or token.type == "STRING" or isinstance(value, str) or op in ORDERED:
        return Compare(field, op, value)
    # 42 without quotes is the number and also the text of records that hold only text
    if op is Op.EQ:
        return In(field, (value, str(token)))
    return And((Compare(field, op, value), Compare(field, op, str(token))))


def _within(field: str, ends: tuple[Token, Token]) -> Filter:
    low, high = _ends(field, ends)
    return And((Compare(field, Op.GE, low), Compare(field, Op.LE, high)))


def _outside(field: str, ends: tuple[Token, Token]) -> Filter:
    low, high = _ends(field, ends)
    return Or((Compare(field, Op.LT, low), Compare(field, Op.GT, high)))


def _ends(field: str, ends: tuple[Token, Token]) -> tuple[Value, Value]:
    low, high = (_value(field, end) for end in ends)
    if field == "status" or isinstance(low, bool) or isinstance(high, bool):
        raise FilterError(f"This has no order; use =, != or in ({_at(ends[0])}).")
    if isinstance(low, str) != isinstance(high, str):
        raise FilterError(f"Both ends of a range are of one kind ({_at(ends[0])}).")
    return low, high


def _operand(node: Node | Token) -> Operand:
    assert isinstance(node, Tree)
    if node.data == "range":
        low, high = (_leaf(child) for child in node.children)
        return low, high
    return _leaf(node)


def _leaf(node: Node | Token) -> Token:
    assert isinstance(node, Tree)
    (token,) = node.children
    assert isinstance(token, Token)
    return token


def _field(node: Node | Token) -> str:
    token = _leaf(node)
    name = _unquoted(token) if token.type == "STRING" else str(token)
    name = name.strip().lower()  # as ingest writes the names of metadata
    if name == "acl":
        raise FilterError("A filter cannot name acl; who may read is decided by who asks.")
    if not name or len(name) > MAX_NAME:
        raise FilterError(f"A field name has 1 to {MAX_NAME} characters ({_at(token)}).")
    return name


def _value(field: str, token: Token) -> Value:
    text = _unquoted(token) if token.type == "STRING" else str(token)
    if field == "effective":
        return _day(text, token)
    if field == "status":
        if text.casefold() not in set(Status):
            raise FilterError(f"status is current, draft or withdrawn ({_at(token)}).")
        return text.casefold()
    if field in TEXT_FIELDS or field == "version":
        if not text.strip():
            raise FilterError(f"{field} is compared with a text that is not empty ({_at(token)}).")
        return text
    return text if token.type == "STRING" else _scalar(text)


def _day(text: str, token: Token) -> date:
    try:
        if _DAY.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass  # such as 2026-02-30: the same sentence says what to write
    raise FilterError(f"effective takes dates such as 2026-07-01 ({_at(token)}).")


def _scalar(word: str) -> Value:
    """A bare word of metadata: a number, true, false, or text."""
    if word in ("true", "false"):
        return word == "true"
    number = _NUMBER.fullmatch(word)
    if number is None:
        return word
    if not (number[1] or number[2]):
        return int(word)
    return float(word) if isfinite(float(word)) else word


def _unquoted(token: Token) -> str:
    def replaced(match: re.Match[str]) -> str:
        code = match[1]
        if code.startswith("u") and len(code) == 5:
            return chr(int(code[1:], 16))
        if code not in _ESCAPES:
            raise FilterError(
                f"A text in quotes has an escape that is not known ({_at(token)}); "
                "write a backslash as two."
            )
        return _ESCAPES[code]

    text = _ESCAPE.sub(replaced, str(token)[1:-1])
    try:
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16")  # joins pairs of \\u
    except UnicodeDecodeError:
        whole = "\0"
    if "\0" in whole:
        raise FilterError(f"A text in quotes holds what is not text ({_at(token)}).")
    return whole


def _at(token: Token) -> str:
    return f"at character {(token.start_pos or 0) + 1}"
