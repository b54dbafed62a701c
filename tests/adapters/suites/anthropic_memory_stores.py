"""The tests of memory stores in the Anthropic SDK's client, against a real server."""

from tests.adapters.suite import Suite

_FOLDER = "tests/api_resources/beta"
_CLASSES = {
    f"{_FOLDER}/test_memory_stores.py": "MemoryStores",
    f"{_FOLDER}/memory_stores/test_memories.py": "Memories",
    f"{_FOLDER}/memory_stores/test_memory_versions.py": "MemoryVersions",
}
_CLIENTS = {"Test": ("loose", "strict"), "TestAsync": ("loose", "strict", "aiohttp")}
_PLACEHOLDERS = "asks for limit=0 and page='page', which a mock takes; the API's pages have 1 to 100 results"

SUITE = Suite(
    sdist="anthropic==2.9.0",
    sha256="0a3379add94953db2dc736839bbafb0c624f6bec69caf13e44353d906c253981",
    files=tuple(_CLASSES),
    plugin="anthropic_memory_stores",
    options=("-o", "addopts="),  # several processes would need a plugin, and more servers
    deselected={
        f"{file}::{begin}{name}::test_method_list_with_all_params[{client}]": _PLACEHOLDERS
        for file, name in _CLASSES.items()
        for begin, clients in _CLIENTS.items()
        for client in clients
    },
)
