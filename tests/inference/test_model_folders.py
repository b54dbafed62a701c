"""Models in folders: what is read from their files, what their vectors are, and which folders are refused."""

import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from recollect.errors import Misconfigured
from recollect.inference.embedding.folder import model_in
from recollect.inference.embedding.known_models import known
from recollect.inference.embedding.local import LocalEmbedder
from recollect.inference.embedding.tokenizing import tokenizer_in
from tests.inference.onnx_files import minilm_folder, table_model, write_folder

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "query", "passage", ":", "bees", "make", "honey", "Bees", "café", "cafe"]
TABLE = np.random.default_rng(7).standard_normal((len(TOKENS), 8)).astype(np.float32)
VOCABULARY = "\n".join(TOKENS).encode()
MEAN, CLS = {"pooling_mode_mean_tokens": True}, {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
SENTENCE = "Represent this sentence for searching relevant passages: "


def folder(place: Path, **changes: Any) -> Path:
    """A small model of BERT's kind; a name with __ is one in a folder, None leaves a file out."""
    files: dict[str, Any] = {
        "model.onnx": table_model(TABLE),
        "vocab.txt": VOCABULARY,
        "config.json": {"hidden_size": 8, "max_position_embeddings": 512},
        "1_Pooling/config.json": MEAN,
    } | {name.replace("__", "/").replace("_json", ".json").replace("_onnx", ".onnx"): c for name, c in changes.items()}
    return write_folder(place, {name: content for name, content in files.items() if content is not None})


@asynccontextmanager
async def embedder_of(place: Path) -> AsyncIterator[LocalEmbedder]:
    embedder = LocalEmbedder.in_folder(place)
    yield embedder
    embedder.close()


def unit(*rows: int, pooling: Callable[[Any], Any] = lambda rows: rows.mean(axis=0)) -> Any:
    vector = pooling(TABLE[list(rows)])
    return vector / np.linalg.norm(vector)


async def test_the_local_model_laid_out_as_an_export_makes_the_same_vectors(tmp_path: Path) -> None:
    local = LocalEmbedder.locate()
    assert local is not None
    async with embedder_of(minilm_folder(tmp_path / "all-MiniLM-L6-v2")) as embedder:
        assert embedder.dimensions == 384
        assert embedder.model_id.startswith("onnx:all-MiniLM-L6-v2-")
        for text in ("Bees make honey.", "naïve café", "word " * 400):
            np.testing.assert_array_equal(await embedder.embed_query(text), await local.embed_query(text))
    local.close()


async def test_tokens_are_pooled_as_the_files_say(tmp_path: Path) -> None:
    async with embedder_of(folder(tmp_path / "mean")) as embedder:
        np.testing.assert_allclose(await embedder.embed_query("bees make"), unit(2, 7, 8, 3), atol=1e-6)
        # A row that was filled up counts for nothing.
        short, _ = await embedder.embed_documents(["bees", "bees make honey"])
        np.testing.assert_allclose(short, unit(2, 7, 3), atol=1e-6)
    async with embedder_of(folder(tmp_path / "cls", **{"1_Pooling__config_json": CLS})) as embedder:
        np.testing.assert_allclose(await embedder.embed_query("bees make"), unit(2), atol=1e-6)
    inside = table_model(TABLE, pooled=True)
    place = folder(tmp_path / "inside", model_onnx=inside, **{"1_Pooling__config_json": None})
    async with embedder_of(place) as embedder:
        np.testing.assert_allclose(await embedder.embed_query("bees make"), unit(2, 7, 8, 3), atol=1e-6)


async def test_prefixes_of_the_files_go_before_questions_and_documents(tmp_path: Path) -> None:
    prompts = {"prompts": {"query": "query: ", "document": "passage: "}}
    async with embedder_of(folder(tmp_path / "m", config_sentence_transformers_json=prompts)) as embedder:
        np.testing.assert_allclose(await embedder.embed_query("bees"), unit(2, 4, 6, 7, 3), atol=1e-6)
        (document,) = await embedder.embed_documents(["bees"])
        np.testing.assert_allclose(document, unit(2, 5, 6, 7, 3), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "pooling", "query", "document"),
    [
        ("all-MiniLM-L6-v2", "mean", "", ""),
        ("snowflake-arctic-embed-s", "cls", SENTENCE, ""),
        ("snowflake-arctic-embed-l-v2.0", "cls", "query: ", ""),
        ("bge-small-en-v1.5", "cls", SENTENCE, ""),
        ("bge-m3", "cls", "", ""),
        ("multilingual-e5-small", "mean", "query: ", "passage: "),
        ("gte-small", "mean", "", ""),
        ("nomic-embed-text-v1.5", "mean", "search_query: ", "search_document: "),
    ],
)
def test_known_models_are_used_as_their_makers_say(name: str, pooling: str, query: str, document: str) -> None:
    usage = known(name)
    assert usage is not None
    assert (usage.pooling, usage.query_prefix, usage.document_prefix) == (pooling, query, document)


