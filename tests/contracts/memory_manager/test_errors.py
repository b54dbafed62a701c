"""Contract memory-manager: which exception a caller catches."""

import pickle
import traceback
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import SecretStr
from sqlalchemy.exc import DatabaseError

from recollect import MemoryManager, RecollectError, Settings
from recollect.flows.remember import SessionNotFound

PASSWORD = "hunter2-very-secret"


def unreachable(tmp_path: Path) -> Settings:
    return Settings(database_url=SecretStr(f"postgresql://someone:{PASSWORD}@/db?host={tmp_path}"))


async def test_an_unreachable_database_is_a_sqlalchemy_database_error(tmp_path: Path) -> None:
    memory = MemoryManager(unreachable(tmp_path))
    for call in (
        memory.store_message(uuid4(), "user", "hello"),
        memory.get_conversation_history(uuid4()),
        memory.store_document("text"),
        memory.health_check(),
    ):
        with pytest.raises(DatabaseError, match="cannot be reached") as caught:
            await call
        assert isinstance(caught.value, RecollectError)
        assert not isinstance(caught.value, ValueError)
        assert PASSWORD not in str(caught.value)
        assert PASSWORD not in repr(caught.value)


async def test_bad_input_is_a_value_error_even_when_the_database_is_away(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="role"):
        await MemoryManager(unreachable(tmp_path)).store_message(uuid4(), "nobody", "hello")


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://someone:{PASSWORD}@host/db",
        f"postgresql://someone:{PASSWORD}#x@host/db",
        f"postgresql://someone:{PASSWORD}@host:abc/db",
        f"postgresql://someone:{PASSWORD}@[::1/db",
    ],
)
async def test_a_url_that_is_none_is_named_without_its_value(url: str) -> None:
    memory = MemoryManager(Settings(database_url=SecretStr(url)))
    with pytest.raises(DatabaseError, match="RECOLLECT_DATABASE_URL") as caught:
        await memory.health_check()
    shown = "".join(traceback.format_exception(caught.value))
    assert PASSWORD not in shown
    assert PASSWORD[:7] not in str(caught.value)


async def test_closing_after_a_failed_opening_is_quiet(tmp_path: Path) -> None:
    memory = MemoryManager(unreachable(tmp_path))
    with pytest.raises(DatabaseError):
        await memory.health_check()
    await memory.close()


async def test_errors_travel_between_processes(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError) as caught:
        await MemoryManager(unreachable(tmp_path)).health_check()
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    missing = SessionNotFound.named("c1")
    assert str(pickle.loads(pickle.dumps(missing))) == "Conversation c1 not found"


def test_a_manager_that_is_given_a_url_says_what_it_takes() -> None:
    with pytest.raises(ValueError, match="takes Settings, not str"):
        MemoryManager("postgresql://host/db")  # type: ignore[arg-type]


async def test_entering_a_manager_reports_an_unreachable_database(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError):
        async with MemoryManager(unreachable(tmp_path)):
            pass
