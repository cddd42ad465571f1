"""The answer to a request by a table of calls, with the line of the access log.

Every error of the service leaves as a problem document, and `answered` alone decides which. Bodies,
headers and callbacks are never logged: they are the callers' and may hold secrets.
"""

from duewheel.interface import problems
from duewheel.interface.http import Answer, Calls, Matched, Request
from duewheel.log import logger
from duewheel.rules.refusals import Refusal, Unavailable
from duewheel.settings import SettingsError
from duewheel.stores.dynamodb import is_for_load


def answered(calls: Calls, request: Request) -> Answer:
    matched = calls.match_route(request)
    answer = _answer(request, matched)
    if (line := matched.access_log_line(request, answer)) is not None:
        logger.info("change", **line)
    return answer


def _answer(request: Request, matched: Matched) -> Answer:
    try:
        return matched.answer(request)
    except Refusal as refusal:
        return problems.refused(refusal)
    except SettingsError as error:
        return misconfigured(error)
    except Exception as error:  # noqa: BLE001 - logged, and answered as a 503 or a 500
        call = f"{request.method} {request.path}"
        # 503 means that nothing was written, which is certain for a call that only reads.
        if request.method == "GET" and is_for_load(error):
            logger.warning("throttled", action="refused-for-load", call=call)
            return problems.refused(Unavailable())
        logger.exception("call failed", action="call-failed", call=call)
        return problems.internal(request.request_id)


def misconfigured(error: SettingsError) -> Answer:
    logger.error("deployment misconfigured", action="misconfigured", reason=str(error))
    return problems.misconfigured(str(error))
