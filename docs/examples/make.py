"""Makes the examples of the pages anew, in place: `make examples`."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from docs.examples import calls, problems, timers, xtimer
from docs.examples.page import PageError, examples_in, with_examples
from docs.examples.teller import Story, StoryError, told

PAGE = Path(__file__).parents[1] / "api.md"
XTIMER_PAGE = PAGE.with_name("xtimer.md")
STORIES: Mapping[Path, Sequence[Story]] = {
    PAGE: (*calls.STORIES, *timers.STORIES, *problems.STORIES),
    XTIMER_PAGE: xtimer.STORIES,
}


def all_examples(stories: Sequence[Story]) -> dict[str, str]:
    examples: dict[str, str] = {}
    for story in stories:
        for name, text in told(story).items():
            if name in examples:
                raise StoryError(f"two stories have an example with the name {name}")
            examples[name] = text
    return examples


def main() -> int:
    pages = {path: path.read_text("utf-8") for path in STORIES}
    try:
        renewed = {
            path: with_examples(page, all_examples(STORIES[path])) for path, page in pages.items()
        }
    except (PageError, StoryError) as error:
        print(f"The examples are left as they were: {error}", file=sys.stderr)
        return 1
    for path, text in renewed.items():
        path.write_text(text, "utf-8")
        before, after = examples_in(pages[path]), examples_in(text)
        changed = [name for name in after if after[name] != before[name]]
        print(f"{path.name}: {len(before)} examples, changed: {', '.join(changed) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
