"""Scale: cosines of any model mean what those of the bundled one mean."""

import pytest

from recollect.inference.embedding.local import LocalEmbedder
from recollect.inference.embedding.scale import BUNDLED, Scale, measured


async def test_the_bundled_model_has_the_scale_that_ranking_was_fitted_on() -> None:
    embedder = LocalEmbedder.locate()
    assert embedder is not None
    try:
        assert await measured(embedder) == pytest.approx(BUNDLED, abs=0.001)
    finally:
        await embedder.ended()


def test_what_is_related_and_what_is_not_come_to_the_same_place() -> None:
    crowded = Scale(related=0.67, unrelated=0.49)
    assert crowded.as_bundled(0.67) == pytest.approx(BUNDLED.related)
    assert crowded.as_bundled(0.49) == pytest.approx(BUNDLED.unrelated)
    assert BUNDLED.as_bundled(0.3) == pytest.approx(0.3)


def test_a_model_that_cannot_tell_texts_apart_is_not_made_to() -> None:
    blind = Scale(related=0.5, unrelated=0.5)
    assert blind.as_bundled(0.5) == pytest.approx(BUNDLED.unrelated)
    assert blind.as_bundled(0.51) < BUNDLED.related
