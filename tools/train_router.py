"""Train the router's classifier, and write its weights into the package.

Usage: train_router.py [--data DIR] [--out FILE]

Three sources: routing_dev.jsonl and routing_real_dev.jsonl of ../shared/data, and tools/router_messages.txt, which was
written for this purpose. Only weights are shipped, no message. The same sources give the same weights on one machine.

The probability that counts as certain is chosen on predictions for messages that the predicting model had not seen:
ten folds, all messages of one session in the same fold, split in three ways. `benchmarks/routing.py` measures the
result.
"""

from __future__ import annotations

import argparse
import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clew.llm.embedders import open_embedder
from clew.team.classifier import EMBEDDER, WEIGHTS, softmax
from clew.team.features import COLUMNS, MAX_EMBEDDED, hashed_features
from clew.team.route import FOLLOW_UP, RouteTarget

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
OWN = Path(__file__).parent / "router_messages.txt"
CLASSES = (*(each.value for each in RouteTarget), FOLLOW_UP)
SOURCES = {"dev": 1.5, "real": 1.0, "own": 0.8}
"""Weight of one message of each source: the dev set is even over targets, the real prompts are of one team."""
TARGET_SHARE = 0.6
"""Share of a label that the target gets; the targets that would be right as well share the rest."""
DECAY, STEPS, FOLDS, SPLITS = 3e-4, 150, 10, 3
WANTED = 0.98
"""Share of right answers among the certain ones, on unseen messages, of both dev sets together."""
LEAST = 0.97
"""The same on each of them."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One labelled message. Messages of one `group` are never split between training and evaluation."""

    text: str
    target: str
    accept: tuple[str, ...]
    source: str
    group: str

    @property
    def is_command(self) -> bool:
        return self.text.startswith("/")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    options = parser.parse_args()
    messages = [*read_data(options.data), *read_own()]
    matrix = feature_matrix(messages)
    unseen = sum(cross_validate(messages, matrix, seed) for seed in range(SPLITS)) / SPLITS
    certain_from = choose_threshold(messages, unseen)
    weights, bias = train(messages, matrix)
    write_weights(options.out, weights, bias, certain_from)
    size = options.out.stat().st_size
    print(f"{len(messages)} messages, certain from {certain_from:.3f}, {size:,} bytes: {options.out}")


