"""The proof that masking masks: secrets come in by every way, and no table, index, feed, export or log has them."""

import io
import json
import logging
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from recollect import origin
from recollect.engine import Engine
from recollect.errors import Forbidden, Invalid, NotFound
from recollect.flows.cognitive.entities import NewEntity
from recollect.flows.cognitive.golden_test import Entry
from recollect.flows.defence.masking import counting_masked
from recollect.flows.gateway import Owner, Said
from recollect.flows.keyed.operations import GetRecord, PutRecord
from recollect.flows.long_term.facts import Told
from recollect.flows.long_term.memory_requests import Change, ChatLine, Options
from recollect.flows.remember import Turn
from recollect.flows.sessions import Described
from recollect.flows.stores import rules
from recollect.flows.stores.files import Edit
from recollect.language import bm25, words
from recollect.memory.checkpoints import Packed, Place, TaskWrites
from recollect.memory.cognitive.entities import Relation
from recollect.memory.documents import NewDocument
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope
from recollect.settings import Settings
from tests.flows.test_forget_proof import TERMS, WORDS_WITH, everything, shown, telling

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

# Each is one word for keyword search, and nobody else says it.
TOKEN = "ghp_zyxomlurkquvantrelbrindlefexhesperval1"
CARD = "4539578763621486"
SECRETS = (TOKEN.lower(), CARD)
TEXT = f"The marzipan token is {TOKEN} and the card is {CARD}."
TELLING = {"note": TEXT, "card": int(CARD), TEXT: [int(CARD)]}
ANNA = MemoryScope(user_id="anna")


@pytest.fixture
async def masking(settings: Settings) -> AsyncIterator[Engine]:
    engine = await Engine.open(settings.model_copy(update={"masking": True}))
    yield engine
    await engine.close()


async def talk(engine: Engine, namespace: str) -> int:
    """By every way in which something is said; returns a message."""
    await engine.remember.session(namespace, "diary", "anna", TEXT, json.dumps(TELLING))
    new = NewMessage("user", TEXT, json.dumps(TELLING), speaker=TEXT[:200], payload=json.dumps(TELLING))
    (said,) = await engine.remember.turn(namespace, Turn("diary", (new,)))
    await engine.cognition.store_dialogue(namespace, "diary", TEXT[:200], TEXT, TELLING)
    await engine.conversations.record(namespace, "diary", TEXT, TEXT, None)
    await engine.windows.add(namespace, "diary", [NewMessage("user", TEXT)])
    await engine.windows.context(namespace, "diary")
    await engine.sessions.put(namespace, "other", Described("anna", None, TEXT, TELLING))
    await engine.sessions.change(namespace, "other", TEXT, TELLING)
    await engine.sessions.add(namespace, "other", [NewMessage("user", TEXT)], "anna", {"new": TEXT})
    await engine.gateway.add(Owner(namespace, "anna"), "chat:1", [Said("anna", "user", 1780000000000, TEXT)])
    return said.seq


async def keep(engine: Engine, namespace: str, said: int, record: tuple[str, str] = (TOKEN, CARD)) -> None:
    """Everything that is kept otherwise."""
    path, key = record
    await engine.gateway.put_resource(Owner(namespace, "anna"), f"https://a:{TOKEN}@example.org/", TEXT, TEXT, TELLING)
    await engine.remember.documents(namespace, [NewDocument(TEXT, None, json.dumps(TELLING))])
    await engine.remember.text(namespace, f"{TEXT} Again.", TELLING)
    options = Options(key=TEXT[:100])
    added = await engine.memories.add(namespace, TEXT, "fact", ANNA, TELLING, options=options)
    await engine.memories.update(namespace, str(added.memory.id), Change(f"{TEXT} Now.", metadata=TELLING))
    await engine.facts.add(namespace, Told([ChatLine("user", f"{TEXT} Then.", TEXT[:200])], ANNA, metadata=TELLING))
    insight = (await engine.cognition.compress(namespace, TEXT, [said])).insight.id
    await engine.golden_test.add(namespace, [Entry(TEXT, [insight])])
    await engine.cognition.store_episode(namespace, TEXT, 0.5, TEXT)
    await engine.cognition.update_working(namespace, TEXT)
    await engine.graph.add_node(namespace, TOKEN, TOKEN, TELLING | {"observations": [TEXT]})
    await engine.graph.add_edge(namespace, TOKEN, CARD, TOKEN, properties=TELLING)
    await engine.entities.create(namespace, [NewEntity(f"{CARD}.", "thing", [TEXT])])
    await engine.entities.observe(namespace, [(f"{CARD}.", [f"{TEXT} Here."])])
    await engine.entities.relate(namespace, [Relation(CARD, TOKEN, "thing")])
    await engine.record_store.batch(namespace, [PutRecord((path,), key, TELLING, [TEXT])])
    store = await engine.stores.create(namespace, TEXT, TEXT, {"note": TEXT})
    store_id = rules.shown(rules.STORE, store.id)
    await engine.stores.change(namespace, store_id, f"{TEXT} New", TEXT, {"more": TEXT})
    file = await engine.files.create(namespace, store_id, f"/{TOKEN}.md", TEXT)
    file_id = rules.shown(rules.FILE, file.id)
    await engine.files.change(namespace, store_id, file_id, Edit(f"/{CARD}/{TOKEN}.md", f"{TEXT} Now."))


