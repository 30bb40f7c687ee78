"""Work on events: handlers, claims, webhooks and hygiene."""
