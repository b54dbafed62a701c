"""Citations: in the whole text of an item, each is a word that the question asks for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from recollect.engine import Engine
from recollect.flows.gateway import Owner
from recollect.flows.long_term.memory_requests import Change
from recollect.flows.remember import Turn
from recollect.flows.search.citations import Cited, cited
from recollect.flows.search.recollection import Explanation
from recollect.language import words
from recollect.language.passages import bounds, cut
from recollect.memory.index.search import Scope
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope

QUESTION = "When does the ferry leave the harbour?"
TERMS = {variant for term in words.query_terms(QUESTION) for variant in term.variants}
ASKED = {"ferry", "ferries", "leave", "leaves", "leaving", "harbour", "harbours"}

DULL = "We sat by the lake with the children and talked about the weather until the sun went down behind the hills. "
BRIGHT = "Both ferries were leaving, and nobody's ferry was in the harbour. "
# Long passages that repeat, words alone, and white space that passages do not keep all of.
LONG = (DULL * 8 + BRIGHT) * 6

pieces = st.one_of(
    st.sampled_from([DULL, BRIGHT, DULL * 8 + BRIGHT, "Größe", "渡轮几点离开港口？", "ferry's", "x" * 300, ". ", "\n"]),
    st.sampled_from(sorted(ASKED)).map(lambda word: f" {word.capitalize()} "),
    st.integers(1, 400).map(lambda size: " " * size),
    st.integers(90, 210).map(lambda size: "\n" * size),
    st.text(max_size=40),
)
texts = st.lists(st.tuples(pieces, st.integers(1, 6)), max_size=12).map(
    lambda parts: "".join(piece * times for piece, times in parts)
)


@given(texts)
@hypothesis(max_examples=200, deadline=None)
def test_every_citation_of_a_passage_is_the_same_word_in_the_whole_text(text: str) -> None:
    for number, passage in enumerate(cut(text)):
        own = [passage[start:end] for start, end in words.places(passage, TERMS)]
        found = cited(text, number, passage, TERMS)
        assert [text[start:end] for start, end in found.citations] == own == list(found.words)
        start, end = bounds(text, number) or (0, 0)
        assert all(start <= citation.start < citation.end <= end for citation in found.citations)


@given(texts)
@hypothesis(max_examples=100, deadline=None)
def test_passages_lie_in_the_text_one_behind_the_other(text: str) -> None:
    places = [bounds(text, number) for number in range(len(cut(text)))]
    assert None not in places
    assert places == sorted(set(places), key=places.index)
    assert bounds(text, len(places)) is None
    for place, passage in zip(places, cut(text), strict=True):
        assert place is not None
        assert text[slice(*place)].split() == passage.split()


def test_a_passage_that_was_cut_otherwise_is_found_by_its_text_and_one_that_is_gone_has_no_citation() -> None:
    assert cited(DULL + BRIGHT, 7, BRIGHT, TERMS).words == ("ferries", "leaving", "ferry", "harbour")
    assert cited(DULL + BRIGHT, 7, BRIGHT, TERMS).citations[0].start == (DULL + BRIGHT).index("ferries")
    assert cited(DULL, 0, BRIGHT, TERMS) == cited("", 0, BRIGHT, TERMS) == Cited()


async def explained(engine: Engine, namespace: str, **scope: Any) -> Explanation:
    found = await engine.recall.recall(namespace, QUESTION, Scope(**scope), top_k=1, explain=True)
    explanation = found.memories[0].explanation
    assert explanation is not None
    return explanation


async def store(engine: Engine, namespace: str, kind: str, text: str) -> None:
    match kind:
        case "message":
            await engine.remember.turn(namespace, Turn("s", (NewMessage("user", text),), owner_if_new="ann"))
        case "document":
            await engine.remember.text(namespace, text)
        case "memory":
            await engine.memories.add(namespace, text, "fact", MemoryScope(user_id="ann"))
        case "resource":
            owner = Owner(namespace, "ann")
            await engine.gateway.put_resource(owner, "file:///ferries", text, "Ferries")
        case "insight":
            await engine.cognition.compress(namespace, text, [])
        case "episode":
            await engine.cognition.store_episode(namespace, text, 0.5, "Ask at the harbour.")


@pytest.mark.parametrize("kind", ["message", "document", "memory", "resource", "insight", "episode"])
async def test_offsets_are_those_of_the_whole_item_whatever_it_is(engine: Engine, namespace: str, kind: str) -> None:
    # Only the last passages have the words, and one of them is there twice.
    text = "  \n" + DULL * 30 + "\n" * 150 + (BRIGHT + DULL * 10) * 2
    await store(engine, namespace, kind, text)
    explanation = await explained(engine, namespace, kinds=(kind,))
    said = [text[start:end] for start, end in explanation.citations]
    assert said == list(explanation.cited_words)
    assert {"ferries", "leaving", "harbour"} <= set(said) <= ASKED
    assert min(explanation.citations).start > len(DULL) * 30


async def test_a_past_version_is_cited_by_what_it_said_then(engine: Engine, namespace: str) -> None:
    old = DULL * 30 + BRIGHT
    added = await engine.memories.add(namespace, old, "fact", MemoryScope(user_id="ann"))
    then = added.memory.since
    await engine.memories.update(namespace, str(added.memory.id), Change(text=BRIGHT + LONG))
    explanation = await explained(engine, namespace, kinds=("memory",), as_of=then)
    assert [old[start:end] for start, end in explanation.citations] == ["ferries", "leaving", "ferry", "harbour"]
