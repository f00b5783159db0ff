"""Other ways to say a question, before it is searched; all are off unless set.

- follow-up: a question of a conversation is made to stand on its own;
- HyDE: vectors are searched with made-up answers beside the question (Gao, Ma, Lin and Callan,
  "Precise zero-shot dense retrieval without relevance labels", ACL 2023: the mean of the vectors);
- multi-query: other wordings are searched as well, and the ranks of each leg fused;
- glossary: other words for its terms are added to the lexical leg.

Nothing here can change who asks or what may be found: principal, filters and identifiers of the
question stay those of the request. What a model does not write in time is done without, and named
in `degraded`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Self
from uuid import uuid4

import regex
import structlog

from quarry.errors import QuarryError
from quarry.glossary import Glossary
from quarry.models.estimate import BYTES_A_TOKEN
from quarry.records import Message, Mode, Prompt, StageRecord
from quarry.settings import Settings
from quarry.settings_retrieval import RewriteSettings
from quarry.text import REFUSAL, clean, identifiers
from quarry.text.harmless import harmless
from quarry.text.thoughts import without_thoughts
from serve.finding.question import Asked
from serve.models import Generate
from serve.stage import Run, Stopwatch, told

_log = structlog.get_logger(__name__)

SHARE = 0.3
"""Of the time that is left, for what a model writes before the search."""
MAX_TOKENS = 160
"""Of one such text."""
RULES_TOKENS = 160
"""Room for the instruction and the frame of one such prompt."""
MOST_TURNS = 8
"""Latest messages of a conversation that are read."""

_FOLLOW_UP = """\
Rewrite the last question of a conversation so that it can be understood without the conversation:
put in what "it", "that" or "there" stand for, and what the question leaves out. Keep every name,
number and code as it is written. Do not answer it. Write the question alone, on one line, in the
language of the last question. If it can be understood already, repeat it."""
_HYDE = """\
Write one short passage of a document that would answer the question: two or three plain sentences,
in the language of the question, as such a document would say it. Write the passage alone."""
_WORDINGS = """\
Write {count} other ways to ask the question, each on a line of its own, with other words for the
same things, in the language of the question. Do not answer it. Write the questions alone."""

_MARKER = regex.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.):]|(?:standalone )?question\s*:)\s*", regex.I)
_QUOTES = "\"'“”„«»`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriting:
    """The options of one searcher, with what they need."""

    settings: RewriteSettings
    glossary: Glossary | None
    write: Generate
    max_chars: int
    """Longest question."""
    context_tokens: int
    """The generator's window."""

    @classmethod
    def of(cls, settings: Settings, glossary: Glossary | None, write: Generate) -> Self:
        return cls(
            settings=settings.retrieval.rewrite,
            glossary=glossary,
            write=write,
            max_chars=settings.retrieval.max_question_chars,
            context_tokens=settings.generator.context_tokens,
        )

    def wanted(self, conversation: Sequence[Message]) -> bool:
        chosen = self.settings
        follows = chosen.follow_up and bool(conversation)
        return bool(follows or chosen.hyde or chosen.multi_query or self.glossary)


async def rewrite(
    asked: Asked, conversation: Sequence[Message], rewriting: Rewriting, run: Run
) -> tuple[Asked, StageRecord]:
    """What is asked, with all that is searched for it; the record's detail has every text."""
    watch = Stopwatch("rewrite")
    options = rewriting.settings
    detail: dict[str, Any] = {}
    if options.follow_up and conversation:
        asked, unusable = await _standalone(asked, conversation, rewriting, run)
        detail["question"] = asked.question
        if unusable:
            detail["unusable"] = unusable
    guesses, wordings = await asyncio.gather(
        _guesses(asked, rewriting, run), _wordings(asked, rewriting, run)
    )
    expansions: tuple[str, ...] = ()
    if rewriting.glossary is not None:
        expansions = rewriting.glossary.expansions(asked.question, asked.principal.tenant)
        detail["expansions"] = expansions
    if options.hyde:
        detail["guesses"] = guesses
    if options.multi_query:
        detail["wordings"] = wordings
    asked = replace(asked, guesses=guesses, wordings=wordings, expansions=expansions)
    return asked, watch.done(1 + len(wordings), **detail)


