"""The context of a model: seeds, graph walk, scores, budget, sections and a receipt."""
