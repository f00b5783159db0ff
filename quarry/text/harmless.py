"""Makes documents data to a model: what would be read as structure of the prompt is taken apart."""

from __future__ import annotations

import regex

_UNSEEN = r"[\s\p{Cf}]*"
_TAGS = regex.compile(
    rf"[<＜](?={_UNSEEN}/?{_UNSEEN}(?:sources?|question|conversation)\b)", regex.IGNORECASE
)
_CONTROL = regex.compile(
    r"[<＜](?=[|｜][^<>\n]{0,60}[|｜][>＞])"  # ChatML, Llama 3, Phi, Qwen, Command R, DeepSeek
    r"|[<＜](?=/?[a-z]\w{0,30}_\w{0,30}[>＞])"  # <start_of_turn>, <file_sep>, <tool_call>; no HTML
    r"|<(?=/?(?:s|bos|eos|pad|unk|mask|sep|cls|think|answer|image|audio|video|unused\d+)>)"
    r"|<(?=/?(?:reponame|filename|commit|jupyter)>)"
    r"|\[(?=/?(?:INST|IMG|THINK|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_[A-Z]+|gMASK|sop|eop)\])"
    r"|\[(?=\|[^\[\]\n]{0,60}\|\])"  # EXAONE
    r"|<(?=/?(?:seed|minimax):[a-z]\w{0,30}>)"
    r"|[\]\[](?=e~\[|~!?b\[|~b\])"  # MiniMax
    r"|\[(?=(?:CLS|SEP|PAD|UNK|MASK|BOS|EOS)\])"
    r"|<(?=</?SYS>>)",
    regex.IGNORECASE,
)


def harmless(text: str) -> str:
    """Document text that can neither close its source block nor act as a control token.

    One blank after the first character of such a mark is enough: tokenizers then read plain text.
    """
    return _CONTROL.sub(_apart, _TAGS.sub(_apart, text))


def _apart(match: regex.Match[str]) -> str:
    return match.group() + " "
