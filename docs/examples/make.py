"""Makes the examples of the page anew, in place: `make examples`."""

import sys
from pathlib import Path

from docs.examples import calls, problems, timers
from docs.examples.page import PageError, examples_in, with_examples
from docs.examples.teller import Story, StoryError, told

PAGE = Path(__file__).parents[1] / "api.md"
STORIES: tuple[Story, ...] = (*calls.STORIES, *timers.STORIES, *problems.STORIES)


def all_examples() -> dict[str, str]:
    examples: dict[str, str] = {}
    for story in STORIES:
        for name, text in told(story).items():
            if name in examples:
                raise StoryError(f"two stories have an example with the name {name}")
            examples[name] = text
    return examples


def main() -> int:
    page = PAGE.read_text("utf-8")
    try:
        renewed = with_examples(page, all_examples())
    except (PageError, StoryError) as error:
        print(f"The examples are left as they were: {error}", file=sys.stderr)
        return 1
    PAGE.write_text(renewed, "utf-8")
    before = examples_in(page)
    changed = [name for name, text in examples_in(renewed).items() if text != before[name]]
    print(f"{len(before)} examples, changed: {', '.join(changed) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
