"""The trained classifier: logistic regression over hashed features and the default embedder.

`tools/train_router.py` writes the weights. The confidence is deliberately low: `CERTAIN` corresponds to the probability
above which the classifier was right on unseen messages, see `docs/guides/routing.md`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from clew.llm.embedders import open_embedder
from clew.team.features import MAX_EMBEDDED, hashed_features
from clew.team.route import CERTAIN
from clew.trail.store import Embedder

WEIGHTS = Path(__file__).parent / "router_weights.npz"
EMBEDDER = "wordllama"
WITHOUT_EMBEDDER = 0.79
"""The maximum confidence if the embedder that was used for training is not installed."""

Floats = NDArray[np.float32]


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """One column per class. `certain_from` is the probability that is mapped to the confidence `CERTAIN`."""

    classes: tuple[str, ...]
    hashed: NDArray[np.int8]
    scale: Floats
    embedded: Floats
    bias: Floats
    certain_from: float
    embedder: str


class Classification(msgspec.Struct, frozen=True, kw_only=True):
    """Classes with their probabilities, most likely first, and the calibrated confidence in the first one."""

    ranked: tuple[tuple[str, float], ...]
    confidence: float

    @property
    def best(self) -> str:
        return self.ranked[0][0]

    def probability(self, name: str) -> float:
        return dict(self.ranked).get(name, 0.0)


class Classifier:
    """Classifies a message in about a millisecond. May be used from several threads."""

    def __init__(self, weights: Weights, embedder: Embedder | None) -> None:
        self._weights = weights
        self._embedder = embedder if embedder is not None and embedder.name == weights.embedder else None

    def classify(self, text: str) -> Classification:
        """Return the classes of a message, most likely first."""
        probabilities = softmax(self._scores(text))
        order = np.argsort(-probabilities, kind="stable")
        ranked = tuple((self._weights.classes[at], float(probabilities[at])) for at in order)
        confidence = calibrate(ranked[0][1], self._weights.certain_from)
        return Classification(
            ranked=ranked, confidence=confidence if self._embedder is not None else min(confidence, WITHOUT_EMBEDDER)
        )

    def _scores(self, text: str) -> Floats:
        weights, features = self._weights, hashed_features(text)
        rows = weights.hashed[list(features)].astype(np.float32)
        values = np.fromiter(features.values(), np.float32, len(features))
        scores = (values @ rows) * weights.scale + weights.bias
        if self._embedder is not None:
            vector = np.frombuffer(self._embedder.embed([text[:MAX_EMBEDDED]])[0], "<f4")
            scores = scores + vector @ weights.embedded
        return np.asarray(scores, np.float32)


def calibrate(probability: float, certain_from: float) -> float:
    """Convert a probability to a confidence: piecewise linear from 0 to `CERTAIN`, and from there to 1."""
    if probability < certain_from:
        return CERTAIN * probability / certain_from
    return CERTAIN + (1 - CERTAIN) * (probability - certain_from) / max(1e-6, 1 - certain_from)


def softmax(scores: Floats) -> Floats:
    """Return probabilities along the last axis."""
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True), np.float32)


def read_weights(path: Path = WEIGHTS) -> Weights:
    """Read the weights that `tools/train_router.py` wrote."""
    with np.load(path, allow_pickle=False) as file:
        return Weights(
            classes=tuple(str(name) for name in file["classes"]),
            hashed=file["hashed"],
            scale=file["scale"],
            embedded=file["embedded"].astype(np.float32),
            bias=file["bias"],
            certain_from=float(file["certain_from"]),
            embedder=str(file["embedder"]),
        )


@cache
def open_classifier() -> Classifier:
    """Return the trained classifier. It is cached in the process."""
    return Classifier(read_weights(), open_embedder(EMBEDDER))
