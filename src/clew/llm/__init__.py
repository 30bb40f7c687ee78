"""Models and what serves them: embedders and the semantic cache."""

from clew.llm.embedders import HashEmbedder, open_embedder

__all__ = ["HashEmbedder", "open_embedder"]
