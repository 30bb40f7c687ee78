"""What is known of a repository: what exists (`code`), what was done (`history`) and what can be done (`references`),
how far any of it can be believed (`evidence`), and how a question is answered from it (`resolving`)."""