async def take_over(engine: Engine, namespace: str, lines: list[str], folder: Path) -> None:
    """Imports: our own export, and files of others."""
    await engine.importing.run(io.BytesIO("\n".join(lines).encode()), namespace)
    entity = {"type": "entity", "name": TEXT[:200], "entityType": TOKEN, "observations": [TEXT]}
    await engine.adopting.memory_json(namespace, io.BytesIO(json.dumps(entity).encode()))
    mem0 = {"results": [{"id": "1", "memory": TEXT, "user_id": "anna", "metadata": TELLING}]}
    await engine.adopting.mem0(namespace, io.BytesIO(json.dumps(mem0).encode()))
    said = {"type": "user", "uuid": "1", "sessionId": "s", "message": {"role": "user", "content": TEXT}}
    (folder / "s.jsonl").write_text(json.dumps(said))
    await engine.foreign_files.run(namespace, folder / "s.jsonl", "claude-code", "anna")
    (folder / "notes").mkdir()
    (folder / "notes" / "note.md").write_text(f"# {TEXT}\n\n{TEXT}")
    await engine.foreign_files.run(namespace, folder / "notes", "markdown", "anna")


async def left(engine: Engine, namespace: str) -> list[object]:
    """Where anything of the secrets is: rows, words in the index, exports, the feed."""
    exported = [line async for line in engine.exporting.lines(namespace)]
    told = json.dumps([repr(content) for content in (await shown(engine, namespace)).values()])
    terms = [term for secret in (TOKEN, CARD) for term in words.document_terms(secret)]
    keys = [key for owner in (None, "anna") for key in bm25.keys(namespace, owner, terms)]
    async with engine.database.reading(namespace) as db:
        found = [*await db.all(WORDS_WITH, keys=keys)]
        counted = [*await db.all(TERMS, terms=[bm25.dimension(term) for term in terms])]
    told_of_them = [text for text in (*exported, told) for secret in SECRETS if secret in text.lower()]
    return [*telling(await everything(engine, namespace), *SECRETS), *told_of_them, *found, *counted]


