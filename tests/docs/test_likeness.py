"""Which outputs count as equal to those that a page shows."""

from tests.support.cases import each_case
from tests.support.likeness import Likeness

ID, OTHER_ID = "AQG5dxdnQAAAhP_WYx9_De_hLrx4", "AQG5dxdnQAAAJ5XUuH6hrHdJkKVm"
NEW_ID, OTHER_NEW_ID = "AQG5dxdnQAAAvc0DDidHU8CAa_jf", "gQG5dvv30AAA-nxSk9baIkiHDEWR"
AT, LATER = "2030-01-31T08:00:00.000Z", "2030-01-31T08:00:01.000Z"


@each_case(
    ("shown", "came"),
    [
        ('{"a": 1}', '{"a":1,"b":2}'),
        ('{"a": 1, ...}', '{"a":1}'),
        ('{"a": ..., "b": "x..."}', '{"a":[1],"b":"xyz"}'),
        ('[{"a": 1}, ...]', '[{"a":1,"b":2},3]'),
        ('{"a": 1}', '{"b":2}said {\n{"a":1}'),
        (f'{{"a": "{ID}", "b": "{ID}"}}', f'{{"a":"{NEW_ID}","b":"{NEW_ID}"}}'),
        ('{"a": "is 1585328024689612"}', '{"a":"is 42"}'),
        (f'{{"a": "{AT}"}}', f'{{"a":"{AT}"}}'),
    ],
)
def test_equivalent_json_counts_as_equal(shown: str, came: str) -> None:
    assert Likeness(with_instants=True).of_json(shown, came)


@each_case(
    ("shown", "came"),
    [
        ('{"a": 1}', '{"a":2}'),
        ('{"a": 1}', '{"a":true}'),
        ('{"a": null}', "{}"),
        ('{"a": 1}', '{"a":1}\n{"a":2}'),
        ("[1]", "[1,2]"),
        ("[1, 2, ...]", "[1]"),
        ('{"a": "x..."}', '{"a":"y"}'),
        (f'{{"a": "{ID}", "b": "{ID}"}}', f'{{"a":"{NEW_ID}","b":"{OTHER_NEW_ID}"}}'),
        (f'{{"a": "{AT}"}}', f'{{"a":"{LATER}"}}'),
        ('{"a": 1}', "nothing"),
    ],
)
def test_different_json_does_not_count_as_equal(shown: str, came: str) -> None:
    assert not Likeness(with_instants=True).of_json(shown, came)


def test_on_a_running_clock_an_instant_equals_any_other_instant_only() -> None:
    likeness = Likeness(with_instants=False)
    assert likeness.of_json(f'{{"a": "{AT}"}}', f'{{"a":"{LATER}"}}')
    assert not likeness.of_json(f'{{"a": "{AT}"}}', '{"a":"soon"}')


@each_case(
    ("shown", "came", "is_alike"),
    [
        ("a  b", "a b  \n", True),
        ("last", "first\nlast", True),
        ("first", "first\nlast", False),
        ("a\n...\nc", "a\nb\nb\nc", True),
        ("a\n...\nd", "a\nb\nc", False),
        (f"{ID} ... 1", f"{NEW_ID}  delivered  1", True),
        (f"{ID} ... 1", f"{NEW_ID}  delivered  2", False),
        ("a b", "ab", False),
    ],
)
def test_lines_are_compared_with_the_last_ones_without_blanks(
    shown: str, came: str, is_alike: bool
) -> None:
    assert Likeness(with_instants=True).of_text(shown, came) == is_alike


def test_an_id_is_the_same_on_the_whole_page() -> None:
    likeness = Likeness(with_instants=True)
    assert likeness.of_json(f'{{"a": "{ID}"}}', f'{{"a":"{NEW_ID}"}}')
    assert likeness.of_text(ID, NEW_ID)
    assert not likeness.of_text(ID, OTHER_NEW_ID)
    assert likeness.of_text(OTHER_ID, OTHER_NEW_ID)
