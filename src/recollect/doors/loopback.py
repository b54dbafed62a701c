"""Which addresses only this machine can reach."""

import ipaddress
from functools import lru_cache


@lru_cache(maxsize=256)  # asked of the Host of every request
def is_loopback(host: str) -> bool:
    """Whether a server bound there is out of reach for others."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
