"""Commands of the pages that call AWS or change the machine: they are parsed, not run."""

import re
import shlex
from collections.abc import Iterator

_COMMENT = re.compile(r"(?:^|\s)#.*$", re.MULTILINE)
_WORDS_OF_LOOPS = ("for", "do", "done")


def commands(block: str) -> Iterator[list[str]]:
    """The words of each command; of a loop, those of its commands."""
    lexer = shlex.shlex(
        _COMMENT.sub("", block.replace("\\\n", " ")), posix=True, punctuation_chars="\n;"
    )
    lexer.whitespace = " \t"
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    for word in [*lexer, ";"]:
        if not word.strip("\n;"):
            if words and words[0] not in _WORDS_OF_LOOPS:
                yield words
            words = []
        else:
            words.append(word)


def options(words: list[str]) -> dict[str, list[str]]:
    """The words after each option, up to the next option."""
    given: dict[str, list[str]] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name = word.removeprefix("--")
            given[name] = []
        else:
            given.setdefault(name, []).append(word)
    return given
