"""Small ONNX files, written field by field, and folders as Hugging Face's exports lay them out."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.inference.embedding.model_file import ModelFile

INT64, FLOAT = 7, 1


def table_model(
    table: NDArray[np.float32], *, pooled: bool = False, extra_input: bytes = b"", weights: Path | None = None
) -> bytes:
    """A network whose hidden state for a token is a row of the table; its weights go into another file if one is named.

    With `pooled` it also gives the mean over all tokens as `sentence_embedding`.
    """
    content = table.astype("<f4").tobytes()
    initializer = b"".join(_number(1, size) for size in table.shape) + _number(2, FLOAT) + _field(8, b"table")
    if weights is None:
        initializer += _field(9, content)
    else:
        weights.write_bytes(content)
        initializer += _field(13, _field(1, b"location") + _field(2, weights.name.encode())) + _number(14, 1)
    nodes = [_node(b"Gather", [b"table", b"input_ids"], b"last_hidden_state")]
    outputs = [_tensor(b"last_hidden_state", FLOAT, 3)]
    if pooled:
        axes = _field(5, _field(1, b"axes") + _number(8, 1) + _number(20, 7))
        flat = _field(5, _field(1, b"keepdims") + _number(3, 0) + _number(20, 2))
        nodes.append(_node(b"ReduceMean", [b"last_hidden_state"], b"sentence_embedding", axes + flat))
        outputs.append(_tensor(b"sentence_embedding", FLOAT, 2))
    inputs = [_tensor(name, INT64, 2) for name in (b"input_ids", b"attention_mask", extra_input) if name]
    graph = b"".join(
        [_field(1, node) for node in nodes]
        + [_field(2, b"g"), _field(5, initializer)]
        + [_field(11, each) for each in inputs]
        + [_field(12, each) for each in outputs]
    )
    return _number(1, 8) + _field(7, graph) + _field(8, _number(2, 17))


def write_folder(folder: Path, files: dict[str, Any]) -> Path:
    """A folder with these files: bytes as they are, everything else as JSON."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return folder


def minilm_folder(folder: Path) -> Path:
    """The bundled model with its vocabulary, as its export lies on Hugging Face."""
    file = ModelFile.of_wheel()
    assert file is not None
    (folder / "onnx").mkdir(parents=True)
    shutil.copy(file.path, folder / "onnx" / "model.onnx")
    from importlib.resources import files

    vocabulary = (files("recollect.inference") / "data" / "vocab.txt").read_bytes()
    pooling = {"word_embedding_dimension": 384, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    return write_folder(
        folder,
        {
            "vocab.txt": vocabulary,
            "config.json": {"model_type": "bert", "hidden_size": 384, "max_position_embeddings": 512},
            "tokenizer_config.json": {"do_lower_case": True, "model_max_length": 512},
            "sentence_bert_config.json": {"max_seq_length": 256, "do_lower_case": False},
            "1_Pooling/config.json": pooling,
        },
    )


def _node(operator: bytes, inputs: Sequence[bytes], output: bytes, attributes: bytes = b"") -> bytes:
    return b"".join(_field(1, name) for name in inputs) + _field(2, output) + _field(4, operator) + attributes


def _tensor(name: bytes, element: int, axes: int) -> bytes:
    shape = _field(2, _field(1, _field(2, b"n")) * axes)
    return _field(1, name) + _field(2, _field(1, _number(1, element) + shape))


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _varint(value: int) -> bytes:
    groups = []
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])
