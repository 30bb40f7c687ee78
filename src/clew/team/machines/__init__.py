"""State machines of the team, without I/O: each `step` takes a state and a message, and returns the new state and the
effects that the coordinator carries out."""
