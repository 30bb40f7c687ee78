"""The connections of a trail on PostgreSQL: server, errors, migrations, and the thread that appends to the log."""
