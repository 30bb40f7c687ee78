"""From a question to cited passages: parse once, look names up first, dispatch to a typed handler, else search."""
