"""Sessions that the gateway shared with other doors come apart: each side keeps what it wrote."""

from hashlib import sha256
from uuid import uuid4

import pytest

from recollect.flows.chat_ids import mark
from recollect.identifiers import uuid7, uuid_at
from recollect.storage import migrate
from recollect.storage.database import Database
from recollect.storage.embedded import Lease
from tests.storage.databases import RawConnection, connect, empty_database, url

BEFORE = next(step.version for step in migrate.migrations() if step.name.endswith("gateway_chats"))
SHOP = '["shop", "default"]'
MARKED, MARKED_TWICE = f"chat:1@{'0' * 16}", f"chat:twice@{'1' * 16}"

SESSION = (
    "insert into sessions (namespace, id, user_id, realm, next_position, window_start) values ($1, $2, $3, $4, 9, 1)"
)
MESSAGE = """
insert into messages (namespace, id, session_id, position, role, content, created_at)
values ($1, $2, $3, $4, 'user', $5, now())
"""
PASSAGE = """
insert into passages (namespace, kind, item_id, part, owner, realm, session_id, position, at, text)
values ($1, 'message', $2, 0, $3, $4, $5, $6, now(), $7)
"""
SUMMARY = """
insert into summaries (namespace, session_id, until, id, content, metadata, created_at)
values ($1, $2, 1, $3, 'Both sides.', '{}', now())
"""
SESSIONS = "select id, user_id, realm, window_start from sessions"
MESSAGES = "select session_id, content from messages order by position"
PASSAGES = "select session_id, realm, text from passages"

# Session, user, realm, and who wrote each of its messages: the gateway or another door.
OLD = [
    ("chat:1", "anna", "", ["gateway", "gateway"]),
    (MARKED, "名前", "", ["gateway"]),
    ("chat:2", "anna", SHOP, ["gateway"]),
    ("main", "anna", "", ["gateway", "app"]),
    ("chat:main", "anna", "", ["gateway", "app"]),
    ("chat:made", "anna", "", ["app", "gateway"]),
    ("untouched", "anna", "", ["app"]),
    (MARKED_TWICE, "anna", "", ["gateway"]),
    ("chat:twice", "anna", "", ["gateway"]),
]


async def _store(raw: RawConnection, session_id: str, user_id: str, realm: str, writers: list[str]) -> None:
    await raw.execute(SESSION, "one", session_id, user_id, realm)
    await raw.execute(SUMMARY, "one", session_id, uuid4())
    for position, writer in enumerate(writers):
        message = uuid_at(position, session_id) if writer == "gateway" else uuid7()
        text = f"{writer} in {session_id}"
        await raw.execute(MESSAGE, "one", message, session_id, position, text)
        await raw.execute(PASSAGE, "one", str(message), user_id, realm, session_id, position, text)


def _own_digits(session_id: str, user_id: str, realm: str = "") -> str:
    return "@" + sha256(f"{session_id} {user_id} {realm}".encode()).hexdigest()[:16]


async def test_what_the_gateway_wrote_moves_and_what_others_wrote_stays(
    server: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = migrate.migrations()
    async with empty_database(server) as name:
        database = await Database.open({"dsn": url(server.connection, name)})
        monkeypatch.setattr(migrate, "migrations", lambda: [step for step in every if step.version < BEFORE])
        await migrate.migrate(database)
        raw = await connect(server.connection, name)
        await raw.execute("select set_config('recollect.namespace', 'one', false)")
        for session_id, user_id, realm, writers in OLD:
            await _store(raw, session_id, user_id, realm, writers)
        monkeypatch.undo()
        await migrate.migrate(database)
        sessions = {row[0]: tuple(row)[1:] for row in await raw.fetch(SESSIONS)}
        messages = {tuple(row) for row in await raw.fetch(MESSAGES)}
        passages = {tuple(row) for row in await raw.fetch(PASSAGES)}
        summarised = [row[0] for row in await raw.fetch("select session_id from summaries")]
        forced = await raw.fetchval(
            "select bool_and(relforcerowsecurity) from pg_class "
            "where relname in ('sessions', 'messages', 'summaries', 'passages')"
        )
        await raw.close()
        await database.close()
    anna, name_, shop = mark("anna", ""), mark("名前", ""), mark("anna", SHOP)
    moved = {
        "chat:1": f"chat:1{anna}",
        MARKED: f"chat:1{name_}",
        "chat:2": f"chat:2{shop}",
        "main": f"chat:main{_own_digits('main', 'anna')}",
        "chat:main": f"chat:main{anna}",
        "chat:made": f"chat:made{anna}",
        MARKED_TWICE: f"chat:twice{_own_digits(MARKED_TWICE, 'anna')}",
        "chat:twice": f"chat:twice{anna}",
    }
    chats = {moved[old]: (user, realm, 0) for old, user, realm, _ in OLD if old in moved}
    assert sessions == chats | {
        "main": ("anonymous", "", 0),
        "chat:main": ("anonymous", "", 0),
        "chat:made": ("anna", "", 0),
        "untouched": ("anna", "", 1),
    }
    gateways = {(moved[old], f"gateway in {old}") for old in moved}
    assert messages == gateways | {(old, f"app in {old}") for old in ("main", "chat:main", "chat:made", "untouched")}
    realms = {text: (session_id, realm) for session_id, realm, text in passages}
    assert {realms[f"gateway in {old}"] for old in moved} == {
        (moved[old], realm) for old, _, realm, _ in OLD if old in moved
    }
    assert {old: realms[f"app in {old}"][1] for old in ("main", "chat:main", "chat:made", "untouched")} == {
        "main": "other doors",
        "chat:main": "other doors",
        "chat:made": "",
        "untouched": "",
    }
    assert summarised == ["untouched"]
    assert forced
