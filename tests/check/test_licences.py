"""docs/licences.md against the packages that are installed, those of `make check` too."""

from pathlib import Path

from infra.release import licences

ROOT = Path(__file__).parents[2]


def test_the_page_of_licences_is_what_the_packages_say() -> None:
    page = (ROOT / "docs/licences.md").read_text("utf-8")
    assert page == licences.page(), "make licences"
