"""Search on PostgreSQL: answers from the memory of the process, or by queries of the server."""
