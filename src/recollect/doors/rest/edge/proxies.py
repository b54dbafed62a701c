"""Proxies: which ones are trusted to name the client's address and the person they signed in."""

import ipaddress
from collections.abc import Sequence

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware


class SignedIn:
    """ASGI middleware that puts the person into the state. It needs the proxy's own address, so it comes first."""

    def __init__(self, app: ASGIApp, proxies: Sequence[str], header: str) -> None:
        self._app: ASGIApp = ProxyHeadersMiddleware(app, list(proxies))  # type: ignore[assignment,arg-type]
        self._networks = [ipaddress.ip_network(proxy) for proxy in proxies]
        self._header = header.lower().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (person := self.person(scope)):
            scope.setdefault("state", {})["signed_in"] = person
        await self._app(scope, receive, send)

    def person(self, scope: Scope) -> str | None:
        """Whom the proxy names; None if the request is not from a trusted proxy, or names more than one."""
        named = [value for name, value in scope["headers"] if name == self._header]
        try:
            peer = ipaddress.ip_address((scope.get("client") or ("",))[0])
            return (
                named[0].decode().strip() if len(named) == 1 and any(peer in each for each in self._networks) else None
            )
        except ValueError:
            return None
