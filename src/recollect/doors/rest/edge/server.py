"""How the HTTP server is set up, the same in `recollect serve` and in tests."""

import logging
from typing import Any

import uvicorn

from recollect.doors.rest.edge.connections import KEEP_ALIVE_SECONDS, Connections, limit_by_descriptors, protocol
from recollect.doors.rest.edge.proxies import SignedIn
from recollect.settings import Settings

# So many are accepted before the loop does anything else, as a refusal for want of descriptors: below the reserve.
ACCEPTED_AT_ONCE = 16

# Requests under way may finish for so long after a stop signal.
GRACE_SECONDS = 1


def configured(app: Any, settings: Settings) -> uvicorn.Config:
    """A server of this application that bounds its connections and believes no forwarded header of a stranger."""
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    limit = limit_by_descriptors(settings.database_connections)
    if settings.sign_in_header is not None:
        app = SignedIn(app, settings.trusted_proxies, settings.sign_in_header)
    return uvicorn.Config(
        app,
        http=protocol(Connections(limit, settings.trusted_proxies)),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies) and settings.sign_in_header is None,
        forwarded_allow_ips=list(settings.trusted_proxies),
        backlog=ACCEPTED_AT_ONCE,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


def _is_news(record: logging.LogRecord) -> bool:
    """Whether to log it: on a busy machine the grace may be over when the last request has just ended."""
    return not (record.args == (0,) and str(record.msg).startswith("Cancel %s running task(s)"))
