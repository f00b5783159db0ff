"""One process owns the vectors of a data folder; others reach it, and take over when it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from quarry.access import EVERYTHING
from quarry.errors import DataDirBusy, StoreError, StoreUnavailable
from quarry.settings import Settings
from quarry.settings_stores import MilvusSettings
from quarry.stores.milvus import MilvusVectorStore
from quarry.stores.milvus_lite import server_address, vector_server, writer_lock
from tests.contract.rows import DIMENSION, vector, vector_row

OWNER = """
    import sys, time
    from pathlib import Path
    from quarry.settings import Settings
    from quarry.stores.milvus_lite import vector_server
    with vector_server(Settings(data_dir=Path(sys.argv[1]))):
        print("serving", flush=True)
        sys.stdin.readline()
"""
WRITER = OWNER.replace("vector_server", "writer_lock").replace("serving", "writing")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data")


@contextmanager
def process(program: str, settings: Settings) -> Iterator[subprocess.Popen[str]]:
    """Another process that is inside the context manager; a line on its input ends it."""
    command = [sys.executable, "-c", textwrap.dedent(program), str(settings.data_dir)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout
        assert other.stdout.readline()
        try:
            yield other
        finally:
            if other.poll() is None:
                other.communicate("\n", timeout=60)


@contextmanager
def opened(settings: Settings) -> Iterator[MilvusVectorStore]:
    store = MilvusVectorStore(
        MilvusSettings(total_s=30.0), "g1", address=partial(server_address, settings)
    )
    store.ensure(DIMENSION)
    yield store
    store.close()


def wait_for_address(settings: Settings, other_than: str) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            address = server_address(settings)
        except StoreUnavailable:
            address = other_than
        if address != other_than:
            return address
        time.sleep(0.05)
    raise AssertionError("nobody took over")


def test_memory_and_servers_need_no_owner(settings: Settings) -> None:
    memory = settings.stores.model_copy(update={"vectors": "memory"})
    remote = settings.stores.model_copy(update={"milvus": MilvusSettings(uri="http://h:1")})
    for stores in (memory, remote):
        with vector_server(settings.model_copy(update={"stores": stores})):
            assert not settings.data_dir.exists()


def test_without_an_owner_there_is_no_address(settings: Settings) -> None:
    with pytest.raises(StoreUnavailable, match="No process serves"):
        server_address(settings)
    with vector_server(settings):
        assert server_address(settings).startswith("http://127.0.0.1:")
    with pytest.raises(StoreUnavailable):
        server_address(settings)


def test_vectors_are_there_again_for_the_next_owner(settings: Settings) -> None:
    rows = [vector_row(name, vector(1.0)) for name in "abc"]
    with vector_server(settings), opened(settings) as store:
        store.upsert(rows[:2])
        store.flush()
        store.upsert(rows[2:])
    with vector_server(settings), opened(settings) as store:
        assert store.count() == 3
        assert len(store.search(vector(1.0), limit=9, where=EVERYTHING)) == 3


def test_another_process_uses_the_owner_that_is_there(settings: Settings) -> None:
    with process(OWNER, settings), vector_server(settings), opened(settings) as store:
        owner = json.loads((settings.data_dir / "vectors.json").read_text())["pid"]
        assert owner != os.getpid()
        store.upsert([vector_row("a", vector(1.0))])
        assert store.count() == 1


@pytest.mark.parametrize("how", [signal.SIGKILL, None], ids=["killed", "ended"])
def test_who_stands_by_takes_over_and_its_clients_go_on(
    settings: Settings, how: signal.Signals | None
) -> None:
    row = vector_row("a", vector(1.0))
    with process(OWNER, settings) as owner, vector_server(settings), opened(settings) as store:
        store.upsert([row])
        before = server_address(settings)
        if how:
            owner.send_signal(how)
            owner.wait()
        else:
            owner.communicate("\n", timeout=60)
        wait_for_address(settings, before)
        assert store.present([row.row_id]) == {row.row_id}
        assert len(store.search(vector(1.0), limit=9, where=EVERYTHING)) == 1


def test_what_a_killed_owner_left_behind_is_not_believed(settings: Settings) -> None:
    with process(OWNER, settings) as owner:
        owner.kill()
        owner.wait()
    stale = (settings.data_dir / "vectors.json").read_text()
    with vector_server(settings), opened(settings) as store:
        assert (settings.data_dir / "vectors.json").read_text() != stale
        assert store.count() == 0


def test_vectors_that_cannot_be_opened_are_one_sentence(settings: Settings) -> None:
    settings.data_dir.mkdir()
    (settings.data_dir / "vectors.db").write_text("not a folder")
    with pytest.raises(StoreError, match=r"vectors\.db cannot be opened"), vector_server(settings):
        pass


def test_a_data_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    settings = Settings(data_dir=tmp_path / "file" / "data")
    with pytest.raises(StoreError, match="cannot be made"), vector_server(settings):
        pass


# -------------------------------------------------------------------------------- the writer


def test_a_second_writer_hears_who_writes(settings: Settings) -> None:
    with process(WRITER, settings) as other:
        with pytest.raises(DataDirBusy) as caught, writer_lock(settings):
            pass
        assert str(settings.data_dir) in str(caught.value)
        assert f"process {other.pid}" in str(caught.value)
    with writer_lock(settings):
        pass


def test_two_writers_in_one_process_are_two(settings: Settings) -> None:
    with writer_lock(settings), pytest.raises(DataDirBusy), writer_lock(settings):
        pass


def test_a_killed_writer_holds_nothing(settings: Settings) -> None:
    with process(WRITER, settings) as other:
        other.kill()
        other.wait()
    with writer_lock(settings):
        assert json.loads((settings.data_dir / "writer.json").read_text())["pid"] == os.getpid()
    assert not (settings.data_dir / "writer.json").exists()
