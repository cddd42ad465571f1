"""TLS: only trusted authorities and the name in the URL are accepted."""

import asyncio
import datetime
import ipaddress
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from duewheel.rules.callbacks.outcome import Outcome, Verdict
from tests.targets.far_side import (
    SHORT_SECONDS,
    FarSide,
    far_side,
    in_loop,
    names,
    post,
    target,
)


@dataclass(frozen=True)
class Certificates:
    authority: Path
    server: Path

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server)
        return context


def _certificate(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    *extensions: x509.ExtensionType,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), False
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
    )
    for extension in extensions:
        critical = not isinstance(extension, x509.SubjectAlternativeName)
        builder = builder.add_extension(extension, critical)
    return builder.sign(issuer_key, hashes.SHA256())


def _ca_usage() -> x509.KeyUsage:
    signs = {"key_cert_sign": True, "crl_sign": True}
    others = (
        "digital_signature content_commitment key_encipherment data_encipherment "
        "key_agreement encipher_only decipher_only"
    )
    return x509.KeyUsage(**signs, **dict.fromkeys(others.split(), False))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """A server certificate for receiver.example and 127.0.0.1, and the authority behind it."""
    folder = tmp_path_factory.mktemp("tls")
    ca_key = ec.generate_private_key(ec.SECP256R1())
    key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate(
        "authority",
        ca_key,
        "authority",
        ca_key,
        x509.BasicConstraints(True, 0),
        _ca_usage(),
    )
    server = _certificate(
        "receiver",
        key,
        "authority",
        ca_key,
        x509.SubjectAlternativeName(
            [
                x509.DNSName("receiver.example"),
                x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            ]
        ),
    )
    pem = serialization.Encoding.PEM
    (folder / "authority.pem").write_bytes(authority.public_bytes(pem))
    (folder / "server.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + server.public_bytes(pem)
    )
    return Certificates(folder / "authority.pem", folder / "server.pem")


async def call_over_tls(
    certificates: Certificates, host: str, calls: int = 1
) -> tuple[list[Outcome], FarSide]:
    async with far_side(tls=certificates.context()) as side, target() as http:
        url = f"https://{host}:{side.port}/"
        return [await post(http, url) for _ in range(calls)], side


@pytest.mark.parametrize("host", ["receiver.example", "127.0.0.1"])
@in_loop
async def test_tls_checks_the_name_of_the_url_and_keeps_the_connection(
    monkeypatch: pytest.MonkeyPatch, certificates: Certificates, host: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    names(monkeypatch, receiver_example=["127.0.0.1"])
    outcomes, side = await call_over_tls(certificates, host, calls=4)
    assert {outcome.verdict for outcome in outcomes} == {Verdict.DELIVERED}
    assert side.connections < 4


@in_loop
async def test_tls_refuses_a_certificate_for_another_name(
    monkeypatch: pytest.MonkeyPatch, certificates: Certificates
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    names(monkeypatch, other_example=["127.0.0.1"])
    (outcome,), side = await call_over_tls(certificates, "other.example")
    assert outcome.verdict is Verdict.RETRY
    assert "Hostname mismatch" in outcome.note
    assert not side.received


@in_loop
async def test_tls_refuses_an_authority_that_the_system_does_not_trust(
    monkeypatch: pytest.MonkeyPatch, certificates: Certificates
) -> None:
    names(monkeypatch, receiver_example=["127.0.0.1"])
    (outcome,), side = await call_over_tls(certificates, "receiver.example")
    assert outcome.verdict is Verdict.RETRY
    assert outcome.note.startswith("no connection: TLS: unable to get")
    assert not side.received


@in_loop
async def test_a_server_without_tls_is_tried_again() -> None:
    class Plain(FarSide):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

    side = Plain()
    server = await asyncio.start_server(side.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with target() as http:
        outcome = await post(http, f"https://127.0.0.1:{port}/")
    server.close()
    assert outcome.verdict is Verdict.RETRY
    assert outcome.note.startswith("no connection: ")


@in_loop
async def test_a_hanging_handshake_ends_with_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with target() as http:
            url = f"https://127.0.0.1:{silent.getsockname()[1]}/"
            outcome = await post(http, url, seconds=SHORT_SECONDS)
    assert outcome == Outcome(Verdict.RETRY, "no whole reply within 0.15 s")