def test_a_model_is_known_by_its_folder_its_config_or_its_place_in_the_cache(tmp_path: Path) -> None:
    bare = {"1_Pooling__config_json": None}
    by_folder = folder(tmp_path / "bge-small", **bare)
    config = {"_name_or_path": "intfloat/e5-small", "hidden_size": 8}
    by_config = folder(tmp_path / "mine", config_json=config, **bare)
    cached = folder(tmp_path / "models--intfloat--multilingual-e5-small" / "snapshots" / "c0ffee", **bare)
    assert model_in(by_folder).usage.query_prefix == SENTENCE
    assert model_in(by_config).usage.document_prefix == "passage: "
    assert model_in(cached).usage.document_prefix == "passage: "
    assert model_in(cached).model_id.startswith("onnx:multilingual-e5-small-")


def test_its_id_is_of_the_files_and_the_name_and_not_of_the_path(tmp_path: Path) -> None:
    first = model_in(folder(tmp_path / "a" / "m"))
    assert first.model_id == model_in(folder(tmp_path / "b" / "m")).model_id
    others = [
        folder(tmp_path / "c" / "m", model_onnx=table_model(TABLE + 1)),
        folder(tmp_path / "d" / "m", **{"1_Pooling__config_json": CLS}),
        folder(tmp_path / "e" / "m", config_sentence_transformers_json={"prompts": {"document": "d: "}}),
    ]
    ids = {model_in(other).model_id for other in others}
    assert len(ids) == 3
    assert first.model_id not in ids


async def test_weights_in_a_file_beside_are_loaded_and_part_of_the_id(tmp_path: Path) -> None:
    place = folder(tmp_path / "m", model_onnx=table_model(TABLE, weights=tmp_path / "model.onnx_data"))
    (tmp_path / "model.onnx_data").rename(place / "model.onnx_data")
    before = model_in(place).model_id
    async with embedder_of(place) as embedder:
        np.testing.assert_allclose(await embedder.embed_query("bees make"), unit(2, 7, 8, 3), atol=1e-6)
    (place / "model.onnx_data").write_bytes((TABLE * 2).tobytes())
    assert model_in(place).model_id != before


async def test_case_and_accents_are_kept_where_the_files_say_so(tmp_path: Path) -> None:
    cased = folder(tmp_path / "cased", tokenizer_config_json={"do_lower_case": False})
    assert tokenizer_in(cased, 16).encode("Bees café") == [2, 10, 11, 3]
    accents = folder(tmp_path / "accents", tokenizer_config_json={"strip_accents": False})
    assert tokenizer_in(accents, 16).encode("BEES CAFÉ") == [2, 7, 11, 3]
    assert tokenizer_in(folder(tmp_path / "plain"), 16).encode("BEES CAFÉ") == [2, 7, 12, 3]


def test_a_tokenizer_file_of_bert_has_the_tokens_of_the_library(tmp_path: Path) -> None:
    described = Tokenizer(models.WordPiece({token: n for n, token in enumerate(TOKENS)}, unk_token="[UNK]"))
    described.normalizer = normalizers.BertNormalizer(lowercase=False)
    described.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    described.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    described.save(str(tmp_path / "tokenizer.json"))
    text = "Bees make: café, bees! \ud83d\udc1d"
    ours = tokenizer_in(tmp_path, 16)
    assert type(ours).__name__ == "WordPiece"
    assert ours.encode("Bees make: café, bees!") == described.encode("Bees make: café, bees!").ids
    assert ours.encode(text)[0] == 2


def unigram_folder(place: Path) -> Path:
    """A model with a SentencePiece tokenizer, as multilingual ones have; rows of the same meaning are the same."""
    pieces = [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        "▁query",
        "▁passage",
        ":",
        "▁bees",
        "▁abejas",
        "▁蜜蜂",
        "▁honey",
        "▁miel",
    ]
    tokenizer = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], unk_id=3, byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.enable_padding(pad_id=1, pad_token="<pad>")
    rows = np.random.default_rng(3).standard_normal((len(pieces), 16)).astype(np.float32)
    rows[8] = rows[9] = rows[7]
    rows[11] = rows[10]
    rows[:7] *= 0.1
    write_folder(place, {"onnx/model.onnx": table_model(rows), "config.json": {"hidden_size": 16}})
    tokenizer.save(str(place / "tokenizer.json"))
    return place


