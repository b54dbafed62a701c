"""`--namespace`, for commands that work in the namespace of the environment unless told otherwise."""

from collections.abc import Callable
from typing import Any

import click

from recollect import checks

_CHOSEN = "recollect.namespace"


def namespace_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option to a command that works with an engine of `one_command`."""
    return click.option(
        "--namespace",
        expose_value=False,
        callback=_choose,
        help="Namespace to work in.  [default: default, or RECOLLECT_NAMESPACE]",
    )(command)


def given() -> str | None:
    """The namespace that this command was given."""
    return click.get_current_context().meta.get(_CHOSEN)


def _choose(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta[_CHOSEN] = checks.namespace(value)