def read_data(folder: Path) -> list[Message]:
    """The two dev sets. Raises OSError where they are absent."""
    found: list[Message] = []
    for source, name in (("dev", "routing_dev.jsonl"), ("real", "routing_real_dev.jsonl")):
        for line in (folder / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            accept = tuple(each for each in row["accept"] if each in CLASSES)
            group = row.get("session") or row["id"]
            found.append(Message(text=row["text"], target=row["target"], accept=accept, source=source, group=group))
    return found


def read_own(path: Path = OWN) -> list[Message]:
    """The messages of tools/router_messages.txt: `[target]`, then one message a line."""
    found: list[Message] = []
    target = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("[") and line[1:-1] in CLASSES:
            target = line[1:-1]
        elif line and not line.startswith("#"):
            found.append(Message(text=line, target=target, accept=(target,), source="own", group="own"))
    return found


def feature_matrix(messages: list[Message]) -> Floats:
    """A row for each message: hashed features, then the vector of the embedder."""
    embedder = open_embedder(EMBEDDER)
    assert embedder is not None
    matrix = np.zeros((len(messages), COLUMNS + embedder.dimension), np.float32)
    for row, message in zip(matrix, messages, strict=True):
        for column, value in hashed_features(message.text).items():
            row[column] = value
        row[COLUMNS:] = np.frombuffer(embedder.embed([message.text[:MAX_EMBEDDED]])[0], "<f4")
    return matrix.astype(np.float64)


def labels(messages: list[Message]) -> Floats:
    found = np.zeros((len(messages), len(CLASSES)))
    for row, message in zip(found, messages, strict=True):
        row[CLASSES.index(message.target)] += TARGET_SHARE
        for each in message.accept:
            row[CLASSES.index(each)] += (1 - TARGET_SHARE) / len(message.accept)
    return found


def train(messages: list[Message], matrix: Floats) -> tuple[Floats, Floats]:
    """Weights and bias of a multinomial logistic regression, by accelerated gradient descent.

    The weights are a combination of the messages' rows, so the descent runs over one number per message and class:
    the kernel of a thousand messages is much smaller than their features.
    """
    wanted, kernel = labels(messages), matrix @ matrix.T
    share = np.array([SOURCES[each.source] for each in messages])[:, None]
    share /= share.sum()
    rate = 1 / (0.125 * (kernel.diagonal().max() + 1) * share.max() * len(messages) + DECAY)
    weight = ahead = np.zeros_like(wanted)
    bias = bias_ahead = np.zeros(len(CLASSES))
    momentum = 1.0
    for _ in range(STEPS):
        error = (_probabilities(kernel @ ahead + bias_ahead) - wanted) * share
        new_weight = ahead - rate * (error + DECAY * ahead)
        new_bias = bias_ahead - rate * error.sum(axis=0)
        following = (1 + np.sqrt(1 + 4 * momentum * momentum)) / 2
        push = (momentum - 1) / following
        ahead, bias_ahead = new_weight + push * (new_weight - weight), new_bias + push * (new_bias - bias)
        weight, bias, momentum = new_weight, new_bias, following
    return matrix.T @ weight, bias


def _probabilities(scores: Floats) -> Floats:
    return softmax(scores.astype(np.float32)).astype(np.float64)


def fold_of(messages: list[Message], seed: int = 0) -> NDArray[np.int64]:
    """The fold of each message by its group; -1 for our own messages, which only train."""
    groups = sorted({each.group for each in messages if each.source != "own"})
    places = np.random.default_rng(seed).permutation(len(groups))
    folds = {group: int(place) % FOLDS for group, place in zip(groups, places, strict=True)}
    return np.array([folds.get(each.group, -1) if each.source != "own" else -1 for each in messages])


def cross_validate(messages: list[Message], matrix: Floats, seed: int = 0) -> Floats:
    """For each message the probabilities by a model that saw no message of its group; zeros for our own."""
    folds = fold_of(messages, seed)
    found = np.zeros((len(messages), len(CLASSES)))
    for fold in range(FOLDS):
        rest = np.flatnonzero(folds != fold)
        weights, bias = train([messages[at] for at in rest], matrix[rest])
        found[folds == fold] = _probabilities(matrix[folds == fold] @ weights + bias)
    return found


def judge(messages: list[Message], predicted: Floats) -> NDArray[np.bool_]:
    """Whether the most likely class of each message is an accepted one."""
    return np.array(
        [CLASSES[row.argmax()] in each.accept for each, row in zip(messages, predicted, strict=True)], dtype=bool
    )


def choose_threshold(messages: list[Message], predicted: Floats) -> float:
    """The lowest probability from which enough answers are right, of both sets and of each; commands do not count."""
    right, top = judge(messages, predicted), predicted.max(axis=1)
    sets = [np.array([each.source == name and not each.is_command for each in messages]) for name in ("dev", "real")]
    both = sets[0] | sets[1]
    chosen = 1.0
    for threshold in sorted(set(top[both]), reverse=True):
        claimed = top >= threshold
        shares = [right[claimed & each].mean() if (claimed & each).any() else 1.0 for each in sets]
        if right[claimed & both].mean() >= WANTED and min(shares) >= LEAST:
            chosen = threshold
    return float(chosen)


def write_weights(path: Path, weights: Floats, bias: Floats, certain_from: float) -> None:
    """The weights as an .npz file, byte for byte the same for the same numbers."""
    hashed = weights[:COLUMNS]
    scale = np.abs(hashed).max(axis=0) / 127
    embedder = open_embedder(EMBEDDER)
    arrays = {
        "classes": np.array(CLASSES),
        "hashed": np.round(hashed / scale).astype(np.int8),
        "scale": scale.astype(np.float32),
        "embedded": weights[COLUMNS:].astype(np.float16),
        "bias": bias.astype(np.float32),
        "certain_from": np.float32(certain_from),
        "embedder": np.array(embedder.name if embedder else ""),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.asanyarray(array), allow_pickle=False)
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
