"""Indexing of sources: from documents to resources on the trail."""
