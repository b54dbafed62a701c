"""`--namespace`, for commands that work in the namespace of the environment unless told otherwise."""

from collections.abc import Callable
from typing import Any

import click

from recollect import checks
from recollect.settings import Settings

_CHOSEN = "recollect.namespace"


def namespace_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option to a command whose settings come from `applied`."""
    return click.option(
        "--namespace",
        expose_value=False,
        callback=_choose,
        help="Namespace to work in.  [default: default, or RECOLLECT_NAMESPACE]",
    )(command)


def applied(settings: Settings) -> Settings:
    """The settings, with the namespace that this command was given."""
    chosen = click.get_current_context().meta.get(_CHOSEN)
    return settings if chosen is None else settings.model_copy(update={"namespace": chosen})


def _choose(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta[_CHOSEN] = checks.namespace(value)
