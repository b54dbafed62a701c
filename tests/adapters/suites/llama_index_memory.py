"""The tests of LlamaIndex's SQL chat store and of the memory that keeps its history in one, from its repository."""

from tests.adapters.suite import Suite

STORE = "tests/storage/chat_store/test_sql.py"

SUITE = Suite.of_checkout(
    "llama_index/llama-index-core",
    (STORE, "tests/memory/test_memory_base.py", "tests/memory/test_memory_blocks_base.py"),
    "llama_index_memory",
    deselected={
        f"{STORE}::test_delete_message": "of the ids in the makers' table",
        f"{STORE}::test_dump_load_store": "of the names of the makers' database and table",
    },
)
