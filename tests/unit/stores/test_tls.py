"""Certificates of a CA of one's own: trusted if it is named, and told at once if not."""

from __future__ import annotations

import datetime
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("elasticsearch")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from quarry.cli.check import Verdict
from quarry.cli.checks import settings_checks
from quarry.errors import ConfigError, StoreError, StoreUnavailable
from quarry.settings import Settings, load_settings
from quarry.settings_stores import ElasticsearchSettings, MilvusSettings
from quarry.stores import milvus_connection
from quarry.stores.elasticsearch.client import Cluster
from quarry.stores.milvus_connection import MilvusConnection

PATIENT_S = 30.0


@dataclass(frozen=True)
class Certified:
    """A server whose certificate names `localhost`, and the file that its trust begins with."""

    port: int
    ca: Path


def _certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "ca.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "ca.pem", folder / "key.pem"


class Elastic(BaseHTTPRequestHandler):
    """Answers every request as Elasticsearch answers one that it has nothing for."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("X-Elastic-Product", "Elasticsearch")
        self.send_header("Content-Type", "application/vnd.elasticsearch+json;compatible-with=9")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Certified]:
    ca, key = _certificate(tmp_path_factory.mktemp("tls"))
    listening = ThreadingHTTPServer(("127.0.0.1", 0), Elastic)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ca, key)
    listening.socket = context.wrap_socket(listening.socket, server_side=True)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    yield Certified(listening.server_port, ca)
    listening.shutdown()
    listening.server_close()


def cluster(url: str, ca: Path | None) -> Cluster:
    return Cluster(ElasticsearchSettings(url=url, ca_certs=ca, total_s=PATIENT_S))


def test_a_certificate_of_the_named_ca_is_trusted(server: Certified) -> None:
    cluster(f"https://localhost:{server.port}", server.ca).refresh("i")


@pytest.mark.parametrize(("host", "named"), [("localhost", False), ("127.0.0.1", True)])
def test_another_certificate_or_host_is_told_at_once(
    server: Certified, host: str, named: bool
) -> None:
    began = time.monotonic()
    with pytest.raises(StoreError, match=r"elasticsearch\.ca_certs") as caught:
        cluster(f"https://{host}:{server.port}", server.ca if named else None).refresh("i")
    assert not isinstance(caught.value, StoreUnavailable)
    assert time.monotonic() - began < PATIENT_S / 2


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_without_certificates_is_named_before_anything_is_asked(
    tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "ca.pem"
    if content:
        path.write_text(content)
    elastic = ElasticsearchSettings(url="https://127.0.0.1:9", ca_certs=path)
    milvus = MilvusSettings(uri="https://127.0.0.1:9", ca_certs=path)
    with pytest.raises(ConfigError, match=r"ca\.pem .* stores\.elasticsearch\.ca_certs"):
        Cluster(elastic)
    with pytest.raises(ConfigError, match=r"ca\.pem .* stores\.milvus\.ca_certs"):
        MilvusConnection(milvus, lambda: milvus.uri)


def test_milvus_is_given_the_ca(server: Certified, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(milvus_connection, "MilvusClient", lambda **options: given.update(options))
    settings = MilvusSettings(uri=f"https://localhost:{server.port}", ca_certs=server.ca)
    MilvusConnection(settings, lambda: settings.uri).call(lambda client: client)
    assert given["server_pem_path"] == str(server.ca)


def test_the_doctor_asks_with_the_same_trust(server: Certified, tmp_path: Path) -> None:
    def look(ca: Path | None) -> tuple[Verdict, str]:
        elastic = {"url": f"https://localhost:{server.port}", "ca_certs": ca}
        raw = {"data_dir": tmp_path, "stores": {"text": "elasticsearch", "elasticsearch": elastic}}
        found = settings_checks(Settings.model_validate(raw))
        return next((each.verdict, each.fix) for each in found if each.name == "text")

    assert look(server.ca) == (Verdict.OK, "")
    for wrong in (None, tmp_path / "nowhere.pem"):
        verdict, fix = look(wrong)
        assert verdict is Verdict.MISSING
        assert "ca_certs" in fix


def test_the_files_are_relative_to_the_settings_file(tmp_path: Path) -> None:
    path = tmp_path / "quarry.yaml"
    path.write_text(
        "stores:\n"
        "  elasticsearch: {url: 'https://h:9200', ca_certs: ca.pem}\n"
        "  milvus: {uri: 'https://h:19530', ca_certs: tls/ca.pem}\n"
    )
    stores = load_settings(path, {}).stores
    assert stores.elasticsearch.ca_certs == tmp_path / "ca.pem"
    assert stores.milvus.ca_certs == tmp_path / "tls" / "ca.pem"
