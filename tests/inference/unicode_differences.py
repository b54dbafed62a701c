"""The characters that Python and the `tokenizers` library class differently, and when.

The library's categories are those of Unicode 8 and its decompositions hardly newer, while its capitals are those of
Unicode 17; Python's tables lie in between. Each character is named here, up to Unicode 18, so that the comparison
leaves out these and no others.
"""

import unicodedata
from collections.abc import Iterator


def differing_characters() -> set[str]:
    """Those that this version of Python knows and the library does not, or the other way round."""
    added = {character for character in ADDED if unicodedata.category(character) != "Cn"}
    reclassified = {character for character, then in RECLASSIFIED.items() if unicodedata.category(character) != then}
    capitals = {character for character in CAPITALS if character.lower() == character}
    return added | reclassified | capitals


def _characters(ranges: str) -> Iterator[str]:
    for span in ranges.split():
        first, _, last = span.partition("-")
        yield from map(chr, range(int(first, 16), int(last or first, 16) + 1))


MARKS = """
    05C8-05C9 07FD 0897-089F 08CA-08E1 09FE 0AFA-0AFF 0B53-0B55 0C04 0C3C 0D00 0D3B-0D3C 0D81 0EBA 0ECE 180F
    1885-1886 1ABF-1AF0 1DF6-1DFB A82C A8C5 A8FF A9BD 10D24-10D27 10D69-10D6D 10EAB-10EAC 10ECB-10ECF 10EF0-10EFF
    10F46-10F50 10F82-10F85 11070 11073-11074 110C2 111CF 1123E 11241 1133B 113BB-113C0 113CE 113D0 113D2
    113E1-113E2 11438-1143F 11442-11444 11446 1145E 1182F-11837 11839-1183A 1193B-1193C 1193E 11943 119D4-119D7
    119DA-119DB 119E0 11A01-11A0A 11A33-11A38 11A3B-11A3E 11A47 11A51-11A56 11A59-11A5B 11A8A-11A96 11A98-11A99
    11B60 11B62-11B64 11B66 11C30-11C36 11C38-11C3D 11C3F 11C92-11CA7 11CAA-11CB0 11CB2-11CB3 11CB5-11CB6
    11D31-11D36 11D3A 11D3C-11D3D 11D3F-11D45 11D47 11D90-11D91 11D95 11D97 11DF0 11EF3-11EF4 11F00-11F01
    11F36-11F3A 11F40 11F42 11F5A 13440 13447-13455 1611E-16129 1612D-1612F 16F4F 16FE4 1CF00-1CF2D 1CF30-1CF46
    1D127-1D128 1D25B-1D25C 1E000-1E006 1E008-1E018 1E01B-1E021 1E023-1E024 1E026-1E02A 1E08F 1E130-1E136 1E2AE
    1E2EC-1E2EF 1E4EC-1E4EF 1E5EE-1E5EF 1E6E3 1E6E6 1E6EE-1E6EF 1E6F5 1E944-1E94A
"""
PUNCTUATION = """
    061D 09FD 0A76 0C77 0C84 1B4E-1B4F 1B7D-1B7F 2E43-2E4F 2E52-2E5D 2E60-2E63 10D6E 10EAD 10ED0 10F55-10F59
    10F86-10F89 113D4-113D5 113D7-113D8 1144B-1144F 1145A-1145B 1145D 11660-1166C 116B9 1183B 11944-11946 119E2
    11A3F-11A46 11A9A-11A9C 11A9E-11AA2 11B00-11B09 11BE1 11C41-11C45 11C70-11C71 11EF7-11EF8 11F43-11F4F 11FFF
    12FF1-12FF2 16D6D-16D6F 16E97-16E9A 16FE2 1E5FF 1E95E-1E95F
"""
FORMAT_CONTROLS = """
    0890-0891 08E2 110CD 13430-1343F
"""
DECOMPOSING = """
    105C9 105E4 11383 11385 1138E 11391 113C5 113C7-113C8 11938 16D68-16D6A
"""

ADDED = frozenset(_characters(MARKS + PUNCTUATION + FORMAT_CONTROLS + DECOMPOSING))
RECLASSIFIED = {"\u1734": "Mn", "\u166d": "Po", "\U000111c9": "Po", "\U0001171e": "Mn"}
CAPITALS = frozenset(_characters("1C89 A7CB-A7CC A7CE A7D2 A7D4 A7DA A7DC 10D50-10D65 16EA0-16EB8"))
