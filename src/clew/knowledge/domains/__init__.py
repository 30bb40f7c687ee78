"""What is known, as domains of the catalog: entry points that teach, and guidance to the next question."""
