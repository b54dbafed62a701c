"""Summaries without a model: the sentences that say most for their length, and the facts of the others."""

import heapq
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate, groupby
from math import ceil, log
from typing import Final, NamedTuple

from recollect.language.facts import Mention, known_names, mentions
from recollect.language.passages import sentences
from recollect.language.tokens import estimate_tokens
from recollect.language.words import document_terms

# The last line of a summary: names, numbers and dates whose sentences found no room.
ALSO: Final = "Also mentioned"
_JOINT: Final = "; "

_TERM_WORTH: Final = 0.15  # of a word, where a fact is worth 1; more if it is said often
_SENTENCES_SHARE: Final = 0.6  # of a summary that sentences get, even where the facts are too many for the rest
_SPEAKER_TOKENS: Final = 2  # "user: "
_LONGEST_SPEAKER: Final = 32  # characters before a colon that may be one
_LEAST_MENTION: Final = 2  # tokens, with what joins it to the next
_FIXED_COST: Final = 4  # tokens that every sentence seems longer, or the shortest would always win
_LONGEST_SENTENCE: Final = 240  # characters: a longer one is taken in clauses
_READ_CHARACTERS: Final = 500_000  # of a longer text, not every sentence is read
_LIKELY: Final = 2_000  # sentences that are weighed against each other, beside one for each token of the summary
_CLAUSE: Final = re.compile(r".+?(?:[,;:|]\s+|$)", re.S)


class Said(NamedTuple):
    """What one speaker said; None for a text without a speaker."""

    speaker: str | None
    text: str


@dataclass(frozen=True, slots=True)
class _Sentence:
    """What may be taken: its line, its tokens with the speaker's, and what is gained by it."""

    line: int
    text: str
    tokens: int
    mentions: list[Mention]
    facts: frozenset[str]
    terms: frozenset[str]


def summarise(said: Sequence[Said], max_tokens: int) -> str:
    """As much of what was said as fits, in its order, with names, numbers and dates before all else."""
    # What an earlier summary had room for only in its last line.
    items = [item.strip() for line in said if line.speaker == ALSO for item in line.text.split(_JOINT)]
    listed = [mention for mention in map(Mention.whole, items) if mention.facts]
    read, texts = _read(said)
    names = known_names(texts).union(*(mention.facts for mention in listed))
    candidates = [_sentence(number, piece, names) for number, piece in read]
    mentioned = listed + [mention for sentence in candidates for mention in sentence.mentions]
    fact_counts = Counter(fact for mention in mentioned for fact in mention.facts)
    distinct: dict[frozenset[str], Mention] = {}  # what names the same as another tells nothing more
    for mention in mentioned:
        distinct.setdefault(mention.facts, mention)
    every = sorted(distinct.values(), key=lambda mention: -max(fact_counts[fact] for fact in mention.facts))
    term_counts = Counter(term for sentence in candidates for term in sentence.terms)
    worth = {term: _TERM_WORTH * log(1 + count) for term, count in term_counts.items()}
    most = _LIKELY + max_tokens
    if len(candidates) > most:  # those that gain most by themselves, in their order: many more than there is room for
        values = [(-_value(sentence, worth, frozenset(), frozenset()), n) for n, sentence in enumerate(candidates)]
        candidates = [candidates[n] for n in sorted(n for _, n in heapq.nsmallest(most, values))]
    room = max_tokens
    while True:
        chosen = _chosen(candidates, worth, room)
        kept, rest = _fitted([candidates[n] for n in chosen], every, room)
        text = _written(said, [candidates[n] for n in sorted(chosen[:kept])], rest)
        over = estimate_tokens(text) - max_tokens
        if over <= 0:
            return text or _beginning(said, max_tokens)
        room -= over  # the whole is estimated a little higher than its parts


def said_in(summary: str) -> list[Said]:
    """The lines of a summary, to be summarised again."""
    said: list[Said] = []
    for line in filter(str.strip, summary.splitlines()):
        speaker, _, text = line.partition(": ")
        is_spoken = text.strip() and len(speaker) <= _LONGEST_SPEAKER
        said.append(Said(speaker, text) if is_spoken else Said(None, line))
    return said


def _read(said: Sequence[Said]) -> tuple[list[tuple[int, str]], list[str]]:
    """The pieces that may be taken, each with the number of its line, and the texts that teach which words are names.

    Of a very long text, pieces at even distances stand for all of them.
    """
    spoken = [(number, line.text) for number, line in enumerate(said) if line.speaker != ALSO]
    every = [
        (number, piece)
        for number, text in spoken
        for sentence in sentences(text)
        for piece in _pieces(" ".join(sentence.split()))
    ]
    step = ceil(sum(len(text) for _, text in spoken) / _READ_CHARACTERS)
    if step <= 1:
        return every, [line.text for line in said]
    return every[::step], [piece for _, piece in every[::step]]


