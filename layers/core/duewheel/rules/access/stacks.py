"""Stacks of CloudFormation as callers: which businesses' timers a stack may have, by its name."""

import re
from collections.abc import Iterable

from msgspec import Struct

from duewheel.rules.access.grants import ALL, Access, Grant, Permit, Right, are_businesses
from duewheel.rules.refusals import NotPermitted

_STACK = re.compile(r"arn:[a-z-]+:cloudformation:[a-z0-9-]+:([0-9]{12}):stack/([^/]+)/[^/]+")
_STACKS = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,127}\*?|\*")


class Stack(Struct, frozen=True):
    account: str
    name: str

    @property
    def caller(self) -> str:
        return f"stack/{self.name}"


def stack_of(stack_id: str) -> Stack:
    """Raises ValueError if this is no id of a stack."""
    if (found := _STACK.fullmatch(stack_id)) is None:
        raise ValueError("StackId is no id of a stack")
    return Stack(*found.groups())


def check_stack_businesses(listed: Iterable[str]) -> None:
    """Raises ValueError for a text that is neither `BUSINESSES` nor `STACKS=BUSINESSES`."""
    for text in listed:
        stacks, businesses = _parts(text)
        if not _STACKS.fullmatch(stacks) or not are_businesses(businesses):
            raise ValueError(f"{text!r} names no businesses, or no stacks and businesses")


def permit_of_stack(stack: Stack, listed: Iterable[str], account: str) -> Permit:
    """Stacks of other accounts have no right."""
    grants = [
        Grant(Right.WRITE, businesses)
        for stacks, businesses in map(_parts, listed)
        if stack.account == account and _is_named(stack.name, stacks)
    ]
    return Permit(Access(stack.caller, tuple(grants)), Right.WRITE)


def check_permitted(permit: Permit, biz_type: str) -> None:
    """The refusal names the parameter, since an operator has to change it."""
    if not permit.access.may(permit.right, biz_type):
        raise NotPermitted(
            f"{permit.access.caller} may have no timers of business {biz_type}. The parameter "
            "TimerResourceBusinesses of Duewheel says which it may.",
            "biz_type",
        )


def _parts(text: str) -> tuple[str, str]:
    stacks, is_split, businesses = text.partition("=")
    return (stacks, businesses) if is_split else (ALL, text)


def _is_named(name: str, stacks: str) -> bool:
    return name.startswith(stacks[:-1]) if stacks.endswith("*") else name == stacks
