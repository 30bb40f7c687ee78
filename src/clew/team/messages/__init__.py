"""Messages of the team: the envelope, the types, and the payload of each type."""
