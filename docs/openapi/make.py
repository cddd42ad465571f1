"""Makes the API document anew: `make openapi`.

It stands beside the code that answers it, since the layer that is deployed has nothing from
elsewhere.
"""

import json
import sys

from docs.examples.layout import laid_out
from docs.examples.make import PAGE
from docs.openapi.document import DocumentError, document
from duewheel.api.wheel_calls import API_DOCUMENT


def text() -> str:
    return laid_out(json.dumps(document(PAGE.read_text("utf-8")), ensure_ascii=False)) + "\n"


def main() -> int:
    try:
        made = text()
    except DocumentError as error:
        print(f"The document is left as it was: {error}", file=sys.stderr)
        return 1
    is_new = not API_DOCUMENT.exists() or API_DOCUMENT.read_text("utf-8") != made
    API_DOCUMENT.write_text(made, "utf-8")
    print("the API document has changed" if is_new else "the API document is as it was")
    return 0


if __name__ == "__main__":
    sys.exit(main())
