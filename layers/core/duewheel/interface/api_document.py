"""The API document (OpenAPI), as it is kept beside this module; read when it is asked for."""

from pathlib import Path

from duewheel.interface.answer import Answer

FILE = Path(__file__).with_name("openapi.json")


def api_document() -> Answer:
    return Answer(200, FILE.read_text("utf-8"))
