"""Headers of a callback that carry a secret: named secrets of the business, and what answers show.

A header's value ends with `{{secret:NAME}}` to refer to a named secret; the text before it, such as
`Bearer `, is no secret. Invariants: a named secret is put into a header right before the call, and
only if the call goes to an origin that the business trusts. Answers show at most the first
characters of a secret and 16 bits of its digest: enough to distinguish two values, too little to
find one by trying. No header can have a shown form as its value.
"""

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from urllib.parse import unquote_to_bytes

from msgspec import Struct
from msgspec.structs import asdict

from duewheel.rules.callbacks.types import FilledCallback, HttpCallback

NAMED_SECRETS_MAX = 20
VALUE_CHARACTERS_MAX = 1_024
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
PREFIX_CHARACTERS_MAX = 32

_BEGINS = "{{secret:"
_REFERENCE = re.compile(
    rf"([^{{}}]{{0,{PREFIX_CHARACTERS_MAX}}})\{{\{{secret:({NAME.pattern})\}}\}}"
)
# A name with one of these in it, in any case, carries a secret. It is better to hide too many than
# too few.
SECRET_WORDS = (
    "auth",
    "cookie",
    "credential",
    "jwt",
    "key",
    "pass",
    "secret",
    "session",
    "signature",
    "token",
)
NOT_SECRET = frozenset({"idempotency-key"})
SCHEMES = ("ApiKey", "Basic", "Bearer", "Digest", "DPoP", "Hawk", "Negotiate", "Token")
SHOWN_CHARACTERS = 4
SHOWN_OF_LENGTH_MIN = 24  # the first characters of a shorter one would reveal too much
DIGEST_CHARACTERS = 4
_ECHOED = b"(secret)"
_SCHEME = re.compile(rf"((?:{'|'.join(SCHEMES)}) +)(.*)", re.IGNORECASE | re.DOTALL)
# A header may have several parts, each of which its receiver may repeat without the others.
_PARTS = re.compile(r'[\s=;,:"]+')
_PART_CHARACTERS_MIN = 8
_JSON_ESCAPE = re.compile(rb"\\(?:u00([0-9A-Fa-f]{2})|(.))")
_HTML_ESCAPE = re.compile(rb"&(?:#([0-9]{2,3})|#[xX]([0-9A-Fa-f]{2})|(amp|lt|gt|quot|apos));")
_HTML_NAMED = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'"}
_CUT_ESCAPE = re.compile(rb"(?:%.?|\\(?:u.{0,3})?|&[#0-9A-Za-z]{0,5})\Z")
_SHOWN = re.compile(rf".*… \(sha256 [0-9a-f]{{{DIGEST_CHARACTERS}}}\)")


