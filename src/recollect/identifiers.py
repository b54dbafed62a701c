"""Identifiers: those that grow with time, so that index pages fill in order, and those that follow from content."""

import json
import secrets
import time
from collections.abc import Iterable
from hashlib import sha256
from uuid import UUID

from recollect.errors import Invalid


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


def uuid_of(*parts: str) -> UUID:
    """A version 8 UUID that is a hash: the same parts give the same one."""
    return _version_8(int.from_bytes(_digest(parts)[:16]))


def uuid_at(milliseconds: int, *parts: str) -> UUID:
    """A version 8 UUID of 48 bits of Unix milliseconds, then a hash: the same moment and parts give the same one."""
    return _version_8((milliseconds & 0xFFFF_FFFF_FFFF) << 80 | int.from_bytes(_digest(parts)[:10]))


def _digest(parts: tuple[str, ...]) -> bytes:
    return sha256(json.dumps(parts).encode()).digest()


def _version_8(value: int) -> UUID:
    return UUID(int=value & ~(0xF << 76) & ~(0b11 << 62) | 0x8 << 76 | 0b10 << 62)


def refuse_same_ids(ids: Iterable[UUID | None]) -> None:
    """Refuse a call that brings an id twice."""
    given = [each for each in ids if each is not None]
    if len(set(given)) < len(given):
        raise Invalid("Two items of one call have the same id: give each its own")
