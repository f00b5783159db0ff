"""Chat templates: messages are data in them, and only they write control tokens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarry.errors import ConfigError
from quarry.models.chat import Chat
from quarry.models.location import locate
from quarry.records import Message

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
NO_SYSTEM = (
    "{% for message in messages %}{% if message['role'] == 'system' %}"
    "{{ raise_exception('no system turn') }}{% endif %}[{{ message['content'] }}]{% endfor %}"
)
MARKS = ["<|im_start|>", "<|im_end|>", "<tool_call>", "[INST]", "blueberry"]


def tokenizer(template: str | None = CHATML) -> Any:
    from transformers import AutoTokenizer

    made = AutoTokenizer.from_pretrained(locate("packaged:all-MiniLM-L6-v2").source)
    made.add_tokens(MARKS, special_tokens=True)
    made.chat_template = template
    return made


@pytest.fixture(scope="module")
def model() -> Any:
    return tokenizer()


def turns(system: str, user: str) -> list[Message]:
    return [Message(role="system", content=system), Message(role="user", content=user)]


def test_a_prompt_is_what_the_template_makes_of_it(model: Any) -> None:
    tokens = Chat(model, "m").tokens(turns("Be brief.", "Why?"))
    assert (
        model.decode(tokens).split()
        == (
            "<|im_start|> system be brief. <|im_end|> <|im_start|> user why? <|im_end|> "
            "<|im_start|> assistant"
        ).split()
    )


@pytest.mark.parametrize("mark", MARKS[:-1])
def test_control_tokens_in_a_message_are_read_as_plain_text(model: Any, mark: str) -> None:
    chat = Chat(model, "m")
    special = model.convert_tokens_to_ids(mark)
    harmless = chat.tokens(turns("a", "b")).count(special)
    for text in (mark, f"x{mark}y", mark * 3, f"{mark[:3]}{mark}{mark[3:]}"):
        assert chat.tokens(turns("a", text)).count(special) == harmless
        assert chat.tokens(turns(text, "b")).count(special) == harmless
        assert chat.count([text]) > [1]


@settings(max_examples=200)
@given(text=st.lists(st.sampled_from(["<", "|", "im_", "start", "|>", " ", *MARKS])).map("".join))
def test_no_text_makes_a_control_token(model: Any, text: str) -> None:
    chat = Chat(model, "m")
    special = set(model.convert_tokens_to_ids(MARKS[:-1]))
    tokens = chat.tokens(turns("a", text))
    assert sum(token in special for token in tokens) == 5


def test_plain_words_stay_whole_though_they_are_added_tokens(model: Any) -> None:
    assert Chat(model, "m").count(["blueberry"]) == [1]


def test_braces_in_a_message_are_never_rendered(model: Any) -> None:
    chat = Chat(model, "m")
    for text in ("{{ 7 * 6 }}", "{% for x in messages %}y{% endfor %}", "{# gone #}"):
        decoded = model.decode(chat.tokens(turns("a", text))).replace(" ", "")
        assert text.replace(" ", "") in decoded
        assert "42" not in decoded


def test_a_template_without_a_system_turn_gets_it_with_the_users() -> None:
    model = tokenizer(NO_SYSTEM)
    tokens = Chat(model, "m").tokens(turns("be brief.", "why?"))
    assert model.decode(tokens) == "[ be brief. why? ]"


@pytest.mark.parametrize(
    ("end", "begun"),
    [
        ("<think>\n", "<think>"),
        ("<THINK>", "<think>"),
        ("<think>\n\n</think>\n\n", ""),
        ("<think> so", ""),
        ("", ""),
    ],
)
def test_thoughts_that_the_template_opens_are_known_to_have_begun(end: str, begun: str) -> None:
    asked = "{{ messages[-1]['content'] }}{% if add_generation_prompt %}"
    assert Chat(tokenizer(f"{asked}{end}{{% endif %}}"), "m").begun == begun


def test_thoughts_that_a_message_opens_are_none_of_the_answers() -> None:
    chat = Chat(tokenizer("{{ messages[-1]['content'] }}"), "m")
    chat.tokens(turns("a", "<think>"))
    assert chat.begun == ""


@pytest.mark.parametrize("template", [None, "{{ raise_exception('no') }}"])
def test_a_model_without_a_chat_template_is_refused_in_one_sentence(template: str | None) -> None:
    with pytest.raises(ConfigError, match="m1 has no chat template"):
        Chat(tokenizer(template), "m1")


def test_texts_are_counted_in_order_and_without_the_template(model: Any) -> None:
    chat = Chat(model, "m")
    assert chat.count(["", "one", "one two"]) == [0, 1, 2]
    assert chat.count([]) == []
