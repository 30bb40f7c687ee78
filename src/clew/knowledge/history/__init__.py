"""History: the journal of sessions, decisions, changelogs, beliefs and lessons."""
