"""Opens what is known of the code of a folder."""

from __future__ import annotations

from pathlib import Path

from clew.clock import Clock
from clew.knowledge.code.files import Tree
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.index import Indexer
from clew.knowledge.code.link_worker import LinksApart
from clew.knowledge.code.store import CodeStore
from clew.knowledge.code.text_index import TextIndex
from clew.trail.store import Embedder

FILE = "code.db"


def open_code(folder: Path, root: Path, clock: Clock, embedder: Embedder | None) -> CodeGraph:
    """The code below `root`, with its store in `folder`. Nothing is read yet: what is known from before answers at
    once, and `refresh` brings it up to date. Close it, or use it as a context. Raises StorageError."""
    store = CodeStore(folder / FILE)
    tree = Tree(root)
    text = TextIndex(store, embedder)
    links = LinksApart(store, tree.root)
    return CodeGraph(tree, store, Indexer(tree, store, text, links, clock), text)
