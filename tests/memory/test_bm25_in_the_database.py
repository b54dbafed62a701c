"""The word scores of the database equal a plain BM25 with a fixed average length."""

import math
import random
from collections import Counter

import pytest

from recollect.engine import Engine
from recollect.language import words
from recollect.memory.index.search import Scope, Search
from tests.flows.talk import say_all

K1, B, AVERAGE = 1.2, 0.75, 100.0
VOCABULARY = ("apple", "river", "stone", "market", "garden", "silver", "window", "bridge", "letter", "winter")


def plain_bm25(texts: list[str], query: str) -> list[float]:
    """A reference that shares only the stemmer with the product."""
    documents = [Counter(words.document_terms(text)) for text in texts]
    frequency = Counter(term for document in documents for term in document)
    scores = []
    for document in documents:
        length = sum(document.values())
        score = 0.0
        for term in dict.fromkeys(words.document_terms(query)):
            idf = math.log(1 + (len(texts) - frequency[term] + 0.5) / (frequency[term] + 0.5))
            tf = document[term]
            score += idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length / AVERAGE))
        scores.append(score)
    return scores


@pytest.mark.parametrize("seed", range(3))
async def test_scores_and_order_equal_the_reference(engine: Engine, namespace: str, seed: int) -> None:
    chance = random.Random(seed)
    texts = [" ".join(chance.choices(VOCABULARY, k=chance.randrange(3, 60))) for _ in range(60)]
    await say_all(engine, namespace, "ann", *texts)
    await engine.indexer.flush(namespace)
    search = Search()
    for _ in range(5):
        query = " ".join(chance.sample(VOCABULARY, 3))
        variants = [term.variants for term in words.query_terms(query, "english")]
        expected = dict(zip(texts, plain_bm25(texts, query), strict=True))
        for owner in (None, "ann"):
            async with engine.database.searching(namespace) as db:
                lexical = await search.lexical(db, owner, variants)
                ids = await search.by_words(db, Scope(owner=owner), lexical, 100)
                scored = {n.id: n for n in (await search.score(db, ids, lexical, None, Scope())).nominees}
            assert len(ids) == sum(score > 0 for score in expected.values())
            for passage_id in ids:
                assert scored[passage_id].lexical == pytest.approx(expected[scored[passage_id].text], rel=1e-5)
            ranked = [scored[passage_id].lexical for passage_id in ids]
            assert ranked == sorted(ranked, reverse=True)
