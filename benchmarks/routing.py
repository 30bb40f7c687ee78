"""The quality of routing without a model: accuracy, and precision of decisions that the router calls certain.
Cross-validated: no message is judged by a classifier that saw it or another message of its session.

Usage: routing.py [--data DIR] [--seeds N] [--shipped] [--json FILE]

The certainty threshold of each fold is chosen on the other folds. The exit code is 1 if a target is missed; without the
data, it skips with a note.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import train_router as training

from clew.team.commands import read_command

SETS = {"dev": "routing_dev", "real": "routing_real_dev"}
PUBLISHED = {
    "rules of 2026-11-17 (published)": {"dev": (0.48, 0.48, 0.42, 0.68), "real": (0.54, 0.54, None, None)},
    "logistic regression (published)": {"dev": (0.58, None, None, None), "real": (0.70, None, None, None)},
}
"""As in `Row`; from ../shared/data/README.md. Not measured here: the rows of routing_dev are over that set and another
half of it that is kept apart, so they are no like-for-like comparison."""
SHIPPED = "classifier as shipped, with our own messages"
WANTED = 0.95
SAME = 0.6
Row = tuple[float, float | None, float | None, float | None]
"""Four shares: messages whose best guess is right, messages routed right if the Architect gets all uncertain ones,
messages that are called certain, and those of them that are right."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=training.DATA)
    parser.add_argument("--seeds", type=int, default=3, help="how many ways to split the folds")
    parser.add_argument("--shipped", action="store_true", help="judge only the classifier as shipped")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    try:
        data = training.read_data(options.data)
    except OSError as error:
        print(f"skipped: routing needs {error.filename}")
        return
    rows: dict[str, dict[str, Row]] = {"always architect": always_architect(data), **PUBLISHED}
    commands = check_commands(data)
    classifiers = {
        "classifier, trained on the dev sets alone": data,
        SHIPPED: [*data, *training.read_own()],
    }
    for name, messages in classifiers.items():
        if options.shipped and name != SHIPPED:
            continue
        rows[name], rows[f"{name}, without commands"] = evaluate(messages, options.seeds)
    show(rows, commands)
    print(f"Training messages of our own that nearly equal one of the sets: {count_leaks(data)}.")
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "commands": commands}, indent=1), encoding="utf-8")
    shipped = rows[SHIPPED]
    missed = [name for name, row in shipped.items() if row[3] is None or row[3] < WANTED]
    if missed or commands[0] != commands[1]:
        sys.exit(f"missed: right where certain on {', '.join(missed)}" if missed else "missed: commands")


def count_leaks(data: list[training.Message]) -> int:
    """The number of training messages that share most of their words with a test message."""
    words = [_words(each.text) for each in data]
    own = [_words(each.text) for each in training.read_own()]
    return sum(any(len(mine & theirs) >= SAME * len(mine | theirs) for theirs in words) for mine in own)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W_]+", text.lower()))


def always_architect(messages: list[training.Message]) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for source in SETS:
        right = ["architect" in each.accept for each in messages if each.source == source]
        share = sum(right) / len(right)
        found[source] = (share, share, None, None)
    return found


def check_commands(messages: list[training.Message]) -> tuple[int, int]:
    """The number of slash commands with an accepted target, and of all."""
    commands = [(each, read_command(each.text)) for each in messages if each.is_command]
    return sum(found is not None and found[0].value in each.accept for each, found in commands), len(commands)


def evaluate(messages: list[training.Message], seeds: int) -> tuple[dict[str, Row], dict[str, Row]]:
    """Accuracy, coverage and precision where certain on each set, over several splits; then without commands."""
    matrix = training.feature_matrix(messages)
    judged = [_judge(messages, matrix, seed) for seed in range(seeds)]
    found: tuple[dict[str, Row], dict[str, Row]] = {}, {}
    for source in SETS:
        members = np.array([each.source == source for each in messages])
        plain = members & np.array([not each.is_command for each in messages])
        for table, chosen in zip(found, (members, plain), strict=True):
            table[source] = _row(judged, chosen)
    return found


Judged = tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]


def _judge(messages: list[training.Message], matrix: training.Floats, seed: int) -> Judged:
    """Whether the best guess of each message is right, whether the router is certain of it, and whether the message is
    routed right."""
    predicted, folds = training.cross_validate(messages, matrix, seed), training.fold_of(messages, seed)
    right, certain = training.judge(messages, predicted), np.zeros(len(messages), bool)
    for fold in range(training.FOLDS):
        rest = np.flatnonzero((folds != fold) & (folds >= 0))
        threshold = training.choose_threshold([messages[at] for at in rest], predicted[rest])
        certain |= (folds == fold) & (predicted.max(axis=1) >= threshold)
    for at, message in enumerate(messages):
        command = read_command(message.text)
        if command is not None:
            right[at], certain[at] = command[0].value in message.accept, True
    default = np.array(["architect" in each.accept for each in messages])
    return right, certain, np.where(certain, right, default)


def _row(judged: list[Judged], chosen: NDArray[np.bool_]) -> Row:
    right = np.concatenate([each[0][chosen] for each in judged])
    certain = np.concatenate([each[1][chosen] for each in judged])
    precision = float(right[certain].mean()) if certain.any() else None
    routed = np.concatenate([each[2][chosen] for each in judged])
    return float(right.mean()), float(routed.mean()), float(certain.mean()), precision


def show(rows: dict[str, dict[str, Row]], commands: tuple[int, int]) -> None:
    print("| router without a model | set | best guess right | routed right | certain | right where certain |")
    print("|---|---|---|---|---|---|")
    for name, sets in rows.items():
        for source, row in sets.items():
            print(f"| {name} | {SETS[source]} | {' | '.join(_shown(each) for each in row)} |")
    print("\nPublished rows were measured elsewhere, on routing_dev together with its other half.")
    print(f"Slash commands: {commands[0]} of {commands[1]} right.")


def _shown(value: Any) -> str:
    return "–" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    main()
