"""Known models: how families of embedding models want their texts, where the files of an export do not say."""

from dataclasses import dataclass

# Passages have fewer tokens, and longer texts cost more than their length.
MOST_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Usage:
    """What goes before a text, how many tokens a model is given, and how its output becomes one vector."""

    pooling: str | None = None
    """`mean` or `cls`; None if nothing says, which is enough for a network that pools itself."""
    query_prefix: str = ""
    document_prefix: str = ""
    max_tokens: int = MOST_TOKENS


_SENTENCE = "Represent this sentence for searching relevant passages: "
_CHINESE_SENTENCE = "为这个句子生成表示以用于检索相关文章："
_INSTRUCTION = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "

# By how the name of a model begins. Its length is in its files.
_FAMILIES = {
    "all-minilm": Usage("mean", max_tokens=256),
    "all-mpnet-base": Usage("mean"),
    "arctic-embed": Usage("cls", _SENTENCE),
    "arctic-embed-l-v2.0": Usage("cls", "query: "),
    "arctic-embed-m-v2.0": Usage("cls", "query: "),
    "bge-base": Usage("cls", _SENTENCE),
    "bge-base-zh": Usage("cls", _CHINESE_SENTENCE),
    "bge-large": Usage("cls", _SENTENCE),
    "bge-large-zh": Usage("cls", _CHINESE_SENTENCE),
    "bge-m3": Usage("cls"),
    "bge-small": Usage("cls", _SENTENCE),
    "bge-small-zh": Usage("cls", _CHINESE_SENTENCE),
    "e5": Usage("mean", "query: ", "passage: "),
    "gte": Usage("mean"),
    "gte-base-en-v1.5": Usage("cls"),
    "gte-large-en-v1.5": Usage("cls"),
    "gte-multilingual": Usage("cls"),
    "jina-embeddings-v2": Usage("mean"),
    "multilingual-e5": Usage("mean", "query: ", "passage: "),
    "multilingual-e5-large-instruct": Usage("mean", _INSTRUCTION),
    "mxbai-embed-large": Usage("cls", _SENTENCE),
    "nomic-embed-text": Usage("mean", "search_query: ", "search_document: "),
    "paraphrase-multilingual": Usage("mean", max_tokens=128),
}


def known(name: str) -> Usage | None:
    """The usage of the family that a model's name belongs to."""
    name = name.lower().removeprefix("snowflake-")
    families = [family for family in _FAMILIES if name == family or name.startswith(f"{family}-")]
    return _FAMILIES[max(families, key=len)] if families else None
