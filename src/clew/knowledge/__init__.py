"""Knowledge of a repository: its `code`, its `git` log and `history`, `documents` of others and facts of the `project`;
the trust in each (`evidence`), the answers to questions (`answering`), and all of it as `domains` of the catalog."""
