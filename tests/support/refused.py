"""What the guard raises: a request that AWS would not carry out."""


class RefusedByAws(AssertionError):
    """Says which rule of AWS the request breaks, and with what."""


def refuse_if(breaks: bool, what: str) -> None:
    if breaks:
        raise RefusedByAws(what)