async def test_a_multilingual_model_finds_a_text_in_another_language(tmp_path: Path) -> None:
    async with embedder_of(unigram_folder(tmp_path / "multilingual-e5-small")) as embedder:
        bees, honey = await embedder.embed_documents(["abejas", "miel"])
        asked = await embedder.embed_query("蜜蜂")
        assert asked @ bees > asked @ honey + 0.3
        assert (await embedder.embed_query("bees \ud800")).shape == (16,)


def test_without_the_library_the_sentence_says_what_to_install(tmp_path: Path) -> None:
    place = unigram_folder(tmp_path / "multilingual-e5-small")
    program = (
        "import sys, asyncio, pathlib; sys.modules['tokenizers'] = None\n"
        "from recollect.inference.embedding.local import LocalEmbedder\n"
        f"embedder = LocalEmbedder.in_folder(pathlib.Path({str(place)!r}))\n"
        "asyncio.run(embedder.load())"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "needs the package tokenizers: install it with `pip install 'recollect[onnx]'`" in ended.stderr


def test_a_folder_that_lacks_something_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    two = folder(tmp_path / "two", onnx__model_quantized_onnx=table_model(TABLE))
    for place, sentence in (
        (tmp_path / "absent", "absent is not a folder: write onnx: followed by the path"),
        (folder(tmp_path / "file") / "config.json", r"config\.json is not a folder: write onnx: followed by the path"),
        (tmp_path / "empty", r"empty has no ONNX file: put the model's onnx/model\.onnx there"),
        (folder(tmp_path / "mute", **{"vocab.txt": None}), r"mute has no tokenizer: put the model's tokenizer\.json"),
        (two, r"two has several ONNX files \(model\.onnx, onnx/model_quantized\.onnx\): name one, as in onnx:"),
        (folder(tmp_path / "json", config_json=b"{"), r"config\.json cannot be read as JSON"),
        (folder(tmp_path / "wide", config_json={"hidden_size": 4096}), "4,096 dimensions: at most 3,072 can be stored"),
    ):
        with pytest.raises(Misconfigured, match=sentence):
            model_in(place)
    assert model_in(two / "onnx" / "model_quantized.onnx").folder == two


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"model_onnx": b"not a model"},
            r"model\.onnx cannot be run: download the model's files into the folder again",
        ),
        (
            {
                "config_json": {"hidden_size": 7},
            },
            "produces vectors with 8 dimensions instead of 7",
        ),
        ({"tokenizer_json": b"{}"}, "The tokenizer in .* cannot be read"),
        ({"vocab.txt": b"just\nwords"}, "The tokenizer in .* cannot be read"),
        ({"1_Pooling__config_json": None}, r"gives a vector for every token: put the model's 1_Pooling/config\.json"),
        ({"1_Pooling__config_json": {"pooling_mode_lasttoken": True}}, "needs pooling_mode_lasttoken, which is not"),
        ({"modules_json": [{"type": "sentence_transformers.models.Dense"}]}, "needs a dense layer after pooling"),
        ({"model_onnx": table_model(TABLE, extra_input=b"pixels")}, "wants the input pixels"),
    ],
)
async def test_a_model_that_cannot_be_used_is_refused_when_it_is_loaded(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    async with embedder_of(folder(tmp_path / "mine", **changes)) as embedder:
        with pytest.raises(Misconfigured, match=sentence):
            await embedder.load()


async def test_the_path_setting_takes_a_folder_too(tmp_path: Path) -> None:
    embedder = LocalEmbedder.locate(folder(tmp_path / "mine"))
    assert embedder is not None
    assert (await embedder.embed_query("bees")).shape == (8,)
    embedder.close()


async def test_dimensions_that_no_file_tells_are_learned(tmp_path: Path) -> None:
    async with embedder_of(folder(tmp_path / "mine", config_json=None)) as embedder:
        assert embedder.dimensions is None
        await embedder.load()
        assert embedder.dimensions == 8


async def test_files_that_change_under_way_are_refused(tmp_path: Path) -> None:
    place = folder(tmp_path / "mine")
    async with embedder_of(place) as embedder:
        shutil.copy(place / "vocab.txt", place / "model.onnx")
        with pytest.raises(Misconfigured, match="is not the expected file"):
            await embedder.load()
