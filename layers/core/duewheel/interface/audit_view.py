"""An audit in an answer: how far it got, how much it looked at, and what is in no honest state."""

from duewheel.rules.audit import Finding
from duewheel.rules.instants import rfc3339
from duewheel.workflows.audit import Audited


def audit_view(audited: Audited) -> dict[str, object]:
    return {
        "from": rfc3339(audited.first_second * 1000),
        "to": rfc3339((audited.last_second + 1) * 1000),
        "audited_until": rfc3339(audited.audited_until_second * 1000),
        "checked": {"seconds": audited.seconds, "items": audited.items},
        "findings": [_finding(finding) for finding in audited.findings],
        "cursor": audited.cursor,
    }


def _finding(finding: Finding) -> dict[str, object]:
    return {
        "wrong": finding.wrong.value,
        "detail": finding.sentence,
        "task_id": finding.task_id,
        "biz_type": finding.biz_type,
        "at": finding.at,
        "attribute": finding.attribute,
    }
