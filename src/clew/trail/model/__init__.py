"""The records of a trail: breadcrumbs, events, edges, selectors and queries, without I/O."""
