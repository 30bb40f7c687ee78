"""What a model sees: seeds, graph walk, score, budget, sections, and a receipt for all of it."""
