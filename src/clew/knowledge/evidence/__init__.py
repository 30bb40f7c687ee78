"""How far a statement can be believed, where it comes from, and what contradicts it."""