async def _standalone(
    asked: Asked, conversation: Sequence[Message], rewriting: Rewriting, run: Run
) -> tuple[Asked, str]:
    """What is asked by a question of its own; else what is asked, and the text that was no use."""
    said = _said(conversation, asked.question, rewriting.context_tokens)
    text = await _written("follow_up", _FOLLOW_UP, said, rewriting, run)
    if text is None:
        return asked, ""
    question = _first_line(text)
    codes = set(identifiers(question))
    # A code leads the results: it has to be one that was said, and none that is asked for may go.
    made_up = codes.difference(*(identifiers(clean(m.content)) for m in conversation), asked.codes)
    lost = asked.codes - codes
    if not question or len(question) > rewriting.max_chars or made_up or lost:
        run.without("follow_up")
        return asked, question[: rewriting.max_chars]
    lane = asked.lane if asked.mode is Mode.DENSE else asked.lane | codes
    return replace(asked, question=question, lane=lane), ""


async def _guesses(asked: Asked, rewriting: Rewriting, run: Run) -> tuple[str, ...]:
    if not rewriting.settings.hyde:
        return ()
    text = await _written("hyde", _HYDE, _asks(asked.question), rewriting, run)
    guess = clean(text or "")[: rewriting.max_chars]
    if not guess and text is not None:
        run.without("hyde")
    return (guess,) if guess else ()


async def _wordings(asked: Asked, rewriting: Rewriting, run: Run) -> tuple[str, ...]:
    count = rewriting.settings.multi_query
    if not count:
        return ()
    rules = _WORDINGS.format(count=count)
    text = await _written("multi_query", rules, _asks(asked.question), rewriting, run)
    lines = [_plain(line) for line in (text or "").splitlines()]
    usable = [line for line in lines if line and len(line) <= rewriting.max_chars]
    found = tuple(
        line
        for line in dict.fromkeys(usable)
        if line != asked.question and asked.codes.issuperset(identifiers(line))
    )[:count]
    if not found and text is not None:
        run.without("multi_query")
    return found


async def _written(name: str, rules: str, said: str, rewriting: Rewriting, run: Run) -> str | None:
    """What the generator writes; None, and `name` in `degraded`, if it fails or takes too long."""
    prompt = Prompt(
        question=said,
        evidence=(),
        messages=(Message(role="system", content=rules), Message(role="user", content=said)),
        max_tokens=MAX_TOKENS,
        request_id=uuid4().hex,
    )
    try:
        text = await run.deadline.within(_whole(prompt, rewriting.write), SHARE)
        return "" if text.strip().startswith(REFUSAL) else text
    except (QuarryError, TimeoutError) as error:
        run.without(name)
        _log.warning("not_rewritten", option=name, **told(error))
        return None


async def _whole(prompt: Prompt, write: Generate) -> str:
    async with aclosing(write(prompt)) as pieces:
        return without_thoughts("".join([piece.text async for piece in pieces]))


def _said(conversation: Sequence[Message], question: str, context_tokens: int) -> str:
    """The end of the conversation, as far as the generator's window reaches, and the question.

    Of a long message its end is read, and it leaves half of the room for what was said before it:
    mostly the question that it answers.
    """
    asks = _asks(question)
    room = (context_tokens - MAX_TOKENS - RULES_TOKENS) * BYTES_A_TOKEN - len(asks.encode())
    longest = room // 2
    lines: list[str] = []
    for message in reversed(conversation[-MOST_TURNS:]):
        text = harmless(" ".join(clean(message.content).split()))
        told = _end(text, min(room, longest) - len(f"{message.role}: \n"))
        if text and not told:
            break
        lines.append(f"{message.role}: {told}")
        room -= len(lines[-1].encode()) + 1
    said = "\n".join(reversed(lines))
    return f"<conversation>\n{said}\n</conversation>\n{asks}"


def _end(text: str, most: int) -> str:
    """The last words of a text, in so many UTF-8 bytes at most."""
    whole = text.encode()
    if len(whole) <= most:
        return text
    kept = whole[-most:].decode(errors="ignore") if most > 0 else ""
    return kept.partition(" ")[2] or kept


def _asks(question: str) -> str:
    return f"<question>\n{harmless(question)}\n</question>"


def _first_line(text: str | None) -> str:
    return next((line for line in map(_plain, (text or "").splitlines()) if line), "")


def _plain(line: str) -> str:
    """A line without the number, dash or quotes that models put around it."""
    return clean(_MARKER.sub("", clean(line)).strip(_QUOTES + " "))
