"""Traces and metrics of this process, for Prometheus and for OpenTelemetry collectors. No span, label or attribute
holds text of users, models or tools."""
