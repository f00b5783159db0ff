"""What is known beside the text: which place wins, what closes a document, what fails it."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.metadata import DocumentFields, document_fields, read_mapping
from quarry.records import ParsedDocument, Scalar, Status
from quarry.settings import SourceSettings

OPEN = SourceSettings(default_acl=("public",))
CLOSED = SourceSettings()


def fields(
    content: dict[str, Any] | None = None,
    beside: dict[str, object] | None = None,
    *,
    source: SourceSettings = OPEN,
    properties: dict[str, Scalar] | None = None,
    title: str = "Found title",
) -> DocumentFields:
    parsed = ParsedDocument(title=title, metadata=content or {}, properties=properties or {})
    return document_fields(parsed, beside or {}, source)


def test_known_fields_get_their_types_and_the_others_are_metadata() -> None:
    found = fields(
        {
            "title": "Parental leave",
            "series": "HR-014",
            "version": "4",
            "status": "Current",
            "effective": "2026-07-01",
            "url": "https://handbook.example/hr-014",
            "region": "canada",
            "owner": "people-team",
            "weeks": 20,
            "paid": True,
            "tags": ["leave", "family"],
        }
    )
    assert found.title == "Parental leave"
    assert (found.series, found.version, found.status) == ("HR-014", "4", Status.CURRENT)
    assert found.effective == date(2026, 7, 1)
    assert found.url == "https://handbook.example/hr-014"
    assert found.metadata == {
        "owner": "people-team",
        "paid": True,
        "region": "canada",
        "tags": "leave, family",
        "weeks": 20,
    }


def test_the_nearest_to_the_text_wins_field_by_field() -> None:
    found = fields(
        {"title": "From the text"},
        {"title": "From the sidecar", "version": "2", "url": "https://a.example/"},
        properties={"url": "https://canonical.example/", "author": "Ada"},
    )
    assert (found.title, found.version, found.url) == (
        "From the text",
        "2",
        "https://a.example/",
    )
    assert found.metadata == {"author": "Ada"}


def test_the_title_that_the_parser_found_stands_in_for_a_missing_one() -> None:
    assert fields({"title": None}).title == "Found title"
    assert fields({"title": "  "}).title == "Found title"


def test_without_an_acl_the_source_decides_and_its_silence_is_closed() -> None:
    assert fields(source=OPEN).acl == ("public",)
    assert fields(source=CLOSED).acl == ()


def test_an_acl_in_the_text_wins_over_the_folder_and_the_folder_over_the_source() -> None:
    assert fields({"acl": ["hr"]}, {"acl": ["staff"]}).acl == ("hr",)
    assert fields({}, {"acl": ["staff"]}).acl == ("staff",)
    assert fields({"acl": "user:mei"}).acl == ("user:mei",)
    assert fields({"ACL": ["hr", "hr", " legal "]}, {"acl": ["public"]}).acl == ("hr", "legal")


@pytest.mark.parametrize("key", ["acls", "a.c.l.", "acl_", "Access-List", "access control lists"])
def test_a_misspelt_acl_closes_the_document_and_says_so(key: str) -> None:
    found = fields({key: ["hr"]}, {"acl": ["public"]})
    assert found.acl == ()
    assert f"its acl is called {key.lower()}; call it acl" in found.problem
    assert fields({}, {key: ["hr"]}).acl == ()
    assert fields({"acl": ["hr"]}, {key: ["public"]}).acl == ("hr",)
    assert fields({key: ["public"], "acl": ["hr"]}).acl == ("hr",)


def test_an_empty_acl_is_nobody_not_the_default() -> None:
    assert fields({"acl": []}).acl == ()
    assert fields({"acl": []}).problem == ""


@pytest.mark.parametrize(
    "acl",
    [
        None,
        True,
        7,
        {"read": "public"},
        [["public"]],
        ["public", 1],
        "public, staff",
        "",
        [""],
        ["a\nb"],
    ],
)
def test_a_malformed_acl_closes_the_document_and_says_so(acl: object) -> None:
    found = fields({"acl": acl}, {"acl": ["public"]})
    assert found.acl == ()
    assert found.problem.startswith("Nobody may read it")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_whatever_an_acl_holds_nobody_enters_who_is_not_named(acl: object) -> None:
    found = fields({"acl": acl}, {"acl": ["public"]})
    named = [acl] if isinstance(acl, str) else acl if isinstance(acl, list) else []
    assert set(found.acl) <= {scope.strip() for scope in named if isinstance(scope, str)}


def test_a_malformed_acl_closes_even_when_another_field_is_wrong_too() -> None:
    found = fields({"acl": 7, "status": "retired", "title": "x"})
    assert found.acl == ()
    assert found.problem.startswith("Nobody may read it")
    assert "status" in found.fault


def test_what_the_format_records_never_decides_who_reads_or_what_is_current() -> None:
    properties: dict[str, Scalar] = {
        "acl": "public",
        "status": "draft",
        "version": "9",
        "title": "x",
    }
    found = fields(source=CLOSED, properties=properties)
    assert (found.acl, found.status, found.version, found.title) == (
        (),
        Status.CURRENT,
        "",
        "Found title",
    )
    assert found.metadata == {}


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ({"status": "retired"}, "status"),
        ({"effective": "soon"}, "effective"),
        ({"effective": "2026-13-01"}, "effective"),
        ({"version": {"major": 1}}, "version"),
        ({"version": True}, "version"),
        ({"series": "x" * 1001}, "series"),
    ],
)
def test_a_wrong_value_of_what_decides_what_is_shown_is_a_named_failure_of_its_document(
    content: dict[str, Any], named: str
) -> None:
    found = fields(content)
    assert re.search(named, found.fault)
    assert (found.acl, found.problem) == (("public",), "")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ({"title": ["a"]}, "title"),
        ({"title": "x" * 1001}, "title"),
        ({"url": "/relative"}, "url"),
        ({"url": ["https://a.example/"]}, "url"),
        ({"notes": "x" * 1001}, "notes"),
        ({"a": {"b": {"c": {"d": 1}}}}, r"a\.b\.c"),
        ({"list": [{"a": 1}]}, "list"),
    ],
)
def test_a_wrong_value_of_what_only_describes_is_left_out_and_named(
    content: dict[str, Any], named: str
) -> None:
    found = fields(content | {"owner": "hr", "version": "2"})
    assert re.search(named, found.problem)
    assert found.problem.endswith(".")
    assert (found.fault, found.title, found.url) == ("", "Found title", "")
    assert (found.version, found.metadata, found.acl) == ("2", {"owner": "hr"}, ("public",))


def test_more_fields_than_are_kept_are_told() -> None:
    found = fields({f"k{n:03}": n for n in range(65)})
    assert (len(found.metadata), "k064" in found.metadata) == (64, False)
    assert "65 fields" in found.problem


def test_many_wrong_fields_are_counted_and_not_all_named() -> None:
    found = fields({"acl": 7} | {f"k{n}": "x" * 2000 for n in range(50)})
    assert found.problem.startswith("Nobody may read it")
    assert found.problem.endswith("48 more of its fields cannot be used.")
    assert len(found.problem) < 400


@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("https://handbook.example/hr-014?a=1#top", True),
        ("http://127.0.0.1:8080/", True),
        ("HTTPS://handbook.example/", True),
        ("https://größe.example/übersicht", True),
        ("javascript:alert(1)", False),
        ("mailto:hr@handbook.example", False),
        ("file:///etc/hostname", False),
        ("//handbook.example/", False),
        ("https://", False),
        ("https:///path", False),
        ("https://[broken", False),
        ("https://a.example:port/", False),
        ("https://a.example:99999/", False),
        ("https://name:secret@a.example/", False),
        ("https://a.example@evil.example/", False),
        ("https://a.example/<script>", False),
        ("https://a.example/two words", False),
        ("https://a.example\\@evil.example", False),
        ("https://a.example/\x00", False),
    ],
)
def test_only_web_addresses_become_links(url: str, good: bool) -> None:
    found, property_ = fields({"url": url}), fields(properties={"url": url})
    assert found.url == property_.url == (url if good else "")
    assert ("url" in found.problem) is not good
    assert (found.fault, property_.problem) == ("", "")


def test_a_wrong_value_leaves_the_acl_that_is_given_with_it_in_force() -> None:
    found = fields({"acl": ["hr"], "status": "retired", "title": "x"})
    assert found.acl == ("hr",)
    assert "status" in found.fault


def test_bad_properties_are_left_out_rather_than_failing_the_document() -> None:
    found = fields(properties={"url": "/relative", "author": "x" * 2000})
    assert (found.url, found.metadata) == ("", {})


def test_nested_metadata_is_flattened_and_odd_names_are_made_usable() -> None:
    found = fields({"Dept": {"Cost Centre": 7}, "sla (h)": 4, "empty": None, "big": 2**80})
    assert found.metadata == {"dept.cost_centre": 7, "sla_h": 4, "big": str(2**80)}


def test_the_hash_follows_every_field() -> None:
    one = fields({"title": "a", "x": 1})
    assert one.meta_hash == fields({"title": "a", "x": 1}).meta_hash
    others = [{"title": "b", "x": 1}, {"title": "a", "x": 2}, {"title": "a", "x": 1, "acl": ["hr"]}]
    assert len({one.meta_hash, *(fields(other).meta_hash for other in others)}) == 4
    tenant = SourceSettings(default_acl=("public",), tenant="acme")
    assert fields({"title": "a", "x": 1}, source=tenant).meta_hash != one.meta_hash


# --------------------------------------------------------------------------------------- YAML


def test_texts_stay_as_they_are_written() -> None:
    text = "version: 3.10\nregion: NO\ntitle: 2024\nseries: 007\neffective: 2026-07-01\nowner: ~"
    assert read_mapping(text) == {
        "version": "3.10",
        "region": "NO",
        "title": "2024",
        "series": "007",
        "effective": "2026-07-01",
        "owner": None,
    }


def test_other_values_are_plain_scalars() -> None:
    text = "a: 1\nb: 1.5\nc: true\nd: yes\ne: 2026-07-01\nf: 012\ng:\nh: [x, 2]"
    assert read_mapping(text) == {
        "a": 1,
        "b": 1.5,
        "c": True,
        "d": "yes",
        "e": "2026-07-01",
        "f": "012",
        "g": None,
        "h": ["x", 2],
    }


@pytest.mark.parametrize(
    "text",
    [
        "a: &x [1]\nb: *x",
        "a: !!python/object/apply:os.system ['true']",
        "a: 1\nA: 2",
        "a: 1\n\u200ba: 2",
        "<<: {acl: [staff]}",
        "a: {<<: {b: 1}}",
        "? [a]\n: b",
        "- a",
        "a: [1",
        "x" * 70_000,
        "a: " + "[" * 5_000,
        "title: a\x07b",
    ],
)
def test_anything_but_plain_keys_and_values_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(is|must|cannot) .*\.$"):
        read_mapping(text)


def test_nothing_is_an_empty_mapping() -> None:
    assert read_mapping("") == read_mapping("# only a comment") == {}


@given(st.text(max_size=200))
def test_no_text_makes_reading_crash(text: str) -> None:
    try:
        read_mapping(text)
    except ValueError as error:
        assert str(error).endswith(".")


@pytest.mark.parametrize("scope", ["user:", "group:", " user: "])
def test_a_scope_without_a_name_after_its_colon_closes_the_document(scope: str) -> None:
    found = fields({"acl": ["public", scope]})
    assert found.acl == ()
    assert found.problem.startswith("Nobody may read it")


def test_the_reason_for_a_wrong_url_names_all_that_is_allowed() -> None:
    assert fields({"url": "http://a.example/"}).problem == ""
    problem = fields({"url": "ftp://a.example/"}).problem
    assert "http:// or https://" in problem


# -------------------------------------------------------------------------- text that is no text

BAD = "x\ud800y\0z"


def holds_unicode(found: DocumentFields) -> bool:
    texts = [found.title, found.url, found.series, found.version, found.problem, found.fault]
    texts += [*found.acl, *found.metadata, *map(str, found.metadata.values())]
    whole = "".join(texts)
    return "\0" not in whole and whole == whole.encode("utf-8", "replace").decode()


@pytest.mark.parametrize(
    "given",
    [
        *({name: BAD} for name in ("title", "series", "version", "status", "effective", "url")),
        {"owner": BAD},
        {BAD: "value"},
        {"tags": [BAD, "b"]},
        {"nested": {BAD: BAD}},
        {BAD: {"too": {"deep": {"it": "is"}}}},
        {"acl": [BAD, "public"]},
        {"acl": BAD},
    ],
    ids=str,
)
@pytest.mark.parametrize("where", ["content", "beside"])
def test_text_that_is_no_unicode_is_cleaned_in_every_field(
    given: dict[str, Any], where: str
) -> None:
    found = fields(given) if where == "content" else fields(beside=given)
    assert holds_unicode(found)
    if "series" in given:
        assert found.series == "x?yz"


def test_text_of_the_format_itself_is_cleaned_too() -> None:
    assert holds_unicode(fields(title=BAD, properties={"author": BAD}))


def test_a_scope_that_is_no_unicode_is_nobodys() -> None:
    assert fields({"acl": ["hr", "x\ud800"]}).acl == ()
