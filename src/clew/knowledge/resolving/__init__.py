"""From a question to an answer with its sources: intent, caches, search over all domains, a model where it must be."""
