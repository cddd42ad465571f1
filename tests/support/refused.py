"""The exception of the guard for a request that AWS would not carry out."""


class RefusedByAws(AssertionError):
    """The message names the rule of AWS, and the value that breaks it."""


def refuse_if(breaks: bool, what: str) -> None:
    if breaks:
        raise RefusedByAws(what)
