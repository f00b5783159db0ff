"""Bytes to text: byte order marks, Unicode without them, legacy encodings, and damaged UTF-8."""

from __future__ import annotations

import codecs
import re

_MARKS = (  # the longer first: UTF-32 starts like UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 65_536
_BAD_SHARE = 0.001
"""Share of bytes that may be broken in a text that is otherwise UTF-8."""
_BELIEVED = re.compile(
    r"cp125[13568]|cp(?:874|932|949|950)|iso8859_[3-8]|iso2022_\w+|koi8_[rtu]|gb\w+|big5\w*"
    r"|shift_jis\w*|euc_\w+|tis_620|mac_cyrillic"
)
"""Encodings that a guess is believed for; all others are taken for Windows' Western one."""
_CENTRAL_EUROPEAN = frozenset(
    {"Croatian", "Czech", "Hungarian", "Polish", "Romanian", "Slovak", "Slovene"}
)
_DOUBLE = re.compile(
    "[\u00c2-\u00df][\u0080-\u00bf]|[\u00e0-\u00ef][\u0080-\u00bf]{2}|[\u00f0-\u00f4][\u0080-\u00bf]{3}"
)
_CONTROLS = re.compile("[\u0080-\u009f]")


def decode(content: bytes, declared: str = "") -> str | None:
    """The text, without its byte order mark, or None if the bytes are no text.

    `declared` is the encoding that the content names; valid UTF-8 is believed before it.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _unicode(content[len(mark) :], encoding)
    sample = content[:_SAMPLE]
    if b"\0" in sample:
        wide = _wide(sample)
        if wide:
            return _unicode(content, wide)
        if sample.count(0) > max(1, len(sample) * _BAD_SHARE):
            return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        pass
    return _declared(content, declared) or _nearly_utf8(content) or _legacy(content)


def mangled(text: str) -> bool:
    """Whether UTF-8 was once read as Latin-1 and saved again.

    Such an accident leaves control characters, which no author writes.
    """
    return any(_CONTROLS.search(match[0]) for match in _DOUBLE.finditer(text))


def mended(text: str) -> str:
    """A part of a mangled text put right."""
    return _DOUBLE.sub(_once_more, text)


def _once_more(match: re.Match[str]) -> str:
    try:
        return match[0].encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return match[0]


def _unicode(content: bytes, encoding: str) -> str | None:
    text = content.decode(encoding, errors="replace")
    return None if text.count("\ufffd") > len(text) // 10 else text


def _wide(sample: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark, by where the zero bytes are."""
    zeros = [sample[start::4].count(0) / max(1, len(sample) // 4) for start in range(4)]
    if min(zeros[2], zeros[3]) > 0.9 and zeros[0] < 0.5:
        return "utf-32-le"
    if min(zeros[0], zeros[1]) > 0.9 and zeros[3] < 0.5:
        return "utf-32-be"
    low, high = (zeros[0] + zeros[2]) / 2, (zeros[1] + zeros[3]) / 2
    if high > 0.4 and low < 0.05:
        return "utf-16-le"
    if low > 0.4 and high < 0.05:
        return "utf-16-be"
    return None


def _declared(content: bytes, name: str) -> str | None:
    try:
        return content.decode(codecs.lookup(name).name) if name else None
    except (LookupError, UnicodeError, ValueError):
        return None


def _nearly_utf8(content: bytes) -> str | None:
    text = content.decode("utf-8", errors="replace")
    broken = text.count("\ufffd")
    whole = sum(1 for char in text if char > "\x7f") - broken
    return text if whole > broken and broken <= max(1, len(content) * _BAD_SHARE) else None


def _is_believed(encoding: str, language: str) -> bool:
    """Whether a guess is plausible: Spanish in the encoding of Central Europe is not."""
    if encoding in ("cp1250", "iso8859_2"):
        return language in _CENTRAL_EUROPEAN
    return _BELIEVED.fullmatch(encoding) is not None


def _legacy(content: bytes) -> str | None:
    from charset_normalizer import from_bytes

    best = from_bytes(content[: 4 * _SAMPLE]).best()
    if best is not None and _is_believed(best.encoding, best.language):
        text = _declared(content, best.encoding)
        if text is not None:
            return text
    controls = sum(content.count(byte) for byte in range(32) if byte not in b"\t\n\r\f\x1b")
    if controls > len(content) // 100:
        return None
    return content.decode("cp1252", errors="replace")
