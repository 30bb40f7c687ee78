"""Models, and the parts that support them: embedders and the semantic cache."""

from clew.llm.embedders import HashEmbedder, open_embedder

__all__ = ["HashEmbedder", "open_embedder"]
