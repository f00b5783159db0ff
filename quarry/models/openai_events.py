"""The events of a streamed chat completion, as far as an answer needs them.

API: https://platform.openai.com/docs/api-reference/chat-streaming/streaming
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from quarry.errors import ModelError


def _whole(text: object) -> object:
    """Text with U+FFFD for each half of a surrogate pair, which no answer could be sent with."""
    if not isinstance(text, str):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_Text = Annotated[str, BeforeValidator(_whole)]
_Count = Annotated[int, Field(ge=0, lt=2**53)]


class Delta(BaseModel):
    content: _Text | None = None


class Choice(BaseModel):
    delta: Delta | None = None
    finish_reason: _Text | None = None

    @property
    def text(self) -> str:
        return (self.delta and self.delta.content) or ""


class Usage(BaseModel):
    """Tokens. In all these, null is as good as a field that is not there: endpoints write both."""

    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None


class Event(BaseModel):
    choices: list[Choice] | None = None
    usage: Usage | None = None
    error: Any = None


def read(data: str) -> Event:
    """The event that this JSON is.

    Raises ModelError for what is none, and for one that tells an error of the endpoint.
    """
    try:
        event = Event.model_validate(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise ModelError(
            "The generator endpoint sent what is no part of a chat completion; "
            "check generator.base_url."
        ) from error
    if event.error:
        raise ModelError("The generator endpoint reported an error; look at its log.")
    return event
