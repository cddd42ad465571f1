"""The documents of the release, as help shows them."""

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.console.viewer import Viewer

DOCS = Path(__file__).parents[2] / "docs"


def headings(name: str) -> list[str]:
    text = re.sub(r"(?ms)^```.*?^```", "", (DOCS / name).read_text("utf-8"))
    return [
        re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", line.lstrip("# "))
        for line in text.splitlines()
        if re.match(r"#{1,6} ", line)
    ]


def test_help_leads_to_a_document_with_all_its_headings(viewer: Viewer) -> None:
    viewer.open("help")
    viewer.page.get_by_role("link", name="docs/concepts.md").click()
    expect(viewer.page.locator("main h1")).to_have_text(headings("concepts.md")[0])
    assert viewer.page.locator("article [data-at]").all_inner_texts() == headings("concepts.md")


def test_every_document_that_help_names_is_served(viewer: Viewer) -> None:
    viewer.open("help")
    links = viewer.page.locator("dt a.mono")
    expect(links.first).to_be_visible()
    for name in links.all_inner_texts():
        answer = viewer.page.request.get(f"/console/{name}")
        assert (answer.status, answer.text()) == (200, (DOCS.parent / name).read_text("utf-8"))


def test_links_between_documents_stay_in_the_console_and_lead_to_headings(viewer: Viewer) -> None:
    viewer.open("help/glossary")
    viewer.page.locator("article a").first.wait_for()
    hrefs = viewer.page.eval_on_selector_all(
        "article a", "all => all.map((one) => one.getAttribute('href'))"
    )
    assert hrefs
    assert all(href.startswith("#/help/") for href in hrefs)
    viewer.open("help/guides/cron?at=late-runs")
    expect(viewer.page.get_by_role("heading", name="Late runs")).to_be_focused()


def test_code_tables_and_lists_of_a_document_are_shown_as_such(viewer: Viewer) -> None:
    viewer.open("help/guides/cron")
    article = viewer.page.locator("article")
    expect(article.locator("pre").first).to_contain_text("make local")
    expect(article.get_by_role("columnheader", name="misfire")).to_be_visible()
    expect(article.get_by_role("link", name="When the clocks change")).to_have_attribute(
        "href", "#/help/guides/cron?at=when-the-clocks-change"
    )
    expect(article.get_by_role("list").first.get_by_role("listitem")).not_to_have_count(0)
    assert "```" not in article.inner_text()


def test_an_unknown_document_is_reported(viewer: Viewer) -> None:
    viewer.open("help/nothing")
    expect(viewer.page.get_by_role("alert")).to_contain_text("no file of the console")
    expect(viewer.page.locator("main h1")).to_have_text("Help")
