"""One item of very many passages beside twelve short ones: whoever nominates passages finds only the long one."""

from uuid import UUID

from recollect.engine import Engine
from recollect.inference.embedding.embedder import as_text

QUESTION = "What about the harbour meeting?"
SHORT = [f"Note {number}: harbour meeting, the {number}th of May, room {number + 20}." for number in range(1, 13)]
WEATHER = ("rain", "sun", "fog", "wind", "hail", "frost", "thunder")


def chat(lines: int) -> str:
    """A long talk in which every line is about what the question asks."""
    weather = (WEATHER[number % len(WEATHER)] for number in range(lines))
    said = (
        f"user: harbour meeting {n}, {sky} was on our minds and nobody knew why it would matter"
        for n, sky in enumerate(weather)
    )
    return "\n".join(said)


def long_text(size: int) -> str:
    """As chat, so many characters of it."""
    return chat(size // 50)[:size]


async def embed_as_near_as_can_be(engine: Engine, namespace: str) -> int:
    """Give every passage that waits for the indexer the question's own vector; returns how many."""
    embedder = engine.embedders.local
    assert embedder is not None
    vector = as_text(await embedder.embed_query(QUESTION))
    passages, done = engine.capabilities.passages, 0
    while True:
        async with engine.database.transaction(namespace) as tx:
            claims = await passages.claim(tx, 1000, with_model=True)
            if claims:
                await passages.complete(tx, claims, embedder.model_id, [vector] * len(claims))
        if not claims:
            return done
        done += len(claims)


async def store_documents(engine: Engine, namespace: str, *texts: str) -> list[UUID]:
    return [await engine.remember.document(namespace, text, None, None) for text in texts]
