"""The local stack answers requests of programs and of its own pages, and refuses those of other
sites."""

from email.message import Message

from local.control.browsers import refused
from tests.support.cases import each_case

PORT = 8080
OWN = f"http://127.0.0.1:{PORT}"


def is_refused(*headers: tuple[str, str], line: str = "POST /v1/tasks", port: int = PORT) -> bool:
    message = Message()
    for name, text in headers:
        message[name] = text
    method, _, target = line.partition(" ")
    return refused(method, target, message, port) is not None


@each_case("host", ["127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080"])
def test_programs_and_the_stacks_own_pages_are_accepted(host: str) -> None:
    assert not is_refused(("Host", host))  # as sent by curl and the client
    own = ("Origin", f"http://{host.lower()}")
    for site in ("same-origin", "none"):
        assert not is_refused(("host", host), ("sec-fetch-site", site))
        assert not is_refused(("host", host), ("sec-fetch-site", site), own)
    assert not is_refused(("host", host), own)  # an old browser
    strict = [("sec-fetch-site", "same-origin"), ("origin", "null")]
    assert not is_refused(("host", host), *strict)


def test_on_port_80_the_host_needs_no_port() -> None:
    assert not is_refused(("Host", "localhost"), port=80)
    assert is_refused(("Host", "localhost"))


@each_case(
    "host",
    [
        "",
        "evil.example:8080",  # DNS rebinding
        "127.0.0.1:8081",
        "127.0.0.1.evil.example:8080",
        "localhost.:8080",
        "[::1]:8080",
        "0.0.0.0:8080",
        "127.0.0.1:8080@evil.example",
        "127.0.0.1:8080, evil.example",
    ],
)
@each_case("line", ["POST /v1/tasks", "GET /console", "POST /_local/clock"])
def test_other_host_names_are_refused(host: str, line: str) -> None:
    assert is_refused(("Host", host), line=line)
    assert is_refused(("Host", host), ("Origin", f"http://{host}"), line=line)


def test_a_missing_or_repeated_host_is_refused() -> None:
    assert is_refused()
    assert is_refused(("Host", "127.0.0.1:8080"), ("Host", "127.0.0.1:8080"))


@each_case(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},  # a sandboxed frame, a file
        {"Origin": "http://127.0.0.1:3000"},  # another server of this machine
        {"Origin": "http://localhost:8080"},  # the same stack, another origin
        {"Origin": f"{OWN}.evil.example"},
        {"Origin": OWN, "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "null", "Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "Same-Origin"},
    ],
)
@each_case(
    "line",
    [
        "POST /v1/tasks",
        "GET /v1/tasks?biz_type=orders",
        "POST /_local/ingest",
        "POST /_local/clock",
        "GET /_local/received/orders",
        "OPTIONS /v1/tasks",
        "POST /console",
        "GET /consolex",
        "GET //console",
        "GET /v1/console",
        "GET http://127.0.0.1:8080/console",
    ],
)
def test_pages_of_other_origins_are_refused(headers: dict[str, str], line: str) -> None:
    assert is_refused(("Host", "127.0.0.1:8080"), *headers.items(), line=line)


def test_a_repeated_origin_is_refused() -> None:
    assert is_refused(("Host", "127.0.0.1:8080"), ("Origin", OWN), ("Origin", OWN))


@each_case("line", ["GET /", "GET /console", "HEAD /console", "GET /console/main.js?v=1"])
def test_a_link_of_another_page_opens_the_console(line: str) -> None:
    assert not is_refused(("Host", "localhost:8080"), ("Sec-Fetch-Site", "cross-site"), line=line)
