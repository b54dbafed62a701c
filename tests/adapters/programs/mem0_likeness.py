"""Ours beside mem0's own classes: the same signatures, and the same keys in the answers to the same calls.

mem0 runs with its store in a temporary folder, and with stand-ins for the two models, which it asks over a network.
"""

import hashlib
import inspect
import json
import os
import tempfile
import warnings

home = tempfile.mkdtemp()
os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": home, "OPENAI_API_KEY": "none"}

import mem0  # noqa: E402
from mem0.utils.factory import EmbedderFactory, LlmFactory  # noqa: E402

from recollect.adapters.mem0 import AsyncMemory, Memory  # noqa: E402

METHODS = (
    "add",
    "search",
    "get_all",
    "get",
    "update",
    "delete",
    "delete_all",
    "history",
    "reset",
    "from_config",
    "chat",
)
DIMENSIONS = 16


def parameters(method):
    """Names, kinds and defaults; an object that stands for "not given" is as good as another."""
    return [
        (name, each.kind, type(each.default) if type(each.default) is object else each.default)
        for name, each in inspect.signature(method).parameters.items()
    ]


class Embedder:
    config = None

    def embed(self, text, memory_action=None):
        return [byte / 255 + 0.01 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSIONS]]

    def embed_batch(self, texts, memory_action=None):
        return list(map(self.embed, texts))


class Llm:
    config = None

    def generate_response(self, messages, **options):
        return json.dumps({"memory": [{"text": "The user likes tea."}, {"text": "The user lives in Lyon."}]})


def theirs():
    EmbedderFactory.create = lambda *_: Embedder()
    LlmFactory.create = lambda *_: Llm()
    store = {"provider": "qdrant", "config": {"path": f"{home}/store", "embedding_model_dims": DIMENSIONS}}
    return mem0.Memory.from_config({"vector_store": store, "history_db_path": f"{home}/history.db"})


def keys(answer):
    """The shape of an answer: its keys, and those of every result in it; what has none is its type."""
    if isinstance(answer, dict) and isinstance(answer.get("results"), list):
        return {"results": sorted({tuple(sorted(each)) for each in answer["results"]})}
    if isinstance(answer, list):
        return sorted({tuple(sorted(each)) for each in answer})
    return sorted(answer) if isinstance(answer, dict) else type(answer)


def shapes(memory):
    chat = [{"role": "user", "content": "I like tea.", "name": "Ann"}, {"role": "user", "content": "I live in Lyon."}]
    told = {"user_id": "ann", "metadata": {"category": "drinks"}, "expiration_date": "2100-01-01"}
    raw = memory.add(chat[:1], infer=False, **told)
    plain = memory.add(chat[1], infer=False, user_id="ann", agent_id="a", run_id="r")
    one = raw["results"][0]["id"]
    mine = {"user_id": "ann"}
    found = {
        "add raw": raw,
        "add plain": plain,
        "search": memory.search("I like tea.", filters=mine | {"category": "drinks"}, threshold=0),
        "search none": memory.search("tea", filters={"user_id": "nobody"}),
        "get_all": memory.get_all(filters=mine),
        "get": memory.get(one),
        "update": memory.update(one, text="I like green tea.", metadata={"hot": True}),
        "get after update": memory.get(one),
        "history": memory.history(one),
        "history none": memory.history("0198b2a6-6a35-7c7e-9f6e-2f1f5d1c9a51"),
        "delete": memory.delete(one),
        "get none": memory.get(one),
        "delete_all": memory.delete_all(user_id="ann"),
        "reset": memory.reset(),
    }
    return {name: keys(answer) for name, answer in found.items()}


for own, other in ((Memory, mem0.Memory), (AsyncMemory, mem0.AsyncMemory)):
    for name in METHODS:
        assert parameters(getattr(own, name)) == parameters(getattr(other, name)), (own, name)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    wanted, is_so = shapes(theirs()), shapes(Memory(url=os.environ["MEMORY_SERVER"]))
differing = {name: (wanted[name], is_so[name]) for name in wanted if wanted[name] != is_so[name]}
assert not differing, differing
