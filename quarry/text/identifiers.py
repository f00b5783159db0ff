"""Identifiers: codes that are right or wrong as a whole, such as E-1042 or HR-014-CA.

A false identifier in a question lifts rows that hold it above all others, so everyday shapes
(30-day, mid-2024, in 2024, B 12, 2024-01-31, 3.5) are left to the words.
"""

from __future__ import annotations

import regex

_EDGE = r"(?<![\p{L}\p{N}_])"
_END = r"(?![\p{L}\p{N}_])"

_PATTERN = regex.compile(
    _EDGE
    + r"""(?:
      (?P<verbatim>
          [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}            # UUID
        | 0x[0-9a-f]{2,}                                         # 0x80070005
        | (?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{10,}         # digests
        | [a-z0-9]+(?:_+[a-z0-9]+)+                              # QUARRY_CONFIG, max_tokens
        | \d{7,}                                                 # account and part numbers
        | \d{2,}(?:-\d+)+                                        # 4711-0815-2, ISBN
      )
    | (?:v|ver\.\ ?|version\ |release\ )(?P<version>\d+(?:\.\d+)+)
    | (?P<dotted>\d+(?:\.\d+){2,})                               # 2.3.1
    | (?P<code>
          (?: (?P<prefix>[a-z]{1,12})(?:-[a-z]{1,6})?-\d[a-z0-9]*
            | (?P<prefix>[a-z]{1,6})\d+(?:[a-z]{1,3}\d*)? )
          # Further parts, but not the other end of a range: E-1001-E-1060.
          (?: (?!-(?P=prefix)-?\d) -(?:\d[a-z0-9]*|[a-z]{1,3}\d+|[a-z]{1,3}) )*
        | \d+-(?:[a-z]{1,3}\d+|\d+[a-z]{1,3})(?:-[a-z0-9]+)*     # 10045-A7
      )
    | (?P<spaced>(?-i:[A-Z]{1,4}|[b-hj-z])\ \d{3,}(?:-\d+)?(?!-\d))   # E 1042, CVE 2024-1234
    )"""
    + _END,
    regex.VERBOSE | regex.IGNORECASE,
)

_KINDS = ("verbatim", "version", "dotted", "code", "spaced")
_DASHES = regex.compile(
    r"(?<=[\p{L}\p{N}])(?:[\u2010\u2011\u2212\ufe63\uff0d]"
    # A longer dash between digits is a range: E-1001–1060.
    r"|(?<!\d)[\u2012-\u2015\ufe58]|[\u2012-\u2015\ufe58](?!\d))(?=[\p{L}\p{N}])"
)
_BOUNDARY = regex.compile(r"(?<=[A-Z])(?=\d)|(?<=\d)(?=[A-Z])")
_DATE = regex.compile(
    r"(?:1[5-9]|20)\d\d-(?:0?[1-9]|1[0-2])(?:-\d\d?)?|\d\d?[-.]\d\d?[-.](?:1[5-9]|20)?\d\d"
    r"|(?:1[5-9]|20)\d\d-(?:1[5-9]|20)\d\d"
)
_YEAR = regex.compile(r"(?:1[5-9]|20)\d\d")
_EVERYDAY = frozenset(
    "age ages aged before after between circa class day days early fig figure from grade in item "
    "late level mid minus month no non nr number of on or over page part per phase plus post pre "
    "section since stage step sub table to top type under until up vs week year".split()
)
"""Words that stand before a number in plain prose: mid-2024, type-2, top-10."""
_CURRENCIES = frozenset("aud cad chf cny dkk eur gbp inr jpy krw nok nzd pln sek usd".split())
_SHORT_WORDS = frozenset(
    "a i an and any are as at be but by can did do for get had has he her him his how if is it its "
    "let may me my nor not now our out own say she so than that the them they this too two use "
    "was way we who why with you your only over more most less least about".split()
)


def identifiers(text: str) -> tuple[str, ...]:
    """Codes in `text`, upper case, in order, each once.

    Dashes of every kind become `-`, and one is put where letters meet digits, so that E-1042,
    E–1042, E1042, e-1042 and E 1042 are all `E-1042`. A version is given without its v.
    """
    found: dict[str, None] = {}
    for match in _PATTERN.finditer(_DASHES.sub("-", text)):
        code = _normal(match)
        if code:
            found[code] = None
    return tuple(found)


def _normal(match: regex.Match[str]) -> str:
    kind = next(name for name in _KINDS if match.group(name))
    upper = match.group(kind).upper()
    if kind == "verbatim":
        return "" if _is_plain_number(upper) else upper
    if kind == "version":
        return upper
    if kind == "dotted":
        return "" if _DATE.fullmatch(upper) else upper
    if kind == "spaced":
        return _spaced(upper)
    return _code(upper)


def _is_plain_number(code: str) -> bool:
    """Dates, ranges of years and short ranges such as 10-20 or 03-555."""
    if "-" not in code or not code.replace("-", "").isdigit():
        return False
    return bool(_DATE.fullmatch(code)) or len(code.replace("-", "")) < 8


def _spaced(code: str) -> str:
    letters, _, digits = code.partition(" ")
    word = letters.lower()
    prose = word in _EVERYDAY or word in _CURRENCIES or word in _SHORT_WORDS
    if prose or _YEAR.fullmatch(digits):
        return ""
    return f"{letters}-{digits}"


def _code(code: str) -> str:
    if code.partition("-")[0].lower() in _EVERYDAY:
        return ""
    letters = sum(char.isalpha() for char in code)
    digits = sum(char.isdigit() for char in code)
    if "-" not in code and letters == 1 and digits == 1:  # H2, S3, A4
        return ""
    parts = _BOUNDARY.sub("-", code)
    # Many short runs are a random key, not a prefix and a number: leave it as it is.
    return parts if parts.count("-") <= 4 else code
