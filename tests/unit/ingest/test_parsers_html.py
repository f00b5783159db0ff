"""HTML as a reader of the page sees it: no scripts, menus or hidden parts, tables made regular."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.parsers.html import declared_encoding, parse_html
from quarry.records import Block, BlockKind


def blocks(html: str) -> list[Block]:
    return list(parse_html(html).blocks)


def texts(html: str) -> list[str]:
    return [block.text for block in blocks(html)]


def table(html: str) -> Block:
    return next(block for block in blocks(html) if block.kind is BlockKind.TABLE)


def test_scripts_styles_menus_and_hidden_parts_are_not_read() -> None:
    html = """<html><head><title>T</title><style>p {}</style></head><body>
    <nav>Menu</nav><script>let a = "x"</script><noscript>js</noscript><template>later</template>
    <p hidden>no</p><p style="color: red; display:none">no</p><div aria-hidden="true">no</div>
    <form><label>Name</label><input value="no"><select><option>no</option></select>
    <button>no</button></form><svg><title>no</title><text>no</text></svg>
    <!-- no --><p>Yes</p></body></html>"""
    assert texts(html) == ["Name", "Yes"]


@pytest.mark.parametrize(
    "style",
    [
        *("font-size:0", "font-size: 0px", "font-size:0pt", "font-size:0em", "font-size:.0rem"),
        *("FONT-SIZE:0%", "font-size:1px", "font: 0/0 a", "font:italic 0px Arial"),
        *("visibility:hidden", "visibility : collapse", "display:none", "display:none!important"),
        *("content-visibility:hidden", "display:/* x */none", "d\\69splay:none", "disp\\lay:none"),
        *("text-indent:-9999px", "text-indent:-999em", "text-indent: -10000px hanging"),
        *("position:absolute;left:-9999px", "top:-100in;position:fixed", "margin-left:-9999px"),
        *("position:fixed; right:-1e4px", "position:absolute;inset:auto auto auto -9999px"),
        *("background:url(data:image/png;base64,AA);display:none", "color:red;;display:none;"),
    ],
)
def test_what_a_style_hides_is_not_read(style: str) -> None:
    hidden = f'<span style="{style}">no <b>no</b></span>'
    html = f"""<h1>A{hidden}</h1><p>b {hidden}</p><ul><li>c{hidden}</li></ul>
    <div style="{style}"><p>no</p><pre>no</pre><table><tr><td>no<td>no<tr><td>no<td>no</table></div>
    <pre>d{hidden}</pre><table><tr><th>E<th>F<tr><td>1{hidden}<td style="{style}">2</table>"""
    found = [block.text for block in blocks(html)]
    assert found[:4] == ["A", "b", "c", "d"]
    assert len(found) == 5 and "no" not in found[4] and "2" not in found[4]


@pytest.mark.parametrize(
    "style",
    [
        *("font-size:0.9em", "font-size:10px", "font: bold 12px/0 Arial", "line-height:0"),
        *("opacity:0", "opacity:1", "visibility:visible", "display:block"),
        *("text-indent:-2em", "text-indent:-36pt", "left:-9999px", "position:static;left:-9999px"),
        *("position:absolute;left:-20px", "position:relative;left:-100%", "margin-left:-100%"),
        *("margin-top:-100vh", "position:relative;left:-1920px", "position:absolute;top:-100vh"),
        *("margin-left:-9999px;padding-left:9999px", "margin-bottom:-9999px", "top:12000px"),
        *("--x-display:none", "content:'display:none'", "background:url(display:none)", ":0", ";"),
    ],
)
def test_what_a_style_does_not_hide_is_read(style: str) -> None:
    assert texts(f'<p>a <span style="{style}">b <i>c</i></span></p>') == ["a b c"]


def test_what_shows_again_inside_a_hidden_element_is_read() -> None:
    shown = {
        "visibility:hidden": "visibility:visible",
        "font-size:0": "font-size:14px",
        "font-size:0px": "font-size:medium",
        "font-size:0em": "font-size:calc(1px + 1vw)",
        "text-indent:-9999px": "text-indent:0",
    }
    for hidden, again in shown.items():
        page = f'<div style="{hidden}">no<p style="{again}">yes <b>yes</b></p><p>no</p></div>'
        assert texts(page) == ["yes yes"]
    for hidden, not_again in {
        "font-size:0": "font-size:2em",
        "display:none": "display:block",
        "visibility:hidden; font-size:0": "font-size:12px",
    }.items():
        assert not texts(f'<div style="{hidden}">no<p style="{not_again}">no</p></div>')


def test_the_text_of_a_picture_is_read_unless_the_picture_is_hidden() -> None:
    image = "<img src=x alt='a chart'>"
    assert texts(f"<p>see {image} here</p>") == ["see a chart here"]
    assert texts(f"<div style='font-size:0'>no {image}</div>") == ["a chart"]
    for hiding in ("style='visibility:hidden'", "style='text-indent:-9999px'", "hidden"):
        assert texts(f"<div {hiding}>{image}</div><p>yes</p>") == ["yes"]
    for hiding in ("style='display:none'", "aria-hidden=true", "style='visibility:hidden'"):
        assert texts(f"<p>yes <img alt='no' {hiding}></p>") == ["yes"]


def test_hidden_elements_in_hidden_elements_in_any_number_are_no_burden() -> None:
    depth = 20_000
    for hiding in ("style='font-size:0'", "style='display:none'", "style='display:none' hidden"):
        html = f"<div {hiding}>no" * depth + "</div>" * depth + "<p>yes"
        assert texts(html) == ["yes"]


def test_the_main_part_of_a_page_is_enough_if_it_holds_the_text() -> None:
    page = "<header>Kestrel</header>{}<footer>Imprint</footer>"
    assert texts(page.format("<main><p>Tents can be returned.</p></main>")) == [
        "Tents can be returned."
    ]
    two = page.format("<article>One</article><article>Two</article>")
    assert texts(two) == ["Kestrel", "One", "Two", "Imprint"]
    tiny = "<p>" + "All of the text stands outside. " * 5 + "</p><main>x</main>"
    assert len(texts(tiny)) == 2


def test_blanks_collapse_and_breaks_stay() -> None:
    html = "<p>one \n  two<br>three <b>f</b>our</p>loose <i>text</i><div>five<p>six</div>seven"
    assert texts(html) == ["one two\nthree four", "loose text", "five", "six", "seven"]


def test_headings_have_their_level_and_the_anchor_that_the_page_gives() -> None:
    html = """<h1 id="top">A</h1><h2><a name="b"></a>B</h2><section id="c"><h3>C</h3></section>
    <h2>D <span id="d"></span></h2><h2><a href="#e">§</a>E <a href="x">x</a></h2>"""
    assert [(b.level, b.text, b.anchor) for b in blocks(html)] == [
        (1, "A", "top"),
        (2, "B", "b"),
        (3, "C", "c"),
        (2, "D", "d"),
        (2, "E x", ""),
    ]


def test_lists_keep_depth_and_number() -> None:
    html = """<ul><li>a<ul><li>deep</li></ul></li><li><p>b</p><p>more</p></li></ul>
    <ol start="3"><li>c</li><li><p>d</p></li></ol>"""
    assert [(b.kind.value, b.level, b.text) for b in blocks(html)] == [
        ("list_item", 0, "a"),
        ("list_item", 1, "deep"),
        ("list_item", 0, "b"),
        ("paragraph", 0, "more"),
        ("list_item", 0, "3. c"),
        ("list_item", 0, "4. d"),
    ]


def test_code_keeps_its_lines_and_its_language() -> None:
    (block,) = blocks('<pre><code class="hljs language-python">if x:\n    y()\n</code></pre>')
    assert (block.kind, block.text, block.language) == (
        BlockKind.CODE,
        "if x:\n    y()",
        "python",
    )


def test_spans_are_repeated_so_that_every_row_is_whole() -> None:
    html = """<table><tr><th rowspan=2>Code</th><th colspan=2>Limits</th></tr>
    <tr><th>Low</th><th>High</th></tr>
    <tr><td rowspan=2>E-1</td><td>1</td><td>2</td></tr><tr><td colspan=2>none</td></tr></table>"""
    block = table(html)
    assert block.header == ("Code", "Limits Low", "Limits High")
    assert block.rows == (("E-1", "1", "2"), ("E-1", "none", "none"))


def test_lists_and_tables_inside_a_cell_are_told_in_words() -> None:
    html = """<table><tr><th>Duck</th><th>Where</th></tr><tr><td>Teal<br><i>small</i></td>
    <td><ul><li>Pond</li><li>Marsh</li></ul></td></tr><tr><td>Quack</td>
    <td><table><tr><td>Short</td><td>quak</td></tr><tr><td>Long</td><td>quaak</td></tr></table>
    </td></tr></table>"""
    assert table(html).rows == (
        ("Teal small", "Pond; Marsh"),
        ("Quack", "Short, quak; Long, quaak"),
    )
    assert [b.kind for b in blocks(html)] == [BlockKind.TABLE]


def test_a_first_row_names_the_columns_only_if_it_looks_like_names() -> None:
    named = "<table><tr><td>Plan</td><td>Price</td></tr><tr><td>Basic</td><td>20</td></tr></table>"
    assert table(named).header == ("Plan", "Price")
    plain = "<table><tr><td>7</td><td>8</td></tr><tr><td>9</td><td>10</td></tr></table>"
    assert table(plain).header == ("", "")
    assert table(plain).rows == (("7", "8"), ("9", "10"))


def test_a_caption_stands_before_its_table() -> None:
    html = """<table><caption>Prices</caption>
    <tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table>"""
    assert texts(html) == ["Prices", "A | B\n1 | 2"]


def test_a_table_that_only_arranges_the_page_is_read_as_text() -> None:
    html = """<table role="presentation"><tr><td>Left</td><td>Right</td></tr></table>
    <table><tr><td><h2>News</h2><p>Text</p></td><td>Aside</td></tr></table>
    <table><tr><td>Box</td></tr></table>"""
    assert texts(html) == ["Left", "Right", "News", "Text", "Aside", "Box"]


def test_absurd_spans_do_not_eat_the_memory() -> None:
    html = '<table><tr><td colspan="99999">a</td><td rowspan="99999">b</td></tr></table>'
    assert table(html).rows == (("a",) * 1000 + ("b",),)


def test_deep_nesting_is_read_without_recursion() -> None:
    depth = 20_000
    assert texts("<div>" * depth + "deep" + "</div>" * depth) == ["deep"]


def test_title_address_and_author_come_from_the_head() -> None:
    html = """<head><title>Returns | Kestrel Gear</title><meta name=author content=Ada>
    <meta property="og:url" content="https://kestrel.example/help/">
    <link rel=canonical href="returns">
    </head><body><h1>Returns</h1></body>"""
    document = parse_html(html)
    assert document.title == "Returns"
    assert document.properties == {"author": "Ada", "url": "https://kestrel.example/help/returns"}
    assert parse_html("<title>Only a title</title><p>x").title == "Only a title"
    assert parse_html("<link rel=canonical href='javascript:x'><p>x").properties == {}


@pytest.mark.parametrize("address", ["http://[", "//[x", "http://a]b/"])
def test_an_address_that_is_none_is_left_out_and_the_page_is_read(address: str) -> None:
    for head in (
        f"<link rel=canonical href='{address}'>",
        f"<meta property='og:url' content='{address}'>",
        f"<base href='{address}'><link rel=canonical href='a'>",
    ):
        document = parse_html(f"<head>{head}<meta name=author content=Ada></head><p>x")
        assert document.properties == {"author": "Ada"}
        assert [block.text for block in document.blocks] == ["x"]


def test_a_page_says_how_it_is_encoded() -> None:
    assert declared_encoding(b'<meta charset="windows-1252">') == "windows-1252"
    assert (
        declared_encoding(b"<meta http-equiv=Content-Type content='text/html; charset=koi8-r'>")
        == "koi8-r"
    )
    assert declared_encoding(b"<p>none</p>") == ""


def test_offsets_are_those_of_the_text_with_a_blank_line_between_blocks() -> None:
    found = blocks("<h1>A</h1><p>b c</p><ul><li>d</li></ul>")
    text = "\n\n".join(block.text for block in found)
    assert [text[b.start : b.end] for b in found] == [b.text for b in found]


@given(
    st.lists(
        st.sampled_from(
            "<p> </p> <ul> <li> </ul> <table> <tr> <td> </table> <h1> <pre> x y\n <br> <b> &amp;"
            " <svg> <title> <main> <caption> <template> <style> <nav> <img~alt=z> <i~hidden>"
            " <p~style=display:none> <div~style=font-size:0> <p~style=font-size:9px>".split(" ")
        ),
        max_size=40,
    )
)
def test_no_tag_soup_makes_parsing_crash(parts: list[str]) -> None:
    for block in parse_html("".join(parts).replace("~", " ")).blocks:
        assert block.text.strip() or block.rows
        assert all(len(row) == len(block.header) for row in block.rows)


def test_a_picture_written_into_the_page_is_not_text() -> None:
    picture = "data:image/png;base64," + "iVBORw0KGgo+/" * 40
    html = (
        f"<p>before {picture} after <img src='{picture}' alt='a chart'></p><pre>x {picture}</pre>"
        f"<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>{picture} two</td></tr></table>"
    )
    found = blocks(html)
    assert [b.text for b in found[:2]] == ["before after a chart", "x"]
    assert found[2].rows == (("1", "two"),)


def test_a_short_data_address_in_prose_is_text() -> None:
    assert blocks("<p>write data:image/png;base64,AAAA there</p>")[0].text.endswith("AAAA there")
