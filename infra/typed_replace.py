"""Lets mypy check what `msgspec.structs.replace` is given; its own stub takes anything."""

from collections.abc import Callable

from mypy.plugin import FunctionSigContext, Plugin
from mypy.plugins.dataclasses import replace_function_sig_callback
from mypy.types import FunctionLike


class TypedReplace(Plugin):
    def get_function_signature_hook(
        self, fullname: str
    ) -> Callable[[FunctionSigContext], FunctionLike] | None:
        return replace_function_sig_callback if fullname == "msgspec.structs.replace" else None


def plugin(version: str) -> type[Plugin]:
    return TypedReplace
