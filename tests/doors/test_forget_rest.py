"""`DELETE /users/{user_id}` over a real socket: who may, what goes, and what the receipt says."""

from urllib.parse import quote

import pytest

from recollect.engine import Engine
from recollect.flows.gateway import Owner
from tests.flows.talk import say_all
from tests.rest_servers import serving

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

USERS = ("ann", "a/b c?", "ünï%2F")


async def test_a_user_is_counted_then_forgotten_then_unknown(engine: Engine, namespace: str) -> None:
    for number, user in enumerate(USERS):
        await say_all(engine, namespace, user, "Owls hoot.", session=f"talk {number}")
    async with serving(engine) as client:
        for user in USERS:
            path = f"/users/{quote(user, safe='')}"
            receipt = {"user_id": user, "rows": {"messages": 1, "passages": 1, "sessions": 1}, "insights_left": []}
            counted = await client.delete(path, params={"dry_run": True})
            assert counted.json() == receipt | {"forgotten": False}
            assert (await client.delete(path)).json() == receipt | {"forgotten": True}
            unknown = await client.delete(path)
            assert unknown.status_code == 404
            assert unknown.json() == {"detail": f"No data for user {user}"}
        assert await engine.cognition.raw(namespace) == []


async def test_a_users_key_goes_with_the_user(engine: Engine, namespace: str) -> None:
    async with serving(engine) as client:
        key = (await client.post("/users", json={"user_id": "ann"})).json()["user_key"]
        put = {"user_id": "ann", "user_key": key, "resource_uri": "file:owl", "text": "All about owls."}
        assert (await client.post("/resources", json=put)).status_code == 201
        gone = await client.delete("/users/ann")
        assert gone.json()["rows"] == {"api_keys": 1, "passages": 1, "resources": 1}
        assert (await client.post("/resources", json=put)).status_code == 401
        assert (await client.post("/users", json={"user_id": "ann"})).status_code == 201


async def test_only_a_key_of_the_namespace_forgets_its_users(engine: Engine, namespace: str) -> None:
    await engine.gateway.put_resource(Owner(namespace, "ann"), "file:owl", "All about owls.")
    own = await engine.access.create_key(namespace)
    another = await engine.access.create_key(f"{namespace}-other")
    users = await engine.access.create_user_key(namespace, "ann")
    async with serving(engine) as client:
        assert (await client.delete("/users/ann")).status_code == 401
        for secret, status in ((users.secret, 401), (another.secret, 404), (own.secret, 200), (own.secret, 404)):
            answer = await client.delete("/users/ann", headers={"Authorization": f"Bearer {secret}"})
            assert answer.status_code == status


@pytest.mark.parametrize("user", ["%00", "%20", "x" * 256])
async def test_a_name_that_nobody_can_have_is_refused(engine: Engine, user: str) -> None:
    async with serving(engine) as client:
        answer = await client.delete(f"/users/{user}")
        assert answer.status_code == 422
        assert "user_id" in str(answer.json()["detail"])
