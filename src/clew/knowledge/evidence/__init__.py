"""How far a statement can be believed: seven small pieces, each of them a function or two."""
