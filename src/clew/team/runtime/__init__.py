"""The team at work: the handlers that carry out the state machines on the trail."""
