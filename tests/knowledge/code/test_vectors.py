"""Vectors in a quarter of the room (the int8 mode of SYL-117)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from clew.knowledge.code.search.postings import compact, products
from clew.llm import open_embedder

ROOT = Path(__file__).parents[3]


def real_texts() -> list[str]:
    """The paragraphs of this project's own documents and modules."""
    files = sorted([*ROOT.glob("docs/**/*.md"), *(ROOT / "src" / "clew" / "trail").rglob("*.py")])
    parts = (part.strip() for file in files for part in file.read_text().split("\n\n"))
    return list(dict.fromkeys(part for part in parts if len(part) > 40))


@pytest.mark.req("SYL-117")
def test_real_texts_are_found_as_before_in_a_quarter_of_the_room() -> None:
    embedder = open_embedder("wordllama")
    assert embedder is not None
    texts = real_texts()
    assert len(texts) > 1_000
    vectors = np.frombuffer(b"".join(embedder.embed(texts)), np.float32).reshape(len(texts), -1)
    small = compact(vectors)
    found = kept = 0
    for query in vectors[::10]:
        exact = set(np.argsort(-(vectors @ query))[:10].tolist())
        kept += len(exact & set(np.argsort(-products(query, small))[:10].tolist()))
        found += 10
    assert kept / found >= 0.97, "of ten, less than 0.3 are lost"
    assert small.size / vectors.nbytes <= 0.26


def test_products_are_close_and_zeros_stay_zeros() -> None:
    vectors = np.array([[3, 4], [0, 0], [-1, 0.001]], np.float32)
    small = compact(vectors)
    assert products(np.array([1, 1], np.float32), small) == pytest.approx([7, 0, -0.999], abs=0.05)
    assert len(products(np.zeros(2, np.float32), compact(np.zeros((0, 2), np.float32)))) == 0
