"""Plans: their nodes, their order, their estimate, and their text."""
