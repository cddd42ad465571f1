"""Links within the repository have existing targets, including anchors."""

import re
from functools import cache
from pathlib import Path

from tests.support.cases import each_case
from tests.support.page_blocks import PAGES, ROOT, text_of

_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r'<a id="([^"]+)">')
_ELSEWHERE = ("https://", "http://", "mailto:")


def links(text: str) -> list[str]:
    return [to for to in _LINK.findall(_CODE.sub("", text)) if not to.startswith(_ELSEWHERE)]


@cache
def anchors(page: Path) -> frozenset[str]:
    """Like GitHub, which adds a number to the second heading of the same words."""
    text = page.read_text("utf-8")
    found: list[str] = _NAMED.findall(text)
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        same = sum(name == slug or re.fullmatch(rf"{slug}-\d+", name) is not None for name in found)
        found.append(f"{slug}-{same}" if same else slug)
    return frozenset(found)


def missing_target(page: str, link: str) -> str | None:
    path, _, anchor = link.partition("#")
    target = ((ROOT / page).parent / path).resolve() if path else ROOT / page
    if not target.exists() or not target.is_relative_to(ROOT):
        return f"{link}: there is no such file"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return f"{link}: the page has no such heading"
    return None


@each_case("page", PAGES)
def test_links_have_existing_targets(page: str) -> None:
    assert [wrong for link in links(text_of(page)) if (wrong := missing_target(page, link))] == []


def test_every_page_for_readers_is_linked() -> None:
    led_to = {
        str(((ROOT / page).parent / link.partition("#")[0]).resolve().relative_to(ROOT))
        for page in PAGES
        for link in links(text_of(page))
        if link.partition("#")[0]
    }
    assert [page for page in PAGES if page.startswith("docs/") and page not in led_to] == []


@each_case("link", ["nowhere.md", "CHANGELOG.md#nowhere", "#nowhere", "../../etc"])
def test_a_broken_link_is_found(link: str) -> None:
    assert missing_target("README.md", link)
