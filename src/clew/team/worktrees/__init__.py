"""Git work trees of the team: one for a session, one for each pipeline, and the merges between them."""
