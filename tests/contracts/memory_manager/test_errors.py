"""Contract memory-manager: which exception a caller catches."""

from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import SecretStr
from sqlalchemy.exc import DatabaseError

from recollect import MemoryManager, RecollectError, Settings

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


async def test_a_url_that_is_none_is_named_without_its_value() -> None:
    memory = MemoryManager(Settings(database_url=SecretStr(f"mysql://someone:{PASSWORD}@host/db")))
    with pytest.raises(DatabaseError, match="RECOLLECT_DATABASE_URL") as caught:
        await memory.health_check()
    assert PASSWORD not in str(caught.value)


async def test_entering_a_manager_reports_an_unreachable_database(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError):
        async with MemoryManager(unreachable(tmp_path)):
            pass
