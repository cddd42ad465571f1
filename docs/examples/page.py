"""The page's examples: finds their places, and replaces old ones by new ones.

An example is between two comments, the first of which names it; the text around them is
written by hand and stays. Random values (ids, cursors) stay, too, if the rest is equal: so new
examples change the page only where the service's answers changed, and a page that they do not
change is up to date.
"""

import re
from collections.abc import Iterator, Mapping

_EXAMPLE = re.compile(r"(<!-- example: (.*?) -->\n)(.*?)(<!-- end of example -->\n)", re.DOTALL)
_MARK = re.compile(r"<!-- (?:example: .*?|end of example) -->\n")
_RANDOM = re.compile(
    r"""
      (?<![\w-]) (?:AQ|gQ)[\w-]{26} (?![\w-])     # a task id, by its version
    | (?<=~) [0-9a-f]{20} (?![0-9a-f])            # an operation's mark
    | (?<=cursor=) [\w-]+ | (?<="cursor":\ ") [\w-]+
    | (?<=[0-9]\#) [\w-]{11} (?![\w-])             # the token of a place
    | (?<![\w-]) dw_ [0-9A-Za-z]{12} _ [0-9A-Za-z]{43} _ [0-9A-Za-z]{6} (?![\w-])
    | (?: (?<=/keys/) | (?<="key_id":\ ") | (?<="key/) ) [0-9A-Za-z]{12} (?![\w-])
    | (?<=request\ id\ ) [0-9a-f]{16}
    | (?<=ompletion-[tT]oken:\ ) [\w.-]+
    | (?: (?<=/timers/) | (?<=timer\ ) | (?<=[?&]id=) | (?<=ID=)
        | (?<="timer_id":\ ") | (?<="id":\ ) | (?<="timerID":\ ) ) [0-9]{13,16} (?![0-9])
    """,
    re.VERBOSE | re.ASCII,
)


class PageError(Exception):
    """The page and the examples do not belong together."""


def examples_in(page: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for _, name, text, _ in _EXAMPLE.findall(page):
        if name in found:
            raise PageError(f"the page has two places for the example {name}")
        found[name] = text
    if len(_MARK.findall(page)) != 2 * len(found):
        raise PageError("the page has an example whose beginning or end is missing")
    return found


def with_examples(page: str, examples: Mapping[str, str]) -> str:
    """The page with these in the place of its own; it has a place for each, and for no other."""
    old = examples_in(page)
    if unknown := sorted(set(old) - set(examples)):
        raise PageError(f"nobody makes the example {', '.join(unknown)}")
    if unused := sorted(set(examples) - set(old)):
        raise PageError(f"the page has no place for the example {', '.join(unused)}")
    new = with_random_of(old, examples)
    return _EXAMPLE.sub(lambda place: f"{place[1]}{new[place[2]]}{place[4]}", page)


def with_random_of(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """What was equal stays equal, and what was not stays different: one old part for each new."""
    kept: dict[str, str] = {}
    for mine, theirs in _alike(old, new):
        if theirs not in kept.values():
            kept.setdefault(mine, theirs)
    return {
        name: _RANDOM.sub(lambda part: kept.get(part[0], part[0]), text)
        for name, text in new.items()
    }


def _alike(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The random parts, new and old, of examples that are the same but for them."""
    for name, text in new.items():
        before = old.get(name, "")
        if _RANDOM.sub("", text) == _RANDOM.sub("", before):
            yield from zip(_RANDOM.findall(text), _RANDOM.findall(before), strict=True)
