"""The tests of ADK's session services, of the makers' repository."""

from tests.adapters.suite import Suite

FILE = "tests/unittests/sessions/test_session_service.py"
OLD = "of ADK before 2: today a temporary state stays in the object that its event was added to"

SUITE = Suite.of_checkout(
    "adk-python",
    (FILE,),
    "adk_sessions",
    # The same tests for each of their services and for two kinds of credentials.
    options=("-k", "not IN_MEMORY and not SQLITE and not VERTEX"),
    deselected={
        f"{FILE}::test_session_state": OLD,
        f"{FILE}::test_create_new_session_will_merge_states": OLD,
    },
)
