"""Chat messages as the tokens that a model reads: its own chat template and tokenizer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from jinja2 import TemplateError

from quarry.errors import ConfigError
from quarry.records import Message
from quarry.text.thoughts import opened_at_end

_PROBE = (Message(role="system", content="a"), Message(role="user", content="b"))


class Chat:
    """Renders messages with the tokenizer's template; message text is data there, never a template.

    What looks like one of the model's control tokens in a message is taken apart by a blank, so
    that only the template itself can write them. Safe to call from several threads if the tokenizer
    is.
    """

    def __init__(self, tokenizer: Any, model_id: str) -> None:
        self._tokenizer = tokenizer
        self._control = _control_tokens(tokenizer)
        self._takes_system = True
        try:
            self._takes_system = self._renders(_PROBE)
            usable = self._takes_system or self._renders(_PROBE[1:])
        except ValueError as error:  # it has no template at all
            raise _no_template(model_id) from error
        if not usable:
            raise _no_template(model_id)
        self.begun = opened_at_end(self._rendered(_PROBE, tokenize=False))
        """What the template writes of the answer itself: the tag that opens its thoughts, of models
        that always think; such a model writes the closing one alone."""

    def tokens(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of the whole prompt, up to where the model's answer begins."""
        return list(self._rendered(messages, tokenize=True))

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text alone, without the template's."""
        if not texts:
            return []
        encoded = self._tokenizer([self._plain(text) for text in texts], add_special_tokens=False)
        return [len(ids) for ids in encoded["input_ids"]]

    def _rendered(self, messages: Sequence[Message], *, tokenize: bool) -> Any:
        turns = messages if self._takes_system else _system_into_user(messages)
        return self._tokenizer.apply_chat_template(
            [{"role": turn.role, "content": self._plain(turn.content)} for turn in turns],
            tokenize=tokenize,
            add_generation_prompt=True,
            return_dict=False,
            enable_thinking=False,  # known to templates of models that think aloud, else unused
        )

    def _plain(self, text: str) -> str:
        return self._control.sub(lambda m: f"{m.group()[0]} {m.group()[1:]}", text)

    def _renders(self, messages: Sequence[Message]) -> bool:
        try:
            self.tokens(messages)
        except TemplateError:
            return False
        return True


def _control_tokens(tokenizer: Any) -> re.Pattern[str]:
    """Tokens that were added to the vocabulary whole, save plain words and blanks."""
    added = {*tokenizer.get_added_vocab(), *tokenizer.all_special_tokens}
    marks = [token for token in added if len(token) > 1 and not token.isalnum() and token.strip()]
    longest_first = sorted(marks, key=lambda token: (-len(token), token))
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def _system_into_user(messages: Sequence[Message]) -> list[Message]:
    """For templates that know no system turn: its text begins the first user turn."""
    system = "\n\n".join(m.content for m in messages if m.role == "system")
    others = [m for m in messages if m.role != "system"]
    if not system or not others:
        return others
    first = Message(role=others[0].role, content=f"{system}\n\n{others[0].content}")
    return [first, *others[1:]]


def _no_template(model_id: str) -> ConfigError:
    return ConfigError(
        f"The model {model_id} has no chat template for a user's turn; set generator.model to one "
        "that is tuned to follow instructions."
    )
