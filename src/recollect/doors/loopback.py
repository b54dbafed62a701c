"""Which addresses only this machine can reach."""

import ipaddress
import re
from functools import lru_cache

# As browsers and clients write it: a name or an address, IPv6 in brackets, and perhaps a port. Nothing else beside.
_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+))(?::[0-9]{0,5})?")


@lru_cache(maxsize=256)  # asked of the Host of every request
def is_loopback(host: str) -> bool:
    """Whether a server bound there is out of reach for others."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_is_loopback(header: str) -> bool:
    """Whether a Host header names this machine's loopback; one that is not well formed does not."""
    found = _AUTHORITY.fullmatch(header)
    if found is None:
        return False
    in_brackets, plain = found.groups()
    return is_loopback(in_brackets) and ":" in in_brackets if in_brackets else is_loopback(plain.lower())


def origin_is_loopback(header: str) -> bool:
    """Whether an Origin header names a page of this machine's loopback."""
    scheme, separator, authority = header.partition("://")
    return bool(separator) and scheme.lower() in ("http", "https") and host_is_loopback(authority)
