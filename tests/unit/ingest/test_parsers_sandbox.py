"""A file that hangs, swells or crashes its parser harms only itself."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ingest.parsers.sandbox import ParserPool
from ingest.parsers.worker import BATCH_DOCUMENTS
from quarry.errors import ParseError
from quarry.records import Block, BlockKind, DocState, ParsedDocument, SourceItem
from quarry.settings import IngestSettings, Settings


def misbehave(
    content: bytes, item: SourceItem, settings: IngestSettings
) -> Iterator[ParsedDocument]:
    """A parser that does what the content asks for; runs in the process of the pool."""
    word, _, argument = content.decode().partition(" ")
    yield from BEHAVIOUR.get(word, _echo)(argument or word)


def _echo(text: str) -> Iterator[ParsedDocument]:
    yield _document(text)


def _hang(_: str) -> Iterator[ParsedDocument]:
    time.sleep(60)
    yield from ()


def _crash(_: str) -> Iterator[ParsedDocument]:
    ctypes.string_at(0)
    yield from ()


def _exit(_: str) -> Iterator[ParsedDocument]:
    os._exit(3)
    yield from ()


def _swell(_: str) -> Iterator[ParsedDocument]:
    yield _document(str(len([bytes(50_000_000) for _ in range(100)])))


def _fault(_: str) -> Iterator[ParsedDocument]:
    raise KeyError("words of the document")
    yield from ()


def _half(count: str) -> Iterator[ParsedDocument]:
    yield from map(_document, map(str, range(int(count))))
    raise ParseError(DocState.CORRUPT, "The rest is damaged.")


def _half_crash(count: str) -> Iterator[ParsedDocument]:
    yield from map(_document, map(str, range(int(count))))
    os._exit(1)


def _network(_: str) -> Iterator[ParsedDocument]:
    socket.create_connection(("127.0.0.1", 9))
    yield from ()


def _program(_: str) -> Iterator[ParsedDocument]:
    subprocess.run(["/bin/true"], check=False)
    yield from ()


def _environment(_: str) -> Iterator[ParsedDocument]:
    yield _document(" ".join(sorted(os.environ)))


def _process(_: str) -> Iterator[ParsedDocument]:
    yield _document(str(os.getpid()))


def _many(count: str) -> Iterator[ParsedDocument]:
    for n in range(int(count)):
        yield _document(f"{n} " + "x" * 10_000)


BEHAVIOUR = {
    "hang": _hang,
    "crash": _crash,
    "exit": _exit,
    "swell": _swell,
    "fault": _fault,
    "half": _half,
    "half-crash": _half_crash,
    "network": _network,
    "program": _program,
    "environment": _environment,
    "process": _process,
    "many": _many,
}


def _document(text: str) -> ParsedDocument:
    return ParsedDocument(blocks=(Block(kind=BlockKind.PARAGRAPH, text=text),))


ITEM = SourceItem(source="s", address="a.txt", uri="a.txt", tag="t", size=0)


def pool_of(entry: str = f"{__name__}:misbehave", **ingest: object) -> ParserPool:
    values = {"parse_workers": 1, "parse_timeout_s": 30, **ingest}
    return ParserPool(Settings.model_validate({"ingest": values}), entry=entry)


@pytest.fixture
def pool() -> Iterator[ParserPool]:
    made = pool_of()
    yield made
    made.close()


def parsed(pool: ParserPool, content: str) -> list[str]:
    return [document.blocks[0].text for document in pool.parse(content.encode(), ITEM)]


def ending(pool: ParserPool, content: str) -> tuple[str, str]:
    with pytest.raises(ParseError) as caught:
        parsed(pool, content)
    return caught.value.state, caught.value.reason


def test_a_file_that_hangs_is_timed_out_and_the_next_one_is_parsed() -> None:
    pool = pool_of(parse_timeout_s=1.5)
    assert ending(pool, "hang") == (
        "timed_out",
        "It took longer to parse than 1.5 seconds.",
    )
    assert parsed(pool, "fine") == ["fine"]
    pool.close()


@pytest.mark.parametrize(("content", "how"), [("crash", "signal 11"), ("exit", "exit code 3")])
def test_a_crash_fails_one_file_and_the_next_one_is_parsed(
    pool: ParserPool, content: str, how: str
) -> None:
    assert ending(pool, content) == ("failed", f"Its parser crashed ({how}).")
    assert parsed(pool, "fine") == ["fine"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds private memory")
def test_a_file_that_swells_is_too_large_and_the_next_one_is_parsed() -> None:
    pool = pool_of(parse_memory_mb=512)
    state, reason = ending(pool, "swell")
    assert (state, "512 MB" in reason) == ("too_large", True)
    assert parsed(pool, "fine") == ["fine"]
    pool.close()


def test_a_fault_of_a_parser_is_told_without_the_words_of_the_document(pool: ParserPool) -> None:
    state, reason = ending(pool, "fault")
    assert (state, reason) == ("failed", "Its parser ran into a fault of the program (KeyError).")
    assert parsed(pool, "fine") == ["fine"]


@pytest.mark.parametrize("content", ["half 70", "half-crash 70"])
def test_what_was_parsed_before_a_bad_end_is_handed_on(pool: ParserPool, content: str) -> None:
    found: list[str] = []
    with pytest.raises(ParseError):
        for document in pool.parse(content.encode(), ITEM):
            found.append(document.blocks[0].text)
    whole = 70 if content.startswith("half ") else BATCH_DOCUMENTS
    assert found == [str(n) for n in range(whole)]


@pytest.mark.parametrize("content", ["network", "program"])
def test_a_parser_reaches_no_network_and_starts_no_program(pool: ParserPool, content: str) -> None:
    assert ending(pool, content)[1].endswith("(PermissionError).")


def test_a_parser_sees_no_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUARRY_STORES__MILVUS__TOKEN", "secret")
    pool = pool_of()
    assert "QUARRY_STORES__MILVUS__TOKEN" not in parsed(pool, "environment")[0].split()
    pool.close()


def test_a_process_is_used_again_until_it_is_killed(pool: ParserPool) -> None:
    first = parsed(pool, "process")
    assert parsed(pool, "process") == first
    ending(pool, "exit")
    assert parsed(pool, "process") != first


def test_many_documents_come_as_a_stream_that_waits_for_its_reader(pool: ParserPool) -> None:
    stream = pool.parse(b"many 20000", ITEM)
    first = next(stream)
    assert first.blocks[0].text.startswith("0 ")
    time.sleep(0.5)  # the parser cannot run ahead: the pipe is full
    assert sum(1 for _ in stream) == 19_999


def test_a_reader_that_stops_early_leaves_the_pool_usable(pool: ParserPool) -> None:
    stream = pool.parse(b"many 20000", ITEM)
    next(stream)
    stream.close()
    assert parsed(pool, "fine") == ["fine"]


def test_threads_share_the_processes() -> None:
    pool = pool_of(parse_workers=2)
    with ThreadPoolExecutor(6) as threads:
        words = [f"word{n}" for n in range(24)]
        assert [text for (text,) in threads.map(lambda word: parsed(pool, word), words)] == words
        processes = {text for (text,) in threads.map(lambda _: parsed(pool, "process"), range(12))}
    assert len(processes) <= 2
    pool.close()


def test_closing_ends_the_processes() -> None:
    pool = pool_of()
    (pid,) = parsed(pool, "process")
    pool.close()
    assert not Path(f"/proc/{pid}").exists() or sys.platform != "linux"


def test_the_parsers_of_the_product_run_in_it() -> None:
    pool = pool_of("ingest.parsers:parse_item")
    (document,) = pool.parse(
        b"# Title\n\nText.\n", SourceItem(source="s", address="a.md", uri="a.md", tag="t", size=0)
    )
    assert (document.title, document.state) == ("Title", DocState.INDEXED)
    with pytest.raises(ParseError) as caught:
        list(pool.parse(b"", ITEM))
    assert caught.value.state == DocState.EMPTY
    pool.close()
