"""What every page of the console has: its way in, its policy, its navigation."""

from playwright.sync_api import expect

from tests.console.viewer import Viewer


def test_the_console_opens_on_the_wheel(viewer: Viewer) -> None:
    viewer.open()
    expect(viewer.page.locator("main h1")).to_have_text("Wheel")
    expect(viewer.fact("Time pointer")).to_contain_text("lag")


def test_pages_are_reached_by_the_navigation(viewer: Viewer) -> None:
    viewer.open()
    for name in ("Tasks", "Timers", "Businesses", "Help", "Wheel"):
        viewer.page.get_by_role("link", name=name, exact=True).click()
        expect(viewer.page.get_by_role("link", name=name, exact=True)).to_have_attribute(
            "aria-current", "page"
        )


def test_an_injected_script_does_not_run(viewer: Viewer, complaints: list[str]) -> None:
    viewer.open()
    refused = viewer.page.evaluate(
        """() => { try { document.body.innerHTML = "<img src=x onerror=alert(1)>"; return ""; }
                  catch (error) { return error.name; } }"""
    )
    assert refused == "TypeError"
    (complaint,) = complaints
    assert "TrustedHTML" in complaint
    complaints.clear()
