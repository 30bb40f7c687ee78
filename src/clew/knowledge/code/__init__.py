"""The code of a repository: what is defined where, and what uses what. All of it is derived from files and can be
built again; nothing here is the only copy of anything."""