async def test_nothing_of_a_secret_is_stored_found_told_exported_or_logged(
    masking: Engine, engine: Engine, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with counting_masked() as found:
        await keep(masking, namespace, await talk(masking, namespace))
    await masking.indexer.flush(namespace)
    assert await left(masking, namespace) == []
    recalled = await masking.recall.recall(namespace, f"{TOKEN} {CARD} marzipan", top_k=50)
    assert {memory.kind for memory in recalled.memories} >= {"message", "document", "memory", "record", "file", "node"}
    assert found.keys() == {"GitHub token", "card number"}
    status = await masking.status.report(namespace)
    assert status.defence.masked == dict(found)
    (record,) = (await masking.record_store.batch(namespace, [GetRecord((TOKEN,), CARD)])).answers
    assert record is not None, "it is found by what its caller calls it"
    assert (await masking.graph.neighbors(namespace, TOKEN)).neighbors

    bare = f"{namespace}-bare"
    # The id of a record follows from its path and key, so an import keeps them.
    await keep(engine, bare, await talk(engine, bare), ("notes", "one"))
    lines = [line async for line in engine.exporting.lines(bare)]
    assert any(TOKEN in line for line in lines)
    copy = f"{namespace}-copy"
    await take_over(masking, copy, lines, tmp_path)
    await masking.indexer.flush(copy)
    assert await left(masking, copy) == []
    assert not [record for record in caplog.records if TOKEN in record.getMessage() or CARD in record.getMessage()]


async def counts(engine: Engine, namespace: str) -> dict[str, int]:
    return (await engine.status.report(namespace)).defence.masked


async def test_only_writes_that_are_done_are_counted(masking: Engine, namespace: str) -> None:
    new = Turn("diary", (NewMessage("user", f"My token is {TOKEN}."),))
    with origin.acting("rest", "reader", "read"), counting_masked() as found:
        for refused in (
            masking.remember.turn(namespace, Turn(new.session_id, new.messages, "anna")),
            masking.graph.add_node(namespace, "thing", TOKEN),
            masking.memories.add(namespace, TEXT, "fact", ANNA),
            masking.importing.run(io.BytesIO(b'{"kind": "recollect-export"}'), namespace),
        ):
            with pytest.raises((Forbidden, Invalid)):
                await refused
    with counting_masked() as failed, pytest.raises(NotFound):
        await masking.remember.turn(namespace, new)
    assert (found, failed, await counts(masking, namespace)) == ({}, {}, {})

    await masking.graph.add_node(namespace, "thing", TOKEN)
    store = rules.shown(rules.STORE, (await masking.stores.create(namespace, "notes")).id)
    with counting_masked() as found:
        await masking.graph.neighbors(namespace, TOKEN)
        await masking.graph.find_path(namespace, TOKEN, TOKEN)
        await masking.entities.search(namespace, TOKEN)
        await masking.entities.open(namespace, [TOKEN])
        await masking.files.find_at(namespace, store, f"/{TOKEN}")
        await masking.files.listing(namespace, store, f"/{TOKEN}/")
    assert (found, await counts(masking, namespace)) == ({}, {"GitHub token": 1})


async def test_what_is_under_a_user_id_and_numbers_of_every_form_are_masked_and_ids_stay(
    masking: Engine, namespace: str
) -> None:
    told = {"user_id": {"note": TOKEN, "own": [float(CARD), int(CARD), 17.5]}, "inner": {"user_id": "anna-17"}}
    new = (NewMessage("user", "Hello.", json.dumps(told), payload=CARD), NewMessage("user", "Hi.", payload="17"))
    first, second = await masking.remember.turn(namespace, Turn("diary", new, "anna"))
    hidden = "[masked: card number]"
    user = {"note": "[masked: GitHub token]", "own": [hidden, hidden, 17.5]}
    assert first.metadata == {"user_id": user, "inner": {"user_id": "anna-17"}}
    assert (first.payload, second.payload) == (json.dumps(hidden), "17")


async def test_secrets_that_are_keys_are_kept_apart(masking: Engine, namespace: str) -> None:
    hidden = "[masked: GitHub token]"
    told = {f"{hidden} 2": 0} | {f"{TOKEN[:-1]}{number}": number for number in range(1, 4)}
    (stored,) = await masking.remember.turn(
        namespace, Turn("diary", (NewMessage("user", "Hello.", json.dumps(told)),), "anna")
    )
    assert stored.metadata == {f"{hidden} 2": 0, hidden: 1, f"{hidden} 3": 2, f"{hidden} 4": 3}
    assert await counts(masking, namespace) == {"GitHub token": 3}


async def test_what_is_nested_too_deeply_is_refused(masking: Engine, namespace: str) -> None:
    nested: dict[str, Any] = {}
    for _ in range(sys.getrecursionlimit()):
        nested = {"in": nested}
    with pytest.raises(Invalid, match="nested too deeply"):
        await masking.memories.add(namespace, TEXT, "fact", ANNA, nested)


async def test_paths_and_channels_of_what_a_task_wrote_are_masked(masking: Engine, namespace: str) -> None:
    place = Place("thread", "", "1")
    written = TaskWrites(place, "task", f"~{TOKEN}", [(0, f"on {TOKEN}", Packed("json", b"{}"))])
    await masking.checkpoint_store.put_writes(namespace, written, replace=False)
    assert telling(await everything(masking, namespace), *SECRETS) == []


async def test_what_an_import_masks_is_added_up(masking: Engine, namespace: str) -> None:
    lines = [{"type": "entity", "name": f"thing {n}", "entityType": "note", "observations": [TEXT]} for n in range(5)]
    with counting_masked() as found:
        await masking.adopting.memory_json(namespace, io.BytesIO("\n".join(map(json.dumps, lines)).encode()))
    assert found == await counts(masking, namespace) == {"GitHub token": 5, "card number": 5}
