"""Identifiers that grow with time, so that index pages fill in order."""

import secrets
import time
from uuid import UUID


def uuid7() -> UUID:
    """A version 7 UUID (RFC 9562): 48 bits of Unix milliseconds, then randomness."""
    milliseconds = time.time_ns() // 1_000_000
    random_bits = secrets.randbits(74)
    value = (milliseconds & 0xFFFF_FFFF_FFFF) << 80
    value |= 0x7 << 76
    value |= (random_bits >> 62) << 64
    value |= 0b10 << 62
    value |= random_bits & 0x3FFF_FFFF_FFFF_FFFF
    return UUID(int=value)
