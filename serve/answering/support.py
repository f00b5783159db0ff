"""Whether the cited passages bear a sentence: numbers and codes always, words, and a judge if set.

These checks find what is plainly not there. A sentence that passes them may still be wrong; an
entailment model, if one is set, looks at the meaning.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import regex

from quarry.records import Doubt, Evidence
from quarry.text import REFUSAL, analyze, identifiers
from serve.answering.citations import Sentence
from serve.answering.negation import contradicts
from serve.answering.numbers import numbers

LEAST_SHARED = 0.5
"""Of a sentence's content words, that its sources must have."""
_FEW_WORDS = 2
"""A sentence of fewer content words, such as "Yes.", says nothing that could be looked up."""
_FUNCTION_WORDS = {
    "en": "the of and to is are in that for with on be by from this not or it as only within can",
    "de": "der die das und nicht nur mit von ist sind ein eine einen wir zu den dem auf für werden",
    "fr": "le la les et des du une est sont dans que pour pas avec sur par vous nous aux ce",
    "es": "el los las y del una es son en que para no con por se su sólo está al lo",
    "it": "il gli e di della una è sono che per non con del nel si da solo alla dei lo",
    "pt": "o os as e da do uma é são em que para não com por se dos na no apenas",
    "nl": "de het een en van niet met voor is zijn op dat die te wij worden door alleen naar bij",
    "sv": "och att det en som för på är av med inte den till vi ett har om kan ska bara",
}
"""The commonest small words of languages in Latin script, enough to tell one from another."""
_SURE = 2
"""Different small words of a language that a text must have to be taken for it."""
_HEADING = regex.compile(r"\s*(?:#{1,6}\s|\|?[\s:|-]+\|?$)")
_WORD = regex.compile(r"[\p{L}\p{M}]+")


def states_fact(sentence: Sentence) -> bool:
    """Whether a reader would want a source for it: no question, heading, lead-in or code."""
    text = sentence.text.strip()
    if sentence.in_code or text == REFUSAL or _HEADING.match(text):
        return False
    return not text.endswith(("?", "？", ":", "：")) and says_something(sentence)


def says_something(sentence: Sentence) -> bool:
    """Whether it has enough words, or a number, to be compared."""
    return len(_content(sentence.text)) >= _FEW_WORDS or bool(numbers(sentence.text))


def bears(sentence: Sentence, sources: Sequence[Evidence]) -> bool:
    """Whether anything of it was found in these sources, once nothing of it is in doubt: "Yes." has
    nothing that could be."""
    read = "\n".join(readable(source) for source in sources)
    return bool(
        numbers(sentence.text)
        or identifiers(sentence.text)
        or _content(sentence.text) & _content(read)
    )


def doubt(sentence: Sentence, sources: Sequence[Evidence]) -> Doubt | None:
    """Why these sources may not bear the sentence, as far as words and numbers tell."""
    if not sources:
        return _doubt(sentence, "uncited")
    if any(sentence.text in source.text for source in sources):
        return None
    read = "\n".join(readable(source) for source in sources)
    if not numbers(sentence.text) <= numbers(read):
        return _doubt(sentence, "numbers")
    codes = set(identifiers(sentence.text))
    if not codes <= set(identifiers(read)):
        return _doubt(sentence, "numbers")
    wanted = _content(sentence.text)
    shared = len(wanted & _content(read)) / max(1, len(wanted))
    if len(wanted) >= _FEW_WORDS and shared < LEAST_SHARED:
        other = _other_language(sentence.text, read)
        return _doubt(sentence, "language" if other else "words")
    if contradicts(sentence.text, read):
        return _doubt(sentence, "negation")
    return None


def denied(sentence: Sentence) -> Doubt:
    """The doubt of an entailment model."""
    return _doubt(sentence, "meaning")


def readable(source: Evidence) -> str:
    """All that the generator was shown of a source: its facts and its text."""
    document = source.document
    effective = document.effective.isoformat() if document.effective else ""
    version = f"version {document.version}" if document.version else ""
    facts = (document.title, *source.chunk.section, version, effective)
    return "\n".join([*filter(None, facts), source.text])


def _doubt(sentence: Sentence, reason: str) -> Doubt:
    return Doubt(sentence=sentence.text, reason=reason, labels=sentence.labels)


def _content(text: str) -> set[str]:
    return {word for word in analyze(text, codes=()) if not word.isdigit()}


def _other_language(sentence: str, read: str) -> bool:
    """Whether the sentence is in another language than its sources, so that words cannot tell."""
    if _script(sentence) != _script(read):
        return True
    one, other = _language(sentence), _language(read)
    return bool(one and other and one != other)


def _script(text: str) -> str:
    """The script of most of its letters, roughly: the first word of their Unicode names."""
    scripts = [unicodedata.name(c, "?").split()[0] for c in text if c.isalpha()]
    return max(set(scripts), key=scripts.count, default="")


def _language(text: str) -> str:
    """The language of most of its small words; "" where there are too few, or as many of two."""
    words = {word.lower() for word in _WORD.findall(text)}
    found = sorted(
        ((len(words & set(small.split())), name) for name, small in _FUNCTION_WORDS.items()),
        reverse=True,
    )
    (most, name), (second, _) = found[:2]
    return name if most >= _SURE and most > second else ""
