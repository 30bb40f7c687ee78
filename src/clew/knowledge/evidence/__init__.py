"""Evidence of a statement: trust, origin and contradictions."""
