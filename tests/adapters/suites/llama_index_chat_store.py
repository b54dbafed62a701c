"""The tests of LlamaIndex's chat store and of the memories that keep their history in one, from its repository."""

from tests.adapters.suite import Suite

STORE = "tests/storage/chat_store/test_simple_chat_store.py"
BUFFER = "tests/memory/test_chat_memory_buffer.py"
SUMMARY = "tests/memory/test_chat_summary_memory_buffer.py"
LOADING = "LlamaIndex loads only a store of its own from a text: give the memory ours instead, which has the messages"

SUITE = Suite.of_checkout(
    "llama_index/llama-index-core",
    (STORE, BUFFER, SUMMARY),
    "llama_index_chat_store",
    deselected={
        f"{STORE}::test_persist_non_ascii_unescaped": "of the file that only the store in memory needs",
        f"{BUFFER}::test_string_save_load": LOADING,
        f"{BUFFER}::test_dict_save_load": LOADING,
        f"{SUMMARY}::test_string_save_load": LOADING,
        f"{SUMMARY}::test_dict_save_load": LOADING,
    },
)
