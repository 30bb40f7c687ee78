"""Knowledge of a repository: its `code`, its `git` log and `history`, `documents` of others and facts on the `project`.
`evidence` rates the trust in each source, `answering` answers questions, and `domains` offers all of it in the
catalog."""
