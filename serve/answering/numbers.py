"""Numbers in one form, however a text writes them: 1,000 as 1000, 4,90 as 4.9, twenty-one as 21."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

import regex

_NUMBER = regex.compile(
    r"(?:(?<!\d)\d{1,3}(?P<mark>[.,\u00a0\u202f])\d{3}(?:(?P=mark)\d{3})*(?!\d)(?:[.,]\d+)?"
    r"|\d+(?:[.,]\d+)*)(?:\s(?P<scale>hundred|thousand|million)\b)?",
    regex.IGNORECASE,
)
_THOUSANDS = regex.compile(r"(\d{1,3}(?:[.,]\d{3})+)((?:[.,]\d+)?)")
_LIST_NUMBER = regex.compile(r"^\s*(?:[-*•]\s+)?\(?\d{1,3}[.)]\s")
_SMALL = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen".split()
    )
}
_TENS = {
    word: 10 * number
    for number, word in enumerate(
        "twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2
    )
}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}
_SPELLED = rf"\b(?:{'|'.join((*_SMALL, *_TENS, *_SCALES))})\b"
_PHRASE = regex.compile(
    rf"{_SPELLED}(?:(?:[\s-]|(?<=\b(?:hundred|thousand|million))\sand\s){_SPELLED})*",
    regex.IGNORECASE,
)


def numbers(text: str) -> set[str]:
    """The numbers of a sentence or a text, without that of a list item; "one" alone is none."""
    plain = _LIST_NUMBER.sub("", text)
    found = {_one_form(match) for match in _NUMBER.finditer(plain)}
    spelled = _NUMBER.sub(" ; ", plain)
    for phrase in _PHRASE.findall(spelled):
        words = [word for word in regex.split(r"[\s-]+", phrase.lower()) if word != "and"]
        found |= {str(number) for number in _composed(words)} - (
            {"1"} if words == ["one"] else set()
        )
    return found


def _one_form(match: regex.Match[str]) -> str:
    scale = match["scale"] or ""
    number = match.group().removesuffix(scale)
    bare = regex.sub(r"\s", "", unicodedata.normalize("NFKC", number))
    thousands = _THOUSANDS.fullmatch(bare)
    if thousands:
        bare = regex.sub(r"[.,]", "", thousands[1]) + thousands[2]
    parts = regex.split(r"[.,]", bare)
    whole = parts[0].lstrip("0") or "0"
    if len(parts) > 2:
        return ".".join(part.lstrip("0") or "0" for part in parts)
    fraction = parts[1].rstrip("0") if len(parts) == 2 else ""
    if scale:
        return _scaled(whole, fraction, _SCALES[scale.lower()])
    return f"{whole}.{fraction}" if fraction else whole


def _scaled(whole: str, fraction: str, scale: int) -> str:
    """1.5 thousand as 1500."""
    digits = len(str(scale)) - 1
    moved, rest = fraction[:digits].ljust(digits, "0"), fraction[digits:]
    number = (whole + moved).lstrip("0") or "0"
    return f"{number}.{rest}" if rest else number


def _composed(words: Sequence[str]) -> Iterator[int]:
    """The numbers that these words name, one after the other: twenty one, two hundred five, six."""
    total = current = 0
    last = ""
    for word in words:
        value = _SMALL.get(word, _TENS.get(word, 0))
        if word in _SCALES:
            if word == "hundred":
                current = (current or 1) * 100
            else:
                total, current = total + (current or 1) * _SCALES[word], 0
        elif not last or _goes_on(last, word):
            current += value
        else:
            yield total + current
            total, current = 0, value
        last = word
    if words:
        yield total + current


def _goes_on(last: str, word: str) -> bool:
    return last in _SCALES or (last in _TENS and 0 < _SMALL.get(word, 0) < 10)