def _sentence(line: int, piece: str, names: frozenset[str]) -> _Sentence:
    found = mentions(piece, names)
    facts = frozenset(fact for mention in found for fact in mention.facts)
    tokens = estimate_tokens(piece) + _SPEAKER_TOKENS
    return _Sentence(line, piece, tokens, found, facts, frozenset(document_terms(piece)))


def _pieces(sentence: str) -> Iterator[str]:
    """A sentence, or the clauses of one that is too long to be taken whole."""
    piece = ""
    for clause in _CLAUSE.findall(sentence) if len(sentence) > _LONGEST_SENTENCE else [sentence]:
        if piece and len(piece) + len(clause) > _LONGEST_SENTENCE:
            yield piece.rstrip()
            piece = ""
        piece += clause
    if piece:
        yield piece.rstrip()


def _value(sentence: _Sentence, worth: Mapping[str, float], facts: Set[str], terms: Set[str]) -> float:
    """What a sentence gains for its length beside the facts and terms that are already in the summary."""
    gain = len(sentence.facts - facts) + sum(worth[term] for term in sentence.terms - terms)
    return gain / (sentence.tokens + _FIXED_COST)


def _chosen(candidates: Sequence[_Sentence], worth: Mapping[str, float], max_tokens: int) -> list[int]:
    """Which sentences gain most for their length, each valued beside those that come before it here."""
    facts: set[str] = set()
    terms: set[str] = set()
    waiting = [(-_value(sentence, worth, facts, terms), number) for number, sentence in enumerate(candidates)]
    heapq.heapify(waiting)
    shortest = min((sentence.tokens for sentence in candidates), default=0)
    chosen: list[int] = []
    while waiting and max_tokens >= shortest:
        _, number = heapq.heappop(waiting)
        sentence = candidates[number]
        if sentence.tokens > max_tokens:
            continue
        now = -_value(sentence, worth, facts, terms)
        if not now:
            continue
        if waiting and now > waiting[0][0]:
            heapq.heappush(waiting, (now, number))  # others have told a part of it: it waits for its new turn
            continue
        chosen.append(number)
        max_tokens -= sentence.tokens
        facts |= sentence.facts
        terms |= sentence.terms
    return chosen


def _fitted(chosen: Sequence[_Sentence], every: Sequence[Mention], max_tokens: int) -> tuple[int, list[Mention]]:
    """How many of the sentences leave room for the facts of the others, and these."""
    spent = [0, *accumulate(sentence.tokens for sentence in chosen)]
    room = [max_tokens - tokens - estimate_tokens(ALSO) - 1 for tokens in spent]
    enough = bisect_right(spent, _SENTENCES_SHARE * max_tokens) - 1
    # The fewer sentences, the more room for the facts: where these begin to find it is looked for by halves.
    least, most = min(max(enough, 1), len(chosen)), len(chosen)
    while least < most:
        middle = (least + most + 1) // 2
        if all(fits for _, fits in _within(_missing(chosen[:middle], every), room[middle])):
            least = middle
        else:
            most = middle - 1
    return least, [mention for mention, fits in _within(_missing(chosen[:least], every), room[least]) if fits]


def _missing(kept: Sequence[_Sentence], every: Sequence[Mention]) -> Iterator[Mention]:
    told = {fact for sentence in kept for fact in sentence.facts}
    for mention in every:
        if not mention.facts <= told:
            yield mention
            told |= mention.facts


def _within(mentioned: Iterable[Mention], room: int) -> Iterator[tuple[Mention, bool]]:
    """Each mention, and whether it still fits; where nothing more does, the rest is left out."""
    for mention in mentioned:
        tokens = estimate_tokens(mention.text + _JOINT)
        yield mention, tokens <= room
        if tokens <= room:
            room -= tokens
        elif room < _LEAST_MENTION:
            return


def _written(said: Sequence[Said], kept: Sequence[_Sentence], rest: Sequence[Mention]) -> str:
    lines = [
        _line(said[number].speaker, " ".join(sentence.text for sentence in together))
        for number, together in groupby(kept, key=lambda sentence: sentence.line)
    ]
    if rest:
        lines.append(_line(ALSO, _JOINT.join(mention.text for mention in rest)))
    return "\n".join(lines)


def _line(speaker: str | None, text: str) -> str:
    return text if speaker is None else f"{speaker}: {text}"


def _beginning(said: Sequence[Said], max_tokens: int) -> str:
    """Where there is room for no sentence: the first words, at least one."""
    words = " ".join(line.text for line in said).split(maxsplit=max_tokens)[: max(max_tokens, 1)]
    while len(words) > 1 and estimate_tokens(" ".join(words)) > max_tokens:
        words.pop()
    return " ".join(words)[:_LONGEST_SENTENCE]
