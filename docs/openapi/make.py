"""Makes the API documents anew: `make openapi`.

They stand beside the code that answers them, since the layer that is deployed has nothing from
elsewhere.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from docs.examples.layout import laid_out
from docs.examples.make import PAGE, XTIMER_PAGE
from docs.openapi.document import DocumentError, Interface, document
from docs.openapi.xtimer import XTIMER
from duewheel.api.wheel_calls import API_DOCUMENT
from duewheel.xtimer.calls import API_DOCUMENT as XTIMER_DOCUMENT

DOCUMENTS: Mapping[Path, tuple[Path, Interface]] = {
    API_DOCUMENT: (PAGE, Interface()),
    XTIMER_DOCUMENT: (XTIMER_PAGE, XTIMER),
}


def text(file: Path) -> str:
    page, interface = DOCUMENTS[file]
    made = document(page.read_text("utf-8"), interface)
    return laid_out(json.dumps(made, ensure_ascii=False)) + "\n"


def main() -> int:
    try:
        made = {path: text(path) for path in DOCUMENTS}
    except DocumentError as error:
        print(f"The documents are left as they were: {error}", file=sys.stderr)
        return 1
    for path, new in made.items():
        is_new = not path.exists() or path.read_text("utf-8") != new
        path.write_text(new, "utf-8")
        print(f"{path.parent.name}/{path.name} {'has changed' if is_new else 'is as it was'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
