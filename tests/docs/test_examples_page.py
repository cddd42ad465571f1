"""Examples are written into a page, and an unchanged example leaves the page unchanged."""

import pytest

from docs.examples.page import PageError, examples_in, with_examples
from tests.support.cases import each_case

ID, OTHER_ID = "AQG5dxdnQAAAhP_WYx9_De_hLrx4", "AQG5dxdnQAAAJ5XUuH6hrHdJkKVm"
NEW_ID, OTHER_NEW_ID = "AQG5dxdnQAAAvc0DDidHU8CAa_jf", "gQG5dvv30AAA-nxSk9baIkiHDEWR"


def page_of(*examples: tuple[str, str]) -> str:
    places = (
        f"Prose about {name}.\n\n<!-- example: {name} -->\n{text}<!-- end of example -->\n"
        for name, text in examples
    )
    return "# A page\n\n" + "\n".join(places) + "\nThe end.\n"


def test_examples_are_read_between_their_marks() -> None:
    page = page_of(("one", "1\n"), ("two", ""))
    assert examples_in(page) == {"one": "1\n", "two": ""}


def test_a_new_example_replaces_the_old_one_and_the_prose_stays() -> None:
    page = page_of(("one", "1\n"), ("two", "2\n"))
    assert with_examples(page, {"one": "1\n", "two": "3\n4\n"}) == page_of(
        ("one", "1\n"), ("two", "3\n4\n")
    )


def test_an_example_may_look_like_a_pattern() -> None:
    assert with_examples(page_of(("one", "")), {"one": r"\1 \g<2>\n" "\n"}) == page_of(
        ("one", r"\1 \g<2>\n" "\n")
    )


@each_case(
    ("page", "examples", "reason"),
    [
        (page_of(("one", "")), {}, "nobody makes the example one"),
        (page_of(), {"one": ""}, "no place for the example one"),
        (page_of(("one", ""), ("one", "")), {"one": ""}, "two places for the example one"),
        ("<!-- example: one -->\n", {}, "missing"),
        ("<!-- end of example -->\n", {}, "missing"),
        ("<!-- example: one -->\n" + page_of(("two", "")), {"one": "", "two": ""}, "missing"),
    ],
)
def test_page_and_examples_must_match(page: str, examples: dict[str, str], reason: str) -> None:
    with pytest.raises(PageError, match=reason):
        with_examples(page, examples)


def test_random_parts_stay_when_an_example_is_otherwise_the_same() -> None:
    page = page_of(
        ("create", f"location: /v1/tasks/{ID}\n"),
        ("read", f'GET /v1/tasks/{ID}\n"task_id": "{ID}", "cursor": "b2xk"\n'),
        ("failed", "under request id 815eed19f16141be.\n"),
    )
    again = {
        "create": f"location: /v1/tasks/{NEW_ID}\n",
        "read": f'GET /v1/tasks/{NEW_ID}\n"task_id": "{NEW_ID}", "cursor": "bmV3"\n',
        "failed": "under request id 0123456789abcdef.\n",
    }
    assert with_examples(page, again) == page


def test_a_changed_example_keeps_the_old_id_of_its_task() -> None:
    page = page_of(("create", f"{ID} 201\n"), ("read", f"{ID} pending\n"))
    again = {"create": f"{NEW_ID} 201\n", "read": f"{NEW_ID} delivered\n"}
    assert with_examples(page, again) == page_of(
        ("create", f"{ID} 201\n"), ("read", f"{ID} delivered\n")
    )


def test_ids_that_have_become_different_are_a_change() -> None:
    page = page_of(("create", f"{ID}\n"), ("read", f"{ID}\n"))
    assert with_examples(page, {"create": f"{NEW_ID}\n", "read": f"{OTHER_NEW_ID}\n"}) != page


def test_ids_that_have_become_equal_are_a_change() -> None:
    page = page_of(("create", f"{ID}\n"), ("read", f"{OTHER_ID}\n"))
    assert with_examples(page, {"create": f"{NEW_ID}\n", "read": f"{NEW_ID}\n"}) != page
