"""The tests of the OpenAI Agents SDK for its sessions over SQLite: both forms, limits, encryption and compaction."""

from tests.adapters.suite import Suite

SESSION = "tests/memory/test_session.py"
ASYNC = "tests/extensions/memory/test_async_sqlite_session.py"
ENCRYPTED = "tests/extensions/memory/test_encrypt_session.py"

# What the tests look at that is SQLite's alone, and the tests.
SQLITE = {
    "counts or breaks the session's own SQLite connections": {
        SESSION: (
            "close_closes_worker_thread_connections",
            "reaps_connections_from_exited_worker_threads",
            "closes_retired_connections_before_the_next_allocation",
            "keeps_connections_of_live_worker_threads",
            "rollback_failure_evicts_connection",
            "close_retries_quarantined_connection",
            "post_commit_cancellation_propagates_after_known_outcome",
        ),
        ASYNC: (
            "test_cancelled_close_finishes_cleanup_and_propagates_cancellation",
            "test_post_commit_cancellation_propagates_after_known_mutation_outcome",
            "test_failed_initialization_closes_candidate_connection",
            "test_initialization_retries_transient_wal_lock",
            "test_initialization_does_not_retry_unrecoverable_wal_errors",
            "test_cancelled_wal_retry_closes_startup_connection",
            "test_cancelled_add_items_rolls_back_write_transaction",
            "test_operation_failure_then_cancellation_during_rollback",
            "test_rollback_failure_closes_and_evicts_connection",
            "test_close_retries_connection_quarantined_after_rollback_failure",
            "test_close_retries_quarantined_failed_initialization_candidate",
            "test_cancelled_initialization_finishes_candidate_close",
            "test_initialization_failure_then_cancellation_during_candidate_close",
            "test_cancelled_connect_closes_eventually_acquired_connection",
        ),
    },
    "writes rows that are not JSON into the session's SQLite file": {
        SESSION: (
            "pop_item_skips_corrupt_most_recent",
            "pop_item_returns_none_after_dropping_only_corrupt_rows",
            "get_items_limit_skips_corrupt_newest_rows",
            "get_items_session_settings_limit_skips_corrupt_rows",
        ),
        ASYNC: (
            "pop_item_skips_corrupt_most_recent",
            "pop_item_returns_none_after_dropping_only_corrupt_rows",
            "get_items_limit_skips_corrupt_newest_rows",
        ),
    },
    "changes rows or drops tables in the session's SQLite file, or asks for its locks": {
        SESSION: (
            "file_lock_is_shared_across_instances",
            "failed_add_items_releases_write_lock",
            "failed_clear_session_rolls_back",
            "failed_pop_item_releases_write_lock",
        ),
        ASYNC: (
            "get_items_same_timestamp_consistent_order",
            "pop_item_same_timestamp_returns_latest",
            "test_failed_add_items_rolls_back_and_reuses_connection",
            "test_failed_clear_session_rolls_back",
            "test_failed_pop_item_releases_write_lock",
        ),
    },
}

# Where the SDK asks whether the session is its own over SQLite, and does more for it than for any other.
OWN = {
    "is for the SDK's own session over SQLite, whose rows an encrypted session reads before it pops or compacts them": {
        ENCRYPTED: (
            "test_encrypted_compaction_skips_unencrypted_stored_history",
            "test_encrypted_pop_wrong_key_preserves_recoverable_history",
            "test_encrypted_pop_rechecks_authentication_after_expired_tail",
            "test_encrypted_pop_authentication_is_atomic_with_concurrent_mutations",
            "test_encrypted_pop_wrong_key_preserves_row_identity",
            "test_encrypted_pop_cancellation_waits_for_authentication_rollback",
        ),
    },
}

_PREFIX = {SESSION: "test_sqlite_session_", ASYNC: "test_async_sqlite_session_"}


def _node(file: str, name: str) -> str:
    return f"{file}::{name if name.startswith('test_') else _PREFIX[file] + name}"


SUITE = Suite(
    sdist="openai-agents==0.24.0",
    sha256="4b4b285f4fed81fdf1b4ac426a9101658d9cd29b4fb1aaeee18f639b77e704e3",
    files=(
        SESSION,
        "tests/memory/test_session_limit.py",
        ASYNC,
        ENCRYPTED,
        "tests/memory/test_openai_responses_compaction_session.py",
    ),
    plugin="openai_agents_sessions",
    options=("--timeout=60",),
    deselected={
        _node(file, name): why
        for why, files in (SQLITE | OWN).items()
        for file, names in files.items()
        for name in names
    },
)