class NamedSecret(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Only a notifier can read what the id leads to."""

    name: str
    secret_id: str


def is_reference(value: str) -> bool:
    return _REFERENCE.fullmatch(value) is not None


def wrong_reference(value: str) -> bool:
    """Whether a value looks like a reference but is not one."""
    return _BEGINS in value and not is_reference(value)


def names_in(callback: object) -> frozenset[str]:
    """The names of the secrets to which a callback's headers refer."""
    if not isinstance(callback, HttpCallback):
        return frozenset()
    found = (_REFERENCE.fullmatch(value) for _, value in callback.headers if _BEGINS in value)
    return frozenset(reference[2] for reference in found if reference)


def filled(callback: HttpCallback, values: Mapping[str, str]) -> FilledCallback:
    """The callback as it is called; `values` has every name to which it refers."""
    headers = tuple((name, _filled(value, values)) for name, value in callback.headers)
    members = {**asdict(callback), "headers": headers}
    return FilledCallback(**members, secrets=tuple(values.values()))


def merged(
    before: Iterable[NamedSecret], change: Mapping[str, NamedSecret | None]
) -> tuple[NamedSecret, ...] | None:
    """By name: the change sets, replaces, or with None removes a secret."""
    by_name = {secret.name: secret for secret in before}
    after = {name: one for name, one in {**by_name, **change}.items() if one is not None}
    return tuple(after[name] for name in sorted(after)) or None


def _filled(value: str, values: Mapping[str, str]) -> str:
    reference = _REFERENCE.fullmatch(value)
    return value if reference is None else reference[1] + values[reference[2]]


def carries_secret(name: str, value: str) -> bool:
    """By its name, or since its value begins with the name of a scheme of authentication."""
    lower = name.lower()
    by_name = lower not in NOT_SECRET and any(word in lower for word in SECRET_WORDS)
    return by_name or _SCHEME.fullmatch(value) is not None


def shown_value(name: str, value: str) -> str:
    """What an answer shows of a header: its value, or the shown form if it carries a secret. A
    reference to a named secret is not secret itself."""
    if not value or is_reference(value) or not carries_secret(name, value):
        return value
    found = _SCHEME.fullmatch(value)
    scheme, secret = found.groups() if found else ("", value)
    shown = secret[:SHOWN_CHARACTERS] if len(secret) >= SHOWN_OF_LENGTH_MIN else ""
    digest = sha256(value.encode()).hexdigest()[:DIGEST_CHARACTERS]
    return f"{scheme}{shown}… (sha256 {digest})"


def without_secrets(body_start: bytes, headers: Iterable[tuple[str, str]]) -> bytes:
    """The beginning of a reply, with the secrets of the call removed; one may be cut off at the
    end. Nothing is left of a reply that has one of them as JSON, URLs or HTML escape it."""
    secrets = _secrets(headers)
    plain = _cut_out(body_start, secrets)
    for text in _unescaped(plain):
        if text != plain and _cut_out(text, secrets) != text:
            return _ECHOED
    return plain


def _cut_out(text: bytes, secrets: Iterable[bytes]) -> bytes:
    for secret in secrets:
        text = text.replace(secret, _ECHOED)
        for length in range(min(len(secret), len(text)), SHOWN_CHARACTERS, -1):
            if text.endswith(secret[:length]):
                text = text[:-length] + _ECHOED
                break
    return text


def _unescaped(text: bytes) -> Iterator[bytes]:
    """As JSON, as a URL or a form, and as HTML; an escape that is cut off is left out."""
    text = _CUT_ESCAPE.sub(b"", text)
    yield _JSON_ESCAPE.sub(
        lambda found: bytes.fromhex((found[1] or b"").decode()) or found[2], text
    )
    yield unquote_to_bytes(text.replace(b"+", b" "))
    yield _HTML_ESCAPE.sub(_of_html, text)


def _of_html(found: re.Match[bytes]) -> bytes:
    if found[3] is not None:
        return _HTML_NAMED[found[3]]
    code = int(found[1]) if found[1] is not None else int(found[2], 16)
    return chr(code).encode()


def _secrets(headers: Iterable[tuple[str, str]]) -> list[bytes]:
    """The longest first, in case one contains another."""
    found = {
        text.encode()
        for name, value in headers
        if carries_secret(name, value)
        for text in _texts_of(value)
        if len(text) > SHOWN_CHARACTERS
    }
    return sorted(found, key=len, reverse=True)


def _texts_of(value: str) -> Iterator[str]:
    """The secret without its scheme, its parts, and what it is if it was sent in base64."""
    scheme = _SCHEME.fullmatch(value)
    secret = scheme[2] if scheme else value
    clear = _from_base64(secret)
    for text in (secret, clear):
        yield text
        yield from (part for part in _PARTS.split(text) if len(part) >= _PART_CHARACTERS_MIN)
    yield clear.partition(":")[2]


def _from_base64(text: str) -> str:
    """Empty if it is no text in base64."""
    padded = text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4)
    try:
        return b64decode(padded.replace("-", "+").replace("_", "/"), validate=True).decode()
    except ValueError:
        return ""


def is_shown_form(value: str) -> bool:
    """Whether a caller sends back a shown form."""
    return _SHOWN.fullmatch(value) is not None
